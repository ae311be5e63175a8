"""A split graph: an `if` on constant Tensors is decided when the graph is captured, and again if the values change."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.errors import StrategyRefused


class _Net(nn.Cell):
    def __init__(self, limit: Any) -> None:
        super().__init__()
        self.limit = Tensor(limit, ms.float16)
        self.scale = ops.Mul().shard(((2, 1), (2, 1)))

    def construct(self, x: Tensor) -> Tensor:
        mask = None
        if self.limit < 1.0:
            mask = x
        if self.limit != 3.0 and mask is None:
            return self.scale(x, x)
        return self.scale(x, x if mask is None else mask + 1)


@pytest.fixture(autouse=True)
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")


def _split() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")


@pytest.mark.parametrize("limit", [0.5, 1.0, 3.0])
def test_the_way_of_the_value_is_taken(limit: float) -> None:
    _split()
    x = Tensor(np.arange(8, dtype=np.float32).reshape(4, 2))
    expected = x.asnumpy() * (x.asnumpy() + 1 if limit < 1 else x.asnumpy())
    net = _Net(limit)
    assert np.array_equal(net(x).asnumpy(), expected) and len(net._graphs_) == 1


def test_a_changed_value_takes_the_other_way() -> None:
    _split()
    x = Tensor(np.full((4, 2), 3, np.float32))
    net = _Net(1.0)
    assert net(x).asnumpy()[0, 0] == 9
    net.limit.assign_value(Tensor(0.5, ms.float16))
    assert net(x).asnumpy()[0, 0] == 12
    net.limit = Tensor(1.0, ms.float16)
    assert net(x).asnumpy()[0, 0] == 9


def test_a_condition_on_an_argument_with_two_kinds_of_value_is_refused() -> None:
    class Net(nn.Cell):
        def construct(self, x: Tensor, limit: Tensor) -> Tensor:
            mask = None
            if limit < 1.0:
                mask = x
            return x if mask is None else x + mask

    _split()
    with pytest.raises(StrategyRefused, match="two kinds of value, depending on a Tensor"):
        Net()(Tensor(np.ones((4, 2), np.float32)), Tensor(0.5, ms.float32))
