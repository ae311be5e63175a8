"""What faulthandler writes: all threads of a program, each with its frames, the innermost first."""
from __future__ import annotations

import re
import signal

SIGNAL = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else getattr(signal, "SIGUSR2", 0)
"""The signal by which the watcher asks for them; real-time signals are nobody's."""
EXIT_SIGNAL = SIGNAL - 1
"""The signal by which the watcher ends a program whose Python code cannot run, where observe/debug/end_signals.cpp handles it."""
EXIT_CODE = 124
"""The exit code of a program that the watcher ended, as of `timeout`."""
_THREAD = re.compile(r"^(Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_NOT_THE_USERS = re.compile(
    r"/src/torchspore/|site-packages/(torchspore|torch|torch_npu|numpy|functorch)/|^<(?!stdin|string|ipython|python-input)"
    r"|/lib/python3[.0-9]*/(?!site-packages|dist-packages)|/bin/torchspore$"
)


def threads(dump: str) -> list[tuple[str, list[str]]]:
    """(Number in hexadecimal, lines of its frames) of each thread."""
    found: list[tuple[str, list[str]]] = []
    for line in dump.splitlines():
        head = _THREAD.match(line)
        if head:
            found.append((head.group(2), []))
        elif found and line.strip():
            found[-1][1].append(line)
    return found


def without_ours(dump: str) -> str:
    """The dump without the recorder's own thread."""
    parts = re.split(r"\n\n(?=Thread |Current thread )", dump.strip("\n"))
    return "\n\n".join(part for part in parts if "in _listen" not in part.partition("\n")[2].partition("\n")[0]) + "\n"


def current(dump: str) -> str:
    """The thread that the signal met."""
    lines = dump.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith("Current thread")), None)
    if start is None:
        return ""
    end = next((place for place in range(start + 1, len(lines)) if _THREAD.match(lines[place])), len(lines))
    return "\n".join(lines[start:end])


def of_thread(dump: str, number: int) -> str:
    """The frames of the thread that pthread_self names so; of the main thread, which is written last, where it is not among them."""
    found = threads(dump)
    return next(("\n".join(lines) for name, lines in found if int(name, 16) == number), "\n".join(found[-1][1]) if found else "")


def others(dump: str, number: int) -> list[str]:
    """The user's innermost line in each other thread that has one."""
    lines = [user_line("\n".join(frames)) for name, frames in threads(dump) if int(name, 16) != number]
    return [line for line in lines if line]


def user_line(frames: str) -> str:
    """`file:line` of the innermost frame of the user's, empty where there is none."""
    for line in frames.splitlines():
        frame = _FRAME.match(line)
        if frame and not _NOT_THE_USERS.search(frame.group(1)):
            return f"{frame.group(1)}:{frame.group(2)}"
    return ""
