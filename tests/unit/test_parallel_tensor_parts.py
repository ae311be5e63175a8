"""Parts of Tensors on devices: `mindspore.parallel._tensor`."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mindspore import Tensor
from mindspore.parallel._tensor import _get_pipeline_operator_map, _load_tensor, _reshape_param_data


@pytest.mark.parametrize("dev_mat,tensor_map", [([2, 4], [1, 0]), ([4, 2], [-1, 1]), ([8], [0, -1]), ([2, 2, 2], [2, -1])])
def test_parts_make_up_the_tensor(dev_mat: list[int], tensor_map: list[int]) -> None:
    full = np.arange(64).reshape(8, 8)
    parts = [_load_tensor(Tensor(full), dev_mat, tensor_map, rank_id=rank) for rank in range(8)]
    assert np.array_equal(_reshape_param_data(Tensor(np.concatenate(parts)), dev_mat, tensor_map).asnumpy(), full)


def test_a_part_of_another_shape() -> None:
    assert _load_tensor(Tensor(np.arange(6)), [2, 3], [1, -1], [2, 3], 5).tolist() == [[3, 4, 5]]


def test_rows_that_the_devices_do_not_divide() -> None:
    with pytest.raises(ValueError, match="expected rows that 8 divides"):
        _reshape_param_data(Tensor(np.zeros((9, 2))), [8], [0, -1])


@pytest.mark.parametrize("before,after,rank,ranks", [
    ([0, 1, 2, 3], list(range(8)), 1, [1, 5]), ([0, 1], [0, 1, 2, 3], 2, [0, 2]), ([0, 1], list(range(6)), 1, [1, 3, 5]),
])
def test_merged_stages_get_a_broadcast(before: Any, after: Any, rank: int, ranks: list[int]) -> None:
    layouts = [([len(r)], [0], [8], r) for r in (before, after)]
    assert _get_pipeline_operator_map(*layouts, rank) == {r: [("Broadcast", ranks[0], ranks)] for r in ranks}


def test_stages_that_are_not_merged_get_none() -> None:
    assert _get_pipeline_operator_map(([4], [0], [8], [0, 1, 2, 3]), ([2], [0], [8], [0, 1]), 0) == {}
