"""A run of the C++ compiler in a separate process group, with a time limit."""
from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

SECONDS = "TORCHSPORE_COMPILER_SECONDS"
"""The environment variable with the seconds that one run of the compiler may take; 600 without it."""


_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
"""A group of its own, which a signal reaches with all of its processes. Linux divides time between sessions, so it stays in this one."""


class CompilerFailed(Exception):
    """The compiler failed or exceeded the limit; `output` is its output, or a sentence about the end."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output


def run(command: Sequence[str], folder: str) -> None:
    """Run a command in `folder`. The file after `-o` gets its name when the compiler has succeeded. Raises CompilerFailed."""
    words = list(command)
    output_index = words.index("-o") + 1 if "-o" in words else None
    target = temporary = ""
    if output_index is not None:
        target = words[output_index]
        words[output_index] = temporary = f"{target}.{os.getpid()}.{threading.get_ident()}"
    setpriv = shutil.which("setpriv")          # ends the compiler with this program, also if that is killed
    arguments = [setpriv, "--pdeathsig", "TERM", *words] if setpriv is not None else words
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **_GROUP)
    _keep_priority(process.pid)
    limit = _time_limit()
    try:
        try:
            output = process.communicate(timeout=limit)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise CompilerFailed(f"it was not done after {limit:g} s ({SECONDS} sets another limit)") from None
        if process.returncode:
            raise CompilerFailed(output or f"it ended with {process.returncode}")
        if temporary:
            os.replace(os.path.join(folder, temporary), os.path.join(folder, target))
    except BaseException:
        _end(process)
        if process.stdout is not None:
            process.stdout.close()
        if temporary and os.path.exists(os.path.join(folder, temporary)):
            os.remove(os.path.join(folder, temporary))
        raise


def _keep_priority(pid: int) -> None:
    """Give a compiler with its own session the priority of this process, which has an effect between the processes of one session."""
    priority = os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0
    if priority > 0 and "start_new_session" in _GROUP:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="utf-8") as file:
            file.write(str(priority))


def _time_limit() -> float:
    try:
        return float(os.environ.get(SECONDS, "")) or 600.0
    except ValueError:
        return 600.0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a compiler and its processes. g++ removes its temporary files at SIGTERM, not at SIGKILL."""
    try:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(2)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
