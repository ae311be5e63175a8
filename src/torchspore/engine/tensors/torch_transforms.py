"""`torch.vmap` and the transforms of `torch.func`: their errors for Tensors and Cells name to_torch and as_module."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.tensors.tensor import TensorBase, tensors

_TRANSFORMS = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize")
_FORWARD = ("jvp", "jacfwd", "hessian")
"""Transforms whose errors for other values than tensors do not name their type."""


def _explaining(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, of the transform `name`, with other errors for values of MindSpore."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if name == "linearize" and any(True for _ in tensors(args[1:])):          # torch takes other values as constants
            raise TypeError(_text(name))
        try:
            result = function(*args, **kwargs)
        except (TypeError, ValueError, RuntimeError) as error:
            if "<class 'mindspore." in str(error) or (name in _FORWARD and any(isinstance(leaf, TensorBase) for leaf in tensors(args))):
                raise TypeError(_text(name)) from error
            raise
        return _explaining(name, result) if callable(result) else result

    return call


def _text(name: str) -> str:
    return message(
        f"torch.func.{name} of a Tensor or a Cell of MindSpore", "torch tensors, and functions that return them",
        hint="write torchspore.to_torch(x) for a Tensor, torchspore.as_module(cell) for a Cell, or use mindspore's transform",
    )


def explain_errors() -> None:
    """Replace torch's transforms by functions whose errors for values of MindSpore say what to write."""
    for name in _TRANSFORMS:
        if hasattr(torch.func, name):
            setattr(torch.func, name, _explaining(name, getattr(torch.func, name)))
    torch.vmap = torch.func.vmap
