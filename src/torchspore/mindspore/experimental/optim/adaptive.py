"""Adagrad, Adadelta, Adamax, RMSprop, ASGD and Rprop."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, with_type
from torchspore.engine.formulas import adaptive_optimizers, experimental_optimizers
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.experimental.optim.argument_checks import (
    check,
    check_floats,
    check_rate,
    read_betas,
    read_factor,
    read_flags,
    read_numbers,
    read_positive,
)
from torchspore.mindspore.experimental.optim.optimizer import Optimizer


class Adagrad(Optimizer):
    """n += g^2; p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(n) + eps) (Duchi and others, 2011); `maximize` maximizes.

    The state is named `accum.*`, initially `initial_accumulator_value`, and `step_t`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
        eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:
        check_rate("Adagrad", lr)
        check("Adagrad", weight_decay=weight_decay)
        if isinstance(initial_accumulator_value, Tensor):
            raise ValueError(message("Adagrad(initial_accumulator_value=Tensor)", "a number"))
        numbers = read_numbers("Adagrad", lr_decay=lr_decay, initial_accumulator_value=initial_accumulator_value)
        super().__init__(params, {
            "lr": lr, **numbers, **read_positive("Adagrad", eps=eps), "weight_decay": weight_decay, **read_flags(maximize=maximize),
        })
        self.accum = self._moments_("accum", numbers["initial_accumulator_value"])
        self.step_t = self._counter_("step_t")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step_t).add_(1)
        step = raw(self.step_t).float()
        for p, g, rate, group, index in self._updates_(gradients):
            experimental_optimizers.adagrad(p, g, raw(self.accum[index]), step, rate, group["lr_decay"], group["eps"])
        return True


class Adadelta(Optimizer):
    """Steps in the units of the preceding steps (Zeiler, 2012); `maximize` maximizes. The state is `accum.*` and `accum_update.*`."""

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:
        check_rate("Adadelta", lr)
        if isinstance(rho, (int, Tensor)):
            raise TypeError(message(f"Adadelta(rho={rho!r:.40})", with_type("a float", rho)))
        check("Adadelta", weight_decay=weight_decay)
        numbers = {**read_numbers("Adadelta", rho=rho), **read_positive("Adadelta", eps=eps)}
        if numbers["rho"] > 1:
            raise ValueError(f"Adadelta(rho={rho}): expected a number from 0 to 1.")
        super().__init__(params, {"lr": lr, **numbers, "weight_decay": weight_decay, **read_flags(maximize=maximize)})
        self.accum, self.accum_update = self._moments_("accum"), self._moments_("accum_update")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        for p, g, rate, group, index in self._updates_(gradients):
            state = raw(self.accum[index]), raw(self.accum_update[index])
            adaptive_optimizers.adadelta(p, g, *state, rate, group["rho"], group["eps"])
        return True


class Adamax(Optimizer):
    """Adam over the largest gradient (Kingma and Ba, 2014); `maximize` maximizes.

    The state is named `step_t`, `exp_avg.*` and `exp_inf.*`.
    """

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, *,
        maximize: bool = False,
    ) -> None:
        check_rate("Adamax", lr)
        betas = read_betas("Adamax", betas)
        check("Adamax", weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, **read_positive("Adamax", eps=eps), "weight_decay": weight_decay, **read_flags(maximize=maximize),
        })
        self.step_t = self._counter_("step_t")
        self.exp_avg, self.exp_inf = self._moments_("exp_avg"), self._moments_("exp_inf")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step_t).add_(1)
        step = raw(self.step_t).float()
        for p, g, rate, group, index in self._updates_(gradients):
            state = raw(self.exp_avg[index]), raw(self.exp_inf[index])
            experimental_optimizers.ada_max(p, g, *state, step, rate, *group["betas"], group["eps"])
        return True


class RMSprop(Optimizer):
    """Steps over the root of a running mean of squares (Tieleman and Hinton, 2012); `maximize` maximizes.

    The state is named `mean_grad.*`, `mean_square.*` and `moment.*`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0,
        centered: bool = False, maximize: bool = False,
    ) -> None:
        check_rate("RMSprop", lr)
        check("RMSprop", weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, **read_numbers("RMSprop", momentum=momentum, alpha=alpha), **read_positive("RMSprop", eps=eps),
            "weight_decay": weight_decay, **read_flags(centered=centered, maximize=maximize),
        })
        self.mean_grad, self.mean_square, self.moment = (self._moments_(name) for name in ("mean_grad", "mean_square", "moment"))

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        for p, g, rate, group, index in self._updates_(gradients):
            mean = raw(self.mean_grad[index]) if group["centered"] else None
            moment = raw(self.moment[index]) if group["momentum"] else None
            square = raw(self.mean_square[index])
            experimental_optimizers.rms_prop(p, g, mean, square, moment, rate, group["alpha"], group["eps"], group["momentum"])
        return True


class ASGD(Optimizer):
    """Gradient descent with an average of the iterates (Polyak and Juditsky, 1992); `maximize` maximizes.

    The state is named `ax.*` and `step_t`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        check_rate("ASGD", lr)
        check_floats("ASGD", lambd=lambd, t0=t0)
        check("ASGD", weight_decay=weight_decay)
        alpha = read_factor("ASGD", "alpha", alpha)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, **read_flags(maximize=maximize),
        })
        self.ax, self.step_t = self._moments_("ax"), self._counter_("step_t")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step_t).add_(1)
        step = raw(self.step_t).float()
        for p, g, rate, group, index in self._updates_(gradients):
            # The mean counts from the preceding step, as in MindSpore.
            experimental_optimizers.averaged_descent(p, g, raw(self.ax[index]), step, rate, group["lambd"], group["alpha"], group["t0"] + 1)
        return True


class Rprop(Optimizer):
    """Steps of an individual size for each element, by the sign of the gradient (Riedmiller and Braun, 1993); `maximize` maximizes.

    The state is named `prev.*`, `step_size.*` and `step_t`.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-6, 50), *, maximize: bool = False,
    ) -> None:
        for key, value in (("etas", etas), ("step_sizes", step_sizes)):
            if not isinstance(value, (tuple, list)) or len(value) != 2:
                raise TypeError(f"Rprop({key}={value!r:.40}): expected a tuple of two numbers.")
            check("Rprop", **{f"{key}[{i}]": item for i, item in enumerate(value)})
        check_rate("Rprop", lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Rprop(etas={etas}): expected a number between 0 and 1, and one above 1.")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, **read_flags(maximize=maximize), "weight_decay": 0.0})
        self.prev, self.step_size = self._moments_("prev"), self._moments_("step_size")
        self.step_t = self._counter_("step_t")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step_t).add_(1)
        for p, g, rate, group, index in self._updates_(gradients):
            state = raw(self.prev[index]), raw(self.step_size[index])
            adaptive_optimizers.resilient(p, g, *state, raw(self.step_t), rate, *group["etas"], *group["step_sizes"])
        return True
