"""AdaFactor: mean squares by rows and columns."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_bools
from torchspore.engine.formulas import adaptive_optimizers as formulas
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.optim.arguments import check_floats, opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Optimizer


class AdaFactor(Optimizer):
    """Adam with less memory (Shazeer and Stern, 2018): for a matrix, mean squares of rows and columns replace those of all elements.

    The rate is `learning_rate`, or with `relative_step` the smaller of 0.01 (with `warmup_init` 1e-6 * t) and 1 / sqrt(t); with
    `scale_parameter`, times the larger of eps[1] and the Parameter's root mean square. The old squares have weight 1 - t^-decay_rate,
    steps are scaled down if their root mean square exceeds `clip_threshold`, and `beta1` above 0 averages them. Weight decay is decoupled.
    `compression` stores the squares of vectors in float16. The state is named `exp_avg.*`, `exp_avg_sq_row_*`, `exp_avg_sq_col_*`,
    `exp_avg_sq_*` and `afactor_step`. Raises ValueError for a rate together with `relative_step`.
    """

    _updates_by_rows_ = False

    @opt_init_args_register
    def __init__(
        self, params: Any, learning_rate: Any = None, eps: Any = (1e-30, 1e-3), clip_threshold: float = 1.0, decay_rate: float = 0.8,
        beta1: float = 0.9, weight_decay: Any = 0.0, scale_parameter: bool = True, relative_step: bool = True, warmup_init: bool = False,
        compression: bool = False, loss_scale: float = 1.0,
    ) -> None:
        if learning_rate is not None and relative_step:
            raise ValueError(
                f"AdaFactor(learning_rate={learning_rate}): expected None with relative_step=True.\n\nhint: write relative_step=False."
            )
        if warmup_init and not relative_step:
            raise ValueError("AdaFactor(warmup_init=True): it needs relative_step=True.")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if not isinstance(eps, (list, tuple)) or len(eps) != 2:
            raise TypeError(f"AdaFactor(eps={eps!r:.40}): expected a tuple of two floats.")
        check_floats("AdaFactor", {"eps[0]": eps[0], "eps[1]": eps[1], "clip_threshold": clip_threshold, "beta1": beta1})
        check_floats("AdaFactor", {"decay_rate": decay_rate}, None)
        check_bools(
            "AdaFactor", scale_parameter=scale_parameter, relative_step=relative_step, warmup_init=warmup_init, compression=compression,
        )
        self.eps, self.clip_threshold, self.decay_rate, self.beta1 = tuple(eps), clip_threshold, decay_rate, beta1
        self.scale_parameter, self.relative_step, self.warmup_init, self.compression = (
            scale_parameter, relative_step, warmup_init, compression,
        )
        self.scale_lr = True if learning_rate is None else relative_step
        self.use_first_moment = beta1 > 0
        self.exp_avg = self._moments_("exp_avg") if self.use_first_moment else None
        self._keep_squares_()
        self.step = Parameter(Tensor([0], dtypes.float32), name="afactor_step")

    def _keep_squares_(self) -> None:
        squares: dict[str, list[Parameter]] = {"exp_avg_sq_row": [], "exp_avg_sq_col": [], "exp_avg_sq": []}
        for parameter in self.parameters:
            shape = parameter.shape
            factored = len(shape) > 1
            shapes = (shape[:-1], shape[:-2] + shape[-1:], (1,)) if factored else ((1,), (1,), shape)
            for (name, states), lengths in zip(squares.items(), shapes):
                small = self.compression and not factored and name == "exp_avg_sq"
                dtype = dtypes.float16 if small else parameter.dtype
                states.append(Parameter(initializer("zeros", lengths, dtype), name=f"{name}_{parameter.name}"))
        for name, states in squares.items():
            setattr(self, name, ParameterTuple(states))

    def construct(self, gradients: Any) -> bool:
        """Update the Parameters by their gradients."""
        raw(self.step).add_(1)
        count = raw(self.step).reshape(())
        share = 1 - count ** -self.decay_rate
        for parameters, group_gradients, rate, decay, group in self._updates_(gradients, coupled=False):
            if self.relative_step:
                rate = count.rsqrt().clamp(max=0.01) if not self.warmup_init else (count * 1e-6).minimum(count.rsqrt())
            for p, g, index in zip(parameters, group_gradients, group.indexes):
                self._update_(p, g.float(), rate, share, decay if group.decays else 0.0, index)
        self._advance_()
        return True

    def _update_(self, p: Any, g: Any, rate: Any, share: Any, decay: Any, index: int) -> None:
        if self.scale_parameter:
            rate = rate * formulas.root_mean_square(p.float()).clamp(min=self.eps[1])
        squares = tuple(raw(states[index]) for states in (self.exp_avg_sq_row, self.exp_avg_sq_col, self.exp_avg_sq))
        step = formulas.ada_factor_step(g, squares, share, self.eps[0], self.clip_threshold) * rate
        if self.use_first_moment:
            mean = raw(self.exp_avg[index])
            mean.copy_(mean * self.beta1 + step * (1 - self.beta1))
            step = mean
        p.copy_((p - p * decay * rate - step).to(p.dtype))
