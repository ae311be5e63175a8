"""Training with frozen first layers in some steps: an optimizer for each set of layers, and their schedule."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.boost.base import Maker, ParameterProcess
from torchspore.mindspore.boost.grad_accumulation import GradientAccumulation
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import Optimizer
from torchspore.mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from torchspore.public_names import missing

CONTINUOUS_STRATEGY = 0
INTERVAL_STRATEGY = 1


class FreezeOpt(Cell):
    """An optimizer of the kind of `opt` for each of `train_parameter_groups` (all Parameters in one, by default).

    `train_strategy`, ints or an int32 Tensor (steps,), selects the optimizer of each step; without it they alternate. Rates by step are
    distributed to the optimizers of these steps. The network's Parameters keep their names (MindSpore prefixes them with single_opt.).
    Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(self, opt: Any, train_parameter_groups: Any = None, train_strategy: Any = None) -> None:
        super().__init__()
        if not isinstance(opt, Optimizer):
            raise TypeError(message(f"FreezeOpt({short(opt)})", f"an optimizer, got {type(opt).__name__}"))
        if train_strategy is not None and train_parameter_groups is None:
            raise ValueError(message("FreezeOpt(train_strategy=...)", "train_parameter_groups beside it"))
        maker = Maker("FreezeOpt", opt)
        self.is_lars, self.parameters, self.dynamic_lr = maker.is_lars, maker.single.parameters, maker.single.dynamic_lr
        groups = [tuple(self.parameters)] if train_parameter_groups is None else train_parameter_groups
        if not isinstance(groups, (tuple, list)) or not all(isinstance(group, (tuple, list)) for group in groups):
            raise TypeError(message(f"FreezeOpt(train_parameter_groups={short(groups)})", "a list of lists of Parameters"))
        self.groups_num, self.learning_rate = len(groups), maker.rate
        self.train_strategy = _strategy(train_strategy)
        rates = self._rates()
        self.opts = [maker.create(group, rates[index], f"boost_{index}") for index, group in enumerate(groups)]

    def _rates(self) -> list[Any]:
        """Return the rate of each optimizer."""
        rate = self.learning_rate
        if not (self.dynamic_lr and isinstance(rate, list) and self.train_strategy is not None):
            return [rate] * self.groups_num
        steps = self.train_strategy.asnumpy().tolist()
        if len(rate) > len(steps):
            return [rate] * self.groups_num
        rates = [[value for value, step in zip(rate, steps) if step == index] for index in range(self.groups_num)]
        return [value or rate for value in rates]


def _strategy(strategy: Any) -> Tensor | None:
    if strategy is None:
        return None
    if isinstance(strategy, Tensor):
        if strategy.ndim != 1 or strategy.dtype != mstype.int32:
            raise ValueError(message(f"FreezeOpt(train_strategy of {strategy.ndim} axes, {strategy.dtype})", "an int32 Tensor (steps,)"))
        return strategy
    if not isinstance(strategy, (tuple, list)):
        raise TypeError(message(f"FreezeOpt(train_strategy={short(strategy)})", "None, a list of ints or a Tensor"))
    if not all(isinstance(item, int) for item in strategy):
        raise ValueError(message(f"FreezeOpt(train_strategy={short(strategy)})", "ints"))
    return Tensor(np.array(strategy, np.int32))


