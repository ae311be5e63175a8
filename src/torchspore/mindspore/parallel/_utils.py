"""Queries of the model zoo's training cells: mode, mean, number of devices, all from the options of parallel execution."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.context.public import get_auto_parallel_context
from torchspore.mindspore import log as logger
from torchspore.mindspore.parallel._auto_parallel_context import (  # noqa: F401
    _reset_auto_parallel_context,
    _set_auto_parallel_context,
    auto_parallel_context,
)


def _get_parallel_mode() -> str:
    """Return the parallel mode."""
    return str(get_auto_parallel_context("parallel_mode"))


def _get_gradients_mean() -> bool:
    """Return whether gradients of several devices are averaged."""
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_device_num() -> int:
    """Return the number of devices: 1 in stand-alone mode, `device_num` if it is set, otherwise the number of processes."""
    from torchspore.distributed.data_parallel import settings

    return settings.device_num()


def _device_number_check(parallel_mode: str, device_number: int) -> None:
    """Raises ValueError for more than one device in the parallel mode 'stand_alone'."""
    if parallel_mode == "stand_alone" and device_number != 1:
        raise ValueError(message(f"device_number={device_number}", "1, as parallel_mode is 'stand_alone'"))


def _get_global_rank() -> int:
    """Return the rank of this process."""
    return int(get_auto_parallel_context("global_rank"))


def _is_sharding_propagation() -> bool:
    """Return whether strategies propagate from the operators that have one; with one process they do not."""
    return str(get_auto_parallel_context("search_mode")) == "sharding_propagation"


def _get_pipeline_stages() -> int:
    """Return the number of stages of the layers."""
    return int(get_auto_parallel_context("pipeline_stages"))


def _get_enable_parallel_optimizer() -> bool:
    """Return whether the optimizer's states are sharded over devices."""
    return bool(get_auto_parallel_context("enable_parallel_optimizer"))


def _get_full_batch() -> bool:
    """Return whether each device receives the full batch."""
    return bool(get_auto_parallel_context("full_batch"))


def _get_parameter_broadcast() -> bool:
    """Return whether the first device sends its Parameters to the others before training."""
    return bool(get_auto_parallel_context("parameter_broadcast"))


def _get_stage_device_num() -> int:
    """Return the number of devices of each stage."""
    return _get_device_num() // _get_pipeline_stages()


def _is_in_auto_parallel_mode() -> bool:
    """Return whether operators are split over devices."""
    return _get_parallel_mode() in ("semi_auto_parallel", "auto_parallel")


def _is_in_data_parallel_mode() -> bool:
    """Return whether each device trains on a part of the batch."""
    return _get_parallel_mode() == "data_parallel"


def _is_in_hybrid_parallel_mode() -> bool:
    """Return whether the program itself assigns operators to devices."""
    return _get_parallel_mode() == "hybrid_parallel"


def _need_to_full() -> bool:
    """Return whether a batch is a part of the network's batch."""
    return _is_in_auto_parallel_mode() and not _get_full_batch()


def _reset_op_id() -> None:
    """Let the numbers of operators in the next graph begin at 0, as they do in every graph here."""


Layout = Sequence[Any]
"""A device matrix and a tensor map, then more that is not read here."""


def _check_same_layout(tensor_layout1: Layout, tensor_layout2: Layout) -> bool:
    """Return whether two layouts have the same device matrix and the same tensor map."""
    return bool(tensor_layout1[0] == tensor_layout2[0] and tensor_layout1[1] == tensor_layout2[1])


def _check_similar_layout(tensor_layout1: Layout, tensor_layout2: Layout) -> bool:
    """Return whether two layouts have the same tensor map, and as many devices along each axis that splits a dimension."""
    if tensor_layout1[1] != tensor_layout2[1]:
        return False
    return all(tensor_layout1[0][-1 - axis] == tensor_layout2[0][-1 - axis] for axis in tensor_layout1[1] if axis != -1)


def _remove_repeated_slices(tensor_layout: Layout) -> list[Any]:
    """Return a copy of a layout whose device matrix has 1 along each axis that splits no dimension."""
    matrix, tensor_map = list(tensor_layout[0]), tensor_layout[1]
    return [[size if len(matrix) - 1 - at in tensor_map else 1 for at, size in enumerate(matrix)], *tensor_layout[1:]]


def _infer_rank_list(train_map: dict[str, Layout], predict_map: dict[str, Layout] | None = None) -> dict[str, tuple[Any, bool]]:
    """For each Parameter by name, return the ranks whose files hold different slices of it, and whether one slice is loaded as it is.

    `train_map` and `predict_map` give the layouts of training and of the present network; a name that `predict_map` lacks is left out.
    """
    ranks_by_name: dict[str, tuple[Any, bool]] = {}
    for name, layout in train_map.items():
        matrix = _remove_repeated_slices(layout)[0]
        ranks = np.arange(math.prod(layout[0])).reshape(layout[0])[tuple(slice(size) for size in matrix)].flatten()
        target = predict_map.get(name) if predict_map else None
        if not predict_map:
            ranks_by_name[name] = ranks, False
        elif target is None:
            logger.warning("predict_map does not contain %s", name)
        elif _check_same_layout(layout, target):
            ranks_by_name[name] = [_rank_in_stage()], True
        elif not _check_similar_layout(layout, target) or len(ranks) not in (1, math.prod(target[0])):
            ranks_by_name[name] = ranks, False
        else:
            ranks_by_name[name] = (ranks if len(ranks) == 1 else [ranks[_rank_in_stage()]]), True
    return ranks_by_name


def _rank_in_stage() -> int:
    """Return the rank of this process within its pipeline stage."""
    return _get_global_rank() % _get_stage_device_num() if _get_pipeline_stages() > 1 else _get_global_rank()
