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
    cut = [_shown_indices(length, values.size > MANY) for length in values.shape]
    ends = values[np.ix_(*[[index for index in indices if index is not None] for indices in cut])]
    if values.dtype.kind == "f" and dtype != "BFloat16":
        write = _of_width(15, "{:.8e}") if dtype != "Float16" else _of_width(11, "{:.4e}")
    elif values.dtype.kind == "b":
        write = "{!s:>5}".format
    elif values.dtype.kind in "iu":
        width = max(len(str(ends.min())), len(str(ends.max())))
        write = f"{{:>{width}d}}".format
    else:
        width = max(len(_general(element)) for element in ends.flat)

        def write(element: Any) -> str:
            return _general(element).rjust(width)
    return _nested(values, cut, 0, write, "," if commas else "")


def plain(value: np.ndarray[Any, Any], commas: bool = True) -> str:
    """One number by itself."""
    element = value.item()
    if isinstance(element, bool):
        return str(element) if commas else str(int(element))
    return _general(element)


def _general(element: Any) -> str:
    if isinstance(element, (complex, np.complexfloating)):
        sign = "" if np.signbit(element.imag) else "+"
        return f"{element.real:g}{sign}{element.imag:g}j"
    return f"{element:g}" if isinstance(element, (float, np.floating)) else str(element)


def _of_width(width: int, form: str) -> Callable[[Any], str]:
    return lambda element: form.format(element).rjust(width)


def _shown_indices(length: int, is_cut: bool) -> list[int | None]:
    """Return the shown elements of an axis; None stands for omitted ones."""
    if not is_cut or length <= 2 * ENDS:
        return list(range(length))
    return [*range(ENDS), None, *range(length - ENDS, length)]


def _nested(values: Any, cut: Sequence[list[int | None]], depth: int, write: Callable[[Any], str], comma: str) -> str:
    shown_indices = cut[0]
    if len(cut) > 1:
        joint = comma + "\n" + " " * (depth + 1)
        parts = ["..." if at is None else _nested(values[at], cut[1:], depth + 1, write, comma) for at in shown_indices]
        return "[" + joint.join(parts).replace(joint + "..." + joint, joint + "...\n" + " " * (depth + 1)) + "]"
    many = _IN_LINE.get(values.dtype.kind, 24) if not depth else 0
    text = ""
    for count, at in enumerate(shown_indices):
        if at is None:
            text = text[: -len(comma) - 1 or None] + " ... "
            continue
        text += write(values[at])
        if count < len(shown_indices) - 1:
            text += comma + " "
            if many and None not in shown_indices and (count + 1) % many == 0:
                text += "\n "
    return f"[{text}]"
