"""The threads of the user's program."""
from __future__ import annotations

import threading

_SERVICE = ("torchspore", "torch", "tqdm", "execnet", "xdist", "IPython", "ipykernel", "zmq", "multiprocessing", "pytest_timeout")


def other_threads() -> list[str]:
    """The names of the program's threads that run beside this one; those that serve a library (its writers, its progress bars) left out.

    The main thread counts where another one asks.
    """
    return [
        thread.name for thread in threading.enumerate()
        if thread is not threading.current_thread() and not isinstance(thread, threading._DummyThread) and not _serves(thread)
    ]


def _serves(thread: threading.Thread) -> bool:
    if thread.name.startswith("torchspore-"):          # those of a pool have the home of Python's library
        return True
    target = getattr(thread, "_target", None)
    home = getattr(target, "__module__", None) or type(thread).__module__
    return home.split(".")[0] in _SERVICE
