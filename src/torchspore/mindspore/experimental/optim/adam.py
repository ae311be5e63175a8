"""Adam and its variants."""
from __future__ import annotations

from typing import Any

from torchspore.engine.formulas import experimental_optimizers as formulas
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.experimental.optim.argument_checks import check, check_rate, read_betas, read_flags, read_numbers, read_positive
from torchspore.mindspore.experimental.optim.optimizer import Optimizer


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014), with `amsgrad` over the largest second moment so far; `maximize` maximizes.

    The state is named `exp_avg.*`, `exp_avg_sq.*`, `max_exp_avg_sq.*` and `state_step`.
    """

    _decoupled_ = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False,
        *, maximize: bool = False,
    ) -> None:
        name = type(self).__name__
        betas = read_betas(name, betas)
        check(name, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, **read_numbers(name, eps=eps), "weight_decay": weight_decay,
            **read_flags(amsgrad=amsgrad, maximize=maximize),
        })
        self.exp_avg, self.exp_avg_sq = self._moments_("exp_avg"), self._moments_("exp_avg_sq")
        self.max_exp_avg_sq = self._moments_("max_exp_avg_sq")
        self.state_step = self._counter_("state_step")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.state_step).add_(1)
        step = raw(self.state_step).float()
        for p, g, rate, group, index in self._updates_(gradients, not self._decoupled_):
            if self._decoupled_ and group["weight_decay"]:
                p.mul_((1 - rate * group["weight_decay"]).to(p.dtype))
            largest = raw(self.max_exp_avg_sq[index]) if group["amsgrad"] else None
            state = raw(self.exp_avg[index]), raw(self.exp_avg_sq[index]), largest
            formulas.adam(p, g, *state, step, rate, *group["betas"], group["eps"], not self._decoupled_)
        return True


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017): p -= lr * weight_decay * p before the step."""

    _decoupled_ = True

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01,
        amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class SpeedAdamW(AdamW):
    """AdamW in one operator of MindSpore, with the same formula.

    Raises:
        ValueError: `amsgrad` is True, in the first step.
    """

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        if any(group["amsgrad"] for group in self.param_groups):
            raise ValueError("SpeedAdamW(amsgrad=True): expected False.\n\nhint: write AdamW(..., amsgrad=True).")
        return super().construct(gradients)


class NAdam(Optimizer):
    """Adam with Nesterov momentum (Dozat, 2016), with the factor betas[0] * (1 - 0.96^(t * momentum_decay) / 2)."""

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ) -> None:
        check_rate("NAdam", lr)
        betas = read_betas("NAdam", betas)
        check("NAdam", weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, **read_positive("NAdam", eps=eps), "weight_decay": weight_decay,
            **read_numbers("NAdam", momentum_decay=momentum_decay),
        })
        self.step_t = self._counter_("step_t")
        self.exp_avg, self.exp_avg_sq = self._moments_("exp_avg"), self._moments_("exp_avg_sq")
        self.mu_product = Parameter(Tensor(1.0, dtypes.float32), name="mu_product")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step_t).add_(1)
        step = raw(self.step_t).float()
        before = raw(self.mu_product)
        product = before
        for p, g, rate, group, index in self._updates_(gradients):
            beta1, beta2 = group["betas"]
            now, later = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
            product = before * now
            state = raw(self.exp_avg[index]), raw(self.exp_avg_sq[index])
            formulas.nesterov_adam(p, g, *state, (now, later, product), step, rate, beta1, beta2, group["eps"])
        before.copy_(product)
        return True


class RAdam(Optimizer):
    """Adam with rectification while the second moment is uncertain (Liu and others, 2019)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        check_rate("RAdam", lr)
        betas = read_betas("RAdam", betas)
        check("RAdam", weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, **read_positive("RAdam", eps=eps), "weight_decay": weight_decay})
        self.step_t = self._counter_("step_t")
        self.exp_avg, self.exp_avg_sq = self._moments_("exp_avg"), self._moments_("exp_avg_sq")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step_t).add_(1)
        step = raw(self.step_t).float()
        for p, g, rate, group, index in self._updates_(gradients):
            state = raw(self.exp_avg[index]), raw(self.exp_avg_sq[index])
            formulas.rectified_adam(p, g, *state, step, rate, *group["betas"], group["eps"])
        return True
