"""Computing in another dtype: inputs and Parameters are cast where they are used, as `Cell.to_float` promises."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.tensor import Frame, TensorBase, raw, transform, wrap


class _Lowered(Frame):
    """Hands out Parameters in another floating-point dtype."""

    def __init__(self, dtype: torch.dtype, parameter: type[TensorBase]) -> None:
        self._dtype, self._parameter = dtype, parameter

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        t = super().resolve(tensor)
        return t.to(self._dtype) if isinstance(tensor, self._parameter) and t.is_floating_point() else t


def lowered(call: Callable[..., Any], dtype: torch.dtype, parameter: type[TensorBase]) -> Callable[..., Any]:
    """`call` with its floating-point inputs cast to `dtype`, and with Parameters (of class `parameter`) read in it."""

    def cast(tensor: TensorBase) -> Any:
        t = raw(tensor)
        return wrap(t.to(dtype)) if t.is_floating_point() and t.dtype is not dtype else tensor

    def computed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = transform(args, cast), transform(kwargs, cast)
        with _Lowered(dtype, parameter).open():
            return call(*args, **kwargs)

    return computed
