"""Which process of a run this is."""
from __future__ import annotations

import os

import torch


def is_distributed() -> bool:
    """Whether this process is one of several."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def rank() -> int:
    """The place of this process among those of a distributed run; 0 where it is alone, unless RANK_ID says otherwise."""
    if is_distributed():
        return torch.distributed.get_rank()
    told = os.environ.get("RANK_ID", "")
    return int(told) if told.isdigit() else 0


def folder() -> str:
    """`rank_2` in the third process of a distributed run, `rank_0` in one process."""
    return f"rank_{rank()}"
