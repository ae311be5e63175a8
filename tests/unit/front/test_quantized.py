"""Operators that MindSpore 1.x had for the Ascend and the GPU alone: held against what its documents say, and against loops."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.nn.layer.quant import FakeQuantWithMinMaxObserver
from mindspore.ops.operations._inner_ops import PsROIPooling

X = np.array([[1.0, 2.0, 1.0], [-2.0, 0.0, -1.0]], np.float32)


def test_the_documented_values_of_fake_quantization() -> None:
    array = nn.FakeQuantWithMinMaxObserver()(Tensor(X)).asnumpy()
    np.testing.assert_allclose(array, [[0.9882355, 1.9764705, 0.9882355], [-1.9764705, 0.0, -0.9882355]], rtol=1e-6)


def test_bounds_are_learned_from_batches(mode: int) -> None:
    cell = FakeQuantWithMinMaxObserver.partial_init(ema=True, ema_decay=0.5)(
        per_channel=True, num_channels=3, symmetric=True, quant_delay=1,
    ).set_train()
    np.testing.assert_array_equal(cell(Tensor(X)).asnumpy(), X)                # the first batch goes through as it is
    array = cell(Tensor(X)).asnumpy()
    np.testing.assert_array_equal(cell.minq.asnumpy(), [-3.0, -1.5, -2.25])
    np.testing.assert_array_equal(cell.maxq.asnumpy(), [2.25, 3.0, 2.25])
    steps = np.array([6.0, 6.0, 4.5]) / 255
    assert np.abs(array - X).max() < steps.max() and np.abs(array / steps - np.round(array / steps)).max() < 1e-3


def test_gradients_go_through_inside_the_bounds() -> None:
    inside = ops.FakeQuantPerLayer(num_bits=8)
    low, high = Tensor([-1.5], ms.float32), Tensor([1.5], ms.float32)
    np.testing.assert_array_equal(ms.grad(lambda x: inside(x, low, high).sum())(Tensor(X)).asnumpy(), np.abs(X) < 1.5)
    cell = nn.FakeQuantWithMinMaxObserver(mode="LEARNED_SCALE", symmetric=True, narrow_range=True, min_init=-1.5, max_init=1.5).set_train()
    by_x, (by_low, by_high) = ms.grad(lambda x: cell(x).sum(), 0, cell.trainable_params())(Tensor(X))
    np.testing.assert_array_equal(by_x.asnumpy(), np.abs(X) < 1.5)
    share = X / 1.5
    rest = np.floor(np.clip(share, -1, 1) * 127 + 0.5) / 127 - np.where(np.abs(share) < 1, share, 0)
    np.testing.assert_allclose(by_high.asnumpy(), [rest.sum()], atol=1e-6)
    assert by_low.asnumpy().tolist() == [0.0] and cell.minq.asnumpy().tolist() == [-1.5]


def test_the_operators_by_themselves() -> None:
    x, low, high = Tensor(X), Tensor([-2.0], ms.float32), Tensor([2.0], ms.float32)
    each = [Tensor(bound * np.ones(3, np.float32)) for bound in (-2, 2)]
    for expected, several in (
        (ops.FakeQuantPerLayer(4)(x, low, high), ops.FakeQuantPerChannel(4)(x, *each)),
        (ops.FakeLearnedScaleQuantPerLayer()(x, high, Tensor([7.0])), ops.FakeLearnedScaleQuantPerChannel()(x, each[1], Tensor([7.0]))),
    ):
        np.testing.assert_array_equal(expected.asnumpy(), several.asnumpy())
        assert 0 < np.abs(expected.asnumpy() - X).max() < 4 / 14
    assert [bound.asnumpy().tolist() for bound in ops.MinMaxUpdatePerLayer()(x, low, high)] == [[-2.0], [2.0]]
    assert [bound.asnumpy().tolist() for bound in ops.MinMaxUpdatePerChannel()(x, *each)] == [[-2.0, 0.0, -1.0], [1.0, 2.0, 1.0]]
    with pytest.raises(ValueError, match="quant_delay=3: expected 0"):
        ops.FakeQuantPerLayer(quant_delay=3)(x, low, high)


@pytest.mark.parametrize(("options", "error"), [
    ({"quant_delay": -1}, ValueError), ({"quant_delay": 0.5}, TypeError), ({"mode": "OTHER"}, ValueError), ({"min_init": 7}, ValueError),
    ({"mode": "LEARNED_SCALE"}, ValueError), ({"min_init": [1, 2]}, ValueError), ({"max_init": "6"}, TypeError),
])
def test_what_fake_quantization_refuses(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"FakeQuantWithMinMaxObserver\(.*expected"):
        nn.FakeQuantWithMinMaxObserver(**options)


def test_position_sensitive_means(mode: int) -> None:
    draw = np.random.RandomState(0)
    features = draw.rand(2, 3 * 4, 9, 11).astype(np.float32)
    regions = np.array([[0, 1.4, 2, 14.6, 12], [1, 0, 0, 20, 16], [1, 19, 3, 19, 3], [0, 7, 7, 9.5, 30]], np.float32)
    pool = PsROIPooling(2, 4, 4, 0.5, 3, 2)
    result, channels = pool(Tensor(features), Tensor(regions))
    expected, weight = np.zeros((4, 3, 2, 4), np.float32), np.zeros_like(features)
    for k, (image, x0, y0, x1, y1) in enumerate(regions):
        left, top = np.floor(x0 + 0.5) * 0.5, np.floor(y0 + 0.5) * 0.5
        width, height = max((np.floor(x1 + 0.5) + 1) * 0.5 - left, 0.1), max((np.floor(y1 + 0.5) + 1) * 0.5 - top, 0.1)
        for d, p, q in np.ndindex(3, 2, 4):
            rows = slice(*np.clip([int(np.floor(p * height / 2 + top)), int(np.ceil((p + 1) * height / 2 + top))], 0, 9))
            columns = slice(*np.clip([int(np.floor(q * width / 4 + left)), int(np.ceil((q + 1) * width / 4 + left))], 0, 11))
            channel = d * 4 + p * 2 // 2 * 2 + q * 2 // 4
            part = features[int(image), channel, rows, columns]
            assert int(channels[k, d, p, q]) == channel
            expected[k, d, p, q] = part.mean() if part.size else 0
            weight[int(image), channel, rows, columns] += 1 / max(part.size, 1)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)
    gradient = ms.grad(lambda x: pool(x, Tensor(regions))[0].sum())(Tensor(features))
    np.testing.assert_allclose(gradient.asnumpy(), weight, rtol=1e-5, atol=1e-6)
    for bad in (features[:, :11], features):
        with pytest.raises(ValueError, match="expected"):
            pool(Tensor(bad), Tensor(regions[:3]))
