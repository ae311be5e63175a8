"""The primitives of MindSpore's `_grad_ops` for gradients of losses, norms, shapes and products: `LayerNormGrad`, `CdistGrad`, …"""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import OPERATORS, op
from torchspore.mindspore.ops.gradients.grad_primitives import vjp

T = torch.Tensor


def _spread(dout: T, like: T, reduction: str) -> T:
    """Return the gradient of each element's loss, for losses that were reduced."""
    if not isinstance(reduction, str) or reduction not in ("none", "mean", "sum"):
        raise ValueError("expected 'none', 'mean' or 'sum' as reduction.")
    return dout / like.numel() if reduction == "mean" else dout


@op(primitive="BinaryCrossEntropyGrad", init=("reduction",))
def _binary_cross_entropy_grad(input: T, target: T, grad_output: T, weight: T | None = None, reduction: str = "mean") -> T:
    """The gradient of binary_cross_entropy for its probabilities `input`."""
    gradient = _spread(grad_output, input, reduction) * (input - target) / torch.clamp(input * (1 - input), min=1e-12)
    return gradient if weight is None else gradient * weight


@op(primitive="SigmoidCrossEntropyWithLogitsGrad")
def _sigmoid_cross_entropy_grad(x: T, y: T, dout: T) -> T:
    """The gradient of the cross entropy of sigmoid(x) and the labels y, for x."""
    return (torch.sigmoid(x) - y) * dout


@op(primitive="SmoothL1LossGrad", init=("beta", "reduction"))
def _smooth_l1_loss_grad(prediction: T, target: T, dout: T, beta: float = 1.0, reduction: str = "none") -> T:
    """The gradient of smooth_l1_loss for the prediction."""
    return _spread(dout, prediction, reduction) * torch.clamp((prediction - target) / beta, -1, 1)


@op(primitive="SoftMarginLossGrad", init=("reduction",))
def _soft_margin_loss_grad(predict: T, label: T, dout: T, reduction: str = "mean") -> T:
    """The gradient of soft_margin_loss, log(1 + exp(-label * predict)), for `predict`."""
    return -label * torch.sigmoid(-label * predict) * _spread(dout, predict, reduction)


@op(primitive="MaximumGrad", init=("grad_x", "grad_y"))
def _maximum_grad(x: T, y: T, grads: T, grad_x: bool = True, grad_y: bool = True) -> Any:
    """The gradients of maximum for x and y; equal elements count for x. Gradients that are not requested are left out."""
    return _chosen(x >= y, x, y, grads, grad_x, grad_y)


@op(primitive="MinimumGrad", init=("grad_x", "grad_y"))
def _minimum_grad(x1: T, x2: T, grads: T, grad_x: bool = True, grad_y: bool = True) -> Any:
    """The gradients of minimum for x1 and x2; equal elements count for x1. Gradients that are not requested are left out."""
    return _chosen(x1 <= x2, x1, x2, grads, grad_x, grad_y)


def _chosen(is_first: T, x: T, y: T, grads: T, grad_x: bool, grad_y: bool) -> Any:
    first, second = torch.where(is_first, grads, 0).sum_to_size(x.shape), torch.where(is_first, 0, grads).sum_to_size(y.shape)
    gradients = tuple(gradient for gradient, is_requested in ((first, grad_x), (second, grad_y)) if is_requested)
    if not gradients:
        raise ValueError("grad_x=False, grad_y=False: expected at least one of them True.")
    return gradients if len(gradients) > 1 else gradients[0]


@op(primitive="BiasAddGrad", init=("data_format",))
def _bias_add_grad(dout: T, data_format: str = "NCHW") -> T:
    """The gradient of bias_add for its bias: the sum over all axes except that of the channels."""
    if not isinstance(data_format, str) or data_format not in ("NCHW", "NHWC", "NCDHW"):
        raise ValueError("expected 'NCHW', 'NHWC' or 'NCDHW' as data_format.")
    channels = dout.dim() - 1 if data_format == "NHWC" else 1
    return dout.sum([axis for axis in range(dout.dim()) if axis != channels])


