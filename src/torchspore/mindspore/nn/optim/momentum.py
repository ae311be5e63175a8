"""Gradient descent with and without momentum."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, with_type
from torchspore.engine.formulas import optimizers
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.optim.arguments import number, opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Optimizer
from torchspore.mindspore.ops.declaration.limits import check_real


class Momentum(Optimizer):
    """v = momentum * v + g; p -= rate * v, or with `use_nesterov` p -= rate * (g + momentum * v). The state is named `moments.*`."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any, momentum: float, weight_decay: Any = 0.0, loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_real("Momentum", least=0.0, momentum=momentum)
        if not isinstance(use_nesterov, bool):
            raise TypeError(message(f"Momentum(use_nesterov={use_nesterov!r})", with_type("a bool", use_nesterov)))
        self._factor_, self.use_nesterov = float(momentum), use_nesterov
        self.momentum = Parameter(Tensor(momentum, dtypes.float32), name="momentum")
        self.moments = self._moments_("moments")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            moments = [raw(self.moments[i]) for i in group.indexes]
            if self._factor_:
                optimizers.momentum(parameters, group_gradients, moments, rate, self._factor_, self.use_nesterov)
            else:
                optimizers.momentum(parameters, group_gradients, [], rate, 0.0, False)
        self._advance_()
        return True


class SGD(Optimizer):
    """Stochastic gradient descent: v = momentum * v + (1 - dampening) * g, in the first step v = g; p -= rate * v.

    `nesterov` requires a momentum and no dampening. The state is named `accum.*` and `stat.*`.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, momentum: float = 0.0, dampening: float = 0.0, weight_decay: Any = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for key, value in (("momentum", momentum), ("dampening", dampening)):
            if number("SGD", key, value) < 0:
                raise ValueError(message(f"SGD({key}={value})", "a number from 0 on"))
        if not isinstance(nesterov, bool):
            raise TypeError(message(f"SGD(nesterov={nesterov!r})", with_type("a bool", nesterov)))
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"SGD(nesterov=True, momentum={momentum}, dampening={dampening}): expected a momentum above 0 and no dampening."
            )
        self._factor_, self.dampening, self.nesterov = float(momentum), float(dampening), nesterov
        self.momentum = Parameter(Tensor(momentum, dtypes.float32), name="momentum")
        self.accum = self._moments_("accum")
        self.stat = self._moments_("stat", "ones")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            if not self._factor_:
                optimizers.momentum(parameters, group_gradients, [], rate, 0.0, False)
                continue
            accumulated = [raw(self.accum[i]) for i in group.indexes]
            if self.dampening:
                firsts = [raw(self.stat[i]) for i in group.indexes]
                group_gradients, plain = optimizers.dampened(group_gradients, firsts, self.dampening)
            optimizers.momentum(parameters, group_gradients, accumulated, rate, self._factor_, self.nesterov)
            if self.dampening:
                optimizers.clear(plain)
        self._advance_()
        return True
