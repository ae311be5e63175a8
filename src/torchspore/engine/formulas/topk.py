"""The indexes of the k largest or smallest elements, with MindSpore's order of equal elements.

MindSpore's CPU kernel sorts stably if k is more than half of the length, so that the lowest index comes first. Otherwise it calls
`std::nth_element`, whose order of equal elements depends on the pivots. `torch.topk` calls the same function with an argument that is one
smaller, except for a small k, where it uses a heap. Other devices return the lowest index first.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchspore.engine.torch_internals.custom_operators import LIBRARY, define

T = torch.Tensor
_HEAP_FACTOR = 64
"""`torch.topk` uses a heap where k times this is at most the length."""
_LOW_BITS = (1 << 32) - 1


def _indices(x: T, k: int, largest: bool, in_order: bool) -> T:
    length = x.shape[-1]
    if not k or not x.numel():
        return x.new_empty((*x.shape[:-1], k), dtype=torch.int64)
    if x.device.type != "cpu":
        return _lowest_first(x, k, largest)
    if x.dtype is torch.bool:
        x = x.to(torch.uint8)
    if in_order and k > length // 2:
        return torch.sort(x, dim=-1, descending=largest, stable=True).indices[..., :k].contiguous()
    if k == length:
        return torch.arange(length).expand(x.shape).contiguous()
    if in_order and (distinct := _distinct(x, k, largest)) is not None:
        return distinct
    selected = _selected(x, k, largest)
    if not in_order:
        return selected
    order = torch.sort(x.gather(-1, selected), dim=-1, descending=largest, stable=True).indices
    return selected.gather(-1, order)


def _distinct(x: T, k: int, largest: bool) -> T | None:
    """The indexes of the first k of the k + 1 selected values in order, for 0 < k < length; None if some are equal or NaN."""
    values, indices = torch.topk(x, k + 1, -1, largest, True)
    before, after = values[..., :-1], values[..., 1:]
    is_strict = before > after if largest else before < after
    return indices[..., :k].contiguous() if bool(is_strict.all()) else None


def _selected(x: T, k: int, largest: bool) -> T:
    """The first k indexes after `nth_element(begin, begin + k, end)`, for 0 < k < length."""
    has_heap = (k + 1) * _HEAP_FACTOR <= x.shape[-1]
    values, indices = torch.topk(x, k + 1, -1, largest, has_heap)
    first = indices[..., :k].contiguous()
    if not has_heap:
        return first
    has_ties = (values[..., 1:] == values[..., :-1]).any(-1) | (values[..., 1:] != values[..., 1:]).any(-1)
    rows, flat = x.reshape(-1, x.shape[-1]), first.view(-1, k)
    for row in has_ties.reshape(-1).nonzero().reshape(-1).tolist():
        flat[row] = torch.from_numpy(nth_element(_keys(rows[row], largest), k)[:k])
    return first


def _keys(row: T, largest: bool) -> np.ndarray[Any, Any]:
    """Numbers whose descending order is the order of the selection; NaN counts as larger than all numbers."""
    values = (row.float() if row.dtype in (torch.float16, torch.bfloat16) else row).numpy()
    if row.is_floating_point() and not np.isnan(values).any():
        return values if largest else -values
    ranks = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ranks if largest else -ranks


def nth_element(keys: np.ndarray[Any, Any], nth: int) -> np.ndarray[Any, Any]:
    """The indexes of `keys` as libstdc++'s `std::nth_element` leaves them for the comparison `>`, of more than `nth` keys.

    Each step divides a range by the median of three of its elements, as `std::__introselect` does.
    """
    keys, order = keys.copy(), np.arange(len(keys))
    begin, end, depth = 0, len(keys), 2 * (len(keys).bit_length() - 1)
    while end - begin > 3:
        if not depth:                                    # libstdc++ continues with a heap here; no real data comes this far
            return np.argsort(-keys, kind="stable")[np.argsort(order, kind="stable")]
        depth -= 1
        pivot = _median_of_three(keys, begin + 1, begin + (end - begin) // 2, end - 1)
        _swap(keys, order, begin, pivot)
        cut = begin + 1 + _partition(keys[begin + 1:end], order[begin + 1:end], keys[begin])
        begin, end = (cut, end) if cut <= nth else (begin, cut)
    last = begin + np.argsort(-keys[begin:end], kind="stable")
    order[begin:end] = order[last]
    return order


def _median_of_three(keys: np.ndarray[Any, Any], a: int, b: int, c: int) -> int:
    """Return which of three indexes has the middle element; libstdc++'s choice if some are equal."""
    if keys[a] > keys[b]:
        return b if keys[b] > keys[c] else c if keys[a] > keys[c] else a
    return a if keys[a] > keys[c] else c if keys[b] > keys[c] else b


