"""Random state: one seed for torch, NumPy, Python, initializers and datasets, as `mindspore.set_seed` promises."""
from __future__ import annotations

import hashlib
import os
import random
import threading
from typing import Any

import numpy as np
import torch

from torchspore.engine.random import generators
from torchspore.engine.tensors.tensor import frame

_lock = threading.Lock()


class _Seed:
    """The seed of the program, and how often it was set and derived from."""

    def __init__(self) -> None:
        self.value: int | None = None
        self.seedings = 0
        """How often `set_seed` was called: the holder of a seed sees which of both is later."""
        self.derivations = 0
        """How often `derive` returned a seed: code that must have no side effect sees that one was drawn."""


SEED = _Seed()
_counts: dict[str, int] = {}
SEED_FOR_ZERO = 87654321
"""The seed that MindSpore uses for a program seed of 0, because 0 means "not set" in its kernels."""

LARGEST_SEED = 2**31 - 1
KERNEL_SEED_STEP = 3528531795 ^ 3449720151

kernel_seeds: dict[tuple[str, int], int] = {}
"""Return the seed of the next operator of a kind (name, the operator's seed)."""


def starts_anew() -> None:
    """Called when a stream is started from a seed, which graphs cannot do."""
    around = frame()
    if around is not None:
        around.acts_beside("sets the seed of random numbers")


def set_seed(seed: int) -> None:
    """Restart every stream from `seed`: MindSpore's generators, the global ones of NumPy and Python, and derived ones. torch's generators
    are unchanged."""
    starts_anew()
    with _lock:
        SEED.value = seed
        SEED.seedings += 1
        _counts.clear()
        kernel_seeds.clear()
    generators.seed_devices(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def get_seed() -> int | None:
    """The seed in force, None when the streams come from the operating system."""
    return SEED.value


def graph_seeds(op_seed: int, kernel_name: str) -> tuple[int, int]:
    """Return the two seeds of an operator: the program's, and one from `op_seed` that changes with each use of `kernel_name`.

    (0, 0), which lets a kernel choose, if neither seed is set.
    """
    program_seed = 0 if SEED.value is None else SEED.value or SEED_FOR_ZERO
    if not program_seed and not op_seed:
        return 0, 0
    use_seed = kernel_seeds.get((kernel_name, op_seed), op_seed)
    kernel_seeds[kernel_name, op_seed] = use_seed + KERNEL_SEED_STEP
    return program_seed % LARGEST_SEED, use_seed % LARGEST_SEED


def derive(purpose: str) -> int:
    """A fresh 63-bit seed for one use of randomness; the n-th call for a purpose gives the same after the same `set_seed`."""
    with _lock:
        SEED.derivations += 1
        if SEED.value is None:
            return int.from_bytes(os.urandom(8), "little") >> 1
        count = _counts[purpose] = _counts.get(purpose, -1) + 1
        digest = hashlib.blake2b(f"{SEED.value}/{purpose}/{count}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(purpose: str) -> torch.Generator:
    """A torch generator on the host, seeded by `derive`."""
    return torch.Generator().manual_seed(derive(purpose))


def state() -> dict[str, Any]:
    """The seed in force and how often each purpose has drawn on it, for `restore`."""
    with _lock:
        return {"seed": SEED.value, "counts": dict(_counts)}


def restore(state: dict[str, Any]) -> None:
    """Continue from a result of `state`; all other generators are unchanged."""
    seed, counts = state["seed"], {str(purpose): int(count) for purpose, count in state["counts"].items()}
    with _lock:
        SEED.value = None if seed is None else int(seed)
        _counts.clear()
        _counts.update(counts)
