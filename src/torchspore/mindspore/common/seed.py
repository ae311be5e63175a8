"""`set_seed`, `get_seed`."""
from __future__ import annotations

from torchspore.engine import random
from torchspore.engine.front import FRONT

SEED_FOR_ZERO = 87654321
"""What MindSpore takes for the seed of the program where that is 0, because 0 stands for "not set" in its kernels."""

LARGEST_SEED = 2**31 - 1
KERNEL_SEED_STEP = 3528531795 ^ 3449720151

_kernel_seeds: dict[tuple[str, int], int] = {}
"""The seed that the next operator of a kind with a seed of its own gets."""


def set_seed(seed: int) -> None:
    """Starts all random streams from `seed`: operators, NumPy, Python, initializers, datasets.

    Raises TypeError for what is no int, ValueError below 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"set_seed({seed!r}): expected an int, got {type(seed).__name__}.")
    if seed < 0:
        raise ValueError(f"set_seed({seed}): expected an int from 0 on.")
    random.set_seed(seed)
    _kernel_seeds.clear()


def get_seed() -> int | None:
    """The seed in force, None where none was set."""
    return random.get_seed()


def _get_graph_seed(op_seed: int | None, kernel_name: str) -> tuple[int, int]:
    """The two seeds of an operator: the program's, and one made of `op_seed` that changes from use to use of `kernel_name`.

    (0, 0), which lets a kernel choose, where neither seed is set. Raises TypeError for a name that is not a str, ValueError for a negative
    seed.
    """
    if not isinstance(kernel_name, str):
        raise TypeError(f"_get_graph_seed(kernel_name={kernel_name!r:.40}): expected a str, got {type(kernel_name).__name__}.")
    program_seed = random.get_seed()
    program_seed = 0 if program_seed is None else program_seed or SEED_FOR_ZERO
    op_seed = 0 if op_seed is None else op_seed
    if not program_seed and not op_seed:
        return 0, 0
    if op_seed < 0:
        raise ValueError(f"{kernel_name}: seed={op_seed}: expected an int from 0 on.")
    key = kernel_name, op_seed
    use_seed = _kernel_seeds.get(key, op_seed)
    _kernel_seeds[key] = use_seed + KERNEL_SEED_STEP
    return program_seed % LARGEST_SEED, use_seed % LARGEST_SEED


FRONT.getters += (get_seed,)
