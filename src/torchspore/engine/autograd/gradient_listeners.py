"""Code outside the engine that takes part in gradient transforms, such as the exchanges among processes."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from torchspore.engine.tensors.tensor import TensorBase


class GradientListener:
    """Code outside the engine that takes part in gradient transforms. Each method does nothing unless a subclass overrides it."""

    def mark_leaf(self, weight: TensorBase, leaf: torch.Tensor) -> torch.Tensor:
        """Return the tensor that stands for a weight: `leaf`, or a function of it through which the weight's gradient goes."""
        return leaf

    def shard_leaf(self, weight: TensorBase) -> torch.Tensor | None:
        """Return the leaf of a weight whose gradient is computed for some rows only; None for other weights."""
        return None

    def replace_weight(self, weight: TensorBase, leaf: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Return the value to compute with, as a function of a leaf that `shard_leaf` returned."""
        raise NotImplementedError

    def must_replace_early(self) -> bool:
        """Return whether `replace_weight` has to run before the function is called."""
        return False

    def begin_pass(self, weights: Sequence[TensorBase], leaves: list[torch.Tensor]) -> Callable[[list[torch.Tensor | None]], None] | None:
        """Observe the forward and backward pass that follows. Return a function that takes the gradients, or None."""
        return None


LISTENERS: list[GradientListener] = []
"""Empty on a single device: `distributed` adds its listeners when a program first needs them."""
