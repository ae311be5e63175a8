"""Sampling of images and volumes at grid positions, cosine similarity, normalization after an addition."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.text import message
from torchspore.engine.devices import device
from torchspore.engine.formulas import clamping
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.limits import small

T = torch.Tensor


def _sampled(input: T, grid: T, mode: str, padding_mode: str, align_corners: bool | None, axes: int) -> T:
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and axes == 5):
        raise ValueError(f"mode={mode!r}: expected 'bilinear', 'nearest' or, for images, 'bicubic'.")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"padding_mode={padding_mode!r}: expected 'zeros', 'border' or 'reflection'.")
    if input.ndim != axes or grid.ndim != axes:
        raise ValueError(f"expected {axes} axes of input and grid, got shapes {tuple(input.shape)} and {tuple(grid.shape)}.")
    return F.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


@op()
def grid_sample(
    input: T, grid: T, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None,
) -> T:
    """Sample images (N, C, H, W) at `grid` (N, h, w, 2), x and y in [-1, 1], or volumes (N, C, D, H, W) at (N, d, h, w, 3)."""
    return _sampled(input, grid, small(mode), small(padding_mode), align_corners, 5 if input.ndim == 5 else 4)


@op(primitive="GridSampler2D", init=("interpolation_mode", "padding_mode", "align_corners"))
def _grid_sampler(
    input_x: T, grid: T, interpolation_mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False,
) -> T:
    """Sample images (N, C, H, W) at the positions `grid` (N, h, w, 2), x and y in [-1, 1]."""
    return _sampled(input_x, grid, interpolation_mode, padding_mode, align_corners, 4)


@op(primitive="GridSampler3D", init=("interpolation_mode", "padding_mode", "align_corners"))
def _grid_sampler_3d(
    input_x: T, grid: T, interpolation_mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False,
) -> T:
    """Sample volumes (N, C, D, H, W) at the positions `grid` (N, d, h, w, 3), x, y and z in [-1, 1]."""
    return _sampled(input_x, grid, interpolation_mode, padding_mode, align_corners, 5)


def _grid(theta: T, size: Any, align_corners: bool) -> T:
    """Transform the positions of an output (N, C, H, W) or (N, C, D, H, W), in [-1, 1], by matrices (N, 2, 3) or (N, 3, 4)."""
    batch, _, *lengths = sizes(size)
    if tuple(theta.shape) != (batch, len(lengths), len(lengths) + 1):
        raise ValueError(f"expected theta of shape {(batch, len(lengths), len(lengths) + 1)}, got {tuple(theta.shape)}.")
    lines = []
    for length in reversed(lengths):
        if align_corners and length > 1:
            line = torch.linspace(-1, 1, length, dtype=torch.float32, device=theta.device)
        else:
            line = (torch.arange(length, dtype=torch.float32, device=theta.device) * 2 + 1) / length - 1
        lines.append(line if length > 1 or not align_corners else torch.zeros_like(line))
    grids = torch.meshgrid(*reversed(lines), indexing="ij")
    points = torch.stack([*reversed(grids), torch.ones_like(grids[0])], -1).to(theta.dtype)
    return (points.reshape(1, -1, len(lengths) + 1) @ theta.mT).reshape(batch, *lengths, len(lengths))


@op()
def affine_grid(theta: T, size: Any, align_corners: bool = False) -> T:
    """The grid for `grid_sample`: the positions of an output of `size`, transformed by matrices (N, 2, 3) or (N, 3, 4)."""
    return _grid(theta, size, align_corners)


@op(primitive="AffineGrid", init=("align_corners",))
def _affine_grid(theta: T, output_size: Any, align_corners: bool = False) -> T:
    """The grid for `grid_sample`: the positions of an output of `output_size`, transformed by matrices (N, 2, 3) or (N, 3, 4)."""
    return _grid(theta, output_size, align_corners)


@op()
def cosine_similarity(x1: T, x2: T, dim: int = 1, eps: float = 1e-08) -> T:
    """The cosine of the angle between vectors along `dim`; the product of their norms is at least `eps`."""
    product = clamping.clamp(torch.linalg.vector_norm(x1, dim=dim) * torch.linalg.vector_norm(x2, dim=dim), eps)
    return (x1 * x2).sum(dim) / product


@op()
def add_rms_norm(x1: T, x2: T, gamma: T, epsilon: float = 1e-06) -> Any:
    """x = x1 + x2 divided by its root mean square along gamma's axes, times gamma; also the reciprocal root, float32, and x."""
    x = x1 + x2
    axes = tuple(range(-gamma.ndim, 0))
    factor = torch.rsqrt(torch.square(x.float()).mean(axes, keepdim=True) + epsilon)
    return (x.float() * factor * gamma.float()).to(x.dtype), factor, x


@op()
def add_layer_norm(x1: T, x2: T, gamma: T, beta: T, epsilon: float = 1e-05, additional_output: bool = False) -> Any:
    """x = x1 + x2 normalized along the last axis, times gamma, plus beta; also mean, 1 / deviation, and x or (by default) zeros."""
    x = x1 + x2
    numbers = x.float()
    mean = numbers.mean(-1, keepdim=True)
    factor = torch.rsqrt(torch.square(numbers - mean).mean(-1, keepdim=True) + epsilon)
    out = ((numbers - mean) * factor * gamma.float() + beta.float()).to(x.dtype)
    return out, mean, factor, x if additional_output else torch.zeros_like(x)


@op(primitive="MoveTo", methods=("move_to",))
def move_to(input: Any, to: str = "CPU", blocking: bool = True) -> T:
    """A copy on the host ('CPU') or the accelerator ('Ascend', 'GPU'); unless `blocking`, it may be asynchronous."""
    if to not in ("CPU", "Ascend", "GPU"):
        raise ValueError(f"to={to!r:.40}: expected 'CPU', 'Ascend' or 'GPU'.")
    if not isinstance(blocking, bool):
        raise ValueError(message(f"blocking={blocking!r:.40}", "True or False"))
    source = input if isinstance(input, T) else torch.tensor(input)
    target_device = device.resolve_device("move_to", to)
    # An asynchronous copy to the host would expose memory before it is written, so only copies to the device may be asynchronous.
    return source.to(target_device, non_blocking=not blocking and target_device.type != "cpu", copy=True)
