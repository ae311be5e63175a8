"""`repeat_interleave` by a list of numbers: the length of the result is known to graphs, also to graphs that are split."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from mindspore.ops.auto_generate import RepeatInterleaveTensor

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize(("repeats", "axis"), [([2, 0, 1, 3], 0), ([1, 2, 0], -1), (list(range(12)), None), ([0, 0, 0], 1)])
def test_a_list_of_numbers(mode: int, repeats: list[int], axis: int | None) -> None:
    ms.set_context(mode=mode)
    expected = np.repeat(X, repeats, axis)
    for function in (ops.repeat_interleave, mint.repeat_interleave):
        assert np.array_equal(function(Tensor(X), repeats, axis).asnumpy(), expected)
    gradient = ms.grad(lambda x: ops.repeat_interleave(x, repeats, axis).sum())(Tensor(X)).asnumpy()
    assert np.array_equal(gradient, np.broadcast_to(np.array(repeats).reshape(
        X.shape if axis is None else (-1, 1) if axis == 0 else (1, -1)), X.shape).astype(np.float32))


@pytest.mark.parametrize("repeats", [[1, 2], [1, -1, 1, 1]])
def test_other_lists_are_refused(repeats: list[int]) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        ops.repeat_interleave(Tensor(X), repeats, 0)


class Repeated(nn.Cell):
    def __init__(self, strategy: Any) -> None:
        super().__init__()
        self.repeat = RepeatInterleaveTensor()
        if strategy is not None:
            self.repeat.shard(strategy)

    def construct(self, x):
        return self.repeat(x, [2, 3, 0, 1], 0)


def test_a_strategy_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    x = Tensor(np.arange(32, dtype=np.float32).reshape(4, 8))
    expected = Repeated(None)(x).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    assert np.array_equal(Repeated(((1, 4), (1,)))(x).asnumpy(), expected)
    with pytest.raises(RuntimeError, match="can't be cut"):
        Repeated(((4, 1), (1,)))(x)
