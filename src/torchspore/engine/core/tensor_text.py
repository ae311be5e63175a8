"""A Tensor as MindSpore writes it: with commas as PyNative mode does, without as graphs do."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MANY = 1000
"""Of more elements than this only the ends of long axes are shown."""
ENDS = 3
"""How many elements are shown at each end of such an axis."""
_IN_LINE = {"f": 12, "b": 12}
"""The number of elements of a vector in one line; 24 for other dtypes."""


def shown(values: np.ndarray[Any, Any], dtype: str, commas: bool = True) -> str:
    """`Tensor(shape=[2], dtype=Int32, value= [1, 2])`, without `commas` as graphs print it: `value=[1 2]`."""
    between = "\n" if values.ndim > 1 else " " if commas else ""
    return f"Tensor(shape={list(values.shape)}, dtype={dtype}, value={between}{values_text(values, dtype, commas)})"


def values_text(values: np.ndarray[Any, Any], dtype: str, commas: bool = True) -> str:
    """The values alone."""
    if not values.ndim:
        return plain(values, commas)
    if not values.size:
        return ""
    cut = [_places(length, values.size > MANY) for length in values.shape]
    ends = values[np.ix_(*[[place for place in places if place is not None] for places in cut])]
    if values.dtype.kind == "f" and dtype != "BFloat16":
        write = _of_width(15, "{:.8e}") if dtype != "Float16" else _of_width(11, "{:.4e}")
    elif values.dtype.kind == "b":
        write = "{!s:>5}".format
    elif values.dtype.kind in "iu":
        width = max(len(str(ends.min())), len(str(ends.max())))
        write = f"{{:>{width}d}}".format
    else:
        width = max(len(_general(one)) for one in ends.flat)

        def write(one: Any) -> str:
            return _general(one).rjust(width)
    return _nested(values, cut, 0, write, "," if commas else "")


def plain(value: np.ndarray[Any, Any], commas: bool = True) -> str:
    """One number by itself."""
    one = value.item()
    if isinstance(one, bool):
        return str(one) if commas else str(int(one))
    return _general(one)


def _general(one: Any) -> str:
    if isinstance(one, (complex, np.complexfloating)):
        sign = "" if np.signbit(one.imag) else "+"
        return f"{one.real:g}{sign}{one.imag:g}j"
    return f"{one:g}" if isinstance(one, (float, np.floating)) else str(one)


def _of_width(width: int, form: str) -> Callable[[Any], str]:
    return lambda one: form.format(one).rjust(width)


def _places(length: int, is_cut: bool) -> list[int | None]:
    """The elements of an axis that are shown; None stands for those that are left out."""
    if not is_cut or length <= 2 * ENDS:
        return list(range(length))
    return [*range(ENDS), None, *range(length - ENDS, length)]


def _nested(values: Any, cut: Sequence[list[int | None]], depth: int, write: Callable[[Any], str], comma: str) -> str:
    places = cut[0]
    if len(cut) > 1:
        joint = comma + "\n" + " " * (depth + 1)
        parts = ["..." if at is None else _nested(values[at], cut[1:], depth + 1, write, comma) for at in places]
        return "[" + joint.join(parts).replace(joint + "..." + joint, joint + "...\n" + " " * (depth + 1)) + "]"
    many = _IN_LINE.get(values.dtype.kind, 24) if not depth else 0
    text = ""
    for count, at in enumerate(places):
        if at is None:
            text = text[: -len(comma) - 1 or None] + " ... "
            continue
        text += write(values[at])
        if count < len(places) - 1:
            text += comma + " "
            if many and None not in places and (count + 1) % many == 0:
                text += "\n "
    return f"[{text}]"
