"""How many threads the CPU kernels use."""

from __future__ import annotations

import os

import torch

from torchspore.context.effects import Outcome
from torchspore.engine import process

_at_start = torch.get_num_threads()


def cap(wanted: int) -> Outcome:
    """Makes `runtime_num_threads` act: CPU kernels use at most that many threads and at most one a core; 0 leaves it to torch."""
    cores = os.cpu_count() or 1
    threads = 1 if process.is_forked else min(wanted, cores) if wanted else _at_start
    if threads != torch.get_num_threads():
        torch.set_num_threads(threads)
    return Outcome.applied(f"CPU kernels use {threads} of {cores} cores")
