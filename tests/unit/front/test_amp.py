"""Loss scalers and mixed precision: what is refused, and what stays in float32. Numbers are compared with records of 2.10."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, amp, nn, ops


class Deep(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm = nn.Dense(4, 4), nn.LayerNorm((4,))
        self.seen: list[Any] = []

    def construct(self, x: Any) -> Any:
        x = self.dense(x)
        self.seen.append(x.dtype)
        return self.norm(x)


def test_a_black_list_of_the_programs_own() -> None:
    net = Deep()
    changed = amp.custom_mixed_precision(net, black_list=[nn.Dense])
    assert changed(Tensor(np.ones((2, 4), np.float32))).dtype == ms.float32
    assert net.seen == [ms.float16] and net.name_cells()["dense"].name_cells()["_backbone"].weight.dtype == ms.float32


def test_bfloat16() -> None:
    net = Deep()
    assert amp.auto_mixed_precision(net, "O3", ms.bfloat16)(Tensor(np.ones((2, 4), np.float32))).dtype == ms.float32
    assert net.seen == [ms.bfloat16]


def test_all_finite(mode: int) -> None:
    values = (Tensor([1.0, 2.0]), [Tensor([[3]]), Tensor([0.5], ms.float16)])
    assert bool(amp.all_finite(values))
    assert not bool(amp.all_finite((*values, Tensor([np.inf]))))
    assert not bool(amp.all_finite(Tensor([np.nan])))


def test_a_training_step_with_a_scaler(mode: int) -> None:
    net, scaler = nn.Dense(2, 1), amp.DynamicLossScaler(1024, 2, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)

    def forward(x: Any) -> Any:
        return scaler.scale(ops.reduce_sum(net(x)) if hasattr(ops, "reduce_sum") else net(x).sum())

    step = ms.value_and_grad(forward, None, optimizer.parameters)
    before = net.weight.value().asnumpy()
    _, gradients = step(Tensor(np.ones((3, 2), np.float32)))
    gradients = scaler.unscale(gradients)
    assert bool(amp.all_finite(gradients))
    optimizer(gradients)
    np.testing.assert_allclose(net.weight.asnumpy(), before - 0.3, rtol=1e-5)


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: amp.DynamicLossScaler(0, 2, 2), ValueError), (lambda: amp.DynamicLossScaler("a", 2, 2), TypeError),
    (lambda: amp.DynamicLossScaler(16, 2, 1.5), TypeError), (lambda: amp.StaticLossScaler(-1), ValueError),
    (lambda: amp.StaticLossScaler(1).adjust("a"), TypeError), (lambda: amp.all_finite(3), TypeError),
    (lambda: amp.auto_mixed_precision(Deep(), "O1"), ValueError), (lambda: amp.auto_mixed_precision(Deep(), "O2", ms.int32), ValueError),
    (lambda: amp.custom_mixed_precision(Deep(), white_list=[nn.Dense]), ValueError),
    (lambda: amp.custom_mixed_precision(Deep(), black_list=[ops.MatMul]), ValueError),
    (lambda: amp.custom_mixed_precision(Deep(), black_list=nn.Dense), TypeError),
])
def test_what_does_not_fit(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


def test_the_black_list_is_that_of_mindspore() -> None:
    assert [kind.__name__ for kind in amp.get_black_list()] == ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm"]
    assert issubclass(amp.StaticLossScaler, amp.LossScaler)
