"""Convolutions and pooling over heights and widths that are cut, in all grids of eight ranks: results and gradients."""
from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mindspore import Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor
from support import split_functions

from torchspore.engine.split_layouts.device_layout import Layout, unsplit
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.errors import StrategyRefused

CONVOLUTIONS: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...], bool]] = {
    "same": ({"padding": 1}, (2, 4, 16, 8), (8, 4, 3, 3), True),
    "wide window": ({"padding": 2}, (2, 4, 16, 16), (4, 4, 5, 5), False),
    "two windows": ({"padding": (1, 2)}, (2, 2, 16, 32), (4, 2, 3, 5), True),
    "steps": ({"padding": 1, "stride": 2}, (2, 4, 32, 32), (4, 4, 3, 3), True),
    "steps without borders": ({"stride": 2}, (2, 4, 32, 16), (4, 4, 2, 2), False),
    "steps over the window": ({"stride": 4}, (2, 4, 32, 32), (4, 4, 3, 3), True),
    "holes": ({"padding": 2, "dilation": 2}, (2, 4, 32, 16), (4, 4, 3, 3), False),
    "groups": ({"padding": 1, "groups": 4}, (2, 4, 16, 16), (8, 1, 3, 3), True),
    "one dimension": ({"padding": 1}, (2, 4, 16), (4, 4, 3), True),
    "does not come out even": ({}, (2, 2, 16, 16), (4, 2, 3, 3), False),
    "reaches too far": ({"padding": 3}, (2, 2, 16, 8), (4, 2, 7, 7), False),
}


def convolution(settings: dict[str, Any], dims: int) -> Callable[..., torch.Tensor]:
    call = F.conv1d if dims == 3 else F.conv2d
    return lambda x, *weights: call(x, weights[0], weights[1] if len(weights) > 1 else None, **settings)


TRANSPOSED: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...], bool]] = {
    "same": ({"padding": 1}, (2, 4, 16, 8), (4, 8, 3, 3), True),
    "twice as wide": ({"padding": 1, "stride": 2}, (2, 4, 16, 16), (4, 2, 4, 4), True),
    "more at the end": ({"padding": 1, "stride": 2, "output_padding": 1}, (2, 4, 16, 16), (4, 2, 3, 3), False),
    "groups": ({"padding": 1, "groups": 2}, (2, 4, 16, 16), (4, 2, 3, 3), True),
    "does not come out even": ({}, (2, 4, 16, 16), (4, 2, 3, 3), True),
}


def widening(settings: dict[str, Any]) -> Callable[..., torch.Tensor]:
    return lambda x, *weights: F.conv_transpose2d(x, weights[0], weights[1] if len(weights) > 1 else None, **settings)


def exchanges(local: Any) -> set[str]:
    return {step.kind for placed in local.split_operators for step, _ in placed.steps if "convolution" in str(placed.node.target)}


