"""`set_seed`, `get_seed`."""
from __future__ import annotations

from torchspore.base.arguments import is_int
from torchspore.base.text import message, with_type
from torchspore.engine.front_end import FRONT
from torchspore.engine.random import random_state
from torchspore.engine.tensors.tensor import frame


def set_seed(seed: int) -> None:
    """Start all random streams from `seed`: operators, NumPy, Python, initializers, datasets.

    Raises TypeError for a value that is not an int, ValueError below 0.
    """
    if not is_int(seed):
        raise TypeError(message(f"set_seed({seed!r})", with_type("an int", seed)))
    if seed < 0:
        raise ValueError(message(f"set_seed({seed})", "an int from 0 on"))
    random_state.set_seed(seed)


def get_seed() -> int | None:
    """Return the current seed, or None if none was set."""
    return random_state.get_seed()


def _get_graph_seed(op_seed: int | None, kernel_name: str) -> tuple[int, int]:
    """Return the two seeds of an operator: the program's, and one from `op_seed` that changes with each use of `kernel_name`.

    (0, 0), with which a kernel chooses, if neither seed is set. Raises TypeError for a name that is not a str, ValueError for a negative
    seed.
    """
    if not isinstance(kernel_name, str):
        raise TypeError(message(f"_get_graph_seed(kernel_name={kernel_name!r:.40})", with_type("a str", kernel_name)))
    op_seed = 0 if op_seed is None else op_seed
    if op_seed < 0:
        raise ValueError(message(f"{kernel_name}: seed={op_seed}", "an int from 0 on"))
    around = frame()
    if around is not None:
        around.acts_beside("counts the seeds of an operator")
    return random_state.graph_seeds(op_seed, kernel_name)


FRONT.getters += (get_seed,)
