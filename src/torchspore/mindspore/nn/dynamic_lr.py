"""Learning rates of all steps as a list, computed in advance."""
from __future__ import annotations

import math

from torchspore.mindspore.nn.learning_rate_schedule import positive
from torchspore.mindspore.ops.declaration.limits import check_real, real_type, truth


def _epochs(total_step: int, step_per_epoch: int) -> list[int]:
    """Return the epoch of each step."""
    return [step // step_per_epoch for step in range(total_step)]


def _check_decay(
    name: str, learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool,
) -> None:
    check_real(name, above=0.0, learning_rate=learning_rate, decay_rate=decay_rate)
    positive(name, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    truth(name, "is_stair", is_stair)


def piecewise_constant_lr(milestone: list[int], learning_rates: list[float]) -> list[float]:
    """`learning_rates[i]` up to step `milestone[i]`. Raises ValueError if milestones do not increase or the lengths differ."""
    if not isinstance(milestone, (tuple, list)) or not isinstance(learning_rates, (tuple, list)):
        raise TypeError("piecewise_constant_lr: expected lists of milestones and of rates.")
    if len(milestone) != len(learning_rates):
        raise ValueError(f"piecewise_constant_lr: expected as many rates as milestones, got {len(learning_rates)} and {len(milestone)}.")
    rates: list[float] = []
    for last, rate in zip(milestone, learning_rates):
        positive("piecewise_constant_lr", milestone=last)
        real_type("piecewise_constant_lr", "learning_rates", rate)
        if last < len(rates):
            raise ValueError(f"piecewise_constant_lr(milestone={milestone}): expected increasing milestones.")
        rates += [rate] * (last - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False,
) -> list[float]:
    """learning_rate * decay_rate ^ (epoch / decay_epoch), in full periods if `is_stair`."""
    _check_decay("exponential_decay_lr", learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair)
    return [learning_rate * decay_rate ** (e // decay_epoch if is_stair else e / decay_epoch) for e in _epochs(total_step, step_per_epoch)]


def natural_exp_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False,
) -> list[float]:
    """learning_rate * exp(-decay_rate * epoch), with the epoch in multiples of decay_epoch if `is_stair`."""
    _check_decay("natural_exp_decay_lr", learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair)
    return [
        learning_rate * math.exp(-decay_rate * (e // decay_epoch * decay_epoch if is_stair else e))
        for e in _epochs(total_step, step_per_epoch)
    ]


def inverse_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False,
) -> list[float]:
    """learning_rate / (1 + decay_rate * epoch / decay_epoch), in full periods if `is_stair`."""
    _check_decay("inverse_decay_lr", learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair)
    return [
        learning_rate / (1 + decay_rate * (e // decay_epoch if is_stair else e / decay_epoch)) for e in _epochs(total_step, step_per_epoch)
    ]


def cosine_decay_lr(min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int) -> list[float]:
    """Half a cosine from `max_lr` down to `min_lr` over `decay_epoch` epochs."""
    check_real("cosine_decay_lr", least=0.0, min_lr=min_lr)
    check_real("cosine_decay_lr", above=0.0, max_lr=max_lr)
    positive("cosine_decay_lr", total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    if min_lr >= max_lr:
        raise ValueError(f"cosine_decay_lr(min_lr={min_lr}, max_lr={max_lr}): expected min_lr below max_lr.")
    return [
        min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * min(e, decay_epoch) / decay_epoch))
        for e in _epochs(total_step, step_per_epoch)
    ]


def polynomial_decay_lr(
    learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """(learning_rate - end) * (1 - epoch / decay_epoch) ^ power + end; with `update_decay_epoch`, longer periods follow."""
    name = "polynomial_decay_lr"
    check_real(name, above=0.0, learning_rate=learning_rate, power=power)
    check_real(name, least=0.0, end_learning_rate=end_learning_rate)
    positive(name, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    truth(name, "update_decay_epoch", update_decay_epoch)
    rates = []
    for e in _epochs(total_step, step_per_epoch):
        period = decay_epoch * max(math.ceil(e / decay_epoch), 1) if update_decay_epoch else decay_epoch
        rates.append((learning_rate - end_learning_rate) * (1 - min(e, period) / period) ** power + end_learning_rate)
    return rates


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """Linear increase to `learning_rate` within `warmup_epoch` epochs, then constant."""
    check_real("warmup_lr", least=0.0, learning_rate=learning_rate)
    positive("warmup_lr", total_step=total_step, step_per_epoch=step_per_epoch, warmup_epoch=warmup_epoch)
    return [learning_rate * min(e, warmup_epoch) / warmup_epoch for e in _epochs(total_step, step_per_epoch)]


__all__ = [
    "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr", "polynomial_decay_lr",
    "warmup_lr",
]
