"""Optimizers with a rate for each element: RMSProp, Adagrad, Adadelta, AdaMax."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_bools
from torchspore.base.text import message
from torchspore.engine.formulas import adaptive_optimizers as formulas
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.optim.adam import check_betas, single
from torchspore.mindspore.nn.optim.arguments import check_floats, opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Optimizer
from torchspore.mindspore.ops.optimizers.state import assign


class RMSProp(Optimizer):
    """Steps over the root of a running mean of squares (Tieleman and Hinton, 2012).

    s = decay * s + (1 - decay) * g^2; m = momentum * m + rate * g / sqrt(s + epsilon); p -= m. With `centered`, s is about the
    running mean of g. The state is named `mean_square.*` (initially 1), `moment.*`, and with `centered` `mean_grad.*`.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10,
        use_locking: bool = False, centered: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_floats("RMSProp", {"decay": decay, "momentum": momentum, "epsilon": epsilon})
        if epsilon <= 0:
            raise ValueError(message(f"RMSProp(epsilon={epsilon})", "a number above 0"))
        check_bools("RMSProp", use_locking=use_locking, centered=centered)
        self.decay, self.momentum, self.epsilon, self.centered = single(decay), single(momentum), single(epsilon), centered
        self.mg = self._moments_("mean_grad") if centered else None
        self.ms, self.moment = self._moments_("mean_square", "ones"), self._moments_("moment")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                mean = raw(self.mg[index]) if self.mg is not None else None
                square, moment = raw(self.ms[index]), raw(self.moment[index])
                formulas.rms_prop(p, g.to(p.dtype), square, moment, rate, self.decay, self.momentum, self.epsilon, mean)
        self._advance_()
        return True


class Adagrad(Optimizer):
    """Steps over the root of the sum of all squares (Duchi and others, 2011): n += g^2; p -= rate * g / sqrt(n).

    The state is named `accum.*` and is `accum` initially; without `update_slots` it stays constant.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, accum: float = 0.1, learning_rate: Any = 0.001, update_slots: bool = True, loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_floats("Adagrad", {"accum": accum})
        check_bools("Adagrad", update_slots=update_slots)
        self.update_slots = update_slots
        self.accum = self._moments_("accum", accum)

    def construct(self, grads: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(grads):
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                formulas.adagrad(p, g.to(p.dtype), raw(self.accum[index]), rate, self.update_slots)
        self._advance_()
        return True


class Adadelta(Optimizer):
    """Steps in the units of the preceding steps (Zeiler, 2012).

    n = rho * n + (1 - rho) * g^2; s = sqrt(u + epsilon) / sqrt(n + epsilon) * g; u = rho * u + (1 - rho) * s^2; p -= rate * s. The state is
    named `accum.*` (n) and `accum_update.*` (u).
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 1.0, rho: float = 0.9, epsilon: float = 1e-6, loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_floats("Adadelta", {"rho": rho, "epsilon": epsilon})
        if rho > 1:
            raise ValueError(f"Adadelta(rho={rho}): expected a number from 0 to 1.")
        self.rho, self.epsilon = single(rho), single(epsilon)
        self.accum, self.accum_update = self._moments_("accum"), self._moments_("accum_update")

    def construct(self, grads: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(grads):
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                state = raw(self.accum[index]), raw(self.accum_update[index])
                formulas.adadelta(p, g.to(p.dtype), *state, rate, self.rho, self.epsilon)
        self._advance_()
        return True


class AdaMax(Optimizer):
    """Adam with the largest gradient instead of the mean square (Kingma and Ba, 2014).

    m = beta1 * m + (1 - beta1) * g; v = max(beta2 * v, |g|); p -= rate / (1 - beta1^t) * m / (v + eps). The state is named `moment1.*`,
    `moment2.*` and `beta1_power`.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_betas("AdaMax", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = single(beta1), single(beta2), single(eps)
        self.beta1_power = Parameter(Tensor([1], dtypes.float32), name="beta1_power")
        self.moment1, self.moment2 = self._moments_("moment1"), self._moments_("moment2")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        assign(self.beta1_power, self.beta1_power * self.beta1)
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            rate = rate / (1 - raw(self.beta1_power).reshape(()))
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                state = raw(self.moment1[index]), raw(self.moment2[index])
                formulas.ada_max(p, g.to(p.dtype), *state, rate, self.beta1, self.beta2, self.eps)
        self._advance_()
        return True
