"""The primitives of MindSpore's `_grad_ops` for gradients of norms, margins, medians and sums: `BatchNormGrad`, `PdistGrad`, …"""
from __future__ import annotations

import torch

from torchspore.mindspore.ops.declaration.declare import OPERATORS, op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.gradients.grad_primitives import vjp

T = torch.Tensor


@op(primitive="BatchNormGrad", init=("is_training", "epsilon", "data_format"))
def _batch_norm_grad(
    dout: T, x: T, scale: T, saved_mean: T, saved_variance: T, reserve: T, is_training: bool = False, epsilon: float = 1e-5,
    data_format: str = "NCHW",
) -> tuple[T, ...]:
    """The gradients of BatchNorm for x, scale and bias, with the mean and variance of the normalization; `reserve` is not used."""
    if data_format not in ("NCHW", "NHWC", "NCDHW"):
        raise ValueError(f"data_format={data_format!r}: expected 'NCHW', 'NHWC' or 'NCDHW'.")
    channels = x.dim() - 1 if data_format == "NHWC" else 1
    axes = [axis for axis in range(x.dim()) if axis != channels]
    stretched = [x.shape[axis] if axis == channels else 1 for axis in range(x.dim())]
    inverse = torch.rsqrt(saved_variance + epsilon).reshape(stretched)
    normal = (x - saved_mean.reshape(stretched)) * inverse
    by_scale, by_bias = (dout * normal).sum(axes), dout.sum(axes)
    moved = dout
    if is_training:
        count = x.numel() // x.shape[channels]
        moved = dout - (by_bias.reshape(stretched) + normal * by_scale.reshape(stretched)) / count
    return (moved * scale.reshape(stretched) * inverse).to(x.dtype), by_scale, by_bias


@op(primitive="RmsNormGrad")
def _rms_norm_grad(dy: T, x: T, rstd: T, gamma: T) -> tuple[T, ...]:
    """The gradients of rms_norm for x and gamma, with the reciprocal root mean square `rstd`."""
    axes = list(range(x.dim() - gamma.dim(), x.dim()))
    normal, scaled = x * rstd, dy * gamma
    by_x = rstd * (scaled - normal * (scaled * normal).mean(axes, keepdim=True))
    return by_x, (dy * normal).sum_to_size(gamma.shape)


@op(primitive="PdistGrad", init=("p",))
def _pdist_grad(y_grad: T, x: T, y: T, p: float = 2.0) -> T:
    """The gradient of pdist for `x` (n, m), from its distances `y`."""
    if y_grad.shape != y.shape:
        raise ValueError(f"expected y_grad of the shape of y, {tuple(y.shape)}, got {tuple(y_grad.shape)}.")
    return vjp(lambda x: torch.nn.functional.pdist(x, p), (x,), y_grad)[0]


@op(primitive="MedianGrad", init=("global_median", "axis", "keep_dims"))
def _median_grad(y_grad: T, x: T, y: T, indices: T, global_median: bool = False, axis: int = 0, keep_dims: bool = False) -> T:
    """The gradient of Median: at `indices`; for the median of all elements, shared by the elements equal to `y`."""
    if global_median:
        is_median = x == y
        return is_median.to(x.dtype) * y_grad / is_median.sum()
    at, gradient = (indices, y_grad) if keep_dims or not x.dim() else (indices.unsqueeze(axis), y_grad.unsqueeze(axis))
    return torch.zeros_like(x).scatter(axis, as_index(at), gradient) if x.dim() else y_grad.reshape(x.shape).clone()


@op(primitive="MvlgammaGrad", init=("p",))
def _mvlgamma_grad(y_grad: T, x: T, p: int) -> T:
    """The gradient of the multivariate log-gamma function of dimension `p`."""
    return vjp(lambda x: torch.special.multigammaln(x, p), (x,), y_grad)[0]


@op(primitive="IgammaGradA")
def _igamma_grad_a(a: T, x: T) -> T:
    """The derivative of the regularized lower incomplete gamma function for its first argument, by central differences in float64."""
    wide, step = a.double(), torch.clamp(a.double().abs(), min=1.0) * 1e-5
    derivative = (torch.special.gammainc(wide + step, x.double()) - torch.special.gammainc(wide - step, x.double())) / (2 * step)
    return derivative.to(torch.result_type(a, x))


@op(primitive="MultiMarginLossGrad", init=("p", "margin", "reduction"))
def _multi_margin_loss_grad(
    y_grad: T, x: T, target: T, weight: T | None = None, p: int = 1, margin: float = 1.0, reduction: str = "mean",
) -> T:
    """The gradient of multi_margin_loss for `x` (n, classes)."""
    body = OPERATORS["_multi_margin_loss"].body
    return vjp(lambda x: body(x, target, weight, p, margin, reduction), (x,), y_grad)[0]


@op(primitive="MultilabelMarginLossGrad", init=("reduction",))
def _multilabel_margin_loss_grad(y_grad: T, x: T, target: T, is_target: T, reduction: str = "mean") -> T:
    """The gradient of multilabel_margin_loss for `x`; its second result `is_target` is not used."""
    if is_target.shape != target.shape:
        raise ValueError(f"expected is_target of the shape of target, {tuple(target.shape)}, got {tuple(is_target.shape)}.")
    body = OPERATORS["_multilabel_margin_loss"].body
    return vjp(lambda x: body(x, target, reduction)[0], (x,), y_grad)[0]


