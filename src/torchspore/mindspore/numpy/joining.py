"""Concatenate and split arrays."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.mindspore.numpy.utils import as_list, axis_of, function, only_tensor, together

T = torch.Tensor


def _arrays(sequence: Any, name: str) -> list[T]:
    """Return the Tensors of a sequence in one dtype; for a Tensor, those along axis 0."""
    if isinstance(sequence, T):
        return list(sequence.unbind(0))
    if not isinstance(sequence, (tuple, list)):
        raise TypeError(f"expected a tuple or a list of Tensors as {name}, got {type(sequence).__name__}.")
    if not sequence:
        raise ValueError(f"{name}=(): expected at least one Tensor.")
    return together(*(only_tensor(value, f"{name}[{i}]") for i, value in enumerate(sequence)))


def _joined(arrays: list[T], axis: int) -> T:
    if len({t.ndim for t in arrays}) > 1:
        raise ValueError("expected arrays of as many axes each.")
    return torch.cat(arrays, axis_of(axis, arrays[0].ndim))


@function
def concatenate(arrays: Any, axis: int | None = 0) -> T:
    """Concatenate the arrays along `axis`, or for None the flat ones; mixed dtypes are promoted."""
    tensors = _arrays(arrays, "arrays")
    return _joined([t.reshape(-1) for t in tensors], 0) if axis is None else _joined(tensors, axis)


@function
def append(arr: Any, values: Any, axis: int | None = None) -> T:
    """Append `values` to `arr` along `axis`, or for None to the flat array; mixed dtypes are promoted."""
    tensors = together(only_tensor(arr, "arr"), only_tensor(values, "values"))
    return _joined([t.reshape(-1) for t in tensors], 0) if axis is None else _joined(tensors, axis)


@function
def stack(arrays: Any, axis: int = 0) -> T:
    """Stack the arrays along a new `axis`; mixed dtypes are promoted."""
    if isinstance(arrays, T):
        return torch.movedim(arrays, 0, axis_of(axis, arrays.ndim))
    tensors = _arrays(arrays, "arrays")
    return torch.stack(tensors, axis_of(axis, tensors[0].ndim + 1))


@function
def hstack(tup: Any) -> T:
    """Concatenate the arrays along axis 1, those of one axis along axis 0; a single Tensor is returned unchanged."""
    if isinstance(tup, T):
        return tup.clone()
    tensors = [t.reshape(1) if t.ndim == 0 else t for t in _arrays(tup, "tup")]
    return _joined(tensors, 0 if tensors[0].ndim == 1 else 1)


@function
def vstack(tup: Any) -> T:
    """Stack the arrays along axis 0, those of one axis as rows; a single Tensor is returned unchanged."""
    if isinstance(tup, T):
        return tup.clone()
    return _joined([t.reshape(1, -1) if t.ndim < 2 else t for t in _arrays(tup, "tup")], 0)


@function
def dstack(tup: Any) -> T:
    """Concatenate along axis 2: (N,) counts as (1, N, 1), (M, N) as (M, N, 1); a single Tensor is returned unchanged."""
    if isinstance(tup, T):
        return tup.clone()
    tensors = _arrays(tup, "tup")
    return _joined([t if t.ndim > 2 else t.unsqueeze(-1) if t.ndim == 2 else t.reshape(1, -1, 1) for t in tensors], 2)


@function
def column_stack(tup: Any) -> T:
    """Concatenate the arrays along axis 1, those of one axis as columns; a single Tensor is returned unchanged."""
    if isinstance(tup, T):
        return tup.clone()
    return _joined([t.reshape(-1, 1) if t.ndim < 2 else t for t in _arrays(tup, "tup")], 1)


def _split(t: T, sections: Any, axis: int, may_differ: bool) -> Any:
    """Return equal parts as a tuple, or the parts between the positions of a sequence as a list; empty parts are refused."""
    length = t.shape[axis_of(axis, t.ndim)]
    axis = axis_of(axis, t.ndim)
    if is_int(sections):
        if sections == 0 and may_differ:
            raise ZeroDivisionError(message("indices_or_sections=0", "at least 1"))
        if sections < 1 or sections > length or (length % sections and not may_differ):
            condition = "up to" if may_differ else "that divides"
            raise ValueError(f"indices_or_sections={sections}: expected a number of parts {condition} {length}, the length of the axis.")
        return tuple(torch.tensor_split(t, sections, axis))
    if not isinstance(sections, (tuple, list)) or not all(isinstance(position, int) for position in sections):
        raise TypeError(f"indices_or_sections={sections!r}: expected an int, or a tuple or list of ints.")
    boundaries = [0, *sections, length]
    if any(stop <= start for start, stop in pairwise(boundaries)):
        raise ValueError(f"indices_or_sections={sections!r}: expected increasing positions between 0 and {length}.")
    return as_list(t.narrow(axis, start, stop - start) for start, stop in pairwise(boundaries))


@function
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split into a number of equal parts along `axis` (a tuple), or at the positions of a sequence (a list)."""
    return _split(only_tensor(x, "x"), indices_or_sections, axis, False)


@function
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split into a number of parts along `axis` (a tuple), the first ones perhaps longer by one, or at positions (a list)."""
    return _split(only_tensor(x, "x"), indices_or_sections, axis, True)


@function
def vsplit(x: Any, indices_or_sections: Any) -> Any:
    """The parts along axis 0, as from `split`."""
    return _split(only_tensor(x, "x"), indices_or_sections, 0, False)


@function
def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """The parts along axis 1, as from `split`."""
    return _split(only_tensor(x, "x"), indices_or_sections, 1, False)


@function
def dsplit(x: Any, indices_or_sections: Any) -> Any:
    """The parts along axis 2, as from `split`."""
    return _split(only_tensor(x, "x"), indices_or_sections, 2, False)
