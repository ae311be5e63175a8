"""Convolutions of an inference run in C++ where they are measured to be faster than oneDNN."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings

from torchspore.engine.native import operators
from torchspore.graph.backend import convolution_choice, measurement
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.passes.packed_convolutions import Convolution

pytestmark = pytest.mark.skipif(not operators.is_loaded(), reason="`torchspore doctor --build` builds the library")
SQUARE = Convolution((1, 32, 20, 20), (40, 32, 3, 3), (1, 1), (1, 1), (1, 1), True, False, True)


@pytest.fixture(autouse=True)
def boosted() -> Iterator[None]:
    autotune_cache.forget()
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0", "infer_boost": "on"})
    yield
    autotune_cache.forget()
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={}, deterministic="OFF")


class Net(nn.Cell):
    """Convolutions of all kinds: 3 x 3 with and without stride, 1 x 1, dilated, in groups, with an added image."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 20, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(20)
        self.wide, self.dilated = nn.Conv2d(20, 37, 1), nn.Conv2d(37, 37, 3, dilation=2, has_bias=True)
        self.tiles, self.strided = nn.Conv2d(37, 37, 3, has_bias=True), nn.Conv2d(37, 24, 3, 2, pad_mode="valid")
        self.groups = nn.Conv2d(24, 24, 3, group=4)

    def construct(self, x):
        x = self.wide(ops.relu(self.norm(self.first(x))))
        x = ops.relu(self.tiles(ops.relu(self.dilated(x))) + x)
        return self.groups(self.strided(x)).mean((2, 3))


class Kernels(torch.utils._python_dispatch.TorchDispatchMode):
    """The tiles of the convolutions in C++ that run, and None for each of oneDNN."""

    def __enter__(self) -> Any:
        self.tiles: list[int | None] = []
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "convolve_packed" in str(func):
            self.tiles.append(args[9])
        elif "_convolution_pointwise" in str(func):
            self.tiles.append(None)
        return func(*args, **(kwargs or {}))


X = Tensor(np.random.RandomState(1).randn(2, 3, 29, 34).astype(np.float32))


@pytest.mark.parametrize("fastest, tiles", [("oneDNN", [None] * 6), ("0", [0, 0, 0, 0, 0, None]), ("2", [2, 0, 0, 2, 0, None]),
                                            ("4", [0, 0, 0, 0, 0, None])])      # graphs do not use tile 4
def test_each_algorithm_gives_the_numbers_of_torch(measured_by: Any, fastest: str, tiles: list[int | None]) -> None:
    def seconds(forms: dict[str, Any], inputs: Any, turns: Any) -> dict[str, float]:
        last = fastest if fastest in forms or "oneDNN" not in forms else "0"
        return {name: float(name not in (last, "boosted")) for name in forms}

    measured_by(seconds)
    ms.set_seed(3)
    net = Net().set_train(False)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    expected = net(X).asnumpy().copy()
    ms.set_context(mode=ms.GRAPH_MODE)
    np.testing.assert_allclose(net(X).asnumpy(), expected, rtol=2e-4, atol=2e-5 * abs(expected).max())
    with Kernels() as seen:
        net(X)
    assert seen.tiles == tiles
    net.tiles.weight.set_data(net.tiles.weight * 2)
    changed = net(X).asnumpy().copy()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert abs(changed - expected).max() > 1e-3 * abs(expected).max()
    np.testing.assert_allclose(changed, net(X).asnumpy(), rtol=2e-4, atol=2e-5 * abs(expected).max())


def test_nothing_is_measured_in_a_deterministic_run(measured_by: Any) -> None:
    measured_by(fake_timings.nobody)
    ms.set_context(deterministic="ON")
    net = Net().set_train(False)
    net(X)
    with Kernels() as seen:
        net(X)
    assert seen.tiles == [None] * 6


def test_a_choice_is_measured_once_and_needs_an_advantage() -> None:
    with measurement.measured_by(fake_timings.takes(**{"oneDNN": 1.0, "0": 0.96, "2": 0.97, "4": 0.99})):
        assert convolution_choice.choose_tile(SQUARE) is None
    with measurement.measured_by(fake_timings.nobody):
        assert convolution_choice.choose_tile(SQUARE) is None
    other = SQUARE._replace(has_relu=False)
    with measurement.measured_by(fake_timings.takes(**{"oneDNN": 1.0, "0": 0.96, "2": 0.7, "4": 0.8})):
        assert convolution_choice.choose_tile(other) == 2


def test_strided_and_small_convolutions_have_no_tiles() -> None:
    seen = fake_timings.Last()
    with measurement.measured_by(seen):
        assert convolution_choice.choose_tile(SQUARE._replace(stride=(2, 2), image=(1, 32, 60, 60))) == 0
        assert convolution_choice.choose_tile(SQUARE._replace(image=(1, 32, 4, 4))) is None
    assert seen.seen == ["oneDNN", "0"]


def test_an_inexact_algorithm_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_choice, "NEAR", 1e-12)
    seen = fake_timings.Last()
    with measurement.measured_by(seen):
        assert convolution_choice.choose_tile(SQUARE) is None
    assert seen.seen == ["oneDNN"]


def test_the_measurement_does_not_depend_on_the_default_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with measurement.measured_by(fake_timings.takes(**{"oneDNN": 1.0, "0": 0.5, "2": 0.6, "4": 0.7})):
            assert convolution_choice.choose_tile(SQUARE._replace(adds_image=True)) == 0
    finally:
        torch.set_default_dtype(torch.float32)
