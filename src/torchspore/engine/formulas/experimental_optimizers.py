"""Formulas of `mindspore.experimental.optim`, on one parameter each, in place.

`p` is the parameter, `g` its gradient in the parameter's dtype, `rate` and `step` 0-d tensors; the other tensors are the optimizer's state.
"""
from __future__ import annotations

import torch

T = torch.Tensor


def adam(
    p: T, g: T, first: T, second: T, largest: T | None, step: T, rate: T, beta1: float, beta2: float, eps: float, folded: bool,
) -> None:
    """Kingma and Ba, 2014; with `largest` over the largest second moment so far (Reddi and others, 2018).

    `folded` says that eps is added after the bias correction is folded into the rate.
    """
    first.lerp_(g, 1 - beta1)
    second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    top = second
    if largest is not None:
        largest.copy_(torch.maximum(largest, second))
        top = largest
    correction = torch.sqrt(1 - beta2**step)
    root = (torch.sqrt(top) + eps) / correction if folded else torch.sqrt(top) / correction + eps
    p.sub_((rate / (1 - beta1**step) * (first / root)).to(p.dtype))


def sgd(p: T, g: T, moment: T, is_later: T, rate: T, share: float, dampening: float, nesterov: bool) -> None:
    """Plain steps, or with a momentum, which begins at the first gradient."""
    if share:
        moment.copy_(torch.where(is_later > 0, g, moment * share + g * (1 - dampening)))
        is_later.zero_()
        g = g + share * moment if nesterov else moment
    p.sub_(rate.to(p.dtype) * g)


def adagrad(p: T, g: T, accumulated: T, step: T, rate: T, rate_decay: float, eps: float) -> None:
    """Duchi, Hazan and Singer, 2011, with a rate that falls."""
    accumulated.addcmul_(g, g)
    p.sub_((rate / (1 + (step - 1) * rate_decay)).to(p.dtype) * g / (accumulated.sqrt() + eps))


def ada_max(p: T, g: T, first: T, largest: T, step: T, rate: T, beta1: float, beta2: float, eps: float) -> None:
    """Kingma and Ba, 2014, chapter 7."""
    first.lerp_(g, 1 - beta1)
    largest.copy_(torch.maximum(largest * beta2, g.abs() + eps))
    p.sub_((rate / (1 - beta1**step)).to(p.dtype) * first / largest)


def nesterov_adam(
    p: T, g: T, first: T, second: T, shares: tuple[T, T, T], step: T, rate: T, beta1: float, beta2: float, eps: float,
) -> None:
    """Dozat, 2016; `shares` are this step's, the next one's and the product of all so far."""
    now, later, product = shares
    first.lerp_(g, 1 - beta1)
    second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    root = torch.sqrt(second / (1 - beta2**step)) + eps
    p.sub_((rate * ((1 - now) / (1 - product) * g + later / (1 - product * later) * first) / root).to(p.dtype))


def rectified_adam(p: T, g: T, first: T, second: T, step: T, rate: T, beta1: float, beta2: float, eps: float) -> None:
    """Liu and others, 2019: without the second moment while too little of it is known."""
    first.lerp_(g, 1 - beta1)
    second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    clamped = torch.clamp(length, min=5.0001)
    rectified = torch.sqrt((clamped - 4) * (clamped - 2) * longest / ((longest - 4) * (longest - 2) * clamped))
    adaptive = torch.sqrt(1 - beta2**step) / (second.sqrt() + eps)
    scale = torch.where(length > 5, rectified * adaptive, torch.ones_like(adaptive))
    p.sub_((rate * first / (1 - beta1**step) * scale).to(p.dtype))


def rms_prop(p: T, g: T, mean: T | None, square: T, moment: T | None, rate: T, alpha: float, eps: float, share: float) -> None:
    """Tieleman and Hinton, 2012, with eps added outside of the root."""
    square.mul_(alpha).addcmul_(g, g, value=1 - alpha)
    spread = square
    if mean is not None:
        mean.lerp_(g, 1 - alpha)
        spread = square - mean * mean
    step = g / (spread.sqrt() + eps)
    if moment is not None:
        moment.mul_(share).add_(step)
        step = moment
    p.sub_(rate.to(p.dtype) * step)


def averaged_descent(p: T, g: T, average: T, step: T, rate: T, lambd: float, alpha: float, start: float) -> None:
    """Polyak and Juditsky, 1992: plain steps, and from step `start` on the mean of where they led."""
    pace = rate / torch.pow(1 + lambd * rate * (step - 1), alpha)
    p.mul_((1 - lambd * pace).to(p.dtype)).sub_(pace.to(p.dtype) * g)
    average.add_((p - average) / torch.clamp(step - start, min=1.0).to(p.dtype))
