"""Gradient descent with and without momentum."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, with_type
from torchspore.engine.formulas import experimental_optimizers as formulas
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.experimental.optim.argument_checks import check, check_flags
from torchspore.mindspore.experimental.optim.optimizer import Optimizer


class SGD(Optimizer):
    """v = momentum * v + (1 - dampening) * g, in the first step v = g; p -= lr * v, with `nesterov` p -= lr * (g + momentum * v).

    `maximize` maximizes. The state is named `accum.*` and `stat.*`.
    """

    def __init__(
        self, params: Any, lr: Any, momentum: float = 0, dampening: float = 0, weight_decay: float = 0.0, nesterov: bool = False, *,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, bool):
            raise TypeError(message(f"SGD(lr={lr})", with_type("a number or a Tensor", lr)))
        check("SGD", momentum=momentum, weight_decay=weight_decay)
        check("SGD", is_signed=True, dampening=dampening)
        check_flags("SGD", nesterov=nesterov, maximize=maximize)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("SGD(nesterov=True): expected a momentum above 0 and no dampening.")
        super().__init__(params, {
            "lr": lr, "momentum": float(momentum), "dampening": float(dampening), "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "grad_centralization": False,
        })
        self.accum, self.stat = self._moments_("accum"), self._moments_("stat", "ones")

    def construct(self, gradients: Any) -> bool:
        """Updates the Parameters by their gradients."""
        for p, g, rate, group, index in self._updates_(gradients):
            state = raw(self.accum[index]), raw(self.stat[index])
            formulas.sgd(p, g, *state, rate, group["momentum"], group["dampening"], group["nesterov"])
        return True
