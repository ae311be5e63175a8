"""Losses of `mint.nn.functional`, all with `reduction` 'mean', 'sum' or 'none'."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from torchspore.mindspore.mint.shared import T
from torchspore.mindspore.ops.declaration.declare import bridged
from torchspore.mindspore.ops.losses.loss import constant_in, probability_loss


@bridged
def binary_cross_entropy(input: T, target: T, weight: T | None = None, reduction: str = "mean") -> T:
    """-(y * log(x) + (1 - y) * log(1 - x)), times weight, with logarithms of x + 1e-12 and 1 - x + 1e-12."""
    return probability_loss(input, target, weight, reduction)


@bridged
def binary_cross_entropy_with_logits(
    input: T, target: T, weight: T | None = None, reduction: str = "mean", pos_weight: T | None = None,
) -> T:
    """Binary cross entropy of sigmoid(x); `pos_weight` weighs the positive part of each class."""
    return F.binary_cross_entropy_with_logits(
        input, target, constant_in(weight), reduction=reduction, pos_weight=constant_in(pos_weight),
    )


def _classes(target: T) -> T:
    return target if target.is_floating_point() else target.long()


@bridged
def cross_entropy(
    input: T, target: T, weight: T | None = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0,
) -> T:
    """-log of softmax along the classes (axis 1) at the class `target`, or weighed by the probabilities `target`."""
    return F.cross_entropy(
        input, _classes(target), constant_in(weight), ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing,
    )


@bridged
def nll_loss(input: T, target: T, weight: T | None = None, ignore_index: int = -100, reduction: str = "mean") -> T:
    """-x at the class `target`, times the weight of that class."""
    return F.nll_loss(input, _classes(target), constant_in(weight), ignore_index=ignore_index, reduction=reduction)


@bridged
def mse_loss(input: T, target: T, reduction: str = "mean") -> T:
    """(x - y)^2, broadcast to one shape."""
    return F.mse_loss(*torch.broadcast_tensors(input, target), reduction=reduction)


@bridged
def l1_loss(input: T, target: T, reduction: str = "mean") -> T:
    """|x - y|, broadcast to one shape."""
    return F.l1_loss(*torch.broadcast_tensors(input, target), reduction=reduction)


@bridged
def smooth_l1_loss(input: T, target: T, reduction: str = "mean", beta: float = 1.0) -> T:
    """|x - y| - beta / 2 from beta on, else (x - y)^2 / (2 * beta)."""
    return F.smooth_l1_loss(*torch.broadcast_tensors(input, target), reduction=reduction, beta=beta)


@bridged
def kl_div(input: T, target: T, reduction: str = "mean", log_target: bool = False) -> T:
    """y * (log(y) - x) for log-probabilities x; with `log_target`, y are logarithms too; `reduction` may be 'batchmean'."""
    values = F.kl_div(*torch.broadcast_tensors(input, target), reduction="none", log_target=log_target)
    return values if reduction == "none" else _reduced(values, reduction)


def _reduced(values: T, reduction: str) -> T:
    if reduction == "batchmean":
        return values.sum() / values.shape[0]
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r}: expected 'mean', 'sum', 'batchmean' or 'none'.")
    return values.mean() if reduction == "mean" else values.sum()


@bridged
def cosine_embedding_loss(input1: T, input2: T, target: T, margin: float = 0.0, reduction: str = "mean") -> T:
    """1 - cos(x1, x2) where y is 1, max(0, cos - margin) where y is -1."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=reduction)


@bridged
def soft_margin_loss(input: T, target: T, reduction: str = "mean") -> T:
    """log(1 + exp(-y * x))."""
    return F.soft_margin_loss(input, target, reduction=reduction)
