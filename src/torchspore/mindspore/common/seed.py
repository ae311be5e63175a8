"""`set_seed`, `get_seed`."""
from __future__ import annotations

from torchspore.engine import random
from torchspore.engine.front import FRONT


def set_seed(seed: int) -> None:
    """Starts all random streams from `seed`: operators, NumPy, Python, initializers, datasets.

    Raises TypeError for what is no int, ValueError below 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"set_seed({seed!r}): expected an int, got {type(seed).__name__}.")
    if seed < 0:
        raise ValueError(f"set_seed({seed}): expected an int from 0 on.")
    random.set_seed(seed)


def get_seed() -> int | None:
    """The seed in force, None where none was set."""
    return random.get_seed()


FRONT.getters += (get_seed,)
