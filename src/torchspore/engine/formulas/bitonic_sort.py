"""The order of scores, the best first, in which MindSpore's NMSWithMask looks at equal ones: that of its bitonic sort."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchspore.engine.torch_internals.custom_operators import LIBRARY, define

T = torch.Tensor


def _order(scores: T) -> T:
    if scores.device.type != "cpu":
        return torch.sort(scores, descending=True, stable=True).indices
    return torch.from_numpy(bitonic_order(scores.float().numpy()))


def bitonic_order(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The indexes (int64) of `scores` (n,) in descending order, after a bitonic sort of n filled up to a power of 2 by infinity."""
    count = len(scores)
    length = 1 << max(count - 1, 0).bit_length()
    keys = np.concatenate([scores, np.full(length - count, np.inf, scores.dtype)])
    positions, order = np.arange(length), np.arange(length)
    block = 2
    while block <= length:
        distance = block >> 1
        while distance:
            low = positions[(positions & distance) == 0]
            high = low | distance
            is_wrong = np.where((low & block) == 0, keys[low] > keys[high], keys[low] < keys[high])
            low, high = low[is_wrong], high[is_wrong]
            for values in (keys, order):
                values[low], values[high] = values[high], values[low]
            distance >>= 1
        block <<= 1
    descending = order[::-1]
    return np.ascontiguousarray(descending[descending < count])


def _batched(_info: Any, dims: Any, scores: T) -> tuple[T, int]:
    return torch.stack([best_first(row) for row in scores.movedim(dims[0], 0)]), 0


best_first = define("bitonic_order(Tensor scores) -> Tensor", _order, lambda scores: scores.new_empty(scores.shape, dtype=torch.int64))
torch.library.register_vmap("torchspore::bitonic_order", _batched, lib=LIBRARY)
