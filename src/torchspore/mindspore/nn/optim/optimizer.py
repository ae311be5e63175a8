"""The base of optimizers: parameter groups, learning rates, weight decay, the global step."""
from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from torchspore.base.text import message, with_type
from torchspore.context.store import STORE
from torchspore.distributed.comm import groups as comm
from torchspore.distributed.data_parallel import optimizer_shards
from torchspore.engine.execution.training_start import TRAINING_START
from torchspore.engine.formulas import optimizers
from torchspore.engine.formulas.row_gradients import RowsBase
from torchspore.engine.front_end import FRONT
from torchspore.engine.memory import malloc, optimizer_offload
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import TensorBase, frame, raw, wrap
from torchspore.graph.capture.optimizer_nodes import mark_optimizer_nodes
from torchspore.mindspore.common import server_session
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.sparse_tensor import COOTensor
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import overridden_steps, server_updates
from torchspore.mindspore.nn.optim.arguments import (
    RateTable,
    check_decay,
    check_equal_lengths,
    groups_of,
    listed_parameters,
    number,
    ordered_parameters,
    rate_of,
    stored_rate,
)
from torchspore.mindspore.nn.optim.arguments import opt_init_args_register as opt_init_args_register
from torchspore.mindspore.ops import AssignAdd
from torchspore.mindspore.ops.optimizers.state import assign_add
from torchspore.mindspore.ops.program.composite import HyperMap, Map

_GRADIENTS = (TensorBase, RowsBase, COOTensor)


@dataclass(frozen=True)
class Group:
    """Parameters with one update rule: their indexes in the optimizer's order, rate, decay and whether gradients are centralized."""

    indexes: list[int]
    rate: Any
    decay: Any
    decays: bool
    centralize: bool


_newest: weakref.WeakValueDictionary[int, Optimizer] = weakref.WeakValueDictionary()
"""The last optimizer created for a Parameter (the first of its list), by the Parameter's id."""


def optimizer_of(parameters: Any) -> Optimizer | None:
    """Return the newest optimizer that trains these Parameters, or None."""
    for parameter in parameters:
        optimizer = _newest.get(id(parameter))
        if optimizer is not None and optimizer.__dict__["parameters"][0] is parameter:
            return optimizer
    return None


