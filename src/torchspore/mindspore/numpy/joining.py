"""Arrays put together and taken apart."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from torchspore.mindspore.numpy.utils import as_list, axis_of, function, only_tensor, together

T = torch.Tensor


def _arrays(given: Any, name: str) -> list[T]:
    """The Tensors of a sequence in one dtype; those along axis 0 of a Tensor."""
    if isinstance(given, T):
        return list(given.unbind(0))
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"expected a tuple or a list of Tensors as {name}, got {type(given).__name__}.")
    if not given:
        raise ValueError(f"{name}=(): expected at least one Tensor.")
    return together(*(only_tensor(value, f"{name}[{i}]") for i, value in enumerate(given)))


def _joined(arrays: list[T], axis: int) -> T:
    if len({t.ndim for t in arrays}) > 1:
        raise ValueError("expected arrays of as many axes each.")
    return torch.cat(arrays, axis_of(axis, arrays[0].ndim))


@function
def concatenate(arrays: Any, axis: int | None = 0) -> T:
    """The arrays one after the other along `axis`, or for None the flat ones; mixed dtypes are promoted."""
    found = _arrays(arrays, "arrays")
    return _joined([t.reshape(-1) for t in found], 0) if axis is None else _joined(found, axis)


@function
def append(arr: Any, values: Any, axis: int | None = None) -> T:
    """`values` behind `arr` along `axis`, or for None behind the flat array; mixed dtypes are promoted."""
    found = together(only_tensor(arr, "arr"), only_tensor(values, "values"))
    return _joined([t.reshape(-1) for t in found], 0) if axis is None else _joined(found, axis)


@function
def stack(arrays: Any, axis: int = 0) -> T:
    """The arrays side by side along a new `axis`; mixed dtypes are promoted."""
    if isinstance(arrays, T):
        return torch.movedim(arrays, 0, axis_of(axis, arrays.ndim))
    found = _arrays(arrays, "arrays")
    return torch.stack(found, axis_of(axis, found[0].ndim + 1))


@function
def hstack(tup: Any) -> T:
    """The arrays one after the other along axis 1, those of one axis along axis 0; a single Tensor as it is."""
    if isinstance(tup, T):
        return tup.clone()
    found = [t.reshape(1) if t.ndim == 0 else t for t in _arrays(tup, "tup")]
    return _joined(found, 0 if found[0].ndim == 1 else 1)


@function
def vstack(tup: Any) -> T:
    """The arrays one below the other along axis 0, those of one axis as rows; a single Tensor as it is."""
    if isinstance(tup, T):
        return tup.clone()
    return _joined([t.reshape(1, -1) if t.ndim < 2 else t for t in _arrays(tup, "tup")], 0)


@function
def dstack(tup: Any) -> T:
    """The arrays one behind the other along axis 2: (N,) counts as (1, N, 1), (M, N) as (M, N, 1); a single Tensor as it is."""
    if isinstance(tup, T):
        return tup.clone()
    found = _arrays(tup, "tup")
    return _joined([t if t.ndim > 2 else t.unsqueeze(-1) if t.ndim == 2 else t.reshape(1, -1, 1) for t in found], 2)


@function
def column_stack(tup: Any) -> T:
    """The arrays side by side along axis 1, those of one axis as columns; a single Tensor as it is."""
    if isinstance(tup, T):
        return tup.clone()
    return _joined([t.reshape(-1, 1) if t.ndim < 2 else t for t in _arrays(tup, "tup")], 1)


def _split(t: T, given: Any, axis: int, may_differ: bool) -> Any:
    """Equal parts, as a tuple, or the parts between the places of a sequence, as a list; a part without elements is refused."""
    length = t.shape[axis_of(axis, t.ndim)]
    axis = axis_of(axis, t.ndim)
    if isinstance(given, int) and not isinstance(given, bool):
        if given == 0 and may_differ:
            raise ZeroDivisionError("indices_or_sections=0: expected at least 1.")
        if given < 1 or given > length or (length % given and not may_differ):
            what = "up to" if may_differ else "that divides"
            raise ValueError(f"indices_or_sections={given}: expected a number of parts {what} {length}, the length of the axis.")
        return tuple(torch.tensor_split(t, given, axis))
    if not isinstance(given, (tuple, list)) or not all(isinstance(place, int) for place in given):
        raise TypeError(f"indices_or_sections={given!r}: expected an int, or a tuple or list of ints.")
    places = [0, *given, length]
    if any(stop <= start for start, stop in pairwise(places)):
        raise ValueError(f"indices_or_sections={given!r}: expected rising places between 0 and {length}.")
    return as_list(t.narrow(axis, start, stop - start) for start, stop in pairwise(places))


@function
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """So many equal parts along `axis` (a tuple), or the parts between the places that a sequence names (a list)."""
    return _split(only_tensor(x, "x"), indices_or_sections, axis, False)


@function
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """So many parts along `axis` (a tuple), the first ones perhaps longer by one, or the parts between places (a list)."""
    return _split(only_tensor(x, "x"), indices_or_sections, axis, True)


@function
def vsplit(x: Any, indices_or_sections: Any) -> Any:
    """The parts along axis 0, as `split` gives them."""
    return _split(only_tensor(x, "x"), indices_or_sections, 0, False)


@function
def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """The parts along axis 1, as `split` gives them."""
    return _split(only_tensor(x, "x"), indices_or_sections, 1, False)


@function
def dsplit(x: Any, indices_or_sections: Any) -> Any:
    """The parts along axis 2, as `split` gives them."""
    return _split(only_tensor(x, "x"), indices_or_sections, 2, False)
