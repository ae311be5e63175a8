"""Losses from margins, distances and distributions."""
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.text import message
from torchspore.engine.formulas import clamping
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.losses.loss import (
    class_indexes,
    constant_in,
    divergence,
    probability_loss,
    reduced,
    require_equal_shapes,
    subtracted,
)

T = torch.Tensor


@op()
def huber_loss(input: T, target: T, reduction: str = "mean", delta: float = 1.0) -> T:
    """Half the squared difference up to `delta`; above it, delta times (the difference minus delta / 2)."""
    if delta <= 0:
        raise ValueError(message(f"delta={delta}", "a number above 0"))
    distance = subtracted(input, target).abs()
    return reduced(torch.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)), reduction)


@op()
def cosine_embedding_loss(input1: T, input2: T, target: T, margin: float = 0.0, reduction: str = "mean") -> T:
    """1 - cos along axis 1 of both inputs (N, D, ...) where `target` (N, ...) is 1; max(0, cos - margin) where it is -1.

    A target that broadcasts to that shape is accepted, such as a single one for all rows.
    """
    if not -1 <= margin <= 1:
        raise ValueError(f"margin={margin}: expected a number from -1 to 1.")
    if input1.ndim < 2 or input1.shape != input2.shape:
        return F.cosine_embedding_loss(input1, input2, target, margin, reduction=reduction)
    expected = (*input1.shape[:1], *input1.shape[2:])
    try:
        torch.broadcast_shapes(target.shape, expected)
    except RuntimeError:
        text = f"expected a target of shape {expected}, one for each cosine, or one for all, got {tuple(target.shape)}."
        raise ValueError(text) from None
    lengths = torch.square(input1).sum(1).sqrt() * torch.square(input2).sum(1).sqrt()         # without torch's 1e-12 in each
    cosine = (input1 * input2).sum(1) / lengths
    above = torch.maximum(cosine - margin, torch.zeros_like(cosine))                          # at the margin half a gradient
    zero = torch.zeros_like(cosine)
    return reduced(torch.where(target == 1, 1 - cosine, zero) + torch.where(target == -1, above, zero), reduction)


@op()
def hinge_embedding_loss(inputs: T, targets: T, margin: float = 1.0, reduction: str = "mean") -> T:
    """The input where `targets` is above 0; max(0, margin - input) where it is below 0."""
    above = torch.maximum(margin - inputs, inputs.new_zeros(()))                              # at the margin half a gradient
    losses = torch.where(targets > 0, inputs, 0) + torch.where(targets < 0, above, 0)
    return reduced(losses, reduction)


@op()
def margin_ranking_loss(input1: T, input2: T, target: T, margin: float = 0.0, reduction: str = "mean") -> T:
    """max(0, -target * (input1 - input2) + margin), with targets 1 and -1."""
    return F.margin_ranking_loss(*torch.broadcast_tensors(input1, input2, target), margin, reduction=reduction)


def _multi_margin(x: T, target: T, p: int, margin: float, weight: T | None, reduction: str) -> T:
    if p not in (1, 2):
        raise ValueError(f"p={p!r}: expected 1 or 2.")
    if x.numel() == 0:                             # torch's kernel returns uninitialized memory
        raise ValueError(f"expected at least one row of scores, got shape {tuple(x.shape)}.")
    return F.multi_margin_loss(x, class_indexes(target), p, margin, weight, reduction=reduction)


@op()
def multi_margin_loss(input: T, target: T, p: int = 1, margin: float = 1, weight: T | None = None, reduction: str = "mean") -> T:
    """For each row (N, C): the mean over other classes of max(0, margin - x[target] + x)^p, times the class's weight."""
    return _multi_margin(input, target, p, margin, weight, reduction)


@op(primitive="MultiMarginLoss", init=("p", "margin", "reduction"))
def _multi_margin_loss(x: T, target: T, weight: T | None = None, p: int = 1, margin: float = 1.0, reduction: str = "mean") -> T:
    """For each row (N, C): the mean over other classes of max(0, margin - x[target] + x)^p, times the class's weight."""
    return _multi_margin(x, target, p, margin, weight, reduction)


@op()
def multilabel_margin_loss(input: T, target: T, reduction: str = "mean") -> T:
    """For each row (N, C): the sum of max(0, 1 - (x[right] - x[wrong])) over all pairs, divided by C.

    `target` (N, C) lists the correct classes of each row, up to the first -1.
    """
    return F.multilabel_margin_loss(input, class_indexes(target), reduction=reduction)


@op(primitive="MultilabelMarginLoss", init=("reduction",))
def _multilabel_margin_loss(x: T, target: T, reduction: str = "mean") -> Any:
    """The loss of `multilabel_margin_loss`, and which classes of each row are correct (1 or 0, in the target's dtype)."""
    count = x.shape[-1]
    listed = torch.cumprod((target >= 0).int(), -1)
    right = torch.zeros_like(target).scatter_add(-1, target.clamp(min=0, max=count - 1).long(), listed.to(target.dtype)).clamp(max=1)
    return F.multilabel_margin_loss(x, target.long(), reduction=reduction), right


@op()
def multilabel_soft_margin_loss(input: T, target: T, weight: T | None = None, reduction: str = "mean") -> T:
    """The binary cross entropy of logits (N, C): the mean over the classes, each times its weight."""
    return F.multilabel_soft_margin_loss(input, target, weight, reduction=reduction)


@op()
def soft_margin_loss(input: T, target: T, reduction: str = "mean") -> T:
    """log(1 + exp(-target * input)), with targets 1 and -1. Raises ValueError for different shapes."""
    require_equal_shapes(input, target)
    return reduced(F.softplus(-target.to(input.dtype) * input), reduction)


