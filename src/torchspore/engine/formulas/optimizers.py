"""Formulas of MindSpore's optimizers on lists of torch tensors, in place, by torch's fused kernels if these give equal numbers."""
from __future__ import annotations

from collections.abc import Sequence

import torch

from torchspore.engine.formulas.half_precision import HALVES
from torchspore.engine.torch_internals import torch_private

Tensors = Sequence[torch.Tensor]

# torch's fused Adam corrects the bias by its step count; so late a step has nothing left to correct, which is MindSpore's formula
# with the correction folded into the rate (equal to 1e-7 over five steps, spec/semantics.md).
_LATE = 1e30


def like_parameters(parameters: Tensors, gradients: Tensors) -> list[torch.Tensor]:
    """The gradients in the dtypes of the parameters, row by row in memory."""
    return _in_rows([g if g.dtype is p.dtype else g.to(p.dtype) for p, g in zip(parameters, gradients)])


def _in_rows(tensors: Tensors) -> list[torch.Tensor]:
    """The tensors row by row in memory: torch's fused kernels go by memory alone, and take a transposed one for another."""
    return [t if t.is_contiguous() else t.contiguous() for t in tensors]


def _check_states(parameters: Tensors, *states: Tensors) -> None:
    """Raises ValueError for a state of another shape than its parameter's: torch's fused kernels would write beyond it."""
    for own in states:
        for p, state in zip(parameters, own):
            if p.shape != state.shape:
                raise ValueError(
                    f"an optimizer's state of shape {list(state.shape)}: expected the Parameter's shape, {list(p.shape)}."
                    "\n\nhint: make the optimizer after the Parameters have their shapes."
                )


def _updated(tensors: Tensors, straight: Tensors) -> None:
    """Copy values back into parameters that had to be copied."""
    for t, new in zip(tensors, straight):
        if new is not t:
            t.copy_(new)


def decayed(parameters: Tensors, gradients: Tensors, weight_decay: torch.Tensor | float) -> list[torch.Tensor]:
    """gradient + weight_decay * parameter."""
    if isinstance(weight_decay, torch.Tensor):
        return [g + p * weight_decay.to(g.dtype) for p, g in zip(parameters, gradients)]
    return list(torch_private.add_all(list(gradients), list(parameters), alpha=weight_decay))


def momentum(
    parameters: Tensors, gradients: Tensors, moments: Tensors, rate: torch.Tensor, share: float, nesterov: bool, decay: float = 0.0,
    dampening: float = 0.0,
    is_first: bool = False,
) -> None:
    """v = share * v + g; p -= rate * v, or with `nesterov` p -= rate * (g + share * v)."""
    if not share and any(p.dtype in HALVES and p.device.type == "cpu" for p in parameters):
        # torch 2.13's fused kernel without momentum leaves all full vectors of half precision as they were.
        for p, g in zip(parameters, gradients):
            p.copy_(p.float() - rate * (g.float() + decay * p.float()))
        return
    _check_states(parameters, moments if share else ())
    rows, states = _in_rows(parameters), _in_rows(moments if share else ())
    torch_private.fused_sgd(
        rows, like_parameters(parameters, gradients), states, weight_decay=decay, momentum=share, lr=rate,
        dampening=dampening, nesterov=nesterov, maximize=False, is_first_step=is_first,
    )
    _updated(parameters, rows)
    _updated(moments, states)
    torch_private.increment(list(parameters))


def adam(
    parameters: Tensors, gradients: Tensors, first: Tensors, second: Tensors, rate: torch.Tensor, beta1: float, beta2: float, eps: float,
    decay: float = 0.0,
    decoupled: bool = False,
) -> None:
    """m and v as usual; p -= rate * m / (sqrt(v) + eps), with `decoupled` also p -= rate * decay * p.

    `rate` already includes the bias correction, if any.
    """
    _check_states(parameters, first, second)
    late = torch.full((), _LATE, device=parameters[0].device)
    kernel = torch_private.fused_adamw if decoupled else torch_private.fused_adam
    rows, means, squares = _in_rows(parameters), _in_rows(first), _in_rows(second)
    kernel(
        rows, like_parameters(parameters, gradients), means, squares, [], [late] * len(parameters), lr=rate, beta1=beta1, beta2=beta2,
        weight_decay=decay, eps=eps, amsgrad=False, maximize=False,
    )
    for tensors, straight in ((parameters, rows), (first, means), (second, squares)):
        _updated(tensors, straight)
    torch_private.increment(list(parameters))


def nesterov_adam(
    parameters: Tensors, gradients: Tensors, first: Tensors, second: Tensors, rate: torch.Tensor, beta1: float, beta2: float, eps: float
) -> None:
    """Adam whose step looks ahead: p -= rate * (beta1 * m + (1 - beta1) * g) / (sqrt(v) + eps)."""
    for p, g, m, v in zip(parameters, like_parameters(parameters, gradients), first, second):
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        p.sub_(rate.to(p.dtype) * (beta1 * m + (1 - beta1) * g) / (v.sqrt() + eps))


def amsgrad(
    parameters: Tensors, gradients: Tensors, first: Tensors, second: Tensors, largest: Tensors, rate: torch.Tensor, beta1: float,
    beta2: float, eps: float,
) -> None:
    """Adam over the largest v so far (Reddi and others, 2018)."""
    for p, g, m, v, top in zip(parameters, like_parameters(parameters, gradients), first, second, largest):
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        top.copy_(torch.maximum(top, v))
        p.sub_(rate.to(p.dtype) * m / (top.sqrt() + eps))


def corrected(rate: torch.Tensor, beta1_power: torch.Tensor, beta2_power: torch.Tensor) -> torch.Tensor:
    """rate * sqrt(1 - beta2^t) / (1 - beta1^t)."""
    return rate * torch.sqrt(1 - beta2_power) / (1 - beta1_power)


def scheduled(rates: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """The rate of this step (or of several, in their shape) from a table, the last one beyond its end."""
    return rates.index_select(0, step.long().clamp(max=rates.shape[0] - 1)).reshape(step.shape)


def centralized(gradient: torch.Tensor) -> torch.Tensor:
    """The gradient less its mean over all axes but the first; vectors stay."""
    return gradient if gradient.ndim < 2 else gradient - gradient.mean(tuple(range(1, gradient.ndim)), keepdim=True)


def scaled(gradients: Tensors, scale: float) -> list[torch.Tensor]:
    """The gradients divided by the loss scale."""
    return list(gradients) if scale == 1.0 else list(torch_private.multiply_all(list(gradients), 1.0 / scale))


def dampened(gradients: Tensors, firsts: Tensors, dampening: float) -> tuple[list[torch.Tensor], Tensors]:
    """Return the gradients less the share `dampening`, unreduced if `firsts` is 1 (the first step), and the tensors to clear after the
    step."""
    return [g * torch.where(f > 0, 1.0, 1.0 - dampening).to(g.dtype) for g, f in zip(gradients, firsts)], firsts


def clear(states: Tensors) -> None:
    """Set all elements to zero, in place."""
    torch_private.zero_all(list(states))


def shrink(parameters: Tensors, share: torch.Tensor) -> None:
    """Compute p -= share * p, in place."""
    for p in parameters:
        p.mul_(1 - share.to(p.dtype))
