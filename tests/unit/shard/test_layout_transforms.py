"""Steps that change the layout of stored parts: MindSpore 2.10's answers (layout_transforms.json), and what they compute."""
from __future__ import annotations

import ast
import json
import random
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mindspore.parallel import _tensor

from torchspore.distributed.shard.strategy_validation.layout import TensorLayout

RECORD = json.loads(Path(__file__).with_name("layout_transforms.json").read_text())


def as_lists(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(("call", "steps", "ranks", "length"), RECORD["steps"])
def test_steps_are_those_of_mindspore(call: str, steps: Any, ranks: list[int], length: int) -> None:
    source, target, rank = ast.literal_eval(call)
    devices = list(range(prod(source[0])))
    assert as_lists(_tensor._transform_tensor_by_layout(source, target, devices, rank)) == steps
    assert _tensor._get_needed_rank_list_by_layouts(source, target, devices, rank) == ranks
    found = _tensor._get_needed_rank_transform_operator_map_by_layouts(source, target, devices, rank)
    assert len(_tensor._generate_transform_operator_stack(found, rank)) == length


@pytest.mark.parametrize(("call", "layout"), RECORD["optimizer_layouts"])
def test_layouts_of_the_parallel_optimizer(call: str, layout: Any) -> None:
    assert as_lists(_tensor._construct_tensor_layout_for_opt_shard(*ast.literal_eval(call))) == layout


def draw(rng: random.Random, devices: int, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    matrix: list[int] = []
    remaining = devices
    for _ in range(rng.choice((0, 1, 2))):
        matrix.append(rng.choice([size for size in (1, 2, 4, 8) if remaining % size == 0]))
        remaining //= matrix[-1]
    matrix.append(remaining)
    axes = list(range(len(matrix)))
    rng.shuffle(axes)
    tensor_map = [axes.pop() if axes and rng.random() < 0.6 else -1 for _ in shape]
    if axes and rng.random() < 0.5:
        tensor_map[-1] = [tensor_map[-1], axes.pop()] if tensor_map[-1] != -1 else axes.pop()
    return tuple(matrix), tuple(tuple(entry) if isinstance(entry, list) else entry for entry in tensor_map), shape


def test_steps_compute_the_parts_of_the_other_layout() -> None:
    rng = random.Random(3)
    for _ in range(150):
        devices, shape = rng.choice((4, 8, 16)), rng.choice(((32, 64), (16, 32, 16), (64,)))
        source, target = draw(rng, devices, shape), draw(rng, devices, shape)
        full = np.arange(prod(shape)).reshape(shape)
        parts = {rank: full[TensorLayout(*source[:2]).slices(rank, shape)] for rank in range(devices)}
        rank = rng.randrange(devices)
        found = _tensor._get_needed_rank_transform_operator_map_by_layouts(source, target, list(range(devices)), rank)
        stack = _tensor._generate_transform_operator_stack(found, rank)
        _tensor._apply_tensor_transform_operators(stack, parts, devices)
        assert np.array_equal(parts[rank], full[TensorLayout(*target[:2]).slices(rank, shape)]), (source, target, rank)


def test_numbers_of_devices_and_coordinates() -> None:
    layouts = _tensor._construct_from_to_tensor_layout((8, 16), (2, 4), (1, -1), (8, 16), (8, 4), (-1, 0))
    assert layouts == (([4, 2, 4], [1, -1], [8, 16]), ([8, 4], [-1, 0], [8, 16]))
    assert _tensor._get_tensor_strategy((4, 2, 2), ([2, 0], -1, 1)) == [8, 1, 2]
    assert _tensor._rank_to_coordinate(11, [2, 4, 2]) == [1, 1, 1] and _tensor._coordinate_to_rank([1, 1, 1], [2, 4, 2]) == 11
    assert _tensor._construct_tensor_layout_for_opt_shard((4, 2), (0, -1), 0, 8, (8, 4)) == ([4, 2], [0, -1], [8, 4])


def test_layouts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="expected as many devices and as many elements"):
        _tensor._transform_tensor_by_layout(((8,), (0,), (8,)), ((4,), (0,), (8,)), list(range(8)), 0)
    with pytest.raises(ValueError, match="expected sizes that divide each other"):
        _tensor._transform_tensor_by_layout(((2, 3), (0,), (6,)), ((3, 2), (0,), (6,)), list(range(6)), 0)
    with pytest.raises(ValueError, match="expected one number that divides the other"):
        _tensor._construct_from_to_tensor_layout((6,), (2,), (0,), (6,), (3,), (0,))
    with pytest.raises(ValueError, match="expected a size that divides 1"):
        _tensor._construct_tensor_layout_for_opt_shard((8, 2), (1, 0), 2, 8, (32, 64))
    with pytest.raises(ValueError, match=r"expected also those of \[1\]"):
        _tensor._apply_tensor_transform_operators([(0, 0, ("AllConcat", [0, 1, 0]))], {0: np.zeros(2)}, 2)
