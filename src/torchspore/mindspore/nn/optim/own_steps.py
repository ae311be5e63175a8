"""Steps of an update that a program says anew: MindSpore's optimizers call `get_lr`, `decay_weight` and their kin on themselves.

A subclass that defines one of them, or an optimizer that is given one, goes by it: the formula then gets gradients that went through all
three steps, in MindSpore's order, and rates as `get_lr` gives them.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torchspore.engine.core.tensor import raw

GRADIENT_STEPS = ("decay_weight", "gradients_centralization", "scale_grad")
NAMES = (*GRADIENT_STEPS, "get_lr", "get_weight_decay")


def of(optimizer: Any) -> list[str]:
    """The names of the steps that the program says."""
    return [name for name in NAMES if not str(getattr(optimizer, name).__module__).startswith("torchspore.")]


def taken(optimizer: Any, gradients: Any, coupled: bool) -> tuple[Any, list[Any], float]:
    """The gradients, the groups and the loss scale that a formula goes on with; `coupled` if weight decay is part of its gradients."""
    groups, scale, said = optimizer._groups_, optimizer.loss_scale, of(optimizer)
    if not said:
        return gradients, groups, scale
    if "get_lr" in said:
        groups = list(_with_values("rate", groups, optimizer.get_lr()))
    if coupled and set(said) != {"get_lr"}:
        for step in GRADIENT_STEPS:
            gradients = getattr(optimizer, step)(gradients)
        groups, scale = [replace(group, decays=False, centralize=False) for group in groups], 1.0
    elif not coupled and "get_weight_decay" in said:
        groups = list(_with_values("decay", groups, optimizer.get_weight_decay()))
    return gradients, groups, scale


def _with_values(field: str, groups: list[Any], values: Any) -> Iterator[Any]:
    """The groups with another rate or decay: one for all, or one for each Parameter, which is then a group of its own."""
    for group in groups:
        if not isinstance(values, (tuple, list)):
            yield replace(group, **{field: values})
            continue
        for place in group.places:
            yield replace(group, places=[place], **{field: values[place]})


def decay_now(decay: Any, step: Any) -> Any:
    """The decay at a step: of a schedule and of a Tensor a 0-d tensor, else a float."""
    if callable(decay):
        decay = decay(step)
    return float(decay) if isinstance(decay, (int, float)) else raw(decay).reshape(())
