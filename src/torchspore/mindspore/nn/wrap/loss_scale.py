"""Training steps with a loss scale that reacts to overflows."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.context.public import get_context
from torchspore.graph.capture.running_trace import converted
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.sparse_tensor import RowTensorInner
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import server_updates
from torchspore.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, sum_and_scale

_grad_scale = ops.MultitypeFuncGraph("grad_scale")
"""Divides a gradient by a scale, in the gradient's dtype: `_grad_scale(scale, grad)`."""


def _reciprocal(scale: Any, dtype: Any) -> Any:
    """Return 1 / scale. Raises TypeError for a value that is not a Tensor."""
    if not isinstance(scale, Tensor):
        raise TypeError(message(f"grad_scale(scale={short(scale)})", f"a Tensor, got {type(scale).__name__}", hint="write Tensor(scale)"))
    return (1.0 / scale).astype(dtype)


@_grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale: Any, grad: Any) -> Any:
    """Return a dense gradient divided by the scale."""
    return grad * _reciprocal(scale, grad.dtype)


@_grad_scale.register("Tensor", "RowTensor")
def tensor_grad_scale_row_tensor(scale: Any, grad: Any) -> Any:
    """Return the rows of a gradient divided by the scale. Raises TypeError for a value that is not a RowTensor."""
    if not isinstance(grad, RowTensorInner):
        raise TypeError(message(f"grad_scale(grad={short(grad)})", f"a RowTensor, got {type(grad).__name__}"))
    return grad * _reciprocal(scale, grad.values.dtype)


grad_scale = ops.MultitypeFuncGraph("grad_scale")
"""`grad_scale(scale, grad, accumulated)`: the accumulated gradient divided by the scale; the store becomes zeros."""
shard_grad_scale = ops.MultitypeFuncGraph("shard_grad_scale")
"""The same function for gradients that processes share; with one process there is no difference."""


@grad_scale.register("Tensor", "Tensor", "Tensor")
@shard_grad_scale.register("Tensor", "Tensor", "Tensor")
def tensor_grad_scale_pipeline(scale: Any, grad: Any, accu_grad: Any) -> Any:
    """Return the accumulated gradient divided by the scale; the store becomes zeros."""
    scaled = ops.depend(accu_grad * 1.0, grad) * _reciprocal(scale, accu_grad.dtype)
    ops.assign(accu_grad, ops.zeros_like(accu_grad))
    return scaled


_grad_overflow = ops.MultitypeFuncGraph("_grad_overflow")
"""Return whether a gradient has a value that is not finite, as a float32 Tensor 0 or 1."""


@_grad_overflow.register("Tensor")
def _tensor_grad_overflow(grad: Any) -> Any:
    return ops.logical_not(ops.isfinite(grad).all()).astype(mstype.float32)


@_grad_overflow.register("RowTensor")
def _row_grad_overflow(grad: Any) -> Any:
    return _tensor_grad_overflow(grad.values)


class DynamicLossScaleUpdateCell(Cell):
    """Divides the loss scale by `scale_factor` after an overflow (down to 1), multiplies it after `scale_window` steps without one.

    A call with (loss_scale, overflow) changes the Parameter `loss_scale` and returns `overflow`.
    """

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        self.scale_window = Tensor(scale_window, mstype.int32)
        self.scale_factor = Tensor(scale_factor, mstype.float32)
        self.loss_scale_value = loss_scale_value
        self.cur_iter = Parameter(Tensor(1, mstype.int32), name="current_iterator_step")
        self.last_overflow_iter = Parameter(Tensor(0, mstype.int32), name="last_overflow_iterator_step")

    def get_loss_scale(self) -> float:
        """The initial scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Parameter, overflow: Tensor) -> Tensor:
        """Update `loss_scale`; return whether the step overflowed."""
        overflowed = overflow.astype(mstype.bool_).reshape(())
        lower = ops.maximum(loss_scale / self.scale_factor, Tensor(1.0, mstype.float32))
        after = ops.select(overflowed, lower, loss_scale)
        since = self.cur_iter - self.last_overflow_iter
        last = ops.select(overflowed, self.cur_iter, self.last_overflow_iter)
        grows = ops.logical_and(since >= self.scale_window, ops.logical_not(overflowed))
        after = ops.select(grows, after * self.scale_factor, after)
        last = ops.select(grows, self.cur_iter, last)
        ops.assign(loss_scale, after)
        ops.assign(self.last_overflow_iter, last)
        ops.assign(self.cur_iter, self.cur_iter + 1)
        return overflowed


class FixedLossScaleUpdateCell(Cell):
    """Keeps the loss scale constant."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> float:
        """The scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Tensor) -> Tensor:
        """Return `overflow`."""
        return overflow


def run_step_if_finite(overflow: Any, step: Any, loss: Any, grads: Any, inputs: Any) -> None:
    """Run the optimizer's step, unless gradients are not finite."""
    if not overflow:
        step(loss, grads, inputs)