class _TrainFreezeCell(Cell):
    """A training step of one of the optimizers: loss, gradients of only its Parameters, update."""

    def __init__(
        self, net: Cell, sens: Any, grad: Any, grad_reducer: Any, use_grad_accumulation: bool, optimizer: Any,
        max_accumulation_step: int = 1,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.net, self.grad, self.grad_reducer, self.opt = net, grad, grad_reducer, optimizer
        self.parameters, self.sens, self.use_grad_accumulation = optimizer.parameters, sens, use_grad_accumulation
        if use_grad_accumulation:
            self.grad_accumulation = GradientAccumulation(max_accumulation_step, optimizer)

    def construct(self, *inputs: Any) -> Any:
        """Runs one step; returns the loss."""
        loss = self.net(*inputs)
        grads = self.grad_reducer(self.grad(self.net, self.parameters)(*inputs, ops.full_like(loss, self.sens)))
        if self.use_grad_accumulation:
            return self.grad_accumulation(loss, grads)
        self.opt(grads)
        return loss


class GradientFreeze:
    """Freezes the first layers of a network in some steps: `network, optimizer = freeze_generate(network, optimizer)`.

    `param_groups` is the number of sets of layers: set i excludes the first i parts of the network. `freeze_type` 0 trains all layers for
    some steps and then each set once, 1 shuffles them (with NumPy's random numbers); `freeze_p` is the share of steps that train all.
    """

    def __init__(self, param_groups: int, freeze_type: int, freeze_p: float, total_steps: int) -> None:
        self._param_groups, self._freeze_type, self._freeze_p, self._total_steps = param_groups, freeze_type, freeze_p, total_steps
        self.grad_reducer = ops.identity

    def split_parameters_groups(self, net: Cell, freeze_para_groups_number: int) -> list[list[Parameter]]:
        """Return the sets of Parameters: all, all except the first part, and so on; bn and bias Parameters stay with the preceding ones."""
        parts: list[list[Parameter]] = []
        open_part: list[Parameter] = []
        for parameter in net.trainable_params():
            if len(open_part) >= 3 and "bn" not in parameter.name and "bias" not in parameter.name:
                parts.append(open_part)
                open_part = []
            open_part.append(parameter)
        parts += [open_part] if open_part else []
        stride = len(parts) // freeze_para_groups_number
        return [[parameter for part in parts[index * stride:] for parameter in part] for index in range(freeze_para_groups_number)]

    def generate_freeze_index_sequence(
        self, parameter_groups_number: int, freeze_strategy: int, freeze_p: float, total_steps: int,
    ) -> list[int]:
        """Return the set of each step, for a hundredth more than `total_steps`. Raises ValueError for another strategy than 0 and 1."""
        total = int(total_steps * 1.01)
        if parameter_groups_number <= 1:
            return [0] * total
        if freeze_strategy == CONTINUOUS_STRATEGY:
            num_full = int(freeze_p * (parameter_groups_number - 1) // (1 - freeze_p) + 0.5)
            turn = [0] * num_full + list(range(1, parameter_groups_number))
            return turn * -(-total // len(turn))
        if freeze_strategy != INTERVAL_STRATEGY:
            raise ValueError(message(f"generate_freeze_index_sequence(freeze_strategy={short(freeze_strategy)})", "0 or 1"))
        sets = list(range(1, parameter_groups_number))
        shares = [size / sum(sets) for size in sets]
        sequence, resting = [0], 0
        while len(sequence) < total:
            if resting / len(sequence) < 1 - freeze_p:
                sequence.append(int(np.random.choice(sets[::-1], p=shares)))
                resting += 1
            else:
                sequence.append(0)
        return sequence

    def freeze_generate(self, network: Cell, optimizer: Any) -> tuple[Cell, FreezeOpt]:
        """Returns the network itself, and an optimizer for each set of layers, for a `BoostTrainOneStepCell`."""
        sets = self.split_parameters_groups(network, self._param_groups)
        arguments = Maker("GradientFreeze.freeze_generate", optimizer).single.init_params["params"]
        groups = [ParameterProcess.generate_group_params(group, arguments) for group in sets]
        turns = self.generate_freeze_index_sequence(self._param_groups, self._freeze_type, self._freeze_p, self._total_steps)
        return network, FreezeOpt(optimizer, groups, turns)


def freeze_cell(
    reducer_flag: bool, network: Cell, optimizer: FreezeOpt, sens: Any, grad: Any, use_grad_accumulation: bool, mean: bool | None = None,
    degree: int | None = None, max_accumulation_step: int = 1,
) -> Sequence[Cell]:
    """Returns a training step for each optimizer of a `FreezeOpt`; with `reducer_flag` gradients are summed over processes.

    `grad` is a GradOperation(get_by_list=True, sens_param=True).
    """
    groups = ParameterProcess()

    def reducer(optimizer_part: Any) -> Any:
        if not reducer_flag:
            return ops.identity
        return DistributedGradReducer(groups.assign_parameter_group(optimizer_part.parameters), mean, degree)

    return tuple(
        _TrainFreezeCell(network, sens, grad, reducer(opt), use_grad_accumulation, opt, max_accumulation_step) for opt in optimizer.opts
    )


__getattr__ = missing(__name__)
