"""Optimizers with step lengths relative to each Parameter's norm: Lamb and LARS."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchspore.base.arguments import check_bools
from torchspore.base.text import message, short
from torchspore.distributed.data_parallel import optimizer_shards
from torchspore.engine.formulas import adaptive_optimizers as formulas
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.optim import overridden_steps
from torchspore.mindspore.nn.optim.adam import check_betas, single
from torchspore.mindspore.nn.optim.arguments import check_floats, opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Optimizer


class Lamb(Optimizer):
    """Adam's step, scaled to the Parameter's norm (You and others, 2019).

    r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p; p -= rate * |p| / |r| * r. The state is named `lamb_m.*` and
    `lamb_v.*`.
    """

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6, weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        check_betas("Lamb", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = single(beta1), single(beta2), single(eps)
        self.moments1, self.moments2 = self._moments_("lamb_m"), self._moments_("lamb_v")

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        step = raw(self.global_step).reshape(()) + 1
        for parameters, group_gradients, rate, decay, group in self._updates_(gradients, coupled=False):
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                state = raw(self.moments1[index]), raw(self.moments2[index])
                norm = functools.partial(optimizer_shards.length, share=self._share_(index))
                formulas.lamb(p, g, *state, step, rate, self.beta1, self.beta2, self.eps, decay if group.decays else 0.0, norm)
        self._advance_()
        return True


def _takes_lars(parameter: Parameter) -> bool:
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """Wraps an optimizer: scales gradients, including its weight decay, by each Parameter's norm (You and others, 2017).

    g = (g + weight_decay * p) * coefficient * |p| / (|g| + weight_decay * |p| + epsilon) for Parameters that `lars_filter` accepts; with
    `use_clip`, at most the step of the optimizer's rate. The wrapped optimizer no longer decays. Raises TypeError for a value that is not
    an optimizer.
    """

    _updates_by_group_ = False

    @opt_init_args_register
    def __init__(
        self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 0.001, use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = _takes_lars,
    ) -> None:
        super().__init__(0.0, [Parameter(Tensor(0.0, dtypes.float32), name="fake_param")])
        if not isinstance(optimizer, Optimizer):
            raise TypeError(message(f"LARS(optimizer={short(optimizer)})", f"an optimizer, got {type(optimizer).__name__}"))
        check_floats("LARS", {"epsilon": epsilon, "coefficient": coefficient})
        check_bools("LARS", use_clip=use_clip)
        self.epsilon, self.coefficient, self.use_clip = epsilon, coefficient, use_clip
        self.learning_rate.name = "fake_lr"
        self.opt = optimizer
        self.parameters = optimizer.parameters
        self._parameters = optimizer.parameters
        self.lars_flag = tuple(bool(lars_filter(parameter)) for parameter in optimizer.parameters)
        self._groups_, self.is_group, self.is_group_lr = optimizer._groups_, optimizer.is_group, optimizer.is_group_lr
        self.__dict__["_weight_decay_"] = optimizer.__dict__["_weight_decay_"]
        optimizer._groups_ = [replace(group, decays=False) for group in optimizer._groups_]
        optimizer.exec_weight_decay = False

    def construct(self, gradients: Any) -> Any:
        """Update the Parameters by their gradients; return the optimizer's result."""
        self._check_gradients_(gradients)
        new_gradients = list(gradients)
        self._check_shapes_([raw(gradient) for gradient in new_gradients])
        scale = self.opt.loss_scale
        for group in self._groups_:
            rate = self.opt._rate_now_(group.rate)
            decay = self._decay_of_(group)
            for index in group.indexes:
                if self.lars_flag[index]:
                    gradient = raw(new_gradients[index]) / scale if scale != 1.0 else raw(new_gradients[index])
                    p = raw(self.parameters[index])
                    gradient = formulas.lars(p, gradient, rate, self.coefficient, self.epsilon, decay, self.use_clip)
                    new_gradients[index] = wrap(gradient * scale if scale != 1.0 else gradient)
        self._advance_()
        return self.opt(tuple(new_gradients))

    def _decay_of_(self, group: Any) -> Any:
        return overridden_steps.decay_now(group.decay, self.opt.global_step) if group.decays else 0.0