@op(primitive="SoftMarginLoss", init=("reduction",))
def _soft_margin_loss(input: T, target: T, reduction: str = "mean") -> T:
    """log(1 + exp(-target * input)), with targets 1 and -1. Raises ValueError for different shapes."""
    require_equal_shapes(input, target)
    return reduced(F.softplus(-target.to(input.dtype) * input), reduction)


@op()
def triplet_margin_loss(
    anchor: T, positive: T, negative: T, margin: float = 1.0, p: int = 2, eps: float = 1e-6, swap: bool = False, reduction: str = "mean",
) -> T:
    """max(0, |anchor - positive| - |anchor - negative| + margin), in the norm `p`; `swap` takes the smaller distance to the negative."""
    return F.triplet_margin_loss(anchor, positive, negative, _number(margin), p, eps, swap, reduction=reduction)


@op(primitive="TripletMarginLoss", init=("p", "swap", "eps", "reduction"))
def _triplet_margin_loss(
    x: T, positive: T, negative: T, margin: Any, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean",
) -> T:
    """max(0, |x - positive| - |x - negative| + margin), in the norm `p`; `swap` takes the smaller distance to the negative."""
    near, far = _distance(x, positive, p, eps), _distance(x, negative, p, eps)
    if swap:
        far = torch.minimum(far, _distance(positive, negative, p, eps))
    return reduced(clamping.clamp(near - far + margin, 0), reduction)


def _distance(a: T, b: T, p: int, eps: float) -> T:
    return F.pairwise_distance(a, b, p, eps)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, T) else value


@op()
def gaussian_nll_loss(x: T, target: T, var: T, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> T:
    """Half of log(var) + (x - target)^2 / var, with variances of at least `eps`; `full` adds log(2 pi) / 2."""
    if x.shape != target.shape or var.shape not in (x.shape, x.shape[:-1], (*x.shape[:-1], 1)):
        x, target, var = torch.broadcast_tensors(x, target, var)
    smallest = clamping.clamp(var, eps)                 # no gradient below eps, where torch's loss has a huge one
    if smallest.ndim < x.ndim:
        smallest = smallest.unsqueeze(-1)
    # torch's function computes the same, and first asks on the host whether a variance is negative.
    losses = 0.5 * (torch.log(smallest) + (x - target) ** 2 / smallest)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


@op()
def _poisson_nll(input: T, target: T, log_input: bool, full: bool, eps: float, reduction: str) -> T:
    """exp(x) - target * x, or x - target * log(x + eps) if x is not a logarithm; `full` adds Stirling's approximation of log(target!)."""
    losses = F.poisson_nll_loss(input, target, log_input, eps=eps, full=False, reduction="none")
    if full:                                           # torch's gradient is NaN for targets up to 1
        large = torch.where(target > 1, target, 2.0)
        stirling = large * torch.log(large) - large + 0.5 * torch.log(2 * torch.pi * large)
        losses = losses + torch.where(target > 1, stirling, 0.0)
    return reduced(losses.to(input.dtype) if input.is_floating_point() else losses, reduction)


@op(primitive="KLDivLoss", init=("reduction",))
def _kl_div(logits: T, labels: T, reduction: str = "mean") -> T:
    """labels * (log(labels) - logits); 'batchmean' divides the sum by the first length. Raises ValueError for different shapes."""
    require_equal_shapes(logits, labels)
    loss = divergence(logits, labels)
    return loss.sum() / logits.shape[0] if reduction == "batchmean" else reduced(loss, reduction)


@op(primitive="NLLLoss", init=("reduction", "ignore_index"))
def _nll_loss(logits: T, labels: T, weight: T, reduction: str = "mean", ignore_index: int = -100) -> Any:
    """The negative log likelihood of log probabilities (N, C) and classes (N,), and the sum of the weights used."""
    classes = class_indexes(labels)
    weight = constant_in(weight)
    counted = weight[classes.clamp(0, weight.shape[0] - 1)] * (classes != ignore_index)
    return F.nll_loss(logits, classes, weight, ignore_index=ignore_index, reduction=reduction), counted.sum()


@op(primitive="BinaryCrossEntropy", init=("reduction",))
def _binary_cross_entropy(logits: T, labels: T, weight: T | None = None, reduction: str = "mean") -> T:
    """The binary cross entropy of probabilities, at most 27.631 for each."""
    return probability_loss(logits, labels, weight, reduction)


@op(primitive="BCEWithLogitsLoss", init=("reduction",))
def _bce_with_logits(input: T, target: T, weight: T | None = None, posWeight: T | None = None, reduction: str = "mean") -> T:
    """The binary cross entropy of logits; `posWeight` weighs positive targets."""
    return F.binary_cross_entropy_with_logits(
        input, target, constant_in(weight), reduction=reduction, pos_weight=constant_in(posWeight),
    )


@op()
def _sampled_softmax(
    weights: T, biases: T, labels: T, logits: T, drawn: T, expected_true: T, expected_drawn: T, num_true: int, removes_hits: bool,
) -> T:
    """The cross entropy (N,) of the true classes among themselves and the drawn ones, each minus the log of its expected count."""
    labels, drawn = labels.reshape(-1, num_true).long(), drawn.reshape(-1).long()
    right = (logits.unsqueeze(1) * weights[labels]).sum(-1) + biases[labels] - torch.log(expected_true.reshape(-1, num_true))
    drawn_logits = logits @ weights[drawn].T + biases[drawn] - torch.log(expected_drawn.reshape(-1))
    if removes_hits:
        hits = (labels.unsqueeze(-1) == drawn).any(1)
        drawn_logits = torch.where(hits, drawn_logits - 1e37, drawn_logits)
    chances = torch.log_softmax(torch.cat([right, drawn_logits], 1), 1)
    return -chances[:, :num_true].mean(1)
