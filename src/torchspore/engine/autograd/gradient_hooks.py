"""Hooks: functions that receive the gradient of a Tensor, and may return a replacement."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import Frame, TensorBase, frame, raw, wrap

ATTRIBUTE = "_gradient_hooks"
_numbers = itertools.count()


class _State:
    has_hooks = False
    """True from the first hook on that stays with a Tensor."""


STATE = _State()


def register(tensor: TensorBase, hook: Callable[[Any], Any]) -> Callable[[], None]:
    """Call `hook` with the gradient of `tensor`; return a handle that removes it.

    Inside a gradient transform the hook belongs to the values computed there; otherwise it stays with the Tensor for all later transforms.
    """
    t = raw(tensor)
    around = _loses(tensor, t)
    if around is not None:
        around.acts_beside("registers a hook on a gradient")
    inner = frame()
    if inner is not None and t.requires_grad:
        inner.custom_gradient()
        return t.register_hook(_on_torch(hook)).remove
    hooks, number = tensor.__dict__.setdefault(ATTRIBUTE, {}), next(_numbers)
    hooks[number] = hook
    STATE.has_hooks = True
    change_counters.calls_changed()

    def remove() -> None:
        hooks.pop(number, None)
        change_counters.calls_changed()

    return remove


def _loses(tensor: TensorBase, t: torch.Tensor) -> Frame | None:
    """The capture whose graph would not know of the hook, because the gradient is taken outside, or the Tensor is from there; or None."""
    around = frame()
    while around is not None and not around.traces:
        if t.requires_grad and around.records:
            return None
        around = around.outer
    return around if t.requires_grad or t is not tensor._t else None


def hooks_of(tensor: TensorBase) -> list[Callable[[Any], Any]]:
    """The hooks that stay with a Tensor, in the order in which they are called."""
    return list(tensor.__dict__.get(ATTRIBUTE, {}).values())


def follow(tensor: TensorBase, leaf: torch.Tensor) -> torch.Tensor:
    """The leaf that represents `tensor` in a transform; the Tensor's hooks receive its gradient."""
    if leaf.requires_grad:
        for hook in hooks_of(tensor):
            leaf.register_hook(_on_torch(hook))
    return leaf


def _on_torch(hook: Callable[[Any], Any]) -> Callable[[torch.Tensor], torch.Tensor | None]:
    def called(gradient: torch.Tensor) -> torch.Tensor | None:
        new_gradient = hook(wrap(gradient))
        if new_gradient is None:
            return None
        if not isinstance(new_gradient, TensorBase):
            raise RuntimeError(f"register_hook: expected the hook to return a Tensor or None, got {type(new_gradient).__name__}.")
        if raw(new_gradient).shape != gradient.shape:
            shapes = f"{tuple(gradient.shape)}, got {tuple(raw(new_gradient).shape)}"
            raise RuntimeError(f"register_hook: expected the hook to return a gradient of the shape {shapes}.")
        return raw(new_gradient).to(gradient.dtype)

    return called
