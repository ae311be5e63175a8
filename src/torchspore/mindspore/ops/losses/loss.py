"""Losses."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.engine.formulas.quotients import truncate_divide
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.limits import small

T = torch.Tensor


def class_indexes(labels: T) -> T:
    """Return labels as int64. Raises TypeError for unsigned integers wider than uint8, which MindSpore refuses as class numbers."""
    if labels.dtype not in (torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8):
        raise TypeError(
            f"expected classes as Int32 or Int64, got {FROM_TORCH[labels.dtype]}.\n\nhint: write labels.astype(mindspore.int32)."
        )
    return labels.long()


def require_equal_shapes(first: T, second: T) -> None:
    """Raises ValueError for two different shapes, because MindSpore's operator does not broadcast."""
    if first.shape != second.shape:
        raise ValueError(f"expected equal shapes, got {tuple(first.shape)} and {tuple(second.shape)}.")


@op()
def cross_entropy(
    input: T, target: T, weight: T | None = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0,
) -> T:
    """The cross entropy of logits (N, C, ...) and classes (N, ...) or probabilities (N, C, ...)."""
    target = target if target.is_floating_point() and target.ndim == input.ndim else class_indexes(target)
    if weight is not None and weight.requires_grad and not target.is_floating_point():
        return _likelihood(torch.log_softmax(input, 1), target, weight, ignore_index, reduction, label_smoothing)
    return F.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


@op()
def nll_loss(
    inputs: T, target: T, weight: T | None = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0,
) -> T:
    """The negative log likelihood of log probabilities (N, C, ...) and classes (N, ...).

    `label_smoothing` is the fraction of the target that is spread over all classes: its loss is the weighted mean over all classes.
    """
    return _likelihood(inputs, class_indexes(target), weight, ignore_index, reduction, label_smoothing)


def _likelihood(inputs: T, classes: T, weight: T | None, ignore_index: int, reduction: str, label_smoothing: float) -> T:
    learned = weight is not None and weight.requires_grad                  # torch's kernel has no gradient for weights
    if not label_smoothing and not learned:
        return F.nll_loss(inputs, classes, weight, ignore_index=ignore_index, reduction=reduction)
    losses = F.nll_loss(inputs, classes, None if learned else weight, ignore_index=ignore_index, reduction="none")
    weights = inputs.new_ones(inputs.shape[1]) if weight is None else weight
    counts = classes != ignore_index
    share = weights[torch.where(counts, classes, 0)] * counts
    losses = losses * share if learned else losses
    even = -(inputs * weights.reshape(-1, *[1] * (inputs.ndim - 2))).mean(1) * counts
    loss = (1 - label_smoothing) * losses + label_smoothing * even
    return reduced(loss, reduction) if reduction != "mean" else loss.sum() / share.sum()


def constant_in(t: Any) -> Any:
    """Detach a Tensor (None stays None), because MindSpore's operator has no gradient for it."""
    return t.detach() if isinstance(t, T) and t.requires_grad else t


@op(primitive="SoftmaxCrossEntropyWithLogits")
def _softmax_cross_entropy(logits: T, labels: T) -> Any:
    """The losses (N,) of logits (N, C) and probabilities (N, C), and their gradient (N, C). Raises ValueError for different shapes.

    The gradient is that of MindSpore's kernel, softmax - labels, also for labels whose sum is not 1.
    """
    require_equal_shapes(logits, labels)
    labels = constant_in(labels)
    chances = torch.log_softmax(logits, -1)
    total = torch.logsumexp(logits, -1)                     # its gradient is softmax
    missing = (1 - labels.sum(-1)) * (total - total.detach())
    return missing - (labels * chances).sum(-1), (torch.exp(chances) - labels).detach()


@op()
def _cross_entropy_of_classes(logits: T, labels: T, reduction: str) -> T:
    """The cross entropy of logits (N, C) and classes (N,). A class outside of the logits has the loss 0 and the gradient softmax.

    MindSpore computes it with a one-hot row of zeros.
    """
    classes = class_indexes(labels)
    is_class = (classes >= 0) & (classes < logits.shape[1])
    classes = torch.where(is_class, classes, 0)
    losses = F.cross_entropy(logits, classes, reduction="none")
    total = losses + logits.gather(1, classes.unsqueeze(1)).squeeze(1)          # the logarithm of the sum: its gradient is softmax
    losses = torch.where(is_class, losses, total - total.detach())
    return losses.sum() if reduction == "sum" else losses


@op(primitive="SparseSoftmaxCrossEntropyWithLogits", init=("is_grad",))
def _sparse_softmax_cross_entropy(logits: T, labels: T, is_grad: bool = False) -> T:
    """The mean loss of logits (N, C) and classes (N,), or with `is_grad` its gradient (N, C)."""
    if not is_grad:
        return F.cross_entropy(logits, class_indexes(labels))
    return (torch.softmax(logits, -1) - F.one_hot(class_indexes(labels), logits.shape[-1])) / logits.shape[0]