@op(primitive="L2NormalizeGrad", init=("axis", "epsilon"))
def _l2_normalize_grad(x: T, out: T, dout: T, axis: Any = 0, epsilon: float = 1e-4) -> T:
    """The gradient of x / sqrt(max(sum(x**2), epsilon)) along `axis`, whose result is `out`."""
    axes = list(sizes((axis,) if isinstance(axis, int) else axis))
    norm = torch.sqrt(torch.clamp(torch.sum(x * x, axes, keepdim=True), min=epsilon))
    return (dout - out * torch.sum(out * dout, axes, keepdim=True)) / norm


@op(primitive="LayerNormGrad", init=("begin_norm_axis", "begin_params_axis"))
def _layer_norm_grad(x: T, dy: T, variance: T, mean: T, gamma: T, begin_norm_axis: int = 1, begin_params_axis: int = 1) -> tuple[T, ...]:
    """The gradients of layer_norm for x, gamma and beta, with variance and mean from the forward pass (variance includes eps)."""
    axes = list(range(begin_norm_axis % x.dim(), x.dim()))
    outer = list(range(begin_params_axis % x.dim()))
    inverse = torch.rsqrt(variance)
    normal = (x - mean) * inverse
    scaled = dy * gamma
    dx = inverse * (scaled - scaled.mean(axes, keepdim=True) - normal * (scaled * normal).mean(axes, keepdim=True))
    return dx, (dy * normal).sum(outer), dy.sum(outer)


@op(primitive="FlattenGrad")
def _flatten_grad(x: T, shape: Any) -> T:
    """The gradient of flatten, in the shape of x."""
    return x.reshape(sizes(shape))


@op(primitive="MaskedSelectGrad")
def _masked_select_grad(input: T, mask: T, grad: T) -> T:
    """The gradient of masked_select: `grad` where `mask` is true, 0 elsewhere, in the shape of `input`."""
    return vjp(lambda x: torch.masked_select(x, mask), (input,), grad)[0]


@op(primitive="GatherDGradV2")
def _gather_d_grad(x: T, dim: int, index: T, dout: T) -> T:
    """The gradient of gather_elements for x."""
    return torch.zeros_like(x).scatter_add(dim, index.long(), dout)


