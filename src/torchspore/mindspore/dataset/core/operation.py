"""`TensorOperation`, the base of every transform: it takes one value for each column and gives as many back, or more."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.recording import record


class TensorOperation:
    """A transform. Called by hand or by `map`, it takes arrays, PIL images, Tensors, numbers or text, one for each column.

    A subclass gives `_apply(array)` for the transform of one column, or `_apply_all(*values)` for all of them together.
    """

    runs_in_any_order = True
    """Whether rows may be shared by threads: random numbers come from a stream for each row, not from the order of calls.

    It also says that the transform writes into nothing that it is given and keeps none of it. A class of the user's is a function of the
    user's, whatever it is derived from: it may do both, and what it makes of `__call__` is what counts.
    """

    _takes_pictures = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if not cls.__module__.startswith("torchspore.") and "runs_in_any_order" not in vars(cls):
            cls.runs_in_any_order = False
        record(cls)

    def __call__(self, *values: Any) -> Any:
        if not values:
            raise RuntimeError(message(f"{type(self).__name__}()", "a value to transform"))
        found = self._apply_all(*[self._input(value) for value in values])
        return found[0] if len(found) == 1 else found

    def _input(self, value: Any) -> Any:
        return value if self._takes_pictures and is_pil(value) else as_array(value, type(self).__name__)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return tuple([self._apply(value) for value in values])

    def _apply(self, value: Any) -> Any:
        raise NotImplementedError


class PyTensorOperation(TensorOperation):
    """MindSpore's base of the transforms that it writes in Python; the same thing here."""


def is_pil(value: Any) -> bool:
    """Whether a value is a PIL image; imports no PIL to find out."""
    return type(value).__module__.startswith("PIL.") and hasattr(value, "getbands")


def as_array(value: Any, call: str) -> np.ndarray:
    """A transform's input as an array. Raises TypeError for what is neither an array nor becomes one."""
    if type(value) is np.ndarray:
        return value
    if is_pil(value) or isinstance(value, (int, float, bool, str, bytes, np.ndarray, np.generic, list, tuple)):
        return np.asarray(value)
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    raise TypeError(message(f"{call}({short(value)})", f"an array, a PIL image, a number or text, got {type(value).__name__}"))


def flatten(transforms: Any) -> list[Any]:
    """Functions and transforms of nested lists and Composes, in order."""
    flat: list[Any] = []
    for one in transforms:
        flat += flatten(one) if isinstance(one, (list, tuple)) else [one]
    return flat


def run_chain(steps: list[Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Applies functions one after the other; a tuple result becomes the arguments of the next one."""
    for step in steps:
        found = step(*values)
        values = found if type(found) is tuple else (found,)
    return values
