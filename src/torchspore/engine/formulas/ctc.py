"""The loss of connectionist temporal classification as an operator with results of known lengths, so that a graph can contain it.

torch's operator returns log alpha in the length of the longest row of labels; here it has the maximum length of a row, and is shortened for
torch's gradient.
"""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.torch_internals.custom_operators import LIBRARY, define

T = torch.Tensor


def check(scores: T, labels: T, times: T, lengths: T) -> None:
    """Refuse values for which torch's kernel would read beyond the probabilities. Values after a row's length may be arbitrary."""
    for name, actual, most in (("input_lengths", times, scores.shape[0]), ("target_lengths", lengths, labels.shape[1])):
        wrong = (actual < 0) | (actual > most)
        if wrong.any():
            raise ValueError(f"{name}: expected numbers from 0 to {most}, got {actual[wrong][0]}.")
    used = torch.arange(labels.shape[1], device=labels.device) < lengths.unsqueeze(1)
    wrong = used & ((labels < 0) | (labels >= scores.shape[2]))
    if wrong.any():
        raise ValueError(f"expected classes from 0 to {scores.shape[2] - 1}, got {labels[wrong][0]}.")


def fill_beyond(alphas: T, labels: T, times: T, lengths: T) -> T:
    """Log alpha (N, time, 2 * S + 1), with minus infinity beyond each row's times and labels, where torch leaves uninitialized memory."""
    alphas = torch.nn.functional.pad(alphas, (0, 2 * labels.shape[1] + 1 - alphas.shape[2]))
    position = torch.arange(alphas.shape[2], device=alphas.device)
    time = torch.arange(alphas.shape[1], device=alphas.device)
    inside = (position <= 2 * lengths.view(-1, 1, 1)) & (time.unsqueeze(1) < times.view(-1, 1, 1))
    return alphas.masked_fill(~inside, -torch.inf)


def _losses(scores: T, labels: T, times: T, lengths: T, blank: int, zero_infinity: bool) -> tuple[T, T]:
    check(scores, labels, times, lengths)
    losses, alphas = torch.ops.aten._ctc_loss.Tensor(scores, labels, times, lengths, blank, zero_infinity)
    return losses, fill_beyond(alphas, labels, times, lengths)


def _losses_form(scores: T, labels: T, times: T, lengths: T, blank: int, zero_infinity: bool) -> tuple[T, T]:
    time, rows = scores.shape[:2]
    return scores.new_empty(rows), scores.new_empty(rows, time, 2 * labels.shape[1] + 1)


def _gradient(
    gradient_in: T, scores: T, labels: T, times: T, lengths: T, losses: T, alphas: T, blank: int, zero_infinity: bool,
) -> T:
    trimmed = alphas[:, :, : 2 * int(lengths.max()) + 1].contiguous()
    result: T = torch.ops.aten._ctc_loss_backward.Tensor(gradient_in, scores, labels, times, lengths, losses, trimmed, blank, zero_infinity)
    return result


def _gradient_form(gradient_in: T, scores: T, *others: Any) -> T:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[T, T]) -> None:
    ctx.save_for_backward(*inputs[:4], *output)
    ctx.others = inputs[4:]
    ctx.set_materialize_grads(False)


def _back(ctx: Any, gradient_in: T | None, _: Any) -> tuple[Any, ...]:
    result = None if gradient_in is None else gradient(gradient_in.contiguous(), *ctx.saved_tensors, *ctx.others)
    return result, None, None, None, None, None


_SCHEMA = "Tensor scores, Tensor labels, Tensor times, Tensor lengths"
losses = define(f"ctc_losses({_SCHEMA}, int blank, bool zero_infinity) -> (Tensor, Tensor)", _losses, _losses_form)
"""(log probabilities (time, N, classes), labels (N, S), lengths of both) -> (losses, log alpha (N, time, 2 * S + 1))."""
gradient = define(
    f"ctc_gradient(Tensor given, {_SCHEMA}, Tensor losses, Tensor alphas, int blank, bool zero_infinity) -> Tensor",
    _gradient, _gradient_form,
)
"""Return the gradient of the log probabilities, from that of the losses and the operands of the losses."""
torch.library.register_autograd("torchspore::ctc_losses", _back, setup_context=_keep, lib=LIBRARY)