@op(primitive="StridedSliceGrad", init=("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"))
def _strided_slice_grad(
    dy: T, shapex: Any, begin: Any, end: Any, strides: Any, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
    new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> T:
    """The gradient of strided_slice: `dy` at the slice, 0 elsewhere, in the shape `shapex`."""
    slicing = OPERATORS["strided_slice"].body
    masks = {"begin_mask": begin_mask, "end_mask": end_mask, "ellipsis_mask": ellipsis_mask, "new_axis_mask": new_axis_mask,
             "shrink_axis_mask": shrink_axis_mask}
    source = torch.zeros(sizes(shapex), dtype=dy.dtype, device=dy.device)
    return vjp(lambda x: slicing(x, sizes(begin), sizes(end), sizes(strides), **masks), (source,), dy)[0]


@op(primitive="SliceGrad")
def _slice_grad(dy: T, x: T, begin: Any, size: Any) -> T:
    """The gradient of slice: `dy` at the slice, 0 elsewhere, in x's shape."""
    lengths = [x.shape[axis] - first if length == -1 else length for axis, (first, length) in enumerate(zip(sizes(begin), sizes(size)))]
    slices = tuple(slice(first, first + length) for first, length in zip(sizes(begin), lengths))
    return vjp(lambda x: x[slices], (x,), dy)[0]


@op(primitive="TraceGrad")
def _trace_grad(y_grad: T, x_shape: Any) -> T:
    """The gradient of trace: the number on the diagonal of a matrix of shape `x_shape`."""
    rows, columns = (int(size) for size in sizes(x_shape.tolist() if isinstance(x_shape, T) else x_shape))
    return torch.eye(rows, columns, dtype=y_grad.dtype, device=y_grad.device) * y_grad


@op(primitive="UniqueGrad")
def _unique_grad(dy: Any, y: Any) -> T:
    """The gradient of unique for its input: `dy[0]` at the indexes `y[1]` from unique."""
    return dy[0][y[1].long()]


@op(primitive="CholeskyGrad")
def _cholesky_grad(x: T, grad: T) -> T:
    """The gradient of cholesky, from its output x, a lower triangular matrix."""
    return vjp(torch.linalg.cholesky, (x @ x.mT,), grad)[0]


@op(primitive="LstsqV2Grad")
def lstsq_v2_grad_op(gX: T, A: T, B: T) -> tuple[T, ...]:
    """The gradients of the least squares solution X of A X = B for A and B; `gX` is the gradient of X."""
    return vjp(lambda a, b: torch.linalg.pinv(a) @ b, (A, B), gX)


@op(primitive="CdistGrad", init=("p",))
def _cdist_grad(grad: T, input_x: T, input_y: T, cdist: T, p: float = 2.0) -> T:
    """The gradient of cdist for its first input, from its distances; 0 where a distance is 0."""
    difference = input_x.unsqueeze(-2) - input_y.unsqueeze(-3)
    size, distance = difference.abs(), cdist.unsqueeze(-1)
    if p == 0:
        part = torch.zeros_like(difference)
    elif p == 1:
        part = torch.sign(difference)
    elif math.isinf(p):
        part = torch.sign(difference) * (size == distance)
    else:
        part = torch.sign(difference) * torch.pow(size / torch.where(distance == 0, 1, distance), p - 1) * (distance != 0)
    return torch.sum(part * grad.unsqueeze(-1), -2)


@op(primitive="KLDivLossGrad", init=("reduction",))
def _kl_div_loss_grad(grad: T, input_x: T, input_target: T, reduction: str = "mean") -> T:
    """The gradient of kl_div for `input_x`, logarithms of probabilities; 'batchmean' divides by the length of the first axis."""
    if not isinstance(reduction, str) or reduction not in ("none", "mean", "sum", "batchmean"):
        raise ValueError("expected 'none', 'mean', 'sum' or 'batchmean' as reduction.")
    count = input_x.numel() if reduction == "mean" else input_x.shape[0] if reduction == "batchmean" else 1
    return (-torch.where(input_target > 0, input_target, 0) * grad / count).expand(input_x.shape)


@op(primitive="AdaptiveAvgPool2DGrad")
def _adaptive_avg_pool2d_grad(input_grad: T, orig_input_shape: Any) -> T:
    """The gradient of adaptive_avg_pool2d for its input of shape `orig_input_shape`."""
    shape = sizes(orig_input_shape.tolist() if isinstance(orig_input_shape, T) else orig_input_shape)
    source = torch.zeros([int(size) for size in shape], dtype=input_grad.dtype, device=input_grad.device)
    return vjp(lambda x: F.adaptive_avg_pool2d(x, input_grad.shape[-2:]), (source,), input_grad)[0]


@op(primitive="GridSampler2DGrad", init=("interpolation_mode", "padding_mode", "align_corners", "output_mask"))
def _grid_sampler_2d_grad(
    grad: T, input_x: T, grid: T, interpolation_mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False,
    output_mask: Any = (1, 1),
) -> tuple[T, ...]:
    """The gradients of grid_sample for the input and the grid; those that `output_mask` does not request are zeros."""
    return sampled_back(grad, input_x, grid, interpolation_mode, padding_mode, align_corners, output_mask)


def sampled_back(grad: T, x: T, grid: T, mode: str, padding: str, align_corners: bool, output_mask: Any) -> tuple[T, ...]:
    """The gradients of grid_sample, of images or volumes, for x and the grid; those that are not requested are zeros."""
    gradients = vjp(lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners), (x, grid), grad)
    return tuple(gradient if is_requested else torch.zeros_like(gradient) for gradient, is_requested in zip(gradients, output_mask))


@op(primitive="ResizeNearestNeighborGrad", init=("align_corners", "half_pixel_centers"))
def _resize_nearest_neighbor_grad(grads: T, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """The gradient of ResizeNearestNeighbor for its input of `size` (height, width)."""
    if align_corners or half_pixel_centers:
        raise ValueError("align_corners=True or half_pixel_centers=True: expected False.")
    source = torch.zeros([*grads.shape[:2], *sizes(size)], dtype=grads.dtype, device=grads.device)
    return vjp(lambda x: F.interpolate(x, size=grads.shape[-2:], mode="nearest"), (source,), grads)[0]


@op(primitive="ResizeBilinearGrad", init=("align_corners", "half_pixel_centers"))
def _resize_bilinear_grad(grads: T, image: T, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    """The gradient of ResizeBilinearV2 for `image`."""
    if not align_corners and not half_pixel_centers:
        raise ValueError("align_corners=False, half_pixel_centers=False: expected one of them True.")
    return vjp(lambda x: F.interpolate(x, size=grads.shape[-2:], mode="bilinear", align_corners=align_corners), (image,), grads)[0]