run_step_if_finite.converts = True  # type: ignore[attr-defined]


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """A training step that multiplies the loss by a scale, divides the gradients by it, and skips the update after an overflow.

    `scale_sense` is a Cell such as DynamicLossScaleUpdateCell, or a Tensor with the scale (0-d or of shape (1,)). Returns (loss, overflow,
    the scale of the next step). Raises TypeError and ValueError for another `scale_sense`.
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer, sens=None)
        if self._accumulation_ > 1:
            raise RuntimeError(message(
                f"TrainOneStepWithLossScaleCell with grad_accumulation_step={self._accumulation_}", "grad_accumulation_step=1",
                hint="write nn.GradAccumulationCell(network, micro_size) around the network",
            ))
        self.loss_scaling_manager = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            scale = np.array(scale_sense.get_loss_scale(), np.float32)
        elif isinstance(scale_sense, Tensor):
            if tuple(scale_sense.shape) not in ((), (1,)):
                raise ValueError(
                    message(f"TrainOneStepWithLossScaleCell(scale_sense of shape {list(scale_sense.shape)})", "shape () or (1,)")
                )
            scale = scale_sense.asnumpy().astype(np.float32).reshape(())
        else:
            description = f"TrainOneStepWithLossScaleCell(scale_sense={short(scale_sense)})"
            raise TypeError(message(description, f"a Cell or a Tensor, got {type(scale_sense).__name__}"))
        self.scale_sense = Parameter(Tensor(scale), name="scale_sense", requires_grad=False)
        # Attributes for user-defined training cells that subclass this one.
        self.hyper_map = ops.HyperMap()
        self.base, self.base0 = Tensor(1, mstype.float32), Tensor(0, mstype.int32)
        self.reduce_sum, self.reduce_all = ops.ReduceSum(keep_dims=False), ops.ReduceAll(keep_dims=False)
        self.less_equal, self.equal, self.logic_not = ops.LessEqual(), ops.Equal(), ops.LogicalNot()
        self.is_distributed, self.gpu_target = self.reducer_flag, get_context("device_target") == "GPU"

    def construct(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """One step: (loss, whether it overflowed, the scale of the next step)."""
        self._begin_()
        scale = self.scale_sense * 1.0  # the value of this step: the manager changes the Parameter below
        with self._scattering_():
            (_, loss), grads = ops.value_and_grad(
                lambda *batch: sum_and_scale(self.network(*batch), scale.astype(mstype.float32)), None, self.weights, has_aux=True
            )(*inputs)
        grads = self.grad_reducer(tuple(grad / scale.astype(grad.dtype) for grad in grads))
        overflow = self.process_loss_scale(self._of_all_(self.get_overflow_status(None, grads)))
        converted(run_step_if_finite)(overflow, self._step_, loss, grads, inputs)
        return loss, overflow, self.scale_sense * 1.0

    def _step_(self, loss: Any, grads: Any, inputs: Any) -> Any:
        """Process gradients that are finite."""
        return self.optimizer(grads)

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Return whether any of the gradients is not finite, as a bool Tensor ()."""
        finite = None
        for grad in compute_output:
            is_finite = ops.isfinite(grad.values if isinstance(grad, RowTensorInner) else grad).all()
            finite = is_finite if finite is None else ops.logical_and(finite, is_finite)
        return ops.logical_not(finite)

    def _of_all_(self, overflow: Tensor) -> Tensor:
        """Return whether the gradients overflowed on any process: all processes must skip the same steps."""
        overflow = server_updates.is_true_anywhere(overflow)
        if not self.is_distributed or not (
            getattr(self.optimizer, "_shares_", ()) or not all(self.grad_reducer.allreduce_filter)
        ):
            return overflow
        return ops.AllReduce("sum")(overflow.astype(mstype.float32)) > 0

    def process_loss_scale(self, overflow: Tensor) -> Any:
        """Let the manager change the scale; return whether the step overflowed."""
        return overflow if self.loss_scaling_manager is None else self.loss_scaling_manager(self.scale_sense, overflow)

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """Start to detect overflows; the gradients themselves are checked here, so there is nothing to clear."""
        return Tensor(False), compute_input

    def set_sense_scale(self, sens: Any) -> None:
        """Set the scale. Raises TypeError for a value that is not a Tensor."""
        if not isinstance(sens, Tensor):
            raise TypeError(message(f"set_sense_scale({short(sens)})", f"a Tensor, got {type(sens).__name__}"))
        self.scale_sense.set_data(sens.astype(mstype.float32).reshape(()))
