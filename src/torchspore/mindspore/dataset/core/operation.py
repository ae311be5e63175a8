"""`TensorOperation`, the base of every transform: it takes one value for each column and returns at least that many."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.constructor_arguments import record


class TensorOperation:
    """A transform. Called by hand or by `map`, it takes arrays, PIL images, Tensors, numbers or text, one for each column.

    A subclass defines `_apply(array)` for the transform of one column, or `_apply_all(*values)` for all columns together.
    """

    runs_in_any_order = True
    """True if threads may share rows: random numbers come from a stream for each row, not from the order of calls.

    True also means that the transform neither modifies nor retains its inputs. A user's class counts as a user's function, whatever its
    base: it may do both, and its `__call__` decides.
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
        results = self._apply_all(*[self._input(value) for value in values])
        return results[0] if len(results) == 1 else results

    def _input(self, value: Any) -> Any:
        return value if self._takes_pictures and is_pil(value) else as_array(value, type(self).__name__)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return tuple([self._apply(value) for value in values])

    def _apply(self, value: Any) -> Any:
        raise NotImplementedError


class PyTensorOperation(TensorOperation):
    """MindSpore's base of its Python transforms; an alias here."""


def is_pil(value: Any) -> bool:
    """Return whether a value is a PIL image, without importing PIL."""
    return type(value).__module__.startswith("PIL.") and hasattr(value, "getbands")


def as_array(value: Any, call: str) -> np.ndarray:
    """Convert a transform's input to an array. Raises TypeError if that is impossible."""
    if type(value) is np.ndarray:
        if value.dtype.kind == "c":
            text = message(f"{call} of {value.dtype}", "real numbers or text")
            raise TypeError(f"{text} Invalid user input. Got {type(value)}: {short(value)}, cannot be converted into tensor.")
        return value
    if is_pil(value) or isinstance(value, (int, float, bool, str, bytes, np.ndarray, np.generic, list, tuple)):
        return np.asarray(value)
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    raise TypeError(message(f"{call}({short(value)})", f"an array, a PIL image, a number or text, got {type(value).__name__}"))


def flatten(transforms: Any) -> list[Any]:
    """Return the functions and transforms of nested lists and Composes, in order."""
    flat: list[Any] = []
    for transform in transforms:
        flat += flatten(transform) if isinstance(transform, (list, tuple)) else [transform]
    return flat


def run_chain(steps: list[Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Applies functions in sequence; a tuple result becomes the arguments of the next one."""
    for step in steps:
        result = step(*values)
        values = result if type(result) is tuple else (result,)
    return values
