"""Gradients with respect to Python numbers, which `grad_for_scalar` allows."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import raw, wrap

_APPLIED = Outcome.applied("gradients of Python numbers are Tensors of one float32")


def lift(args: tuple[Any, ...], positions: Sequence[int]) -> tuple[Any, ...]:
    """Return `args` with the ints and floats in the arguments at `positions` as Tensors of one float32, so that they have gradients.

    Numbers in lists, tuples and dicts are replaced too. Without `grad_for_scalar` the arguments are returned unchanged, and gradients by
    numbers are left out.
    """
    if not STORE.get("grad_for_scalar"):
        return tuple(
            tree.mapped(argument, _plain_value) if position in positions else argument for position, argument in enumerate(args)
        ) if any(type(leaf) is Number for leaf in tree.leaves(args)) else args
    numbers = 0

    def replace(leaf: Any) -> Any:
        nonlocal numbers
        if type(leaf) is Number and not isinstance(leaf, bool):   # an input of a graph that represents a Python number
            numbers += 1
            return wrap(raw(leaf).to(torch.float32))
        if type(leaf) not in (int, float):
            return leaf
        numbers += 1
        return wrap(torch.full((), float(leaf)))          # `torch.tensor` would be a constant without values while a graph is captured

    lifted = tuple(tree.mapped(argument, replace) if position in positions else argument for position, argument in enumerate(args))
    if not numbers:
        return args
    effects.report("grad_for_scalar", _APPLIED)
    return lifted


def _plain_value(leaf: Any) -> Any:
    """Return the Python number for an input of a graph that stands for one: the trace ends, and the number counts as fixed."""
    return leaf._value() if type(leaf) is Number else leaf
