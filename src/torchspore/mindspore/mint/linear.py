"""Products, distances, convolutions and norms of mint, and the parts of batch normalization over several processes."""
from __future__ import annotations

import functools
from typing import Any

import torch

from torchspore.engine.formulas.half_precision import in_float32, run_convolution
from torchspore.mindspore.mint.shared import T, write_back
from torchspore.mindspore.ops.declaration.declare import bridged, part_of
from torchspore.mindspore.ops.declaration.wide import Widening


@bridged(wide=Widening())
def bmm(input: T, mat2: T) -> T:
    """The products of two batches of matrices, (B, N, M) and (B, M, P)."""
    return in_float32(torch.bmm, input, mat2)


@bridged
def mv(input: T, vec: T) -> T:
    """A matrix (N, M) times a vector (M,)."""
    return torch.mv(input, vec)


@bridged
def outer(input: T, vec2: T) -> T:
    """The outer product of two vectors. Raises ValueError for other shapes."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise ValueError(f"For Primitive[Outer], the rank of the input must be 1, but got {input.ndim} and {vec2.ndim}.")
    return torch.outer(input, vec2)


@bridged
def vdot(input: T, other: T) -> T:
    """The sum of conj(input) * other of two vectors."""
    return torch.vdot(input, other)


@bridged
def addmm(input: T, mat1: T, mat2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * mat1 @ mat2."""
    return in_float32(functools.partial(torch.addmm, beta=beta, alpha=alpha), input, mat1, mat2)


@bridged
def addmv(input: T, mat: T, vec: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * mat @ vec."""
    return torch.addmv(input, mat, vec, beta=beta, alpha=alpha)


@bridged(wide=Widening())
def addbmm(input: T, batch1: T, batch2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * the sum of the products of two batches of matrices."""
    return in_float32(functools.partial(torch.addbmm, beta=beta, alpha=alpha), input, batch1, batch2)


@bridged(wide=Widening())
def baddbmm(input: T, batch1: T, batch2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * batch1 @ batch2, for each matrix of the batches."""
    return in_float32(functools.partial(torch.baddbmm, beta=beta, alpha=alpha), input, batch1, batch2)


@bridged
def cdist(x1: T, x2: T, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> T:
    """The distances of order `p` between the rows of (..., P, M) and (..., R, M); `compute_mode` may request a matrix product."""
    return torch.cdist(x1, x2, p, compute_mode)


@bridged
def einsum(equation: str, *operands: Any) -> T:
    """Products and sums over the letters of `equation`, as 'ij,jk->ik'."""
    listed = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return torch.einsum(equation, *listed)


@bridged
def triangular_solve(b: T, A: T, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    """The solution X of A @ X = b for a triangular A (after `transpose`; with ones on the diagonal if `unitriangular`), and a copy of A."""
    matrix = A.mT if transpose else A
    return torch.linalg.solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular), A.clone()


@bridged
def conv2d(input: T, weight: T, bias: T | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> T:
    """Convolution of images (N, C, H, W) by (O, C / groups, kernel...); padding 'same' keeps the size, 'valid' adds nothing."""
    return run_convolution(torch.nn.functional.conv2d, input, weight, bias, stride, padding, dilation, groups)


@bridged
def conv_tbc(input: T, weight: T, bias: T, pad: int = 0) -> T:
    """Convolution of sequences (L, N, C) by (kernel, C, O), with `pad` zeros at both ends."""
    return run_convolution(torch.conv_tbc, input, weight, bias, pad)


def _channels(input: T, value: T) -> T:
    return value.reshape([1, -1, *[1] * (input.ndim - 2)])


@bridged
def batch_norm_stats(input: T, eps: float) -> Any:
    """The mean of each channel (axis 1), and 1 / sqrt(variance + eps)."""
    reduced_axes = [axis for axis in range(input.ndim) if axis != 1]
    variance, mean = torch.var_mean(input.float(), reduced_axes, correction=0)
    return mean, torch.rsqrt(variance + eps)


@bridged
def batch_norm_elemt(
    input: T, weight: T | None = None, bias: T | None = None, mean: T | None = None, invstd: T | None = None, eps: float = 1e-5,
) -> T:
    """(input - mean) * invstd * weight + bias for each channel (axis 1). Raises ValueError without `mean` and `invstd`."""
    if mean is None or invstd is None or eps < 0:
        raise ValueError("batch_norm_elemt: expected mean and invstd, as batch_norm_stats gives them, and an eps from 0 on.")
    out = (input - _channels(input, mean)) * _channels(input, invstd)
    out = out if weight is None else out * _channels(input, weight)
    return (out if bias is None else out + _channels(input, bias)).to(input.dtype)


@part_of("batch_norm_gather_stats_with_counts")
def _gathered(mean: T, invstd: T, eps: float, counts: T) -> Any:
    share = (counts / counts.sum()).reshape(-1, 1)
    total_mean = (mean * share).sum(0)
    variance = ((1 / invstd.square() - eps + (mean - total_mean).square()) * share).sum(0)
    return total_mean, variance, torch.rsqrt(variance + eps), counts.sum()


def batch_norm_gather_stats_with_counts(
    input: Any, mean: Any, invstd: Any, running_mean: Any = None, running_var: Any = None, momentum: float = 0.1, eps: float = 1e-5,
    counts: Any = None,
) -> Any:
    """The mean and 1 / sqrt(variance + eps) of the channels of `input`, from those of P parts, (P, C) each, with `counts` elements (P,).

    The running values move by `momentum` towards the new ones, whose variance is divided by the count minus 1.
    """
    if counts is None or input.shape[1] != mean.shape[-1]:
        raise ValueError("batch_norm_gather_stats_with_counts: expected the counts of the parts, and a mean for each channel of `input`.")
    total_mean, variance, scale, total = _gathered(mean, invstd, eps, counts)
    if running_mean is not None:
        write_back(running_mean, running_mean * (1 - momentum) + total_mean * momentum)
    if running_var is not None:
        write_back(running_var, running_var * (1 - momentum) + variance * (total / (total - 1)) * momentum)
    return total_mean, scale
