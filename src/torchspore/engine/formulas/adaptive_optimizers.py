"""Formulas of optimizers for which torch has no fused kernel, on one parameter each, in place.

`p` is the parameter, `g` its gradient in the parameter's dtype, `rate` a 0-d tensor; the other tensors are the optimizer's state.
"""
from __future__ import annotations

from collections.abc import Callable

import torch

T = torch.Tensor


def rms_prop(p: T, g: T, mean_square: T, moment: T, rate: T, decay: float, momentum: float, eps: float, mean_gradient: T | None) -> None:
    """Tieleman and Hinton, 2012; with `mean_gradient` the mean square is taken about the mean."""
    mean_square.mul_(decay).addcmul_(g, g, value=1 - decay)
    spread = mean_square
    if mean_gradient is not None:
        mean_gradient.mul_(decay).add_(g, alpha=1 - decay)
        spread = mean_square - mean_gradient * mean_gradient
    moment.mul_(momentum).add_(rate.to(p.dtype) * g * torch.rsqrt(spread + eps))
    p.sub_(moment)


def adagrad(p: T, g: T, accumulated: T, rate: T, updates: bool) -> None:
    """Duchi, Hazan and Singer, 2011; `updates` says whether the squares are accumulated."""
    if updates:
        accumulated.addcmul_(g, g)
    p.sub_(rate.to(p.dtype) * g * torch.rsqrt(accumulated))


def adadelta(p: T, g: T, accumulated: T, updated: T, rate: T, rho: float, eps: float) -> None:
    """Zeiler, 2012."""
    accumulated.mul_(rho).addcmul_(g, g, value=1 - rho)
    step = torch.sqrt(updated + eps) * torch.rsqrt(accumulated + eps) * g
    updated.mul_(rho).addcmul_(step, step, value=1 - rho)
    p.sub_(rate.to(p.dtype) * step)


def ada_max(p: T, g: T, first: T, largest: T, rate: T, beta1: float, beta2: float, eps: float) -> None:
    """Kingma and Ba, 2014, chapter 7; `rate` already holds the bias correction."""
    first.lerp_(g, 1 - beta1)
    largest.copy_(torch.maximum(largest * beta2, g.abs()))
    p.sub_(rate.to(p.dtype) * first / (largest + eps))


def lamb(
    p: T, g: T, first: T, second: T, step: T, rate: T, beta1: float, beta2: float, eps: float, decay: T | float,
    norm: Callable[[T], T] = torch.Tensor.norm,
) -> None:
    """You and others, 2019: Adam's step and the decay, as long as `rate` times the parameter; computed in float32."""
    g, master = g.float(), p.float()
    first.mul_(beta1).add_(g.to(first.dtype), alpha=1 - beta1)
    second.mul_(beta2).add_((g * g).to(second.dtype), alpha=1 - beta2)
    count = step.float()
    mean = first.float() / (1 - torch.pow(beta1, count))
    square = second.float() / (1 - torch.pow(beta2, count))
    update = mean / (square.sqrt() + eps) + decay * master
    length, update_norm = norm(master), norm(update)
    trust = torch.where((length > 0) & (update_norm > 0), length / update_norm, torch.ones_like(update_norm))
    p.sub_((rate * trust * update).to(p.dtype))


def lars(p: T, g: T, rate: T, coefficient: float, eps: float, decay: T | float, clip: bool) -> T:
    """Return the gradient with its decay, scaled to the length of You and others (2017); with `clip` at most the unscaled length."""
    length, gradient_norm = p.float().norm(), g.float().norm()
    trust = coefficient * length / (gradient_norm + decay * length + eps)
    if clip:
        trust = torch.clamp(trust / rate, max=1.0)
    trust = torch.where((length > 0) & (gradient_norm > 0), trust, torch.ones_like(trust))
    return ((g + decay * p) * trust.to(p.dtype)).to(g.dtype)


def averaged_descent(
    p: T, g: T, average: T, share: T, pace: T, step: T, rate: T, lambd: float, alpha: float, start: float,
) -> None:
    """Polyak and Juditsky, 1992: plain steps, and from step `start` on the mean of where they led."""
    pace.copy_(torch.where(step == 1, rate, pace))
    p.mul_((1 - lambd * pace).to(p.dtype)).sub_(pace.to(p.dtype) * g)
    average.add_((p - average) * share.to(p.dtype))
    pace.copy_(rate / torch.pow(1 + lambd * rate * step, alpha))
    share.copy_(1 / torch.clamp(step - start, min=1.0))


def resilient(
    p: T, g: T, previous: T, size: T, step: T, rate: T, shrink: float, grow: float, smallest: float, largest: float,
) -> None:
    """Riedmiller and Braun, 1993: only signs count, and a sign that turned is passed over once."""
    size.copy_(torch.where(step == 1, rate.to(size.dtype), size))
    sign = torch.sign(g * previous)
    factor = torch.where(sign > 0, grow, torch.where(sign < 0, shrink, 1.0)).to(size.dtype)
    size.copy_(torch.clamp(size * factor, smallest, largest))
    kept_gradient = torch.where(sign < 0, torch.zeros_like(g), g)
    p.sub_(torch.sign(kept_gradient) * size)
    previous.copy_(kept_gradient)


def root_mean_square(x: T) -> T:
    """sqrt(mean(x^2))."""
    return torch.sqrt(torch.mean(x * x))


def ada_factor_step(g: T, squares: tuple[T, T, T], share: T, eps: float, threshold: float) -> T:
    """Shazeer and Stern, 2018: the gradient divided by the root of its mean square, clipped to `threshold`.

    `squares` are the means of each row, of each column, and, for vectors, of each element.
    """
    rows, columns, diagonal = squares
    square = g * g + eps
    if g.ndim < 2:
        diagonal.copy_(diagonal * share + square * (1 - share))
        step = g * torch.rsqrt(diagonal.float())
    else:
        rows.copy_(rows * share + square.mean(-1) * (1 - share))
        columns.copy_(columns * share + square.mean(-2) * (1 - share))
        over_rows = torch.rsqrt(rows / rows.mean(-1, keepdim=True)).unsqueeze(-1)
        step = g * over_rows * torch.rsqrt(columns).unsqueeze(-2)
    return step / torch.clamp(root_mean_square(step) / threshold, min=1.0)
