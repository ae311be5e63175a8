"""infer_boost: faster inference with the same numbers, new weights are seen, training is refused."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings

from torchspore.context import effects
from torchspore.errors import InferenceOnly
from torchspore.graph import dispatch
from torchspore.graph.compile_cache import autotune_cache


@pytest.fixture(autouse=True)
def boosted() -> Iterator[None]:
    autotune_cache.forget()
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0", "infer_boost": "on"})
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={}, deterministic="OFF")


class Net(nn.Cell):
    """A block with a way around, a stem, a dense head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm0 = nn.Conv2d(3, 16, 3, has_bias=True), nn.BatchNorm2d(16)
        self.conv1, self.norm1 = nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 16, 3, group=2), nn.BatchNorm2d(16)
        self.relu, self.pool, self.fc = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Dense(16, 5)

    def construct(self, x):
        x = self.pool(self.relu(self.norm0(self.stem(x))))
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.fc(ops.relu(y + x).mean((2, 3)))


@pytest.fixture
def net() -> Any:
    ms.set_seed(3)
    network = Net()
    rng = np.random.RandomState(0)
    for norm in (network.norm0, network.norm1, network.norm2):
        for p in (norm.moving_mean, norm.moving_variance, norm.gamma, norm.beta):
            p.set_data(Tensor(rng.rand(16).astype(np.float32) + 0.5))
    return network.set_train(False)


X = Tensor(np.random.RandomState(1).randn(8, 3, 32, 32).astype(np.float32))


def plain(net: Any) -> np.ndarray:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    try:
        return net(X).asnumpy()
    finally:
        ms.set_context(mode=ms.GRAPH_MODE)


class Kernels(torch.utils._python_dispatch.TorchDispatchMode):
    """The names of the operators that run."""

    def __enter__(self) -> Any:
        self.names: list[str] = []
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def always_boosted(measured_by: Any) -> None:
    """Takes the boosted form whatever the measurement on a busy machine would say."""
    measured_by(fake_timings.Last())


@pytest.mark.usefixtures("always_boosted")
def test_norms_are_folded_and_activations_join_the_convolutions(net: Any) -> None:
    expected, got = plain(net), net(X).asnumpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    with Kernels() as seen:
        net(X)
    assert sum("_convolution_pointwise" in name or "convolve_packed" in name for name in seen.names) == 3
    assert not [name for name in seen.names if "batch_norm" in name or "relu" in name or "aten.add." in name or "reorder" in name]
    assert str(effects.outcome_of(_option(), "on")).startswith("applied: 3 of 3 batch norms are folded into convolutions and ")


def _option() -> Any:
    from torchspore.context.options import OPTIONS

    return OPTIONS["infer_boost"]


@pytest.mark.usefixtures("always_boosted")
@pytest.mark.parametrize("change", ["set_data", "load", "in_place", "optimizer", "statistics", "replaced"])
def test_new_weights_are_seen(net: Any, change: str) -> None:
    first = net(X).asnumpy()
    if change == "set_data":
        net.conv1.weight.set_data(net.conv1.weight * 2)
    elif change == "load":
        ms.load_param_into_net(net, {p.name: ms.Parameter(p * 1.5, name=p.name) for p in net.get_parameters()})
    elif change == "in_place":
        net.norm1.gamma[0] = 9.0
    elif change == "optimizer":
        ms.set_context(mode=ms.PYNATIVE_MODE)
        nn.SGD(net.trainable_params(), 0.1)(tuple(ops.ones_like(p) for p in net.trainable_params()))
        ms.set_context(mode=ms.GRAPH_MODE)
    elif change == "statistics":
        ms.set_context(mode=ms.PYNATIVE_MODE)
        net.set_train()(X)
        net.set_train(False)
        ms.set_context(mode=ms.GRAPH_MODE)
    else:
        net.fc.weight = ms.Parameter(net.fc.weight * 3, name="fc.weight")
    second = net(X).asnumpy()
    assert not np.allclose(first, second)
    np.testing.assert_allclose(second, plain(net), rtol=1e-4, atol=1e-5)


def test_weights_are_packed_once(net: Any, always_boosted: None) -> None:
    net(X)
    for _ in range(2):
        with Kernels() as seen:
            net(X)
        assert not any("reorder" in name or "rsqrt" in name for name in seen.names)


def test_training_is_refused_with_the_line(net: Any) -> None:
    gradient = ops.GradOperation(get_by_list=True)(net, net.trainable_params())
    with pytest.raises(InferenceOnly) as caught:
        gradient(X)
    text = str(caught.value)
    assert text.startswith(f"{__file__}:") and text.partition(": ")[2] == (
        "infer_boost 'on' compiles for inference only, and this call computes gradients.\n\n"
        "hint: train with jit_config={'infer_boost': 'off'}, and call set_train(False) on a net for inference."
    )
    net.set_train()
    with pytest.raises(InferenceOnly, match="writes into Parameters"):
        net(X)
    net.set_train(False)
    assert net(X).shape == (8, 5)


def test_a_deterministic_run_does_not_measure(net: Any, measured_by: Any) -> None:

    ms.set_context(deterministic="ON")
    measured_by(fake_timings.nobody)
    np.testing.assert_allclose(net(X).asnumpy(), plain(net), rtol=1e-4, atol=1e-5)
    assert len(dispatch.graphs(net)) == 1


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_higher_levels_prepare_weights_for_inference_too(net: Any, level: str, without_kernels: None, measured_by: Any) -> None:
    measured_by(fake_timings.Last())
    ms.set_context(jit_config={"jit_level": level})
    first = net(X).asnumpy()
    np.testing.assert_allclose(first, plain(net), rtol=1e-4, atol=1e-5)
    net.conv1.weight.set_data(net.conv1.weight * 2)
    assert not np.allclose(net(X).asnumpy(), first)
    np.testing.assert_allclose(net(X).asnumpy(), plain(net), rtol=1e-4, atol=1e-5)
    net.set_train()
    assert net(X).shape == (8, 5)


def test_a_norm_that_nothing_folds_is_not_reported_as_folded() -> None:
    class Apart(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.fc = nn.BatchNorm1d(8), nn.Dense(8, 4)

        def construct(self, x):
            return self.fc(self.norm(x))

    effects.forget(_option())                      # what came of it in earlier tests
    Apart().set_train(False)(Tensor(np.ones((4, 8), np.float32)))
    text = str(effects.outcome_of(_option(), "on"))
    assert "norms are folded" not in text or "0 of 1 batch norms" in text


@pytest.mark.usefixtures("always_boosted")
@pytest.mark.parametrize(("flags", "is_fused"), [("--opt_level=1", True), ("--opt_level=1 --disable_matmul_post_fusion", False)])
def test_activations_behind_products(flags: str, is_fused: bool) -> None:
    """`disable_matmul_post_fusion` keeps them operators of their own."""
    dense = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 64)).set_train(False)
    x = ms.Tensor(np.random.RandomState(0).randn(32, 64), ms.float32)
    expected = dense(x).asnumpy()
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"infer_boost": "on"}, graph_kernel_flags=flags)
    try:
        np.testing.assert_allclose(dense(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
        with Kernels() as seen:
            dense(x)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={}, graph_kernel_flags="")
    assert any("relu" in name for name in seen.names) != is_fused
