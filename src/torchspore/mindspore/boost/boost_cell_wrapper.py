"""Training steps with the methods of `boost`: gradient accumulation, frozen layers, reduced dimensions, sums over servers."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.graph.capture.running_trace import converted
from torchspore.mindspore import ops
from torchspore.mindspore.boost.adasum import AdaSum
from torchspore.mindspore.boost.boost import AutoBoost
from torchspore.mindspore.boost.dim_reduce import DimReduce
from torchspore.mindspore.boost.grad_freeze import FreezeOpt, freeze_cell
from torchspore.mindspore.boost.group_loss_scale_manager import HIGHER, LOWER, GroupLossScaleManager, groups_of
from torchspore.mindspore.boost.principal_components import load_components
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.process_groups import create_group, get_group_size, get_rank
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.wrap import TrainOneStepCell, TrainOneStepWithLossScaleCell
from torchspore.mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from torchspore.mindspore.nn.wrap.loss_scale import run_step_if_finite
from torchspore.public_names import missing


class _Methods:
    """Common processing of gradients in both training steps."""

    def _begin_methods_(self: Any) -> None:
        self.auto_boost = AutoBoost()
        self.freeze = isinstance(self.optimizer, FreezeOpt)
        steps = self.auto_boost.grad_accumulation_step if self.parallel_mode in ("stand_alone", "data_parallel") else 1
        self.use_grad_accumulation = bool(self.auto_boost.boost_config["grad_accumulation"]) and steps > 1
        self.max_accumulation_step = steps if self.use_grad_accumulation else 1
        self.enable_dim_reduce, self.enable_adasum = self.check_dim_reduce_enable(), self.check_adasum_enable()
        if self.enable_dim_reduce:
            self._begin_dim_reduce_()
        if self.enable_adasum:
            self._begin_adasum_()
        if self.use_grad_accumulation and not self.freeze:
            self.grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
            self.accumulation_step = Parameter(Tensor(0, mstype.int32), name="accumulation_step")

    def check_adasum_enable(self: Any) -> bool:
        """Return whether steps are summed over servers: the optimizer is marked, and there are 2, 4, 8 or more servers."""
        if not getattr(self.optimizer, "adasum", False) or not self.reducer_flag:
            return False
        servers = get_group_size() // self.auto_boost.device_number
        return bool(servers > 1 and not servers & (servers - 1))

    def check_dim_reduce_enable(self: Any) -> bool:
        """Return whether steps use reduced dimensions: the optimizer is marked."""
        return bool(getattr(self.optimizer, "dim_reduce", False))

    def _begin_dim_reduce_(self: Any) -> None:
        boost = self.auto_boost
        processes = 1 if self.parallel_mode == "stand_alone" else get_group_size()
        components = load_components(boost.local_pca_mat_path, boost.timeout)
        self.weights_clone = ParameterTuple(self.weights).clone(prefix="weights_clone", init="same")
        self.dim_reduce = DimReduce(
            self.network, self.optimizer, self.weights, components, boost.n_components, boost.rho, boost.gamma, boost.alpha, boost.sigma,
            get_rank(), processes,
        )

    def _begin_adasum_(self: Any) -> None:
        devices, rank, processes = self.auto_boost.device_number, get_rank(), get_group_size()
        servers = processes // devices
        self.device_number, self.server_rank = devices, rank % devices
        each = len(self.weights) // devices
        ends = [(index + 1) * each for index in range(devices - 1)] + [len(self.weights)]
        self._cuts = list(zip([0, *ends], ends))
        start, end = self._cuts[self.server_rank]
        self.grad_clone = ParameterTuple(self.weights[start:end]).clone(prefix="delta_weight")
        self.adasum = AdaSum(rank, devices, servers, self.grad_clone)
        for server in range(servers):
            create_group(f"boost_server_{server}", list(range(server * devices, (server + 1) * devices)))
        self._server = f"boost_server_{rank // devices}"
        self.degree = devices
        self.grad_reducer = DistributedGradReducer(self.weights, self.mean, devices, group=self._server)

    def adasum_process(self: Any, loss: Any, grads: Any) -> Any:
        """Run a step of the optimizer and sum the servers' changes; returns the loss."""
        self.optimizer(grads)
        start, end = self._cuts[self.server_rank]
        weights = self.weights[start:end]
        self.adasum(tuple(old - new for old, new in zip(self.grad_clone, weights)), weights, self.grad_clone)
        for rank, (first, last) in enumerate(self._cuts):
            if self.device_number > 1 and last > first:
                sent = ops.Broadcast(rank, group=self._server)(tuple(self.weights[first:last]))
                for weight, value in zip(self.weights[first:last], sent):
                    ops.assign(weight, value)
        for old_weight, weight in zip(self.grad_clone, weights):
            ops.assign(old_weight, weight)
        return loss

    def gradient_accumulation_process(self: Any, loss: Any, grads: Any, sens: Any, *inputs: Any) -> Any:
        """Accumulates the gradients, and updates by their mean after the configured number of steps; returns the loss.

        Raises ValueError if this step does not accumulate gradients.
        """
        if not self.use_grad_accumulation:
            subject = f"{type(self).__name__}.gradient_accumulation_process of a step that adds no gradients up"
            raise ValueError(message(subject, "AutoBoost with grad_accumulation"))
        steps = self.max_accumulation_step
        for total, grad in zip(self.grad_accumulation, grads):
            ops.assign_add(total, grad / steps)
        ops.assign_add(self.accumulation_step, 1)
        converted(_update_when_due)(self, loss, sens, inputs)
        return loss

    def _apply(self: Any, loss: Any, grads: Any, sens: Any, inputs: Any) -> Any:
        if self.use_grad_accumulation:
            return self.gradient_accumulation_process(loss, grads, sens, *inputs)
        return self._take_step_(loss, grads, sens, inputs)

    def _take_step_(self: Any, loss: Any, grads: Any, sens: Any, inputs: Any) -> Any:
        if self.enable_dim_reduce:
            return self.dim_reduce(loss, grads, sens, self.weights, self.weights_clone, *inputs)
        if self.enable_adasum:
            return self.adasum_process(loss, grads)
        self.optimizer(grads)
        return loss


