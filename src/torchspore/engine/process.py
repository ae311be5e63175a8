"""The rank of this process, and the size of its run."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from torchspore.base.forks import at_fork


@dataclass(frozen=True)
class World:
    """This process among the processes of its run."""

    rank: int = 0
    size: int = 1


world = World()
"""The processes that `distributed.comm.groups` has connected; one process until it has."""


class _Fork:
    """The start of this process and of its workers."""

    def __init__(self) -> None:
        self.is_forked = False
        """True if this process was forked from one that ran torchspore: more than one thread of OpenMP may hang here."""
        self.forks_worker = False
        """True if the process that is being forked is a worker of a data pipeline, which computes nothing of the program's."""


FORK = _Fork()


def is_distributed() -> bool:
    """Return whether this process is one of several."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def rank() -> int:
    """Return the rank of this process; 0 if it is alone, unless RANK_ID is set."""
    if is_distributed():
        return torch.distributed.get_rank()
    rank_text = os.environ.get("RANK_ID", "")
    return int(rank_text) if rank_text.isdigit() else 0


def folder() -> str:
    """`rank_2` in the third process of a distributed run, `rank_0` in one process."""
    return f"rank_{rank()}"


@contextmanager
def forking_worker() -> Iterator[None]:
    """A block that forks a worker of a data pipeline."""
    FORK.forks_worker = True
    try:
        yield
    finally:
        FORK.forks_worker = False


def _in_child() -> None:
    """Use one OpenMP thread after a fork: OpenMP's threads are not copied, and the first parallel operator would wait for them forever."""
    FORK.is_forked = True
    torch.set_num_threads(1)


at_fork(after_in_child=_in_child)
