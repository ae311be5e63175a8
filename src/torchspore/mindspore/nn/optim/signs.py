"""Averaged and resilient gradient descent: ASGD and Rprop."""
from __future__ import annotations

from typing import Any

from torchspore.engine.formulas import adaptive_optimizers as formulas
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.optim.arguments import check_floats, opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Optimizer


class ASGD(Optimizer):
    """Gradient descent with an average of the iterates (Polyak and Juditsky, 1992).

    p = p * (1 - lambd * eta) - eta * g; ax += (p - ax) * mu; eta = rate / (1 + lambd * rate * t)^alpha; mu = 1 / max(1, t - t0). The state
    is named `mu_*`, `eta_*` and `ax_.*`.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        check_floats("ASGD", {"lambd": lambd, "alpha": alpha, "t0": t0}, None)
        self.lambd, self.alpha, self.t0 = lambd, alpha, t0
        self.mu = ParameterTuple([Parameter(Tensor(1.0, dtypes.float32), name=f"mu_{p.name}") for p in self.parameters])
        self.eta = ParameterTuple([Parameter(Tensor(0.0, dtypes.float32), name=f"eta_{p.name}") for p in self.parameters])
        self.ax = self._moments_("ax_")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        step = (raw(self.global_step).reshape(()) + 1).float()
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                state = raw(self.ax[index]), raw(self.mu[index]), raw(self.eta[index])
                formulas.averaged_descent(p, g.to(p.dtype), *state, step, rate, self.lambd, self.alpha, self.t0)
        self._advance_()
        return True


class Rprop(Optimizer):
    """Steps of an individual size for each element, by the sign of the gradient (Riedmiller and Braun, 1993).

    A size grows by `etas[1]` while the sign stays, shrinks by `etas[0]` when it changes (the element then pauses for one step), within
    `step_sizes`. The state is named `prev.*` and `step_size.*`.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 0.1, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-6, 50.0), weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        for key, value in (("etas", etas), ("step_sizes", step_sizes)):
            if not isinstance(value, tuple):
                raise TypeError(f"Rprop({key}={value!r:.40}): expected a tuple of two floats, got {type(value).__name__}.")
            if len(value) != 2:
                raise ValueError(f"Rprop({key}={value!r:.40}): expected two floats, got {len(value)}.")
            check_floats("Rprop", {f"{key}[{i}]": v for i, v in enumerate(value)})
        if step_sizes[0] > step_sizes[1]:
            raise ValueError(f"Rprop(step_sizes={step_sizes}): expected the smaller size first.")
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Rprop(etas={etas}): expected a number between 0 and 1, and one above 1.")
        self.etaminus, self.etaplus = etas
        self.step_size_min, self.step_size_max = step_sizes
        self.prev, self.step_size = self._moments_("prev"), self._moments_("step_size")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        step = raw(self.global_step).reshape(()) + 1
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                state = raw(self.prev[index]), raw(self.step_size[index])
                limits = self.etaminus, self.etaplus, self.step_size_min, self.step_size_max
                formulas.resilient(p, g.to(p.dtype), *state, step, rate, *limits)
        self._advance_()
        return True
