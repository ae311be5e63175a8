"""Threads that wait for lanes of graphs to run; they are kept from call to call."""
from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

import torch

Job = Callable[[], None]


class Worker(threading.Thread):
    """Runs what it is given, one after the other; its kernels use `threads` threads."""

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(name=name, daemon=True)
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._threads = threads
        self._is_ready = threading.Event()
        self.start()
        self._is_ready.wait()

    def give(self, job: Job) -> None:
        """Runs `job` as soon as what was given before is done; a job raises nothing."""
        self._jobs.put(job)

    def run(self) -> None:
        torch.set_num_threads(self._threads)     # OpenMP keeps this for each thread by itself
        self._is_ready.set()
        while True:
            job = self._jobs.get()
            job()
            del job                              # it holds the tensors of the call


_workers: dict[int, list[Worker]] = {}
_lock = threading.Lock()


def workers(count: int, threads: int) -> list[Worker]:
    """`count` workers whose kernels use `threads` threads each."""
    found = _workers.get(threads, [])
    if len(found) < count:
        with _lock:
            found = _workers.setdefault(threads, [])
            before = torch.get_num_threads()
            while len(found) < count:
                found.append(Worker(f"torchspore lane {len(found) + 1}", threads))
            torch.set_num_threads(before)        # MKL has one number for all threads, and a worker has set it
    return found[:count]


def _forget() -> None:
    """A forked process has none of these threads."""
    _workers.clear()


os.register_at_fork(after_in_child=_forget)
