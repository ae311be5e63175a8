"""Strategies that split the axes that ScatterNd operators index, and StridedSlice with new axes: MindSpore's answers, and the numbers."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from torchspore.distributed.shard.strategy_validation import layouts_of

TABLE = (32, 64, 128)
# What MindSpore 2.10 answers, compiled for eight devices: accepted by all of these operators, and refused by all of the others.
COMPUTING = ("ScatterNdAdd", "ScatterNdSub", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMul", "TensorScatterDiv")
REPLACING = ("ScatterNdUpdate", "TensorScatterUpdate", "TensorScatterMax", "TensorScatterMin")
SPLIT_TABLES = [
    ((4, 3), (4,), ((2, 2, 2), (1, 1), (1,))), ((4, 2), (4, 128), ((1, 2, 4), (1, 1), (1, 4))),
    ((4, 2), (4, 128), ((2, 1, 4), (1, 1), (1, 4))), ((4, 2), (4, 128), ((2, 2, 1), (1, 1), (1, 1))),
]
SPLIT_UPDATES = ((4, 2), (4, 128), ((2, 2, 1), (2, 1), (2, 1)))


def fits(name: str, attributes: dict[str, Any], shapes: list[tuple[int, ...]], strategy: Any) -> bool:
    try:
        layouts_of(name, attributes, shapes, strategy, None, 8)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", [*COMPUTING, *REPLACING])
def test_indexed_axes(name: str) -> None:
    for numbers, updates, strategy in SPLIT_TABLES:
        assert fits(name, {}, [TABLE, numbers, updates], strategy) == (name in COMPUTING)
    assert not fits(name, {}, [TABLE, *SPLIT_UPDATES[:2]], SPLIT_UPDATES[2])


@pytest.mark.parametrize(("begin", "end", "strategy", "masks", "is_accepted"), [
    ((0, 0, 0), (2, 1, 8), (2, 4, 1, 1), {"new_axis_mask": 2}, True), ((0, 0, 0), (2, 4, 1), (2, 2, 1, 2), {"new_axis_mask": 4}, True),
    ((0, 0, 0, 0), (2, 4, 8, 16), (2, 2, 1, 2), {"shrink_axis_mask": 4}, True),
    ((0, 0, 0, 0, 0), (2, 1, 4, 8, 16), (2, 2, 1, 2), {"new_axis_mask": 2}, False),
    ((0, 0, 0, 0), (2, 4, 8, 16), (2, 2, 1, 2), {"ellipsis_mask": 2}, False),
    ((0, 0, 0, 0), (2, 4, 8, 16), (2, 2, 1, 2), {"shrink_axis_mask": 1}, False),
    ((0, 0, 0, 0, 0), (1, 1, 4, 8, 16), (1, 2, 2, 2), {"new_axis_mask": 2, "shrink_axis_mask": 1}, False),
])
def test_new_axes(begin: Any, end: Any, strategy: Any, masks: dict[str, int], is_accepted: bool) -> None:
    attributes = {"begin": begin, "end": end, "strides": (1,) * len(begin), **masks}
    assert fits("StridedSlice", attributes, [(2, 4, 8, 16)], (strategy,)) == is_accepted


class Indexed(nn.Cell):
    def __init__(self, is_split: bool) -> None:
        super().__init__()
        self.table = Parameter(Tensor(np.arange(64, dtype=np.float32).reshape(4, 8, 2)), name="table")
        self.write, self.multiply = ops.ScatterNdAdd(), ops.TensorScatterMul()
        self.select = ops.StridedSlice(new_axis_mask=2)
        self.relu = ops.ReLU()
        self.numbers = Tensor(np.array([[0, 7], [3, 2], [0, 7]], np.int32))
        if is_split:
            self.write.shard(((2, 4, 1), (1, 1), (1, 1)))
            self.multiply.shard(((4, 2, 1), (1, 1), (1, 1)))
            self.select.shard(((4, 2, 1),))

    def construct(self, x, updates):
        written = self.write(self.table, self.numbers, updates)
        multiplied = self.multiply(self.relu(x), self.numbers, updates)
        return written + 0, multiplied, self.select(self.relu(x), (0, 0, 0), (4, 1, 8), (1, 1, 1))


def test_eight_devices_give_the_numbers_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    rng = np.random.default_rng(2)
    inputs = Tensor(rng.standard_normal((4, 8, 2)).astype(np.float32)), Tensor(rng.standard_normal((3, 2)).astype(np.float32))
    alone = [part.asnumpy() for part in Indexed(False)(*inputs)]
    assert alone[2].shape == (4, 1, 8, 2)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    for actual, expected in zip(Indexed(True)(*inputs), alone, strict=True):
        np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-6)
