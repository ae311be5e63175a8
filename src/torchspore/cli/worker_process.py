"""One process of `torchspore workers` or `torchspore msrun`: not a command; it runs a program as `torchspore run` does."""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
import time
from types import FrameType

_DIES_WITH_PARENT = 1


def main(words: list[str]) -> int:
    """Set this process up as the launcher requires and run the program; return the exit code."""
    _end_with_launcher(int(os.environ.get("TORCHSPORE_LAUNCHER", "0")))
    signal.signal(signal.SIGTERM, _end_after_exchange)
    with open(os.environ["TORCHSPORE_WORKER_PIDS"], "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    log = os.open(os.environ["TORCHSPORE_WORKER_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    cores = os.environ.get("TORCHSPORE_WORKER_CORES")
    if cores:
        os.sched_setaffinity(0, cores_of(cores))
    _set_mindspore_variables()
    try:
        from torchspore.cli import run

        code = run.run(words)
    except KeyboardInterrupt:                               # before the program began: the launcher reports the end
        return 128 + signal.SIGINT
    if code:
        _save_error()
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End this process as Python does, except for the teardown of modules, which takes seconds that others and a restart wait for."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _end_with_launcher(launcher: int) -> None:
    """End this process with the launcher, even if that is killed."""
    if launcher and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != launcher:                        # the launcher had already ended
            os._exit(1)


REPORT_SECONDS = 4.0
"""How long a process may report that another one is gone. The launcher kills it after five seconds."""


def _end_after_exchange(number: int, frame: FrameType | None) -> None:
    """End this process by SIGTERM, but let an exchange whose partner is gone fail first: its error names the partner and the line.

    The launcher sends SIGTERM to all processes as soon as one of them ends, often before the others notice it.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    module = sys.modules.get("torchspore.distributed.comm.watchdog")
    if module is None or not module.is_waiting(frame):
        os.kill(os.getpid(), number)
        return
    watch, main_thread, until = module.watch, threading.get_ident(), time.monotonic() + REPORT_SECONDS

    def end() -> None:
        while time.monotonic() < until and (watch.is_broken or module.is_waiting(sys._current_frames().get(main_thread))):
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    threading.Thread(target=end, name="torchspore end", daemon=True).start()


def cores_of(text: str) -> set[int]:
    """Parse the cores in '0-3,8'. Raise ValueError."""
    cores: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        cores.update(range(int(first), int(last if dash else first) + 1))
    return cores


def _set_mindspore_variables() -> None:
    """Set the variables that programs read under MindSpore's msrun."""
    environment = os.environ
    if environment.get("TORCHSPORE_SERVERS"):               # the launcher has set the roles of a parameter server job
        environment.update(RANK_ID=environment["RANK"], RANK_SIZE=environment["WORLD_SIZE"], DEVICE_ID=environment["LOCAL_RANK"])
        _set_thread_count()
        return
    for ours, theirs in (
        ("RANK_ID", "RANK"), ("MS_NODE_ID", "RANK"), ("RANK_SIZE", "WORLD_SIZE"), ("MS_WORKER_NUM", "WORLD_SIZE"),
        ("MS_SCHED_HOST", "MASTER_ADDR"), ("MS_SCHED_PORT", "MASTER_PORT"), ("DEVICE_ID", "LOCAL_RANK"),
    ):
        environment[ours] = environment[theirs]
    environment["MS_ROLE"] = "MS_WORKER"
    _set_thread_count()


def _set_thread_count() -> None:
    """Give each process of this machine an equal share of its cores, unless the user has set OMP_NUM_THREADS."""
    environment = os.environ
    if "OMP_NUM_THREADS" not in environment or environment.get("TORCHELASTIC_RUN_ID"):
        share = len(os.sched_getaffinity(0)) // int(environment["LOCAL_WORLD_SIZE"])
        environment["OMP_NUM_THREADS"] = str(max(1, share)) if not environment.get("TORCHSPORE_WORKER_CORES") else str(
            len(os.sched_getaffinity(0)))


def _save_error() -> None:
    """Save the last line and the time of the error that ended the program, in the file that the launcher reads."""
    from torchspore.cli import program

    error = program.RUN.last_error
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if error is None or not path:
        return
    where = program.last_line(error.__traceback__)
    text = str(error)
    description = text if where is None or text.startswith(str(where).rsplit(":", 1)[0]) else f"{where}: {text}"
    message = {"message": f"{type(error).__name__}: {description}", "extraInfo": {"timestamp": str(int(time.time()))}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"message": message}, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
