"""The threads of the user's program."""
from __future__ import annotations

import threading

_SERVICE = ("torchspore", "torch", "tqdm", "execnet", "xdist", "IPython", "ipykernel", "zmq", "multiprocessing", "pytest_timeout")


def other_threads() -> list[str]:
    """Return the names of the program's other threads, without those that serve a library (its writers, its progress bars).

    The main thread is included if another thread calls this function.
    """
    return [
        thread.name for thread in threading.enumerate()
        if thread is not threading.current_thread() and not isinstance(thread, threading._DummyThread) and not _serves(thread)
    ]


def _serves(thread: threading.Thread) -> bool:
    if thread.name.startswith("torchspore-"):          # the target of a pool's threads is defined in Python's library
        return True
    target = getattr(thread, "_target", None)
    home = getattr(target, "__module__", None) or type(thread).__module__
    return home.split(".")[0] in _SERVICE
