"""The number of threads of CPU kernels, and the cores of this process."""

from __future__ import annotations

import os

import torch

from torchspore.base import cores
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE
from torchspore.engine import process
from torchspore.translations import translate

_at_start = torch.get_num_threads()


class _Binding:
    """The cores that this process is bound to."""

    def __init__(self) -> None:
        self.cores: set[int] | None = None
        """The cores that the process had before `bind`."""


_BINDING = _Binding()


def set_limit(count: int) -> Outcome:
    """Apply `runtime_num_threads`: CPU kernels use at most that many threads and at most one a core; 0 leaves it to torch."""
    usable = cores.usable()
    threads = 1 if process.FORK.is_forked else min(count or _at_start, usable)
    if threads != torch.get_num_threads():
        torch.set_num_threads(threads)
    return Outcome.applied(translate("CPU kernels use {threads} of {count} cores").format(threads=threads, count=usable))


def no_more_than_cores() -> None:
    """Lower torch's number of threads if it exceeds the option's default: in a container with a share of many cores, or beyond 30 cores.

    More threads than cores wait for each other at the end of each operator. OMP_NUM_THREADS and TORCHSPORE's option take precedence.
    """
    usual = int(STORE.get("runtime_num_threads"))
    if "OMP_NUM_THREADS" not in os.environ and STORE.source("runtime_num_threads")[0] == DEFAULT and usual < torch.get_num_threads():
        torch.set_num_threads(usual)
        text = translate("CPU kernels use {threads} threads, torch would have taken {count} (runtime_num_threads)")
        effects.note("threads", text.format(threads=usual, count=_at_start))


def bind(cores: set[int]) -> None:
    """Bind all threads of this process, including those of CPU kernels, to these cores; kernels use at most one thread for each core.

    Raises ValueError if the process may not use one of them.
    """
    cores_now = os.sched_getaffinity(0) if _BINDING.cores is None else _BINDING.cores
    if not cores or not cores <= cores_now:
        raise ValueError(", ".join(map(str, sorted(cores_now))))
    _assign_cores(cores)
    _BINDING.cores = cores_now
    _apply_cap()
    text = translate("the process runs on the cores {cores}")
    effects.note("threads", text.format(cores=", ".join(map(str, sorted(cores)))))


def unbind() -> None:
    """Restore the cores that the process had before `bind`."""
    if _BINDING.cores is not None:
        _assign_cores(_BINDING.cores)
        _BINDING.cores = None
        _apply_cap()
        effects.note("threads", "the process may use all of its cores again")


def _assign_cores(cores: set[int]) -> None:
    """Set the cores of each existing thread; a new thread inherits those of the thread that starts it."""
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            continue


def _apply_cap() -> None:
    set_limit(0 if STORE.source("runtime_num_threads")[0] == DEFAULT else STORE.get("runtime_num_threads"))
