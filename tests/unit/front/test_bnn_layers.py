"""Layers whose weights are drawn: their moments."""
from __future__ import annotations

import math
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.nn.probability import bnn_layers


def draws(layer: Any, x: Any, count: int = 1500) -> Any:
    """What a layer gives in so many calls, all means 0.3 and widths log(1 + exp(0.5))."""
    for p in layer.get_parameters():
        p.set_data(Tensor(np.full(p.shape, 0.3 if "mean" in p.name else 0.5, np.float32)))
    return np.stack([layer(x).asnumpy() for _ in range(count)])


@pytest.mark.parametrize("kind", ["DenseReparam", "DenseLocalReparam"])
def test_moments_of_dense_layers(kind: str) -> None:
    ms.set_seed(1)
    result, width = draws(getattr(bnn_layers, kind)(3, 2), Tensor(np.full((1, 3), 2.0, np.float32))), math.log1p(math.exp(0.5))
    np.testing.assert_allclose(result.mean(0), 3 * 2 * 0.3 + 0.3, atol=0.3)
    np.testing.assert_allclose(result.std(0), width * math.sqrt(3 * 4 + 1), rtol=0.08)


def test_one_weight_for_all_rows_or_one_for_each() -> None:
    x = Tensor(np.ones((2, 3), np.float32))
    for kind, is_shared in (("DenseReparam", True), ("DenseLocalReparam", False)):
        result = draws(getattr(bnn_layers, kind)(3, 2, has_bias=False), x, 3)
        assert np.allclose(result[:, 0], result[:, 1]) == is_shared and not np.allclose(result[0], result[1])


def test_a_graph_draws_anew() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        result = draws(bnn_layers.ConvReparam(1, 2, 2), Tensor(np.ones((1, 1, 3, 3), np.float32)), 3)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert not np.allclose(result[0], result[1]) and not np.allclose(result[1], result[2])


def test_text_and_network() -> None:
    layer = bnn_layers.DenseReparam(3, 2, activation=nn.ReLU(), weight_posterior_fn=bnn_layers.normal_post_fn)
    assert repr(layer).startswith("DenseReparam(\n  in_channels=3, out_channels=2, weight_mean=Parameter (name=weight_posterior.mean")
    assert "in_channels=1" in repr(bnn_layers.ConvReparam(1, 2, 2))
    wrapped = bnn_layers.WithBNNLossCell(layer, nn.MSELoss())
    assert wrapped.backbone_network is layer and len(wrapped.kl_loss) == 1
    with pytest.raises(TypeError, match="a Cell"):
        bnn_layers.WithBNNLossCell(3, nn.MSELoss())
    with pytest.raises(TypeError, match="a loss"):
        bnn_layers.WithBNNLossCell(layer, 3)
