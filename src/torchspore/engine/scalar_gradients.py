"""Gradients with respect to Python numbers, which `grad_for_scalar` allows in GRAPH_MODE."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.tensor import wrap

_APPLIED = Outcome.applied("gradients of Python numbers are Tensors of one float32")


def lift(args: tuple[Any, ...], positions: Sequence[int]) -> tuple[Any, ...]:
    """`args` with the ints and floats at `positions` as Tensors of one float32, so that gradients of them exist.

    As they are in PYNATIVE_MODE, or where `grad_for_scalar` is off: then their gradients are left out.
    """
    if not STORE.graph_mode or not STORE.get("grad_for_scalar"):
        return args
    found = [p for p in positions if type(args[p]) in (int, float)]
    if not found:
        return args
    effects.report("grad_for_scalar", _APPLIED)
    # `torch.tensor` would be a constant without values while a graph is captured.
    return tuple(wrap(torch.full((), float(a))) if p in found else a for p, a in enumerate(args))