def compared(function: Callable[..., Any], shape: tuple[int, ...], weight: tuple[int, ...], channels: int) -> int:
    """Over grids and cuts; gives how many of them exchanged borders."""
    inputs = [torch.randn(shape, dtype=torch.float64), torch.randn(weight, dtype=torch.float64)]
    inputs += [torch.randn(channels, dtype=torch.float64)] if channels else []
    result = 0
    for mesh in split_functions.MESHES:
        every = [layout for layout in split_functions.layouts(mesh, shape) if any(layout.dim_axes[2:])]
        step = max(1, len(every) // 4)
        for at, layout in enumerate(every[::step]):
            layouts = list(split_functions.layouts(mesh, weight))
            cuts = [layout, layouts[at % len(layouts)], *[unsplit(1)] * (len(inputs) - 2)]
            local, differences = split_functions.split(function, mesh, inputs, cuts)
            assert max(differences) < 1e-12, (mesh, cuts)
            result += "borders" in exchanges(local)
    return result


def some(names: Iterable[str], *quick: str) -> list[Any]:
    """All of them, those that are not named here as slow ones."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", some(CONVOLUTIONS, "same", "steps", "one dimension", "does not come out even"))
def test_convolutions(name: str) -> None:
    settings, shape, weight, has_bias = CONVOLUTIONS[name]
    result = compared(convolution(settings, len(shape)), shape, weight, weight[0] if has_bias else 0)
    assert (result > 0) == (name not in ("steps without borders", "steps over the window", "does not come out even"))


@pytest.mark.parametrize("name", some(TRANSPOSED, "twice as wide", "does not come out even"))
def test_transposed_convolutions(name: str) -> None:
    settings, shape, weight, has_bias = TRANSPOSED[name]
    result = compared(widening(settings), shape, weight, weight[1] * settings.get("groups", 1) if has_bias else 0)
    assert (result > 0) == (name != "does not come out even")


def test_only_borders_are_sent() -> None:
    mesh, shape = Mesh((8,)), (2, 4, 32, 16)
    inputs = [torch.randn(shape), torch.randn(4, 4, 3, 3)]
    function = convolution({"padding": 1}, 4)
    local, _ = split_functions.split(function, mesh, inputs, [Layout(((), (), (0,), ())), unsplit(4)])
    steps = [step for placed in local.split_operators for step, _ in placed.steps if "convolution" in str(placed.node.target) and step.sent]
    assert [step.kind for step in steps] == ["borders", "borders", "borders"] and {step.sent for step in steps} == {2 * 2 * 4 * 16 * 4}


POOLS: dict[str, Callable[..., Any]] = {
    "greatest": lambda x: F.max_pool2d(x, 2, 2),
    "greatest of four": lambda x: F.max_pool2d(x, (2, 4)),
    "places": lambda x: F.max_pool2d(x, 2, 2, return_indices=True),
    "greatest that overlap": lambda x: F.max_pool2d(x, 3, 2, 1),
    "mean": lambda x: F.avg_pool2d(x, 2, 2),
    "mean that overlaps": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "mean without edges": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "mean by a number": lambda x: F.avg_pool2d(x, (3, 2), (1, 2), (1, 0), divisor_override=5),
    "rounded up": lambda x: F.max_pool2d(x, 3, 3, ceil_mode=True),
}


OVERLAP = ("greatest that overlap", "mean that overlaps", "mean without edges")


@pytest.mark.parametrize("name", some(POOLS, "greatest", "mean that overlaps"))
def test_pools(name: str) -> None:
    shape = (2, 2, 16, 32)
    x = torch.randn(shape, dtype=torch.float64)
    for mesh, layout in itertools.chain.from_iterable(
        [(mesh, way) for way in list(split_functions.layouts(mesh, shape))[::3] if any(way.dim_axes[2:])] for mesh in split_functions.MESHES
    ):
        local, differences = split_functions.split(POOLS[name], mesh, [x], [layout])
        assert max(differences) < 1e-12, (mesh, layout)
        sent = {step.kind for placed in local.split_operators for step, _ in placed.steps if "pool" in str(placed.node.target)}
        if name in ("greatest", "mean") and mesh.product(layout.dim_axes[2]) <= 8:
            assert "all_gather" not in sent
        if name in OVERLAP and mesh.product(layout.dim_axes[2]) <= 4 and mesh.product(layout.dim_axes[3]) <= 4:
            assert "borders" in sent and "all_gather" not in sent


VOLUMES: dict[str, Callable[..., Any]] = {
    "mean": lambda x: F.avg_pool3d(x, 2, 2),
    "mean that overlaps": lambda x: F.avg_pool3d(x, 3, 1, 1),
    "mean without edges": lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_pools_of_volumes(name: str) -> None:
    shape, mesh = (2, 4, 8, 16, 4), Mesh((2, 4))
    x = torch.randn(shape, dtype=torch.float64)
    for layout in (Layout(((), (), (0,), (1,), ())), Layout(((0,), (), (), (1,), ())), Layout(((), (1,), (0,), (), ()))):
        local, differences = split_functions.split(VOLUMES[name], mesh, [x], [layout])
        assert max(differences) < 1e-12, layout
        sent = {step.kind for placed in local.split_operators for step, _ in placed.steps if "pool" in str(placed.node.target)}
        assert "all_gather" not in sent
        assert ("borders" in sent) == (name != "mean")


class _Pool(nn.Cell):
    def __init__(self, pool: Any, strategy: Any) -> None:
        super().__init__()
        self.pool = pool.shard(strategy)

    def construct(self, x: Tensor) -> Tensor:
        return self.pool(x)


@pytest.mark.parametrize("name", ["AvgPool3D", "MaxPool3D"])
@pytest.mark.parametrize("strategy, window, is_refused", [
    ((1, 1, 2, 4, 1), (2, 2, "valid"), False), ((1, 1, 8, 1, 1), (3, 1, "same"), False), ((2, 2, 2, 1, 1), (3, 2, "same"), False),
    ((1, 1, 1, 1, 8), (2, 2, "valid"), True), ((1, 1, 8, 1, 1), (3, 1, "valid"), True), ((1, 1, 4, 2, 1), (4, (3, 2, 2), "same"), True),
])
def test_depths_and_heights_of_volumes_may_be_split(name: str, strategy: Any, window: Any, is_refused: bool) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    try:
        kernel_size, strides, pad_mode = window
        net = _Pool(getattr(ops, name)(kernel_size=kernel_size, strides=strides, pad_mode=pad_mode), (strategy,))
        with pytest.raises(StrategyRefused) if is_refused else contextlib.nullcontext():
            _cell_graph_executor.compile(net, Tensor(np.ones((4, 2, 16, 16, 16), np.float32)))
    finally:
        ms.reset_auto_parallel_context()
        ms.set_context(mode=ms.PYNATIVE_MODE)
