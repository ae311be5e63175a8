"""The output of faulthandler: all threads of a program, each with its frames, the innermost first."""
from __future__ import annotations

import re
import signal

SIGNAL = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else getattr(signal, "SIGUSR2", 0)
"""The signal by which the watcher requests the stacks; real-time signals have no other user."""
EXIT_SIGNAL = SIGNAL - 1
"""The signal by which the watcher ends a program whose Python code cannot run, where observe/debug/end_signals.cpp handles it."""
EXIT_CODE = 124
"""The exit code of a program that the watcher ended, as of `timeout`."""
_THREAD = re.compile(r"^(Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_LIBRARY_FILE = re.compile(
    r"/src/torchspore/|site-packages/(torchspore|torch|torch_npu|numpy|functorch)/|^<(?!stdin|string|ipython|python-input)"
    r"|/lib/python3[.0-9]*/(?!site-packages|dist-packages)|/bin/torchspore$"
)


def threads(dump: str) -> list[tuple[str, list[str]]]:
    """Return (hexadecimal number, lines of frames) of each thread."""
    dumps: list[tuple[str, list[str]]] = []
    for line in dump.splitlines():
        head = _THREAD.match(line)
        if head:
            dumps.append((head.group(2), []))
        elif dumps and line.strip():
            dumps[-1][1].append(line)
    return dumps


def remove_listener(dump: str) -> str:
    """Return the dump without the recorder's thread."""
    parts = re.split(r"\n\n(?=Thread |Current thread )", dump.strip("\n"))
    return "\n\n".join(part for part in parts if "in _listen" not in part.partition("\n")[2].partition("\n")[0]) + "\n"


def current(dump: str) -> str:
    """Return the thread that received the signal."""
    lines = dump.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith("Current thread")), None)
    if start is None:
        return ""
    end = next((index for index in range(start + 1, len(lines)) if _THREAD.match(lines[index])), len(lines))
    return "\n".join(lines[start:end])


def frames_of_thread(dump: str, number: int) -> str:
    """Return the frames of the thread with this pthread_self number, otherwise of the main thread, which is written last."""
    dumps = threads(dump)
    return next(("\n".join(lines) for name, lines in dumps if int(name, 16) == number), "\n".join(dumps[-1][1]) if dumps else "")


def others(dump: str, number: int) -> list[str]:
    """Return the user's innermost line in each other thread that has one."""
    lines = [user_line("\n".join(frames)) for name, frames in threads(dump) if int(name, 16) != number]
    return [line for line in lines if line]


def user_line(frames: str) -> str:
    """Return `file:line` of the user's innermost frame, "" if there is none."""
    for line in frames.splitlines():
        frame = _FRAME.match(line)
        if frame and not _LIBRARY_FILE.search(frame.group(1)):
            return f"{frame.group(1)}:{frame.group(2)}"
    return ""
