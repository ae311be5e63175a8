"""`mindspore.mint.optim`: optimizers of `mindspore.experimental.optim`, with the same names and arguments."""
from typing import Any

from torchspore.mindspore.experimental.optim import SGD as _SGD
from torchspore.mindspore.experimental.optim import Adam, AdamW


class SGD(_SGD):
    """p -= lr * v with v = momentum * v + (1 - dampening) * g; `nesterov` looks ahead, `maximize` maximizes."""

    def __init__(
        self, params: Any, lr: Any, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)


class FusedAdamW(AdamW):
    """AdamW; Ascend's fused kernel of this name gives the same numbers."""


__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]