class Optimizer(Cell):
    """The base of optimizers; calling it with the gradients updates the Parameters.

    `learning_rate` is a number, a list, tuple or 1-D Tensor of rates by global step, or a LearningRateSchedule. `parameters` is a list of
    Parameters or of groups {'params', 'lr', 'weight_decay', 'grad_centralization', 'order_params'}. Without groups, Parameters with
    'beta' or 'gamma' in their names get no weight decay. `loss_scale` divides the gradients.

    Raises TypeError for wrong types, ValueError for wrong values and for Parameters that occur twice.
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        self.loss_scale = number(name, "loss_scale", loss_scale)
        if self.loss_scale <= 0:
            raise ValueError(message(f"{name}(loss_scale={loss_scale})", "a number above 0"))
        check_decay(name, weight_decay)
        groups = groups_of(name, parameters)
        self.is_group = groups is not None
        rate = rate_of(name, learning_rate)
        group_arguments = [{"params": listed_parameters(name, parameters)}] if groups is None else groups
        ordered, placed = ordered_parameters(name, group_arguments)
        self.global_step = Parameter(initializer(0, [1], dtypes.int32), name="global_step")
        group_rates = [rate_of(name, g["lr"]) if "lr" in g else None for g in group_arguments]
        check_equal_lengths(name, [rate, *group_rates])
        self.dynamic_lr = any(r is not None and not isinstance(r, float) for r in (rate, *group_rates))
        rates = [None if r is None else stored_rate(r, f"learning_rate_group_{i}", self.dynamic_lr) for i, r in enumerate(group_rates)]
        for i, group_rate in enumerate(rates):
            if group_rate is not None:
                setattr(self, f"learning_rate_group_{i}", group_rate)
        self.learning_rate = stored_rate(rate, "learning_rate", self.dynamic_lr)
        self.parameters = ParameterTuple(ordered)
        self._parameters = self.parameters
        self._shares_ = optimizer_shards.of(name, ordered, self._refuses_rows_())
        self.use_parallel = bool(self._shares_)
        optimizer_shards.cut_weights(ordered, self._shares_)
        malloc.give_back()
        parts = zip(group_arguments, placed, rates)
        self._groups_ = [self._group_(name, g, positions, group_rate, weight_decay) for g, positions, group_rate in parts if positions]
        if groups is None:
            self._split_decay_(weight_decay)
        self.param_length = len(ordered)
        self.dynamic_weight_decay = any(isinstance(g.decay, Cell) for g in self._groups_)
        self.exec_weight_decay = self.dynamic_weight_decay or any(self.decay_flags)
        self.need_scale, self.reciprocal_scale = self.loss_scale != 1.0, Tensor(1.0 / self.loss_scale, dtypes.float32)
        decays = [g.get("weight_decay", weight_decay) for g in group_arguments]
        shown = [decay if isinstance(decay, Cell) else Tensor(decay * self.loss_scale, dtypes.float32) for decay in decays]
        # MindSpore shows the decay for gradients before the division by the loss scale, with groups one for each Parameter.
        decay_by_position = {position: decay for decay, positions in zip(shown, placed) for position in positions}
        self.__dict__["_weight_decay_"] = tuple(decay_by_position[i] for i in range(len(ordered))) if self.is_group else shown[0]
        self.is_group_lr = self.is_group and any("lr" in g for g in group_arguments)
        if self.is_group_lr:
            self._show_rates_of_groups_()
        self.is_group_params_ordered = any("order_params" in g for g in group_arguments)
        _newest[id(ordered[0])] = self
        server_session.register(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if TRAINING_START.hook is not None:
            server_session.start_before_update(frame() is not None)
        if server_session.SESSION.client is None or not args:
            return super().__call__(*args, **kwargs)
        return server_updates.run(self, functools.partial(super().__call__, *args, **kwargs), args[0])

    def construct(self, *gradients: Any) -> Any:
        """Update the Parameters; each optimizer defines it."""
        raise NotImplementedError(message(f"{type(self).__name__}.construct", "a subclass that defines construct(self, gradients)"))

    _server_refusal_ = ""
    """The requirements of this optimizer that servers cannot meet; empty if they can run it."""
    _updates_by_group_ = True
    """True if `construct` updates the Parameters by `_updates_`."""

    def _insert_tuple_(self, name: str, parameters: ParameterTuple) -> None:
        # The second name of the same tuple adds no Parameters; the network's Parameters keep their names, as in checkpoints.
        if name == "_parameters":
            self.__dict__[name] = parameters
        else:
            super()._insert_tuple_(name, parameters)

    def _group_(self, name: str, arguments: dict[str, Any], positions: list[int], rate: Any, decay: Any) -> Group:
        group_decay = arguments.get("weight_decay", decay)
        check_decay(name, group_decay)
        group_rate = self.learning_rate if rate is None else rate
        return Group(
            positions, group_rate, group_decay, _decays(group_decay),
            bool(arguments.get("grad_centralization", False)),
        )

    def _show_rates_of_groups_(self) -> None:
        """Store the default rate, if a group uses it, under another name: `learning_rate` is then a tuple of each Parameter's rate."""
        rates = {index: group.rate for group in self._groups_ for index in group.indexes}
        for stored in (self._params, self._cells):
            for name in list(stored):                                          # each name again, so that the order stays
                member = stored.pop(name)
                if name != "learning_rate":
                    stored[name] = member
                elif any(rate is member for rate in rates.values()):
                    stored["_default_rate_"] = member
        self.__dict__["learning_rate"] = tuple(rates[i] for i in range(len(self.parameters)))

    def _split_decay_(self, decay: Any) -> None:
        """Without groups: move the Parameters named beta or gamma into a separate group without decay."""
        group = self._groups_[0]
        if not group.decays:
            return
        decayed = [i for i in group.indexes if "beta" not in self.parameters[i].name and "gamma" not in self.parameters[i].name]
        free = [i for i in group.indexes if i not in set(decayed)]
        self._groups_ = [Group(decayed, group.rate, decay, True, False), Group(free, group.rate, 0.0, False, False)]
        self._groups_ = [g for g in self._groups_ if g.indexes]

    # ---- helpers for the formulas

    def _moments_(self, prefix: str, init: Any = "zeros") -> ParameterTuple:
        """Return one Parameter of state for each Parameter, named `prefix.name`; for one that processes share, only its local rows."""
        moments = []
        for parameter, share in zip(self.parameters, self._shares_ or (None,) * len(self.parameters)):
            state = optimizer_shards.cut_moment(parameter.clone(init), share)
            if share is None and isinstance(init, str) and init == "zeros":
                optimizer_shards.reserve_moment(state)
            state.name = f"{prefix}.{parameter.name}"
            moments.append(state)
        return ParameterTuple(moments)

    _updates_by_rows_ = True
    """True if the formula is equal for some rows of a Parameter and for all."""

    def _refuses_rows_(self) -> str:
        """Return why processes cannot share the state of this optimizer, or an empty string."""
        if not self._updates_by_rows_:
            return f"{type(self).__name__} needs full Parameters for its formula"
        if not type(self).construct.__module__.startswith("torchspore."):
            return f"{type(self).__name__} is a user class, whose state is unknown"
        if overridden := overridden_steps.of(self):
            return f"{type(self).__name__} overrides {', '.join(overridden)}, which needs full gradients"
        return ""

    def _share_(self, index: int) -> Any:
        """Return this process's share of a Parameter, or None if it has all of it."""
        return self._shares_[index] if self._shares_ else None

    def _updates_(self, gradients: Any, coupled: bool = True) -> Iterator[tuple[list[Any], list[Any], Any, Any, Group]]:
        """Yield for each group: torch's parameters, gradients, rate (0-d tensor), decay (a float or 0-d tensor), the group.

        The gradients are divided by the loss scale, decayed if the decay is `coupled`, then centralized, in MindSpore's order.
        """
        self._check_gradients_(gradients)
        with mark_optimizer_nodes():
            gradients, groups, scale = overridden_steps.taken(self, gradients, coupled)
            yield from self._by_group_(gradients, server_updates.groups_here(self, groups), scale, coupled)

    def _by_group_(
        self, gradients: Any, groups: list[Group], loss_scale: float, coupled: bool,
    ) -> Iterator[tuple[list[Any], list[Any], Any, Any, Group]]:
        gradients_or_rows = [_rows(g) if self._takes_rows_ and self._share_(i) is None else None for i, g in enumerate(gradients)]
        self._check_rows_(gradients)
        gradients_or_rows = [raw(g) if rows is None else rows for g, rows in zip(gradients, gradients_or_rows)]
        self._check_shapes_(gradients_or_rows)
        groups = [part for group in groups for part in self._parted_(group, gradients_or_rows, loss_scale)]
        for group in [part for group_part in groups for part in optimizer_offload.parted(self, group_part)]:
            group_parameters, group_gradients = [self.parameters[i] for i in group.indexes], [gradients_or_rows[i] for i in group.indexes]
            cut = (
                optimizer_shards.Update(group_parameters, group_gradients, [self._shares_[i] for i in group.indexes])
                if self._shares_
                else None
            )
            if cut is not None:
                group_gradients = cut.gradients
            parameters = [raw(p) for p in group_parameters] if cut is None else cut.parameters
            group_gradients = optimizers.scaled(group_gradients, loss_scale)
            decay = overridden_steps.decay_now(group.decay, self.global_step)
            if coupled and group.decays:
                group_gradients = optimizers.decayed(parameters, group_gradients, decay)
            if group.centralize:
                group_gradients = [optimizers.centralized(g) for g in group_gradients]
            rows = optimizer_shards.at_hand(optimizer_offload.of(self, group.indexes)) if self._shares_ else nullcontext()
            with rows, optimizer_offload.at_hand(self, group.indexes):
                yield parameters, group_gradients, self._rate_now_(group.rate), decay, group
            if cut is not None:
                cut.gather()

    def _check_gradients_(self, gradients: Any) -> None:
        """Raises TypeError for values that are not gradients, ValueError for another number of them."""
        name, expected = type(self).__name__, "a tuple of gradients, one for each Parameter"
        if not isinstance(gradients, (list, tuple)):
            raise TypeError(message(f"{name}(gradients)", f"{expected}, got {type(gradients).__name__}"))
        for index, gradient in enumerate(gradients):
            if not isinstance(gradient, _GRADIENTS):
                raise TypeError(message(f"{name}(gradients)", f"{expected}, got {type(gradient).__name__} at index {index}"))
        if len(gradients) != len(self.parameters):
            raise ValueError(f"{name}: expected {len(self.parameters)} gradients, one for each Parameter, got {len(gradients)}.")

    def _check_shapes_(self, gradients: list[Any]) -> None:
        """Raises ValueError for a gradient whose shape differs from its Parameter's: kernels for lists check only one of the two."""
        for index, (parameter, gradient) in enumerate(zip(self.parameters, gradients)):
            if self._share_(index) is not None:
                continue
            expected_shape, shape = raw(parameter).shape, gradient.fixed() if isinstance(gradient, RowsBase) else gradient.shape
            if tuple(shape) != tuple(expected_shape):
                description = f"{type(self).__name__}(gradients): the gradient of {parameter.name!r} with shape {list(shape)}"
                raise ValueError(message(description, f"the Parameter's shape, {list(expected_shape)}"))

    def _check_rows_(self, gradients: Any) -> None:
        """Raises RuntimeError for a sparse gradient of a split Parameter, if the formula leaves other rows unchanged."""
        if not (self._shares_ and self._takes_rows_ and self._leaves_rows_):
            return
        for index, gradient in enumerate(gradients):
            if self._shares_[index] is not None and _rows(gradient) is not None:
                name = self.parameters[index].name
                raise RuntimeError(message(
                    f"{type(self).__name__}: a sparse gradient of {name!r}, which processes share", "a dense gradient",
                    hint=f"give Parameter {name!r} parallel_optimizer=False",
                ))

    _leaves_rows_ = True
    """True if a sparse gradient leaves the rows outside it unchanged."""

    def _parted_(self, group: Group, gradients: list[Any], loss_scale: float) -> Iterator[Group]:
        """Update the Parameters with sparse gradients; yield the group without them."""
        sparse = [index for index in group.indexes if isinstance(gradients[index], RowsBase)]
        if not sparse:
            yield group
            return
        rate = self._rate_now_(group.rate)
        decay = overridden_steps.decay_now(group.decay, self.global_step)
        for index in sparse:
            indices, values = (raw(part) for part in gradients[index].parts())
            values = self._prepared_(raw(self.parameters[index]), indices, values, decay, group, loss_scale)
            self._update_rows_(index, indices, values, rate, group)
        rest = [index for index in group.indexes if index not in sparse]
        if rest:
            yield replace(group, indexes=rest)

    def _prepared_(self, table: Any, indices: Any, values: Any, decay: Any, group: Group, loss_scale: float) -> Any:
        """Return the rows of a gradient, divided by the loss scale, decayed and centralized; each occurrence of a row decays separately."""
        values = optimizers.scaled([values.to(table.dtype)], loss_scale)[0]
        if group.decays:
            values = values + table.index_select(0, indices.long()) * decay
        return optimizers.centralized(values) if group.centralize else values

    _takes_rows_ = False
    """True if `_update_rows_` handles sparse gradients; otherwise they become dense ones."""

    def _update_rows_(self, index: int, indices: Any, values: Any, rate: Any, group: Group) -> None:
        """Update the Parameter number `index` by rows of its gradient."""
        raise NotImplementedError

    def _decay_all_(self, decay: Any) -> None:
        """Apply weight decay to Parameters named beta or gamma too."""
        if not self.is_group:
            self._groups_ = [Group(list(range(len(self.parameters))), self.learning_rate, decay, _decays(decay), False)]

    def _rate_now_(self, rate: Any) -> Any:
        return raw(rate(self.global_step)).reshape(()) if isinstance(rate, Cell) else raw(rate)

    def _advance_(self) -> None:
        """Count the step; called after the rates are read."""
        assign_add(self.global_step, 1)

    def get_lr(self) -> Any:
        """Return the rate of the next step; if groups have different rates, a tuple with one for each Parameter."""
        rates = {index: self._shown_(group.rate) for group in self._groups_ for index in group.indexes}
        return tuple(rates[i] for i in range(len(self.parameters))) if self.is_group_lr else rates[0]

    def _shown_(self, rate: Any) -> Any:
        return rate if isinstance(rate, Parameter) else wrap(self._rate_now_(rate).clone())

    def get_lr_parameter(self, param: Any) -> Any:
        """Return the rate of one Parameter, or a list of rates. Raises TypeError and ValueError for others."""
        if not isinstance(param, (Parameter, list)):
            raise TypeError(message(f"get_lr_parameter({param!r:.40})", with_type("a Parameter or a list", param)))
        if isinstance(param, list):
            for parameter in param:
                if not isinstance(parameter, Parameter):
                    raise TypeError(message(f"get_lr_parameter({param!r:.40})", with_type("Parameters", parameter)))
            return [self.get_lr_parameter(parameter) for parameter in param]
        index = next((i for i, p in enumerate(self.parameters) if p is param), None)
        if index is None:
            raise ValueError(f"get_lr_parameter: {getattr(param, 'name', param)!r} is not one of this optimizer's Parameters.")
        rate = next(group.rate for group in self._groups_ if index in group.indexes)
        return rate.learning_rate if isinstance(rate, RateTable) else rate

    @property
    def weight_decay(self) -> Any:
        """The weight decay times the loss scale as a Tensor, or its schedule; with groups, a tuple with one for each Parameter."""
        return self.__dict__["_weight_decay_"]

    @weight_decay.setter
    def weight_decay(self, value: Any) -> None:
        if isinstance(self.__dict__["_weight_decay_"], tuple):
            if type(self).__module__.startswith("torchspore."):
                raise TypeError(f"{type(self).__name__}.weight_decay = {value!r:.40}: each group of Parameters has a separate one.")
            self.__dict__["_weight_decay_"] = value               # a user's optimizer may use it freely
            return
        decay = float(value) if isinstance(value, Tensor) else value
        check_decay(type(self).__name__, decay)
        scaled_decay = decay if isinstance(decay, Cell) else decay / self.loss_scale
        self._groups_ = [replace(group, decay=scaled_decay) if group.decays else group for group in self._groups_]
        self.__dict__["_weight_decay_"] = value

    def get_weight_decay(self) -> Any:
        """Return the weight decay of the next step as a Tensor; with groups, a tuple with one for each Parameter."""
        decay = self.weight_decay
        return tuple(map(self._decay_now_, decay)) if isinstance(decay, tuple) else self._decay_now_(decay)

    def _decay_now_(self, decay: Any) -> Any:
        return decay(self.global_step) * self.loss_scale if isinstance(decay, Cell) else decay

    # ---- steps of an update, for user-defined optimizers

    def scale_grad(self, gradients: Any) -> Any:
        """Return the gradients divided by the loss scale."""
        return tuple(g * self.reciprocal_scale.astype(g.dtype, copy=False) for g in gradients) if self.need_scale else gradients

    def decay_weight(self, gradients: Any) -> Any:
        """Return the gradients, before the division by the loss scale, with weight decay where it applies."""
        decays = {index: group.decay for group in self._groups_ if group.decays for index in group.indexes}
        now = {i: self._decay_now_(decay) if isinstance(decay, Cell) else decay * self.loss_scale for i, decay in decays.items()}
        if "get_weight_decay" in overridden_steps.of(self):
            decay = self.get_weight_decay()
            now = {i: decay[i] if isinstance(decay, (tuple, list)) else decay for i in now}
        return tuple(g + self.parameters[i].astype(g.dtype, copy=False) * now[i] if i in now else g for i, g in enumerate(gradients))

    @property
    def grad_centralization_flags(self) -> tuple[bool, ...]:
        """True for each Parameter whose gradient is centralized."""
        centralized = {index for group in self._groups_ if group.centralize for index in group.indexes}
        return tuple(index in centralized for index in range(len(self.parameters)))

    def gradients_centralization(self, gradients: Any) -> Any:
        """Return the gradients; in groups with centralization, minus their mean over all axes except the first."""
        centralized = {index for group in self._groups_ if group.centralize for index in group.indexes}
        return tuple(wrap(optimizers.centralized(raw(g))) if i in centralized else g for i, g in enumerate(gradients))

    def flatten_gradients(self, gradients: Any) -> Any:
        """Return the gradients unchanged; there is no common memory for them here."""
        return gradients

    @property
    def decay_flags(self) -> tuple[bool, ...]:
        """True for each Parameter with weight decay."""
        flags = {index: group.decays for group in self._groups_ for index in group.indexes}
        return tuple(flags[i] for i in range(len(self.parameters)))

    @property
    def dynamic_decay_flags(self) -> Any:
        """True if the weight decay is a schedule; with groups, one value for each Parameter."""
        flags = {index: isinstance(group.decay, Cell) for group in self._groups_ for index in group.indexes}
        return tuple(flags[i] for i in range(len(self.parameters))) if self.is_group else self.dynamic_weight_decay

    @property
    def optim_filter(self) -> tuple[bool, ...]:
        """True for each Parameter that this process updates: all of them, because processes do not divide the Parameters here."""
        return (True,) * len(self.parameters)

    @property
    def global_step_increase_tensor(self) -> Tensor:
        """The increment of the global step, shape (1,)."""
        return Tensor([1], dtypes.int32)

    param_rank: Any = None
    """The process that updates each Parameter; None, because each process updates all."""
    hyper_map, map_, hyper_map_reverse, map_reverse = HyperMap(), Map(), HyperMap(reverse=True), Map(reverse=True)
    """Apply a function to the elements of tuples of Parameters, gradients and states; `reverse` has no visible effect."""

    def broadcast_params(self, optim_result: Any) -> Any:
        """Return `optim_result`: each process updates all Parameters, so there is nothing to send."""
        return optim_result

    assignadd = AssignAdd()
    """Add to a Parameter in place; user-defined optimizers count the global step with it."""

    @property
    def cls_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        """True if the rate or the weight decay changes with the global step, which must then be counted."""
        return self.dynamic_lr or self.dynamic_weight_decay

    def _grad_sparse_indices_deduplicate(self, gradients: Any) -> Any:
        """Return the gradients unchanged: repeated rows are summed where they are used."""
        return gradients

    def _set_base_target(self, value: str) -> None:
        """Set `target`."""
        self.target = value

    @property
    def unique(self) -> bool:
        """True if repeated rows of a sparse gradient are summed before use; here they always are."""
        return True

    @unique.setter
    def unique(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(message(f"{type(self).__name__}.unique = {value!r}", with_type("a bool", value)))

    @property
    def target(self) -> str:
        """The device that handles sparse gradients; here it is always that of the Parameters."""
        return str(self.__dict__.get("_target") or STORE.get("device_target"))

    @target.setter
    def target(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(message(f"{type(self).__name__}.target = {value!r}", with_type("a str", value)))
        if value not in ("CPU", "Ascend", "GPU"):
            raise ValueError(f"{type(self).__name__}.target = {value!r}: expected 'CPU', 'Ascend' or 'GPU'.")
        self.__dict__["_target"] = value


FRONT.settled += (Group, optimizer_shards.Share, comm.Group)
FRONT.optimizer = Optimizer


def _rows(gradient: Any) -> RowsBase | None:
    """Return a sparse gradient as rows, or None for a dense one."""
    if isinstance(gradient, COOTensor):
        return gradient.rows()
    return gradient if isinstance(gradient, RowsBase) else None


def _decays(decay: Any) -> bool:
    return not isinstance(decay, (int, float)) or decay > 0
