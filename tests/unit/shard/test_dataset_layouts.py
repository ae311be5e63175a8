"""`dataset_strategy` as Layouts: how the inputs of a split graph lie, for grids in any order."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Tensor, nn, ops

GRID = Layout((2, 4), ("dp", "mp"))
STRATEGIES: dict[str, Any] = {
    "rows and columns": (GRID("dp", "mp"),),
    "a grid in another order": (Layout((4, 2), ("mp", "dp"))("dp", "mp"),),
    "rows by both axes": (GRID(("mp", "dp"), "None"),),
    "columns only": (GRID("None", "dp"),),
    "an axis on one device": (Layout((2, 4, 2), ("dp", "mp", "interleaved_parallel"))(("dp", "interleaved_parallel"), "None"),),
}
X = np.arange(128, dtype=np.float32).reshape(16, 8) / 10


class Net(nn.Cell):
    """A product that is split, and a function of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(np.arange(64, dtype=np.float32).reshape(8, 8) / 7 - 3, name="weight")
        self.matmul = ops.MatMul().shard(((2, 4), (4, 1)))

    def construct(self, x: Tensor) -> Tensor:
        return ops.tanh(self.matmul(x, self.weight) / 100)


def _value_and_gradient() -> list[np.ndarray]:
    net = Net()
    value, (gradient,) = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(Tensor(X))
    return [net(Tensor(X)).asnumpy(), value.asnumpy(), gradient.asnumpy()]


def _set(strategy: Any) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy=strategy)


@pytest.fixture(autouse=True)
def simulated_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_numbers_of_one_device(strategy: str) -> None:
    expected = _value_and_gradient()
    _set(STRATEGIES[strategy])
    assert ms.get_auto_parallel_context("dataset_strategy") == STRATEGIES[strategy]
    for result, reference in zip(_value_and_gradient(), expected):
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-5)


def test_another_number_of_devices_is_refused() -> None:
    _set((Layout((2, 2), ("dp", "mp"))("dp", "mp"),))
    with pytest.raises(ValueError, match=r"a Layout of \(2, 2\) devices: expected 8 devices"):
        Net()(Tensor(X))


@pytest.mark.parametrize("strategy", [(GRID,), (GRID("dp", "mp"), (2, 1)), ((2, 1), GRID("dp", "mp"))])
def test_what_is_no_strategy(strategy: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="expected 'data_parallel', 'full_batch', or a tuple of Layouts"):
        _set(strategy)


def test_text_of_a_layout() -> None:
    assert str(GRID(("mp", "dp"), "None")) == "Layout((2, 4), ('dp', 'mp'))(('mp', 'dp'), 'None')"
    assert str(Layout((2,), ("a",), [1, 0])) == "Layout((2,), ('a',), [1, 0])"
