"""Helpers of mixed precision: autocast for a model, loss scales by hand."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def mixed_precision(model: nn.Module, dtype: torch.dtype = torch.float16) -> nn.Module:
    """Run the forward of a model under torch.autocast, with results in float32; returns the model."""
    forward = model.forward

    def compute(*inputs: Any, **options: Any) -> Any:
        with torch.autocast(next(model.parameters()).device.type, dtype=dtype):
            return in_single(forward(*inputs, **options))

    model.forward = compute
    return model


def in_single(value: Any) -> Any:
    """The tensors of a nest in float32, if they are of a lower precision."""
    if isinstance(value, (tuple, list)):
        return type(value)(in_single(item) for item in value)
    return value.float() if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16) else value


def all_finite(values: Any) -> bool:
    """Return whether all numbers of the tensors are finite."""
    tensors = [values] if isinstance(values, Tensor) else values
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


class StaticLossScaler:
    """A constant loss scale."""

    def __init__(self, scale_value: float) -> None:
        self.scale_value = torch.tensor(float(scale_value))

    def scale(self, inputs: Any) -> Any:
        """Return the inputs times the scale."""
        return tuple(map(self.scale, inputs)) if isinstance(inputs, (tuple, list)) else inputs * self.scale_value.to(inputs)

    def unscale(self, inputs: Any) -> Any:
        """Return the inputs divided by the scale."""
        return tuple(map(self.unscale, inputs)) if isinstance(inputs, (tuple, list)) else inputs * (1 / self.scale_value).to(inputs)

    def adjust(self, grads_finite: Any) -> bool:
        """Return False: the scale never changes."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """A loss scale that is divided after gradients that are not finite, and multiplied after `scale_window` finite ones."""

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__(scale_value)
        self.scale_factor, self.scale_window, self.counter = scale_factor, scale_window, 0

    def adjust(self, grads_finite: Any) -> bool:
        """Change the scale; returns True."""
        self.counter = self.counter + 1 if grads_finite else 0
        if not grads_finite:
            self.scale_value = (self.scale_value / self.scale_factor).clamp(min=1.0)
        elif self.counter == self.scale_window:
            grown, self.counter = self.scale_value * self.scale_factor, 0
            self.scale_value = grown if bool(torch.isfinite(grown)) else self.scale_value
        return True
