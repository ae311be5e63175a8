"""Placeholder operators of a split graph: exchanges along axes of the grid, written once for all devices.

torch does not have these operators: `rank_binding` replaces them by those of one rank, `simulation` runs them for all ranks. Called with
a stand-in of the local shape each gives the stand-in of its result.
"""
from __future__ import annotations

import torch

from torchspore.engine.layouts.device_layout import Axes
from torchspore.engine.layouts.device_mesh import Mesh


def all_reduce(x: torch.Tensor, axes: Axes, kind: str, mesh: Mesh) -> torch.Tensor:
    """The sum, mean, greatest or least of the terms along `axes`."""
    return torch.empty_like(x)


def reduce_scatter(x: torch.Tensor, axes: Axes, kind: str, dim: int, mesh: Mesh) -> torch.Tensor:
    """The same, and of the result the own part along `dim`."""
    return _cut(torch.empty_like(x), dim, mesh.product(axes))


def all_gather(x: torch.Tensor, axes: Axes, dim: int, mesh: Mesh) -> torch.Tensor:
    """The parts along `axes`, one after the other along `dim`."""
    return _joined(x, dim, mesh.product(axes))


def all_to_all(x: torch.Tensor, axes: Axes, source: int, dim: int, mesh: Mesh) -> torch.Tensor:
    """The parts along `source` become one, and of that the own part along `dim`."""
    return _joined(_cut(x, dim, mesh.product(axes)), source, mesh.product(axes))


def borders(x: torch.Tensor, axes: Axes, dim: int, before: int, behind: int, mesh: Mesh) -> torch.Tensor:
    """The own part between the last places of the one before and the first of the one behind; zeros where there is none."""
    edges = [torch.empty_like(x.narrow(dim, 0, count)) for count in (before, behind)]
    return torch.cat([edges[0], x, edges[1]], dim)


def borders_sum(x: torch.Tensor, axes: Axes, dim: int, before: int, behind: int, mesh: Mesh) -> torch.Tensor:
    """The gradient of `borders`: the own part, to which is added what the neighbours have computed of their borders."""
    return torch.empty_like(x.narrow(dim, before, x.shape[dim] - before - behind))


def rotated(x: torch.Tensor, axes: Axes, mesh: Mesh) -> torch.Tensor:
    """The part of the device before this one along `axes`; the first device gets that of the last."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def cut(x: torch.Tensor, axes: Axes, dim: int, mesh: Mesh) -> torch.Tensor:
    """The own part along `dim` of what each device has."""
    return _cut(x, dim, mesh.product(axes))


def position(axes: Axes, factor: int, mesh: Mesh) -> int:
    """The own number along `axes`, times `factor`."""
    return 0


def passed(x: torch.Tensor, source: int, target: int) -> torch.Tensor:
    """A value of pipeline stage `source` in stage `target`: each device sends it to the one at its place there; -1 means in all stages."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def sent(x: torch.Tensor, target: int, number: int) -> torch.Tensor:
    """One half of `passed`, in the graph of one stage: what is on its way, which is `number` in the step."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def received(shape: list[int], dtype: torch.dtype, device: torch.device, source: int, number: int) -> torch.Tensor:
    """The other half, begun."""
    return torch.empty(shape, dtype=dtype, device=device)


def arrived(x: torch.Tensor) -> torch.Tensor:
    """Return the value that was received, or sent, after it has arrived."""
    return x


def _joined(x: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    """A stand-in for `count` parts; no list of them, there may be thousands."""
    shape = list(x.shape)
    shape[dim] *= count
    return x.new_empty(shape)


def _cut(x: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    return x.narrow(dim, 0, x.shape[dim] // count)


SENDING = frozenset((all_reduce, reduce_scatter, all_gather, all_to_all, borders, borders_sum, rotated))
"""Operators that send; `cut` and `position` do not."""
LOCAL = frozenset((cut, position))
