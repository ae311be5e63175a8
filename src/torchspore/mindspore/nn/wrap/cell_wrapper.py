"""Cells for a forward pass with its loss, for a training step and for an evaluation step.

A call of TrainOneStepCell is a complete training step, so that in GRAPH_MODE forward, gradient and optimizer are one graph.
"""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from torchspore.base.text import message, short
from torchspore.context.effects import Outcome
from torchspore.context.public import get_auto_parallel_context
from torchspore.distributed.data_parallel import optimizer_shards, parameter_broadcast, settings
from torchspore.distributed.data_parallel import option_effects as parallel
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors.tensor import frame
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import GRADIENT, Cell
from torchspore.mindspore.nn.wrap import settings_report
from torchspore.mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from torchspore.mindspore.nn.wrap.micro_batches import _MicroBatch as _MicroBatch


def _check_cell(call: str, argument: str, value: Any) -> None:
    if not isinstance(value, Cell):
        raise TypeError(message(f"{call}({argument}={short(value)})", f"a Cell, got {type(value).__name__}"))


class WithLossCell(Cell):
    """The loss of a network: `loss_fn(backbone(data), label)`. Raises TypeError for a backbone that is not a Cell."""

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        _check_cell("WithLossCell", "backbone", backbone)
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Tensor, label: Tensor) -> Any:
        """The loss for one batch."""
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network without its loss."""
        return self._backbone


class WithEvalCell(Cell):
    """An evaluation step: returns (loss, outputs, label). With `add_cast_fp32` the outputs are float32."""

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        _check_cell("WithEvalCell", "network", network)
        if not isinstance(add_cast_fp32, bool):
            raise TypeError(message(f"WithEvalCell(add_cast_fp32={short(add_cast_fp32)})", "True or False"))
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Tensor, label: Tensor) -> tuple[Any, Any, Any]:
        """The loss, the outputs and the label of one batch."""
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs, label = _as_float32(outputs), _as_float32(label)
        return self._loss_fn(outputs, label), outputs, label


def _as_float32(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_as_float32(item) for item in value)
    return value.astype(mstype.float32) if value.dtype in (mstype.float16, mstype.bfloat16) else value


class WithGradCell(Cell):
    """The gradients of a network's trainable Parameters: of `loss_fn(network(data), label)`, or without a loss of `network`.

    `sens`, in the output's shape, weighs the output; None weighs it with 1.
    """

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        _check_cell("WithGradCell", "network", network)
        if not isinstance(sens, (type(None), int, float, tuple, Tensor)):
            raise TypeError(message(f"WithGradCell(sens={short(sens)})", "None, a Tensor, a number or a tuple"))
        self.network, self.loss_fn, self.sens = network, loss_fn, sens
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = ops.GradOperation(get_by_list=True, sens_param=sens is not None)
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    def construct(self, *inputs: Any) -> Any:
        """A gradient for each trainable Parameter."""
        weighed = inputs if self.sens is None else (*inputs, self.sens)
        return self.grad(self.network_with_loss, self.weights)(*weighed)


class TrainOneStepCell(Cell):
    """One training step: the loss of `network`, its gradients with respect to the optimizer's Parameters, and the update.

    `sens` (by default 1) multiplies the gradients, as a loss scale does. A call with a batch returns the loss, with `return_grad` the
    pair (loss, dict from Parameter name to gradient). Subclasses can use `network`, `optimizer`, `weights`, `grad`, `sens`, `grad_reducer`.
    With the context's `grad_accumulation_step` k, each k-th call updates, with the mean of the last k gradients.
    In the modes data_parallel and hybrid_parallel `grad_reducer` sums the gradients over all processes.
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        _check_cell("TrainOneStepCell", "network", network)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = getattr(optimizer, "parameters", None)
        if self.weights is None:
            raise TypeError(message(f"TrainOneStepCell(optimizer={short(optimizer)})", "an optimizer, which has parameters"))
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = ops.GradOperation(get_by_list=True)
        self.sens = 1.0 if sens is None else sens
        self.return_grad = return_grad
        if return_grad:
            self.weights_name = [parameter.name for parameter in self.weights]
        self.sense_flag = sens is not None
        self.parallel_mode = get_auto_parallel_context("parallel_mode")
        self.reducer_flag = self.parallel_mode in settings.ALIKE
        self.grad_reducer = ops.identity
        if self.reducer_flag:
            self.mean, self.degree = settings.takes_means(), settings.device_num()
            self.grad_reducer = DistributedGradReducer(self.weights, self.mean, self.degree)
        self._accumulation_ = settings.accumulation()
        if self._accumulation_ > 1:
            self._begin_sums_()

    def _begin_sums_(self) -> None:
        """Create the stores of gradients that are accumulated over several steps."""
        cut = getattr(self.optimizer, "_shares_", ()) if self._scatters_() else ()
        sums = self.weights.clone("accu_grads", "zeros")
        self.accu_grads = ParameterTuple(map(optimizer_shards.cut_state, sums, cut)) if cut else sums
        self._is_last_, self._steps_ = False, 0
        parallel.report_option(
            "grad_accumulation_step", Outcome.applied(f"nn.TrainOneStepCell updates at each {self._accumulation_}th step")
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.reducer_flag and "_has_said_" not in self.__dict__:
            settings_report.report_step(self)
        if self._accumulation_ > 1:
            self.__dict__["_steps_"] += 1
            is_last = self._steps_ % self._accumulation_ == 0
            if is_last is not self._is_last_:
                self._is_last_ = is_last
        return super().__call__(*args, **kwargs)

    def construct(self, *inputs: Any) -> Any:
        """Run one step; return the loss."""
        self._begin_()
        if not self.sense_flag and type(self)._no_sens_impl is not TrainOneStepCell._no_sens_impl:
            return self._no_sens_impl(*inputs)         # a user-defined method
        loss, grads = self._loss_with_gradients_(*inputs)
        if self._accumulation_ > 1:
            sums = tuple(ops.assign_add(store, grad) for store, grad in zip(self.accu_grads, grads))
            if not self._is_last_:
                return loss
            grads = tuple(total * (1.0 / self._accumulation_) for total in sums)
        grads = self.grad_reducer(grads)
        self.optimizer(grads)
        if self._accumulation_ > 1:
            for store in self.accu_grads:
                ops.assign(store, ops.zeros_like(store))
        if self.return_grad:
            return loss, dict(zip(self.weights_name, grads))
        return loss

    def _begin_(self) -> None:
        """Broadcast the Parameters of process 0 before the first step in PYNATIVE_MODE, if the context requests it."""
        settings.check_mode()
        if self.reducer_flag:
            parameter_broadcast.begin(self.get_parameters())

    def _no_sens_impl(self, *inputs: Any) -> Any:
        """Run the step with gradients without `sens`; subclasses of programs call it."""
        loss, grads = ops.value_and_grad(self.network, None, self.weights)(*inputs)
        self.optimizer(self.grad_reducer(grads))
        return loss

    def _loss_with_gradients_(self, *inputs: Any) -> tuple[Any, Any]:
        """Return the loss, and the gradients times `sens`, from one forward pass.

        If processes share the optimizer, and this class's `construct` runs, gradients of split Parameters are the local rows of the sums.
        """
        with self._scattering_():
            return self._loss_and_gradients_(*inputs)

    def _scattering_(self) -> Any:
        """Return a context in which gradients are summed only for the local rows, if only the optimizer reads them."""
        if not self._scatters_():
            return nullcontext()
        return optimizer_shards.scattering(self.weights, self.optimizer._shares_, 1.0 / self.degree if self.mean else None)

    def _scatters_(self) -> bool:
        is_unchanged_class = type(self).construct.__module__.startswith("torchspore.")
        return is_unchanged_class and not self.return_grad and bool(getattr(self.optimizer, "_shares_", ()))

    def _loss_and_gradients_(self, *inputs: Any) -> tuple[Any, Any]:
        sens = self.sens
        if not isinstance(sens, Tensor) and sens == 1:
            return self._gradient_()(*inputs)
        (_, loss), grads = ops.value_and_grad(
            lambda *batch: sum_and_scale(self.network(*batch), sens), None, self.weights, has_aux=True,
        )(*inputs)
        return loss, grads

    def _gradient_(self) -> Any:
        """Return the gradient function of the network by the weights; steps in PyNative mode share it."""
        create, parts = ops.value_and_grad, (self.network, self.weights, ops.value_and_grad)
        can_share = isinstance(self.weights, tuple)                 # a list of the program's may change
        if not can_share or frame() is not None or thread_state.is_graph_mode() or thread_state.local.refuses_gradients:
            return create(self.network, None, self.weights)
        shared = self.__dict__.get(GRADIENT)
        if shared is None or any(part is not before for part, before in zip(parts, shared)):
            shared = self.__dict__[GRADIENT] = (*parts, create(self.network, None, self.weights))
        return shared[-1]


class _TrainGradAccuStepCell(TrainOneStepCell):
    """The training step that MindSpore uses for a network that computes its batch in parts, such as a GradAccumulationCell.

    The loss and the gradients are those of the sum over the parts, as in TrainOneStepCell.
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None) -> None:
        super().__init__(network, optimizer, sens)



def sum_and_scale(loss: Any, sens: Any) -> tuple[Any, Any]:
    """Return (the sum of all outputs times `sens`, the outputs)."""
    if isinstance(loss, (tuple, list)):
        parts = [output.sum() * sens for output in loss]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total, loss
    return loss * sens, loss


class ForwardValueAndGrad(Cell):
    """The value of `network` and its gradients: of the first input, of all with `get_all`, of `weights` with `get_by_list`.

    With `sens_param` the last argument of a call weighs the output.
    """

    def __init__(
        self, network: Any, weights: Any = None, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False
    ) -> None:
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise TypeError(message(f"ForwardValueAndGrad(network={short(network)})", "a Cell or a function"))
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(message(f"ForwardValueAndGrad({name}={short(value)})", "True or False"))
        if get_by_list and not isinstance(weights, (list, tuple, ParameterTuple)):
            raise TypeError(message("ForwardValueAndGrad(get_by_list=True)", "weights: a list of Parameters"))
        self.network = network
        if isinstance(network, Cell):
            self.network.set_grad()
        self.weights = weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param
        self.grad = ops.GradOperation(get_all=get_all, get_by_list=get_by_list, sens_param=sens_param)

    def construct(self, *inputs: Any) -> tuple[Any, Any]:
        """Return (value, gradients)."""
        weights = self.weights if self.get_by_list else None
        grads = self.grad(self.network, weights)(*inputs)
        return self.network(*(inputs[:-1] if self.sens_param else inputs)), grads


class GetNextSingleOp(Cell):
    """Returns the next row of a dataset's queue in each call; arguments and errors are those of `ops.GetNext`."""

    def __init__(self, dataset_types: Any, dataset_shapes: Any, queue_name: str) -> None:
        super().__init__()
        self.get_next = ops.GetNext(dataset_types, dataset_shapes, len(dataset_types), queue_name)

    def construct(self) -> Any:
        """A tuple of Tensors."""
        return self.get_next()


class ParameterUpdate(Cell):
    """Assigns the Tensor of a call to a Parameter. Raises TypeError for a value that is not a Parameter."""

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise TypeError(message(f"ParameterUpdate({short(param)})", f"a Parameter, got {type(param).__name__}"))
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        """Return `x`."""
        ops.assign(self._param, x)
        return x


class _VirtualDatasetCell(Cell):
    """Marks a network's inputs as a batch that several devices split; with one device, it calls the network."""

    def __init__(self, backbone: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._virtual_dataset = ops._VirtualDataset()

    def construct(self, *inputs: Any) -> Any:
        """The network's result."""
        marked = self._virtual_dataset(*inputs)
        return self._backbone(*marked) if isinstance(marked, tuple) else self._backbone(marked)


class VirtualDatasetCellTriple(Cell):
    """Marks the three inputs of a network as a batch that several devices split; with one device, it calls the network."""

    def __init__(self, backbone: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._virtual_dataset = ops._VirtualDataset()

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        """The network's result."""
        return self._backbone(*self._virtual_dataset(a, b, c))


class _BroadCastCell(Cell):
    """Broadcasts Parameters of the first process; with one process, returns them."""

    def __init__(self, params: Any) -> None:
        super().__init__(auto_prefix=False)
        self.params = tuple(params)

    def construct(self) -> Any:
        """The Parameters."""
        return self.params