def _partition(keys: np.ndarray[Any, Any], order: np.ndarray[Any, Any], pivot: Any) -> int:
    """Exchange elements from both ends that are on the wrong side of `pivot`, in place; return where the right side begins."""
    low_side, from_right = np.flatnonzero(keys <= pivot), np.flatnonzero(keys >= pivot)[::-1]
    shorter = min(len(low_side), len(from_right))
    count = int(np.count_nonzero(low_side[:shorter] < from_right[:shorter]))
    low_index, right = low_side[:count], from_right[:count]
    _swap(keys, order, low_index, right)
    ends = ([int(low_side[count])] if count < len(low_side) else []) + ([int(right[-1])] if count else [])
    return min(ends)


def _swap(keys: np.ndarray[Any, Any], order: np.ndarray[Any, Any], a: Any, b: Any) -> None:
    for values in (keys, order):
        old = values[a].copy()
        values[a] = values[b]
        values[b] = old


def _lowest_first(x: T, k: int, largest: bool) -> T:
    """The indexes in order, the lowest one first of equal elements, by one key of 64 bits for each value and its index."""
    if x.dtype in (torch.int64, torch.float64):
        return torch.sort(x, dim=-1, descending=largest, stable=True).indices[..., :k].contiguous()
    if x.is_floating_point():
        bits = torch.where(torch.isnan(x), torch.nan, x + 0.0).float().view(torch.int32)        # -0.0 + 0.0 is 0.0
        x = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    positions = torch.arange(x.shape[-1], device=x.device)
    keys = (x.to(torch.int64) << 32) | (_LOW_BITS - positions if largest else positions)
    return torch.topk(keys, k, -1, largest, True).indices


def _form(x: T, k: int, largest: bool, in_order: bool) -> T:
    return x.new_empty((*x.shape[:-1], k), dtype=torch.int64)


def _batched(_info: Any, dims: Any, x: T, k: int, largest: bool, in_order: bool) -> tuple[T, int]:
    return _topk_indices(x.movedim(dims[0], 0), k, largest, in_order), 0


_topk_indices = define("topk_indices(Tensor x, int k, bool largest, bool in_order) -> Tensor", _indices, _form)
torch.library.register_vmap("torchspore::topk_indices", _batched, lib=LIBRARY)


def topk(x: T, k: int, axis: int = -1, largest: bool = True, in_order: bool = True) -> tuple[T, T]:
    """The k largest (or smallest) elements along `axis`, the largest (smallest) first if `in_order`, and their indexes (int64).

    Raises ValueError for a k that is negative or above the length, and IndexError for an axis that `x` lacks.
    """
    if not x.ndim:
        if axis not in (0, -1):
            raise IndexError(f"axis {axis}: expected 0 or -1 for a Tensor of one number.")
        values, indices = topk(x.reshape(1), k, 0, largest, in_order)
        return (values.reshape(()), indices.reshape(())) if k == 1 else (values, indices)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"axis {axis}: expected one from {-x.ndim} to {x.ndim - 1}.")
    if k < 0 or k > x.shape[axis]:
        raise ValueError("expected k up to the length of the axis.")
    if axis in (-1, x.ndim - 1):
        indices = _topk_indices(x.detach(), k, largest, in_order)
    else:
        indices = _topk_indices(x.detach().transpose(axis, -1).contiguous(), k, largest, in_order).transpose(axis, -1)
    return torch.gather(x, axis, indices), indices