def subtracted(input: T, target: T) -> T:
    """input - target; truth values become numbers in the dtype of the other one."""
    if torch.bool in (input.dtype, target.dtype):
        common = torch.promote_types(input.dtype, target.dtype)
        input, target = input.to(common), target.to(common)
    return input - target


def reduced(loss: T, reduction: str) -> T:
    """Reduce the losses to their mean or sum, or not at all. Raises ValueError for another word."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction={reduction!r}: expected 'mean', 'sum' or 'none'.")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


@op()
def mse_loss(input: T, target: T, reduction: str = "mean") -> T:
    """The squared difference; two Tensors of integers are computed in float32."""
    if not any(t.is_floating_point() or t.is_complex() for t in (input, target)):
        input, target = input.to(torch.float32), target.to(torch.float32)
    return reduced(torch.square(subtracted(input, target)), reduction)


@op()
def l1_loss(input: T, target: T, reduction: str = "mean") -> T:
    """The absolute difference. For integers, sum and mean keep the dtype and truncate the result."""
    apart = torch.abs(subtracted(input, target))
    if apart.is_floating_point() or apart.is_complex() or reduction not in ("mean", "sum"):
        return reduced(apart, reduction)
    total = apart.sum(dtype=apart.dtype if reduction == "sum" else torch.int64)
    return total if reduction == "sum" else truncate_divide(total, apart.numel()).to(apart.dtype)


@op()
def smooth_l1_loss(input: T, target: T, beta: float = 1.0, reduction: str = "none") -> T:
    """The squared difference below `beta`, the absolute difference above it."""
    return _smooth(input, target, beta, reduction)


@op(primitive="SmoothL1Loss", init=("beta", "reduction"))
def _smooth_l1(logits: T, labels: T, beta: float = 1.0, reduction: str = "none") -> T:
    """The squared difference below `beta`, the absolute difference above it."""
    return _smooth(logits, labels, beta, reduction)


def _smooth(logits: T, labels: T, beta: float, reduction: str) -> T:
    if logits.shape != labels.shape:
        raise ValueError(f"expected equal shapes, got {tuple(logits.shape)} and {tuple(labels.shape)}.")
    return F.smooth_l1_loss(logits, labels, reduction=reduction, beta=beta)


@op(primitive="SigmoidCrossEntropyWithLogits")
def _sigmoid_cross_entropy(logits: T, label: T) -> T:
    """The binary cross entropy of logits, element by element."""
    return F.binary_cross_entropy_with_logits(logits, constant_in(label), reduction="none")


EPSILON = 1e-12
"""MindSpore adds this to a probability before it takes the logarithm, so a loss is at most 27.631; torch's limit is 100."""


def probability_loss(probabilities: T, labels: T, weight: T | None, reduction: str) -> T:
    """The binary cross entropy of `probabilities` and `labels` of one shape, with logarithms of p + 1e-12; NaN stays NaN.

    Float16 and bfloat16 are computed in float32, because 1e-12 is 0 in float16. Raises ValueError for other words and shapes, and
    RuntimeError for a number that is not between 0 and 1.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction={reduction!r}: expected 'mean', 'sum' or 'none'.")
    dtype = probabilities.dtype
    if dtype in (torch.float16, torch.bfloat16):
        probabilities, labels = probabilities.float(), labels.float()
        weight = None if weight is None else weight.float()
    is_nan = torch.isnan(probabilities)
    numbers = torch.where(is_nan, 0.5, probabilities)
    losses = F.binary_cross_entropy(numbers, labels, reduction="none")         # checks the arguments, and has MindSpore's gradient
    with torch.no_grad():
        positive, negative = (torch.log(p + EPSILON) for p in (numbers, 1 - numbers))
        change = -torch.lerp(negative, positive, labels) - losses
    losses = torch.where(is_nan, probabilities * probabilities, losses + change)
    if weight is not None:
        losses = losses * weight.detach()
    return reduced(losses, reduction).to(dtype)


@op()
def binary_cross_entropy(logits: T, labels: T, weight: T | None = None, reduction: str = "mean") -> T:
    """The binary cross entropy of probabilities, at most 27.631 for each."""
    return probability_loss(logits, labels, weight, reduction)


@op()
def binary_cross_entropy_with_logits(
    input: T, target: T, weight: T | None = None, pos_weight: T | None = None, reduction: str = "mean",
) -> T:
    """The binary cross entropy of logits."""
    return F.binary_cross_entropy_with_logits(
        input, target, constant_in(weight), reduction=small(reduction), pos_weight=constant_in(pos_weight),
    )


@op()
def kl_div(logits: T, labels: T, reduction: str = "mean") -> T:
    """The Kullback-Leibler divergence of log probabilities and probabilities."""
    loss = divergence(logits, labels)
    return loss.sum() / logits.shape[0] if reduction == "batchmean" else reduced(loss, reduction)


def divergence(logits: T, labels: T) -> T:
    """labels * (log(labels) - logits), and 0 where a label is not above 0. Labels have no gradient, as in MindSpore."""
    require_equal_shapes(logits, labels)
    labels = constant_in(labels)
    above = labels > 0
    return torch.where(above, labels * (torch.log(torch.where(above, labels, 1.0)) - logits), torch.zeros_like(logits))
