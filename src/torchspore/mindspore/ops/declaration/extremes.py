"""The result of `Tensor.max(1)` and `Tensor.min(1)`: MindSpore 2.10's pair (values, indexes), which 1.x programs may still use as values.

Until 2.4 the call returned only the values. A tuple cannot be compared with a number, multiplied by a Tensor or asked for `expand_dims`:
the values answer what 2.10 refuses, and the object acts as a tuple for everything that a tuple can do.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Extremes(tuple[Any, ...]):
    """(values, indexes). Attributes and operators that tuples lack are those of the values."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):                # Python itself looks these up: NumPy's protocols and similar
            raise AttributeError(name)
        return getattr(tuple.__getitem__(self, 0), name)

    def __reduce__(self) -> Any:
        return Extremes, (tuple(self),)


def _operator(name: str) -> Callable[[Any, Any], Any]:
    tuple_method = getattr(tuple, name, None)

    def operator(self: Any, other: Any) -> Any:
        if tuple_method is not None and isinstance(other, tuple):
            return tuple_method(self, other)
        return getattr(tuple.__getitem__(self, 0), name)(other)

    operator.__name__ = name
    return operator


def _unary(name: str) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return getattr(tuple.__getitem__(self, 0), name)()

    operator.__name__ = name
    return operator


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul",
    "and", "or", "xor", "lt", "le", "gt", "ge", "eq", "ne",
):
    setattr(Extremes, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("neg", "abs", "invert", "float", "int"):
    setattr(Extremes, f"__{_name}__", _unary(f"__{_name}__"))
