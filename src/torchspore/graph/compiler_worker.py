"""The other process of `tiers.compiler_process`: compiles graphs at low priority, and ends with the program that started it."""
from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PRIORITY = 13
"""The niceness of a process that must finish: about 5 % of a processor that the program keeps busy, and all of one that it leaves idle."""
_PATIENCE = 1.0
"""Seconds between two looks whether the parent still runs: the pipe may be open in another child of it."""


class _Channel:
    """Sends messages to the parent."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)                                  # whatever prints does not print into the pipe

    def send(self, **message: Any) -> None:
        self._file.write(json.dumps(message).encode() + b"\n")
        self._file.flush()

    def find(self, key: str) -> str | None:
        """The parent does not send its results."""
        return None

    def keep(self, key: str, choice: str) -> None:
        """Send a result."""
        self.send(keep=[key, choice])


class _Log:
    """Sends lines of the log; the parent reports everything else itself."""

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel

    def write(self, text: str) -> None:
        if text.startswith("[torchspore graph]"):
            self._channel.send(log=text.rstrip())

    def flush(self) -> None:
        """Nothing is buffered."""


def main(parent: int, only_when_idle: bool) -> None:
    """Compile the graphs that arrive on standard input until that ends, or `parent` ends.

    With `only_when_idle` the compilation runs only while a processor has nothing else to do, if the system can schedule it so.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)          # Ctrl-C is for the program, which then ends its pipe
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(parent, requests), daemon=True).start()
    _lower_priority(only_when_idle)
    channel = _Channel()
    sys.stderr = _Log(channel)
    while True:
        request = json.loads(requests.get())
        folder, failure = request["folder"], ""
        try:
            folder, failure = _compile(request, channel)
            error = ""
        except Exception as reason:                       # the program continues as at O0, and reports this
            error = f"{type(reason).__name__}: {next(iter(str(reason).splitlines()), '')[:200]}"
        channel.send(end=error, folder=folder, failure=failure)


def _listen(parent: int, requests: queue.SimpleQueue[bytes]) -> None:
    """Read requests; end this process with the parent."""
    rest = b""
    while os.getppid() == parent:
        if select.select([0], [], [], _PATIENCE)[0]:
            part = os.read(0, 1 << 20)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                requests.put(line)
    _end()


def _end() -> None:
    """End the compilers that run, which remove their temporary files then, and this process."""
    children = _children()
    for pid in children:
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGTERM)
            else:
                os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 2
    while children and time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in children):
        time.sleep(0.01)
    time.sleep(0.05 if children else 0)                   # the thread that waits for a compiler removes its target
    os._exit(0)


def _children() -> list[int]:
    pids: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += map(int, path.read_text().split())
    return pids


def _lower_priority(only_when_idle: bool) -> None:
    """Leave the processors to the program: low priority, and at most half of those that it may use.

    Linux changes this thread, which compiles and starts the compilers. The thread that waits for the end of the program stays as it is.
    """
    with contextlib.suppress(OSError):
        os.nice(_PRIORITY)
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE if only_when_idle else os.SCHED_BATCH, os.sched_param(0))
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, cores[len(cores) // 2:])


def _compile(request: dict[str, Any], channel: _Channel) -> tuple[str, str]:
    """Measure the forms of a graph and compile the fastest. Return Inductor's directory, and why kernels can't be compiled."""
    import importlib

    import torch

    from torchspore.engine.random import operator_streams
    from torchspore.graph import pipeline
    from torchspore.graph.backend import inductor, measurement, stored_graph
    from torchspore.graph.compile_cache import autotune_cache
    from torchspore.graph.fx import allowed_functions
    from torchspore.graph.fx.fingerprint import fingerprint, streams_of

    folder = _set_folder(request["folder"])
    for home in request["homes"]:
        if home.startswith("torchspore."):
            importlib.import_module(home)
    torch.set_num_threads(request["threads"])
    with allowed_functions.between_processes():
        graph = stored_graph.read(request["graph"], request["entry"])
    streams = [operator_streams.substitute(number) for number in streams_of(graph.module)]
    if fingerprint(graph.module, graph.settings) != request["key"]:
        raise ValueError("the graph from the pipe differs from the graph that was sent")
    with autotune_cache.stored_in(channel), measurement.timed_by(time.process_time), inductor.for_another_process():
        pipeline.compile_completely(graph.module, graph.inputs, graph.settings, graph.persistent)
    del streams
    return folder, inductor.failure() or ""


def _set_folder(requested: str) -> str:
    """Set Inductor's directory, and return its path."""
    if not requested:
        from torchspore.engine.torch_internals.torch_private import kernel_folder

        requested = kernel_folder()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = requested
    return requested
