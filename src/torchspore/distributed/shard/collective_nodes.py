"""Placeholder operators of a split graph: exchanges along axes of the device grid, written once for all devices.

torch does not have these operators. `rank_binding` replaces them by those of one rank, `simulation` runs them for all ranks. A call with a
fake tensor of the local shape returns the fake tensor of its result.
"""
from __future__ import annotations

import torch

from torchspore.engine.split_layouts.device_layout import Axes
from torchspore.engine.split_layouts.device_mesh import Mesh


def all_reduce(x: torch.Tensor, axes: Axes, kind: str, mesh: Mesh) -> torch.Tensor:
    """All-reduce along `axes`: the sum, mean, maximum or minimum."""
    return torch.empty_like(x)


def reduce_scatter(x: torch.Tensor, axes: Axes, kind: str, dim: int, mesh: Mesh) -> torch.Tensor:
    """Reduce-scatter along `axes`: each device receives its part of the sum along `dim`."""
    return _cut(torch.empty_like(x), dim, mesh.product(axes))


def all_gather(x: torch.Tensor, axes: Axes, dim: int, mesh: Mesh) -> torch.Tensor:
    """All-gather along `axes`: the parts, concatenated along `dim`."""
    return _joined(x, dim, mesh.product(axes))


def all_to_all(x: torch.Tensor, axes: Axes, source: int, dim: int, mesh: Mesh) -> torch.Tensor:
    """All-to-all along `axes`: the parts along `source` are joined, and each device receives its part along `dim`."""
    return _joined(_cut(x, dim, mesh.product(axes)), source, mesh.product(axes))


def borders(x: torch.Tensor, axes: Axes, dim: int, before: int, behind: int, mesh: Mesh) -> torch.Tensor:
    """Extend each part by the last elements of the previous part and the first elements of the next part; zeros at the ends."""
    edges = [torch.empty_like(x.narrow(dim, 0, count)) for count in (before, behind)]
    return torch.cat([edges[0], x, edges[1]], dim)


def borders_sum(x: torch.Tensor, axes: Axes, dim: int, before: int, behind: int, mesh: Mesh) -> torch.Tensor:
    """The gradient of `borders`: each part plus the gradients that the neighbours computed for its borders."""
    return torch.empty_like(x.narrow(dim, before, x.shape[dim] - before - behind))


def rotated(x: torch.Tensor, axes: Axes, mesh: Mesh) -> torch.Tensor:
    """Receive the part of the previous device along `axes`; the first device receives that of the last."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def cut(x: torch.Tensor, axes: Axes, dim: int, mesh: Mesh) -> torch.Tensor:
    """Return this device's part along `dim` of a value that every device has."""
    return _cut(x, dim, mesh.product(axes))


def position(axes: Axes, factor: int, mesh: Mesh) -> int:
    """Return this device's index along `axes`, times `factor`."""
    return 0


def passed(x: torch.Tensor, source: int, target: int) -> torch.Tensor:
    """Send a value of pipeline stage `source` to stage `target`: each device sends to the device with its index there; -1 means all stages.
    """
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def sent(x: torch.Tensor, target: int, number: int) -> torch.Tensor:
    """Begin a transfer, in the graph of one stage; `number` identifies it within the step."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def received(shape: list[int], dtype: torch.dtype, device: torch.device, source: int, number: int) -> torch.Tensor:
    """Begin to receive a transfer."""
    return torch.empty(shape, dtype=dtype, device=device)


def arrived(x: torch.Tensor) -> torch.Tensor:
    """Return the value that was received, or sent, after it has arrived."""
    return x


def _joined(x: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    """Return a fake tensor that stands for `count` parts. No list is built, because there may be thousands."""
    shape = list(x.shape)
    shape[dim] *= count
    return x.new_empty(shape)


def _cut(x: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    return x.narrow(dim, 0, x.shape[dim] // count)


SENDING = frozenset((all_reduce, reduce_scatter, all_gather, all_to_all, borders, borders_sum, rotated))
"""Operators that communicate; `cut` and `position` do not."""
LOCAL = frozenset((cut, position))
