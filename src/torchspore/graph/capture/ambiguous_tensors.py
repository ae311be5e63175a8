"""Tensors of a trace that may be a Parameter itself, or a Python number, depending on a branch or loop on a Tensor.

If the first is stored in an attribute, the attribute shares the Parameter in PyNative mode: later writes change the Parameter. The result
of a graph is a separate Tensor and cannot do that. The second is a Tensor in the graph: it must not leave the graph, nor reach code that
treats numbers and Tensors differently.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from torchspore.engine.tensors.number import NUMBER_MARK, is_marked
from torchspore.engine.tensors.tensor import TensorBase

_MARK = "_may_be_parameter"


def may_be_parameter(tensor: TensorBase) -> bool:
    """Return whether `tensor` is a Parameter, or was marked as one that may be."""
    return bool(getattr(tensor, "__parameter__", False)) or is_undecided(tensor)


def is_undecided(tensor: TensorBase) -> bool:
    """Return whether `tensor` is what a branch or loop gives that has a Parameter on one way."""
    return hasattr(tensor._t, _MARK)


def is_registered(value: Any) -> bool:
    """Return whether a Cell that gets `value` as an attribute keeps it among its parts: a Parameter, a tuple of them, a Cell."""
    if isinstance(value, TensorBase):
        return bool(getattr(value, "__parameter__", False))
    return hasattr(value, "cells_and_names") or type(value).__name__ == "ParameterTuple"


def may_be_number(tensor: TensorBase) -> bool:
    """Return whether `tensor` is what a branch or loop gives that has a Python number on one way and a Tensor on the other."""
    return is_marked(tensor._t)


def mark_numbers(results: Iterable[torch.Tensor], which: Iterable[bool]) -> None:
    """Marks the results of a branch or loop of which `which` says that they may be a Python number."""
    for t, may_be in zip(results, which):
        if may_be:
            setattr(t, NUMBER_MARK, True)


def mark(results: Iterable[torch.Tensor], which: Iterable[bool]) -> None:
    """Marks the results of a branch or loop of which `which` says that they may be a Parameter."""
    for t, may_be in zip(results, which):
        if may_be:
            setattr(t, _MARK, True)