@op(primitive="NLLLossGrad", init=("reduction", "ignore_index"))
def _nll_loss_grad(
    logits: T, loss_grad: T, labels: T, weight: T, total_weight: T, reduction: str = "mean", ignore_index: int = -100,
) -> T:
    """The gradient of NLLLoss for `logits` (n, classes); `total_weight` is the sum of the weights of all labels."""
    is_counted = labels != ignore_index
    classes = torch.where(is_counted, as_index(labels), 0)
    losses = torch.where(is_counted, weight[classes], 0) * -loss_grad
    losses = losses / total_weight if reduction == "mean" else losses
    return torch.zeros_like(logits).scatter(1, classes.unsqueeze(1), losses.to(logits.dtype).unsqueeze(1))


@op(primitive="MaximumGradGrad", init=("grad_x", "grad_y"))
def _maximum_grad_grad(x: T, y: T, dx: T, dy: T, grad_x: bool = True, grad_y: bool = True) -> tuple[T, ...]:
    """The gradients of MaximumGrad for x and y, which are zeros, and for the gradient of its output."""
    return torch.zeros_like(x), torch.zeros_like(y), torch.where(x >= y, dx if grad_x else 0, dy if grad_y else 0)


@op(primitive="MinimumGradGrad")
def _minimum_grad_grad(x1: T, x2: T, grad_y1: T, grad_y2: T) -> tuple[T, ...]:
    """The gradients of MinimumGrad for x1 and x2, which are zeros, and for the gradient of its output."""
    return torch.zeros_like(x1), torch.zeros_like(x2), torch.where(x1 <= x2, grad_y1, grad_y2)


@op(primitive="LayerNormGradGrad", init=("begin_norm_axis", "begin_params_axis"))
def _layer_norm_grad_grad(
    x: T, dy: T, variance: T, mean: T, gamma: T, d_dx: T, d_dg: T, d_db: T, begin_norm_axis: int = 1, begin_params_axis: int = 1,
) -> tuple[T, ...]:
    """The gradients of LayerNormGrad for x, dy and gamma; variance and mean depend on x and are differentiated too."""
    body = OPERATORS["_layer_norm_grad"].body
    axes = list(range(begin_norm_axis % x.dim(), x.dim()))
    small = (variance - x.var(axes, keepdim=True, unbiased=False)).mean().detach()

    def forward(x: T, dy: T, gamma: T) -> T:
        x_variance = x.var(axes, keepdim=True, unbiased=False) + small
        gradients = body(x, dy, x_variance, x.mean(axes, keepdim=True), gamma, begin_norm_axis, begin_params_axis)
        return sum((part * cotangent).sum() for part, cotangent in zip(gradients, (d_dx, d_dg, d_db)))  # type: ignore[return-value]

    if mean.shape != variance.shape:
        raise ValueError(f"expected mean of the shape of variance, {tuple(variance.shape)}, got {tuple(mean.shape)}.")
    return vjp(forward, (x, dy, gamma), torch.ones((), dtype=x.dtype, device=x.device))


def _spread(grad: T, indices: T, segment_ids: T, output_dim0: T, weights: T | None) -> T:
    """Gradient of sums of rows by segments: each row gets its segment's gradient times the segment's weight."""
    rows = grad[as_index(segment_ids)]
    if weights is not None:
        rows = rows * weights[as_index(segment_ids)].reshape(-1, *[1] * (rows.dim() - 1))
    out = torch.zeros((int(output_dim0), *grad.shape[1:]), dtype=grad.dtype, device=grad.device)
    return out.index_add(0, as_index(indices), rows)


def _counts(grad: T, segment_ids: T) -> T:
    return torch.bincount(as_index(segment_ids), minlength=grad.shape[0]).clamp(min=1).to(grad.dtype)


@op(primitive="SparseSegmentSumGrad")
def _sparse_segment_sum_grad(grad: T, indices: T, segment_ids: T, output_dim0: T) -> T:
    """The gradient of SparseSegmentSum for its `output_dim0` rows."""
    return _spread(grad, indices, segment_ids, output_dim0, None)


@op(primitive="SparseSegmentMeanGrad")
def _sparse_segment_mean_grad(x: T, indices: T, segment_ids: T, output_dim0: T) -> T:
    """The gradient of SparseSegmentMean for its `output_dim0` rows; `x` is the gradient of its output."""
    return _spread(x, indices, segment_ids, output_dim0, 1 / _counts(x, segment_ids))


@op(primitive="SparseSegmentSqrtNGrad")
def _sparse_segment_sqrt_grad(x: T, indices: T, segment_ids: T, output_dim0: T) -> T:
    """The gradient of SparseSegmentSqrtN for its `output_dim0` rows; `x` is the gradient of its output."""
    return _spread(x, indices, segment_ids, output_dim0, _counts(x, segment_ids).rsqrt())


@op(primitive="SparseSliceGrad")
def _sparse_slice_grad(backprop_val_grad: T, indices: T, start: T, new_indices: T) -> T:
    """The gradient of SparseSlice for the values at `indices`: that of the value at the same index in `new_indices`, else 0."""
    moved = new_indices + start.to(new_indices.dtype)
    is_match = (indices.unsqueeze(1) == moved.unsqueeze(0)).all(-1)
    matches = torch.where(is_match, backprop_val_grad.unsqueeze(0), 0)
    return matches.sum(1).to(backprop_val_grad.dtype)
