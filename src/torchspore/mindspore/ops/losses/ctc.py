"""Connectionist temporal classification (Graves and others, 2006): losses and a decoder."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.tensors.creation import constant
from torchspore.graph.capture.running_trace import current
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.losses.loss import reduced

T = torch.Tensor


def _alphas(log_probs: T, targets: T, inputs: T, lengths: T, blank: int, zero_infinity: bool) -> tuple[T, T]:
    """Return the losses (N,) and log alpha (N, time, 2 * S + 1) for log probabilities (time, N, classes)."""
    if targets.ndim == 1:
        targets = _rows(targets, lengths)
    from torchspore.engine.formulas import ctc

    targets, inputs, lengths = targets.long(), inputs.long(), lengths.long()
    if _is_captured():
        results: tuple[T, T] = ctc.losses(log_probs, targets, inputs, lengths, blank, zero_infinity)
        return results
    ctc.check(log_probs, targets, inputs, lengths)
    losses, alphas = torch.ops.aten._ctc_loss.Tensor(log_probs, targets, inputs, lengths, blank, zero_infinity)
    return losses, ctc.fill_beyond(alphas, targets, inputs, lengths)


def _is_captured() -> bool:
    """Return whether this call is captured for a graph, which cannot have result shapes that depend on values."""
    return current() is not None


def _rows(targets: T, lengths: T) -> T:
    """Return concatenated labels as rows. Each row has the length of all labels together, so the shape does not depend on the lengths."""
    begin = (lengths.cumsum(0) - lengths).unsqueeze(1)
    at = begin + torch.arange(targets.shape[0], device=targets.device)
    return targets[at.clamp(max=targets.shape[0] - 1)]


def _as_lengths(value: Any, like: T) -> T:
    return value if isinstance(value, T) else constant(value, like.device)


@op()
def ctc_loss(
    log_probs: T, targets: T, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """The loss of log probabilities (time, N, classes) and labels (N, S) or (all labels,), and log alpha (N, time, 2 * S + 1).

    'mean' first divides each loss by the number of its labels. `zero_infinity` makes infinite losses and their gradients 0.
    """
    lengths = _as_lengths(target_lengths, targets)
    losses, alphas = _alphas(log_probs, targets, _as_lengths(input_lengths, targets), lengths, blank, zero_infinity)
    if zero_infinity:
        losses = torch.where(torch.isinf(losses), torch.zeros_like(losses), losses)
    if reduction == "mean":
        return (losses / lengths.clamp(min=1).to(losses.dtype)).mean(), alphas
    return reduced(losses, reduction), alphas


@op(primitive="CTCLossV2", init=("blank", "reduction", "zero_infinity"))
def _ctc_loss_v2(
    log_probs: T, targets: T, input_lengths: T, target_lengths: T, blank: int = 0, reduction: str = "none", zero_infinity: bool = False,
) -> Any:
    """The losses (N,) of log probabilities (time, N, classes) and labels (N, S), and log alpha (N, time, 2 * S + 1)."""
    if reduction != "none":
        raise ValueError(f"reduction={reduction!r}: expected 'none'.\n\nhint: ops.ctc_loss reduces.")
    losses, alphas = _alphas(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    return (torch.where(torch.isinf(losses), torch.zeros_like(losses), losses) if zero_infinity else losses), alphas


@op(primitive="CTCLoss", init=("preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs"))
def _ctc_loss_of_logits(
    x: T, labels_indices: T, labels_values: T, sequence_length: T, preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True, ignore_longer_outputs_than_inputs: bool = False,
) -> Any:
    """The losses (N,) of logits (time, N, classes), whose last class is the blank, and their gradient with respect to the logits.

    Labels are sparse: `labels_indices` (count, 2) has row and position, `labels_values` (count,) the class. Of equal adjacent labels
    `preprocess_collapse_repeated` keeps only the first. Without `ctc_merge_repeated`, a class at two consecutive times is two labels.
    """
    count = labels_values.shape[0]
    rows, positions = labels_indices[:, 0].long(), labels_indices[:, 1].long()
    dense = torch.zeros(x.shape[1], max(count, 1), dtype=torch.long, device=x.device)
    dense = dense.index_put((rows, positions), labels_values.long())
    lengths = torch.zeros(x.shape[1], dtype=torch.long, device=x.device).index_add(0, rows, torch.ones_like(rows))
    if preprocess_collapse_repeated:
        dense, lengths = _collapsed(dense, lengths)
    inputs, blank = sequence_length.long(), x.shape[2] - 1
    if not ctc_merge_repeated:
        return _of_single_labels(x, dense, inputs, lengths, ignore_longer_outputs_than_inputs)
    chances = torch.log_softmax(x, -1)
    losses, alphas = _alphas(chances, dense, inputs, lengths, blank, ignore_longer_outputs_than_inputs)
    with torch.no_grad():
        from torchspore.engine.formulas import ctc

        arguments = (torch.ones_like(losses), chances, dense, inputs, lengths, losses, alphas, blank, ignore_longer_outputs_than_inputs)
        gradient = ctc.gradient(*arguments)
    if ignore_longer_outputs_than_inputs:
        losses = torch.where(torch.isinf(losses), torch.zeros_like(losses), losses)
    return losses, gradient


def _collapsed(labels: T, lengths: T) -> tuple[T, T]:
    """Remove labels that are equal to the preceding one from each row; return the rows and their lengths."""
    at = torch.arange(labels.shape[1], device=labels.device)
    is_distinct_label = at < lengths.unsqueeze(1)
    is_distinct_label = is_distinct_label & ((at == 0) | (labels != labels.roll(1, 1)))
    target_position = torch.where(is_distinct_label, is_distinct_label.cumsum(1) - 1, labels.shape[1])
    room = torch.nn.functional.pad(torch.zeros_like(labels), (0, 1))
    return room.scatter(1, target_position, labels)[:, :-1], is_distinct_label.sum(1)


_NEVER = -1e30
"""Stands for log(0): finite, so it can be added to and has a gradient."""


def _of_single_labels(logits: T, labels: T, times: T, lengths: T, zero_infinity: bool) -> tuple[T, T]:
    """Return the losses and their gradient with respect to the logits if each time step with a class is a separate label."""
    from torchspore.engine.formulas import ctc
    from torchspore.mindspore.ops.gradients.grad_primitives import vjp

    if not _is_captured():
        ctc.check(logits, labels, times, lengths)
    blank = logits.shape[2] - 1
    shown = torch.full((labels.shape[0], 2 * labels.shape[1] + 1), blank, dtype=torch.long, device=labels.device)
    shown[:, 1::2] = labels
    is_blank = shown == blank
    position = torch.arange(shown.shape[1], device=shown.device)

    def losses(x: T) -> T:
        chances = torch.log_softmax(x, -1)
        alpha = torch.where(position == 0, 0.0, _NEVER).to(x.dtype).expand(shown.shape)       # before the first time, at the first blank
        for time in range(x.shape[0]):
            stays = torch.where(is_blank, alpha, _NEVER)
            comes = torch.nn.functional.pad(alpha, (1, 0), value=_NEVER)[:, :-1]
            skips = torch.where(is_blank, _NEVER, torch.nn.functional.pad(alpha, (2, 0), value=_NEVER)[:, :-2])
            if time == 0:
                skips = torch.full_like(skips, _NEVER)
            moved = torch.logsumexp(torch.stack([stays, comes, skips]), 0) + chances[time].gather(1, shown)
            alpha = torch.where((time < times).unsqueeze(1), moved, alpha)
        ends = torch.stack([2 * lengths, (2 * lengths - 1).clamp(min=0)], 1)
        last = alpha.gather(1, ends)
        last = torch.stack([last[:, 0], torch.where(lengths > 0, last[:, 1], _NEVER)])
        return -torch.logsumexp(last, 0)

    values = losses(logits)
    impossible = values > -_NEVER / 2
    gradient = torch.where(impossible.unsqueeze(1), 0, vjp(losses, (logits,), torch.ones_like(values))[0])
    return torch.where(impossible, 0 if zero_infinity else torch.inf, values), gradient


def _greedy(inputs: T, sequence_length: T, merge_repeated: bool) -> Any:
    if inputs.ndim != 3:
        raise ValueError(f"expected inputs of shape (time, N, classes), got {tuple(inputs.shape)}.")
    best, chosen = inputs.max(-1)
    at = torch.arange(inputs.shape[0], device=inputs.device).unsqueeze(1)
    inside = at < sequence_length.unsqueeze(0)
    is_emitted = inside & (chosen != inputs.shape[2] - 1)
    if merge_repeated:
        before = torch.cat([torch.full_like(chosen[:1], -1), chosen[:-1]])
        is_emitted = is_emitted & (chosen != before)
    is_emitted = is_emitted.T
    rows = is_emitted.nonzero()[:, 0]
    positions = (is_emitted.long().cumsum(1) - 1)[is_emitted]
    longest = is_emitted.long().sum(1).max()
    shape = torch.stack([torch.full_like(longest, inputs.shape[1]), longest])
    chances = -(best * inside).sum(0).unsqueeze(1)
    return torch.stack([rows, positions], 1), chosen.T[is_emitted], shape, chances


@op()
def ctc_greedy_decoder(inputs: T, sequence_length: T, merge_repeated: bool = True) -> Any:
    """The most likely class at each time of logits (time, N, classes), without blanks (the last class) and, on request, repetitions.

    Return a sparse matrix: positions (count, 2), classes (count,), shape (2,), all int64; and minus the sum of the chosen logits (N, 1).
    """
    return _greedy(inputs, sequence_length, merge_repeated)


@op(primitive="CTCGreedyDecoder", init=("merge_repeated",))
def _ctc_greedy_decoder(inputs: T, sequence_length: T, merge_repeated: bool = True) -> Any:
    """The most likely class at each time, as `ctc_greedy_decoder`."""
    return _greedy(inputs, sequence_length, merge_repeated)
