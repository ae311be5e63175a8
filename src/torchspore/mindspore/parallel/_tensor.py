"""Parts of Tensors on devices, by a device matrix and a tensor map."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.distributed.shard.strategy_validation.layout import TensorLayout
from torchspore.mindspore.common.process_groups import get_rank
from torchspore.mindspore.common.tensor import Tensor
from torchspore.public_names import missing

Array = np.ndarray[Any, Any]


def _load_tensor(
    tensor: Tensor, dev_mat: Sequence[int], tensor_map: Sequence[int], full_shape: Sequence[int] | None = None, rank_id: int = -1,
) -> Array:
    """Return the part of a Tensor that a device holds, as an array; `rank_id` -1 is this process.

    Raises ValueError if the layout does not divide the shape.
    """
    values: Array = tensor.asnumpy()
    if full_shape:
        values = values.reshape(tuple(full_shape))
    layout = TensorLayout(tuple(dev_mat), tuple(tensor_map))
    rank = get_rank() if rank_id == -1 else rank_id
    part: Array = values[layout.slices(rank % prod(layout.device_matrix), values.shape)]
    return part


def _reshape_param_data(param_data: Tensor, dev_mat: Sequence[int], tensor_map: Sequence[int]) -> Tensor:
    """Return the full Tensor of which `param_data` has the parts of all devices, one after the other along axis 0.

    Raises ValueError if the number of devices does not divide the length of axis 0.
    """
    layout = TensorLayout(tuple(dev_mat), tuple(tensor_map))
    parts: Array = param_data.asnumpy()
    count = prod(layout.device_matrix)
    if parts.shape[0] % count:
        raise ValueError(message(f"the parts of {count} devices along an axis of {parts.shape[0]} rows", f"rows that {count} divides"))
    shape = (parts.shape[0] // count, *parts.shape[1:])
    full = np.empty(tuple(size * cut for size, cut in zip(shape, layout.cuts())), parts.dtype)
    for rank, part in enumerate(np.split(parts, count)):
        full[layout.slices(rank, full.shape)] = part
    return Tensor(full)


def _get_pipeline_operator_map(from_layout: Sequence[Any], to_layout: Sequence[Any], self_rank: int) -> dict[int, list[Any]]:
    """Return by rank the broadcast that copies a Parameter into stages that get it when pipeline stages are merged; empty for none.

    A layout is (device matrix, tensor map, shape, ranks). The devices at the same position in their stages share a broadcast.
    """
    source, target = sorted(from_layout[3]), sorted(to_layout[3])
    if len(source) >= len(target):
        return {}
    position = self_rank % len(source)
    others = [rank for rank in target if rank not in source]
    ranks = sorted([source[position], *others[position::len(source)]])
    return {rank: [("Broadcast", source[position], ranks)] for rank in ranks}


__getattr__ = missing(__name__)