def _update_when_due(cell: Any, loss: Any, sens: Any, inputs: Any) -> None:
    """Run an optimizer step with the accumulated gradients and clear them, if there are enough."""
    if cell.accumulation_step >= cell.max_accumulation_step:
        cell._take_step_(loss, cell.grad_accumulation, sens, inputs)
        ops.assign(cell.accumulation_step, 0)
        for total in cell.grad_accumulation:
            ops.assign(total, ops.zeros_like(total))


_update_when_due.converts = True  # type: ignore[attr-defined]


class BoostTrainOneStepCell(_Methods, TrainOneStepCell):
    """`nn.TrainOneStepCell` with the methods of `AutoBoost()`, and with one optimizer per set of layers for a `FreezeOpt`.

    Returns the loss. Raises RuntimeError with the context's grad_accumulation_step, which would accumulate gradients a second time.
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None) -> None:
        super().__init__(network, optimizer, sens)
        _check_accumulation(self)
        self._begin_methods_()
        self.step = Parameter(Tensor(0, mstype.int32), name="step")
        self._turn = 0
        if self.freeze:
            strategy = optimizer.train_strategy
            self.train_strategy = None if strategy is None else strategy.asnumpy().tolist()
            self.freeze_nets = freeze_cell(
                self.reducer_flag, network, optimizer, self.sens, self.grad, self.use_grad_accumulation,
                self.mean if self.reducer_flag else None, self.degree if self.reducer_flag else None, self.max_accumulation_step,
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.freeze:
            step = int(self.step)
            turn = step if self.train_strategy is None else self.train_strategy[step]
            if turn != self._turn:
                self._turn = turn
        return super().__call__(*args, **kwargs)

    def construct(self, *inputs: Any) -> Any:
        """Runs one step; returns the loss."""
        self._begin_()
        if self.freeze:
            return self.gradient_freeze_process(*inputs)
        loss, grads = self._loss_and_gradients_(*inputs)
        return self._apply(loss, self.grad_reducer(grads), ops.full_like(loss, self.sens), inputs)

    def gradient_freeze_process(self, *inputs: Any) -> Any:
        """Runs a step of the current set of layers; returns the loss. Raises ValueError without frozen layers."""
        if not self.freeze:
            subject = f"{type(self).__name__}.gradient_freeze_process with {type(self.optimizer).__name__}"
            raise ValueError(message(subject, "an optimizer inside of FreezeOpt"))
        turns = len(self.freeze_nets if self.train_strategy is None else self.train_strategy)
        loss = self.freeze_nets[self._turn](*inputs)
        ops.assign(self.step, (self.step + 1) % turns)
        return loss


class BoostTrainOneStepWithLossScaleCell(_Methods, TrainOneStepWithLossScaleCell):
    """`nn.TrainOneStepWithLossScaleCell` with the methods of `AutoBoost()`.

    Returns (loss, overflow, the scale of the next step). Raises TypeError for a `FreezeOpt`, which uses unscaled gradients.
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        if isinstance(optimizer, FreezeOpt):
            raise TypeError(message("BoostTrainOneStepWithLossScaleCell of a FreezeOpt", "an optimizer of mindspore.nn",
                                    hint="write BoostTrainOneStepCell(network, optimizer)"))
        self.enable_enhanced_amp = bool(AutoBoost().boost_config["loss_scale_group"])
        if self.enable_enhanced_amp and not isinstance(scale_sense, GroupLossScaleManager):
            call = f"BoostTrainOneStepWithLossScaleCell(scale_sense={short(scale_sense)}) with 'loss_scale_group'"
            raise TypeError(message(call, f"a GroupLossScaleManager, got {type(scale_sense).__name__}"))
        if isinstance(scale_sense, GroupLossScaleManager) and not self.enable_enhanced_amp:
            call = "BoostTrainOneStepWithLossScaleCell(scale_sense=a GroupLossScaleManager)"
            raise ValueError(message(call, "boost's 'loss_scale_group'", hint="write Model(boost_level='O1', boost_config_dict={'boost': "
                                     "{'mode': 'manual', 'loss_scale_group': True}})"))
        super().__init__(network, optimizer, Tensor(1.0, mstype.float32) if self.enable_enhanced_amp else scale_sense)
        self._begin_methods_()
        if self.enable_enhanced_amp:
            self.loss_scaling_manager = scale_sense
            self._group_of = groups_of(self.weights, scale_sense)
            scale_sense.set_loss_scale_status(len(scale_sense.loss_scale_groups), scale_sense.get_loss_scale())

    def construct(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """Runs one step; returns (loss, overflow flag or number of groups with overflows, the (first group's) scale of the next step)."""
        if not self.enable_enhanced_amp:
            return super().construct(*inputs)
        self._begin_()
        loss, grads = ops.value_and_grad(self.network, None, self.weights)(*inputs)
        grads = self.grad_reducer(grads)
        count, scales = ops.zeros((), mstype.int32), []
        for group in range(self.loss_scaling_manager.loss_scale_number):
            group_grads = [grad for grad, group_number in zip(grads, self._group_of) if group_number == group]
            overflow = self._of_all_(self.get_overflow_status(None, group_grads)).reshape(())
            count = count + overflow.astype(mstype.int32)
            ratio = ops.select(overflow, Tensor(LOWER, mstype.float32), Tensor(HIGHER, mstype.float32))
            scales.append(self.loss_scaling_manager.update_loss_scale_status(group, ratio))
        scaled = tuple(grad / scales[group_number].astype(grad.dtype) for grad, group_number in zip(grads, self._group_of))
        converted(run_step_if_finite)(count > 0, self._step_, loss, scaled, inputs)
        return loss, count, scales[0]

    def _step_(self, loss: Any, grads: Any, inputs: Any) -> Any:
        return self._apply(loss, grads, ops.ones_like(loss), inputs)


def _check_accumulation(cell: Any) -> None:
    if cell._accumulation_ > 1:
        raise RuntimeError(message(
            f"BoostTrainOneStepCell with grad_accumulation_step={cell._accumulation_}", "grad_accumulation_step=1",
            hint="write AutoBoost('O0', {'boost': {'mode': 'manual', 'grad_accumulation': True}, 'common': {'grad_accumulation_step': n}})",
        ))


__getattr__ = missing(__name__)
