"""Adam and its variant with decoupled weight decay."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, with_type
from torchspore.engine.formulas import optimizers, row_gradients
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.optim.arguments import opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Group, Optimizer
from torchspore.mindspore.ops.declaration.limits import check_real
from torchspore.mindspore.ops.optimizers.state import assign
from torchspore.translations import translate


def single(value: float) -> float:
    """Return the number rounded to float32: MindSpore computes 1 - beta in float32, which for 0.999 differs in the fifth digit."""
    return float(np.float32(value))


def check_betas(name: str, beta1: Any, beta2: Any, eps: Any) -> None:
    for key, value in (("beta1", beta1), ("beta2", beta2)):
        if not isinstance(value, float):
            raise TypeError(f"{name}({key}={value!r}): expected a float, got {type(value).__name__}.")
        if not 0 < value < 1:
            raise ValueError(f"{name}({key}={value}): expected a number between 0 and 1.")
    check_real(name, above=0.0, eps=eps)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014): eps is added after the bias correction is folded into the rate.

    rate_t = rate * sqrt(1 - beta2^t) / (1 - beta1^t); p -= rate_t * m / (sqrt(v) + eps). The state is named `moment1.*`, `moment2.*`,
    `beta1_power`, `beta2_power`. A sparse gradient counts as zeros in all other rows, whose moments decay, so each step changes the
    full table; with `use_lazy` the other rows stay unchanged. With `use_amsgrad` (Reddi and others, 2018) v is the maximum so far, named
    `vhat.*`. With `use_offload` it is AdamOffload.
    """

    _takes_rows_ = True
    _power_shape_: tuple[int, ...] = ()
    """The shape of `beta1_power` and `beta2_power` in checkpoints."""

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0, use_amsgrad: bool = False, **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_betas("Adam", beta1, beta2, eps)
        for key, value in (("use_locking", use_locking), ("use_nesterov", use_nesterov), ("use_amsgrad", use_amsgrad)):
            if not isinstance(value, bool):
                raise TypeError(message(f"Adam({key}={value!r})", with_type("a bool", value)))
        _check_options("Adam", kwargs, use_amsgrad)
        if use_amsgrad and use_nesterov:
            raise ValueError("Adam(use_amsgrad=True, use_nesterov=True): expected one of them.")
        self.beta1, self.beta2, self.eps, self.use_nesterov = single(beta1), single(beta2), float(eps), use_nesterov
        self.is_lazy = self._leaves_rows_ = bool(kwargs.get("use_lazy", False))
        self.use_offload = bool(kwargs.get("use_offload", False))
        self.beta1_power = Parameter(initializer(1, self._power_shape_, dtypes.float32), name="beta1_power")
        self.beta2_power = Parameter(initializer(1, self._power_shape_, dtypes.float32), name="beta2_power")
        self.moment1, self.moment2 = self._moments_("moment1"), self._moments_("moment2")
        self.vhat = self._moments_("vhat") if use_amsgrad else None
        self.sparse_opt = (ops.FusedSparseLazyAdam if self.is_lazy else ops.FusedSparseAdam)(use_locking, use_nesterov)

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        assign(self.beta1_power, self.beta1_power * self.beta1)
        assign(self.beta2_power, self.beta2_power * self.beta2)
        for parameters, group_gradients, rate, _, group in self._updates_(gradients):
            rate = self._corrected_(rate)
            first, second = ([raw(m[i]) for i in group.indexes] for m in (self.moment1, self.moment2))
            if self.vhat is not None:
                largest = [raw(self.vhat[i]) for i in group.indexes]
                optimizers.amsgrad(parameters, group_gradients, first, second, largest, rate, self.beta1, self.beta2, self.eps)
                continue
            step = optimizers.nesterov_adam if self.use_nesterov else optimizers.adam
            step(parameters, group_gradients, first, second, rate, self.beta1, self.beta2, self.eps)
        self._advance_()
        return True

    def _corrected_(self, rate: Any) -> Any:
        """Return the rate of this step including the bias correction."""
        return optimizers.corrected(rate, raw(self.beta1_power).reshape(()), raw(self.beta2_power).reshape(()))

    def _update_rows_(self, index: int, indices: Any, values: Any, rate: Any, group: Group) -> None:
        if self.vhat is not None:
            raise NotImplementedError("Adam(use_amsgrad=True): a sparse gradient.\n\nhint: remove sparse=True or use_amsgrad.")
        rate = self._corrected_(rate)
        step = row_gradients.lazy_adam if self.is_lazy else row_gradients.adam
        tables = [raw(p[index]) for p in (self.parameters, self.moment1, self.moment2)]
        step(*tables, indices, values, rate, self.beta1, self.beta2, self.eps, self.use_nesterov)


class LazyAdam(Adam):
    """Adam that updates only the rows of a sparse gradient and leaves all others and their moments unchanged.

    For dense gradients it is Adam.
    """

    _power_shape_ = (1,)

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        use_locking: bool = False, use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale, use_lazy=True)


class AdamOffload(Adam):
    """Adam whose state MindSpore keeps in host memory; here the state is on the device of the Parameters, and the numbers are Adam's."""

    _power_shape_ = (1,)

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        use_locking: bool = False, use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class AdamWeightDecay(Optimizer):
    """Adam without bias correction and with decoupled weight decay: p -= rate * (m / (sqrt(v) + eps) + weight_decay * p)."""

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6, weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        check_betas("AdamWeightDecay", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = single(beta1), single(beta2), float(eps)
        self.moments1, self.moments2 = self._moments_("adam_m"), self._moments_("adam_v")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, decay, group in self._updates_(gradients, coupled=False):
            first, second = ([raw(m[i]) for i in group.indexes] for m in (self.moments1, self.moments2))
            if not isinstance(decay, float):
                optimizers.shrink(parameters, rate * decay)
                decay = 0.0
            optimizers.adam(
                parameters, group_gradients, first, second, rate, self.beta1, self.beta2, self.eps, decay if group.decays else 0.0,
                decoupled=True,
            )
        self._advance_()
        return True


def _check_options(name: str, options: dict[str, Any], use_amsgrad: bool) -> None:
    """Raises TypeError for an unknown option or a value that is not a bool, ValueError for options that exclude each other."""
    for key, value in options.items():
        if key not in ("use_lazy", "use_offload"):
            raise TypeError(f"{name}({key}={value!r}): expected one of use_amsgrad, use_lazy, use_offload.")
        if not isinstance(value, bool):
            raise TypeError(message(f"{name}({key}={value!r})", with_type("a bool", value)))
    if options.get("use_lazy") and options.get("use_offload"):
        raise ValueError(translate("For '{name}', 'use_lazy' and 'use_offload' can not both be True.").format(name=name))
    if use_amsgrad and any(options.values()):
        raise ValueError(translate("For lazy Adam and Adam with offload, there is no parameter named 'use_amsgrad'."))
