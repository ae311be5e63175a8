"""A torch function that is captured, split, and run for all ranks in this process, and its difference from one device."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from torchspore.distributed.shard import partitioner, simulation, strategy_marker
from torchspore.distributed.shard.partitioner import LocalGraph, Policy
from torchspore.engine.split_layouts.device_layout import Layout, unsplit
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph import passes

MESHES = (Mesh((8,)), Mesh((2, 4)), Mesh((2, 2, 2)))
Function = Callable[..., torch.Tensor]


def layouts(mesh: Mesh, shape: Sequence[int]) -> Iterator[Layout]:
    """Every way to cut a value of this shape evenly, each axis of the grid once at most."""
    for placements in itertools.product(range(-1, len(shape)), repeat=len(mesh.sizes)):
        cuts = tuple(tuple(axis for axis, place in enumerate(placements) if place == dim) for dim in range(len(shape)))
        result = Layout(cuts)
        if result.fits(mesh, shape):
            yield result


def text(mesh: Mesh, layout: Layout) -> str:
    """A layout as a mark has it."""
    last = len(mesh.sizes) - 1
    return strategy_marker.text(mesh.sizes, tuple(-1 if not axes else tuple(last - axis for axis in axes) for axes in layout.dim_axes))


def graph(function: Function, inputs: Sequence[torch.Tensor], marks: Sequence[str], weights: Sequence[torch.Tensor]) -> Any:
    """The captured graph of a function with its gradients: its inputs are marked."""
    def step(*tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = [t.requires_grad_() if t.is_floating_point() else t for t in tensors[: len(inputs)]]
        outs = function(*[strategy_marker.laid(t, mark) for t, mark in zip(leaves, marks)])
        results = list(outs) if isinstance(outs, (tuple, list)) else [outs]
        expected = [t for t in leaves if t.requires_grad]
        sums = [(out * weight).sum() for out, weight in zip(results, tensors[len(inputs):]) if out.requires_grad]
        result = torch.autograd.grad(sum(sums[1:], sums[0]), expected) if sums and expected else ()
        return [*(out.detach() for out in results), *result]

    module = make_fx(step, tracing_mode="fake")(*inputs, *weights)
    return passes.run(passes.CLEAN, module, keep=None)


def split(function: Function, mesh: Mesh, inputs: Sequence[torch.Tensor], cuts: Sequence[Layout]) -> tuple[LocalGraph, list[torch.Tensor]]:
    """The local graph, and its largest relative difference from one device over results and gradients."""
    with torch.no_grad():
        outs = function(*inputs)
    weights = [torch.randn(out.shape, dtype=torch.float64).to(out.dtype) for out in (outs if isinstance(outs, (tuple, list)) else [outs])
               if out.is_floating_point()]
    if len(weights) != (len(outs) if isinstance(outs, (tuple, list)) else 1):
        weights = [torch.ones(()) for _ in (outs if isinstance(outs, (tuple, list)) else [outs])]
    module = graph(function, inputs, [text(mesh, layout) for layout in cuts], weights)
    arguments = [*cuts, *(unsplit(t.ndim) for t in weights)]
    local = partitioner.partition(module, mesh, arguments, lambda at, node, layout, shape: unsplit(len(shape)), Policy(exchanges=True))
    torch.manual_seed(3)
    alone = module(*inputs, *weights)
    torch.manual_seed(3)
    together = simulation.run(local, [*inputs, *weights])
    return local, [difference(expected, other) for expected, other in zip(alone, together)]  # type: ignore[return-value]


def difference(expected: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference beside the largest value."""
    if expected.shape != other.shape:
        return math.inf
    expected, other = expected.double(), other.double()
    return float((expected - other).abs().max() / expected.abs().max().clamp(min=1e-30)) if expected.numel() else 0.0


def grid(shapes: Sequence[Sequence[int]], most: int = 0) -> Iterator[tuple[Mesh, tuple[Layout, ...]]]:
    """Every way to cut these inputs in each grid; with `most` so many of each grid, evenly chosen."""
    for mesh in MESHES:
        every = list(itertools.product(*[list(layouts(mesh, shape)) for shape in shapes]))
        step = max(1, len(every) // most) if most else 1
        yield from ((mesh, cuts) for cuts in every[::step])
