"""Accumulation of gradients over several steps before the optimizer runs."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.public_names import missing

gradient_accumulation_op = ops.MultitypeFuncGraph("gradient_accumulation_op")
"""`gradient_accumulation_op(steps, sum, gradient)` adds the gradient divided by the number of steps to the sum."""
gradient_clear_op = ops.MultitypeFuncGraph("gradient_clear_op")
"""`gradient_clear_op(sum)` sets the sum to zero."""


@gradient_accumulation_op.register("Int64", "Tensor", "Tensor")
def cumulative_grad_process(accumulation_step: Any, cumulative_grad: Any, grad: Any) -> Any:
    """Adds a share of `grad` to `cumulative_grad` in place."""
    return ops.assign_add(cumulative_grad, ops.div(grad, accumulation_step))


@gradient_clear_op.register("Tensor")
def clear_grad(cumulative_grad: Any) -> Any:
    """Sets `cumulative_grad` to zero in place."""
    return ops.assign(cumulative_grad, ops.zeros_like(cumulative_grad))


class GradientAccumulation(Cell):
    """Calls the optimizer every `max_accumulation_step` steps with the mean of the gradients since the last call.

    A call with (loss, gradients) returns the loss. Raises TypeError unless the step count is an int, ValueError for one below 1.
    """

    def __init__(self, max_accumulation_step: int, optimizer: Any) -> None:
        super().__init__()
        if not is_int(max_accumulation_step):
            raise TypeError(message(f"GradientAccumulation({short(max_accumulation_step)}, ...)",
                                    f"an int, got {type(max_accumulation_step).__name__}"))
        if max_accumulation_step < 1:
            raise ValueError(message(f"GradientAccumulation({max_accumulation_step}, ...)", "an int from 1 on"))
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = ops.HyperMap()
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step = Parameter(Tensor(0, mstype.int32), name="accumulation_step")

    def construct(self, loss: Any, grads: Any) -> Any:
        self.hyper_map(ops.partial(gradient_accumulation_op, self._max_accumulation_step), self._grad_accumulation, grads)
        self._accumulation_step += 1
        if self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(self._grad_accumulation)
            self._accumulation_step = 0
            self.hyper_map(ops.partial(gradient_clear_op), self._grad_accumulation)
        return loss


__getattr__ = missing(__name__)
