"""Parts of Tensors on devices, by a device matrix and a tensor map, and steps that change their layout.

In a tensor map the axes of the device matrix are counted from the last one; -1 means unsplit, and a list several axes.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.distributed.shard import layout_transforms
from torchspore.distributed.shard.layout_transforms import Step
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


def _get_tensor_strategy(dev_mat: Sequence[int], tensor_map: Sequence[Any]) -> list[int]:
    """Return into how many parts each dimension is split."""
    return layout_transforms.cuts_of(dev_mat, tensor_map)


def _rank_to_coordinate(rank_index: int, device_arrangement: Sequence[int]) -> list[int]:
    """Return the position of a device along each axis of the device matrix."""
    position = []
    for size in reversed(device_arrangement):
        position.insert(0, rank_index % size)
        rank_index //= size
    return position


def _coordinate_to_rank(device_coordinate: Sequence[int], device_arrangement: Sequence[int]) -> int:
    """Return the device at a position along each axis of the device matrix."""
    rank = 0
    for coordinate, size in zip(device_coordinate, device_arrangement):
        rank = rank * size + coordinate
    return rank


def _transform_tensor_by_layout(
    from_layout: Sequence[Any], to_layout: Sequence[Any], device_list: Sequence[int], rank_id: int, enable_redist_opt: bool = False,
) -> list[Step]:
    """Return the steps that change the part of a device from one layout to another: Reshape, AllConcat and StridedSlice.

    A layout is (device matrix, tensor map, full shape). `enable_redist_opt` does not change the steps. Raises ValueError for layouts that
    do not fit each other.
    """
    del enable_redist_opt
    return layout_transforms.steps(from_layout, to_layout, device_list, rank_id)


def _get_needed_rank_transform_operator_map_by_layouts(
    from_tensor_layout: Sequence[Any], to_tensor_layout: Sequence[Any], device_list: Sequence[int], self_rank: int,
    enable_redist_opt: bool = False,
) -> dict[int, list[Step]]:
    """Return by rank the steps of `_transform_tensor_by_layout` of a device, and of all devices whose parts it needs."""
    del enable_redist_opt
    return layout_transforms.steps_by_rank(from_tensor_layout, to_tensor_layout, device_list, self_rank)


def _get_needed_rank_list_by_layouts(
    from_tensor_layout: Sequence[Any], to_tensor_layout: Sequence[Any], device_list: Sequence[int], self_rank: int,
) -> list[int]:
    """Return the ranks whose parts a device needs, in order."""
    return sorted(layout_transforms.steps_by_rank(from_tensor_layout, to_tensor_layout, device_list, self_rank))


def _generate_transform_operator_stack(transform_operators_map: dict[int, list[Step]], self_rank: int) -> list[tuple[int, int, Step]]:
    """Return (rank, number, step) of all steps that a device's result needs, the last one first."""
    return layout_transforms.ordered_steps(transform_operators_map, self_rank)


def _apply_tensor_transform_operators(
    transform_operator_stack: list[tuple[int, int, Step]], tensor_dict: dict[int, Any], device_num: int,
) -> None:
    """Perform the steps of a stack on the arrays of `tensor_dict`, by rank modulo `device_num`; the results replace them.

    Raises ValueError if the part of a device is absent.
    """
    while transform_operator_stack:
        number = transform_operator_stack[-1][1]
        results = {}
        while transform_operator_stack and transform_operator_stack[-1][1] == number:
            rank, _, step = transform_operator_stack.pop()
            results[rank % device_num] = _performed(step, rank, tensor_dict, device_num)
        tensor_dict.update(results)


def _performed(step: Step, rank: int, parts: dict[int, Any], count: int) -> Any:
    kind, numbers = step
    ranks = [other % count for other in (numbers[:-1] if kind == "AllConcat" else [rank])]
    absent = [other for other in ranks if other not in parts]
    if absent:
        raise ValueError(message(f"the parts of the ranks {sorted(parts)}", f"also those of {absent}"))
    if kind == "AllConcat":
        return np.concatenate([parts[other] for other in ranks], numbers[-1])
    part = parts[ranks[0]]
    if kind == "Reshape":
        return np.reshape(part, numbers)
    axes = len(numbers) // 3
    return part[tuple(slice(*bounds) for bounds in zip(numbers[:axes], numbers[axes:2 * axes], numbers[2 * axes:]))]


def _construct_from_to_tensor_layout(
    from_full_tensor_shape: Sequence[int], from_dev_matrix: Sequence[int], from_tensor_map: Sequence[Any],
    to_full_tensor_shape: Sequence[int], to_dev_matrix: Sequence[int], to_tensor_map: Sequence[Any],
) -> tuple[tuple[list[int], list[Any], list[int]], tuple[list[int], list[Any], list[int]]]:
    """Return two layouts with as many devices: more devices repeat the parts of the smaller matrix. Raises ValueError if none divides."""
    counts = prod(from_dev_matrix), prod(to_dev_matrix)
    if max(counts) % min(counts):
        raise ValueError(message(f"layouts of {counts[0]} and {counts[1]} devices", "one number that divides the other"))
    sides = (from_dev_matrix, from_tensor_map, from_full_tensor_shape), (to_dev_matrix, to_tensor_map, to_full_tensor_shape)
    first, second = (
        ([*([max(counts) // prod(matrix)] if prod(matrix) < max(counts) else []), *matrix], list(tensor_map), list(shape))
        for matrix, tensor_map, shape in sides
    )
    return first, second


def _construct_tensor_layout_for_opt_shard(
    dev_matrix: Sequence[int], tensor_map: Sequence[Any], opt_shard_step: int, opt_shard_size: int, origin_full_tensor_shape: Sequence[int],
) -> tuple[list[int], list[Any], list[int]]:
    """Return device matrix, tensor map and shape of a Parameter whose rows the optimizer splits among `opt_shard_size` devices.

    -1 means all devices that store equal parts; 0 as size or step changes nothing. Otherwise the step has no effect: the optimizer uses the
    lowest free axes. Raises ValueError for a size that does not divide the number of these devices.
    """
    if opt_shard_step == 0 or opt_shard_size == 0:
        return list(dev_matrix), list(tensor_map), list(origin_full_tensor_shape)
    return layout_transforms.optimizer_layout(dev_matrix, tensor_map, opt_shard_size, origin_full_tensor_shape)


_construct_tensor_layout_for_opt_shard_by_layout = _construct_tensor_layout_for_opt_shard


__getattr__ = missing(__name__)
