"""Update steps that a program overrides: MindSpore's optimizers call their own `get_lr`, `decay_weight` and similar methods.

A subclass that defines one of them, or an optimizer that gets one, uses it: the formula then receives gradients after all three steps, in
MindSpore's order, and rates from `get_lr`.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torchspore.engine.tensors.tensor import raw

GRADIENT_STEPS = ("decay_weight", "gradients_centralization", "scale_grad")
NAMES = (*GRADIENT_STEPS, "get_lr", "get_weight_decay")


def of(optimizer: Any) -> list[str]:
    """Return the names of the overridden steps."""
    return [name for name in NAMES if not str(getattr(optimizer, name).__module__).startswith("torchspore.")]


def taken(optimizer: Any, gradients: Any, coupled: bool) -> tuple[Any, list[Any], float]:
    """Return the gradients, the groups and the loss scale for the formula; `coupled` if weight decay is part of its gradients."""
    groups, scale, overridden = optimizer._groups_, optimizer.loss_scale, of(optimizer)
    if not overridden:
        return gradients, groups, scale
    if "get_lr" in overridden:
        groups = list(_with_values("rate", groups, optimizer.get_lr()))
    if coupled and set(overridden) != {"get_lr"}:
        for step in GRADIENT_STEPS:
            gradients = getattr(optimizer, step)(gradients)
        groups, scale = [replace(group, decays=False, centralize=False) for group in groups], 1.0
    elif not coupled and "get_weight_decay" in overridden:
        groups = list(_with_values("decay", groups, optimizer.get_weight_decay()))
    return gradients, groups, scale


def _with_values(field: str, groups: list[Any], values: Any) -> Iterator[Any]:
    """Yield the groups with another rate or decay: one for all, or one for each Parameter, which is then a separate group."""
    for group in groups:
        if not isinstance(values, (tuple, list)):
            yield replace(group, **{field: values})
            continue
        for index in group.indexes:
            yield replace(group, indexes=[index], **{field: values[index]})


def decay_now(decay: Any, step: Any) -> Any:
    """Return the decay at a step: a 0-d tensor for a schedule and a Tensor, else a float."""
    if callable(decay):
        decay = decay(step)
    return float(decay) if isinstance(decay, (int, float)) else raw(decay).reshape(())
