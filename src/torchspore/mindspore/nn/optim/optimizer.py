"""The base of optimizers: parameter groups, learning rates, weight decay, the global step."""
from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.distributed.comm import groups as comm
from torchspore.distributed.parallel import optimizer_shards
from torchspore.engine.core import dtypes
from torchspore.engine.core.front_end import FRONT
from torchspore.engine.core.tensor import TensorBase, raw, wrap
from torchspore.engine.eager import optimizers
from torchspore.engine.eager.row_gradients import RowsBase
from torchspore.engine.memory import malloc, optimizer_states
from torchspore.graph.passes.precision import casts
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.sparse_tensor import COOTensor
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import own_steps
from torchspore.mindspore.nn.optim.arguments import (
    check_decay,
    groups_of,
    kept_rate,
    listed_parameters,
    number,
    ordered_parameters,
    rate_of,
)
from torchspore.mindspore.ops import AssignAdd
from torchspore.mindspore.ops.composite import HyperMap, Map
from torchspore.mindspore.ops.state import assign_add

_GRADIENTS = (TensorBase, RowsBase, COOTensor)


@dataclass(frozen=True)
class Group:
    """Parameters that are updated alike: their places in the optimizer's order, rate, decay and whether gradients are centralized."""

    places: list[int]
    rate: Any
    decay: Any
    decays: bool
    centralize: bool


_newest: weakref.WeakValueDictionary[int, Optimizer] = weakref.WeakValueDictionary()
"""The optimizer that was made last of a Parameter, the first of its own, by the Parameter's id."""


def optimizer_of(parameters: Any) -> Optimizer | None:
    """The newest optimizer that trains these Parameters; None where there is none."""
    for parameter in parameters:
        found = _newest.get(id(parameter))
        if found is not None and found.__dict__["parameters"][0] is parameter:
            return found
    return None


class Optimizer(Cell):
    """The base of optimizers; calling it with the gradients updates the Parameters.

    `learning_rate` is a number, a list, tuple or 1-D Tensor of rates by global step, or a LearningRateSchedule. `parameters` is a list of
    Parameters or of groups {'params', 'lr', 'weight_decay', 'grad_centralization', 'order_params'}. Without groups, Parameters with
    'beta' or 'gamma' in their names get no weight decay. `loss_scale` divides the gradients.

    Raises TypeError for wrong types, ValueError for wrong values and for Parameters that come twice.
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        self.loss_scale = number(name, "loss_scale", loss_scale)
        if self.loss_scale <= 0:
            raise ValueError(f"{name}(loss_scale={loss_scale}): expected a number above 0.")
        check_decay(name, weight_decay)
        groups = groups_of(name, parameters)
        self.is_group = groups is not None
        rate = rate_of(name, learning_rate)
        given = [{"params": listed_parameters(name, parameters)}] if groups is None else groups
        ordered, placed = ordered_parameters(name, given)
        self.global_step = Parameter(initializer(0, [1], dtypes.int32), name="global_step")
        own_rates = [rate_of(name, g["lr"]) if "lr" in g else None for g in given]
        self.dynamic_lr = any(r is not None and not isinstance(r, float) for r in (rate, *own_rates))
        rates = [None if r is None else kept_rate(r, f"learning_rate_group_{i}", self.dynamic_lr) for i, r in enumerate(own_rates)]
        for i, own in enumerate(rates):
            if own is not None:
                setattr(self, f"learning_rate_group_{i}", own)
        self.learning_rate = kept_rate(rate, "learning_rate", self.dynamic_lr)
        self.parameters = ParameterTuple(ordered)
        self._parameters = self.parameters
        self._shares_ = optimizer_shards.of(name, ordered, self._refuses_rows_())
        self.use_parallel = bool(self._shares_)
        optimizer_shards.cut_weights(ordered, self._shares_)
        malloc.give_back()
        self._groups_ = [self._group_(name, g, places, own, weight_decay) for g, places, own in zip(given, placed, rates) if places]
        if groups is None:
            self._split_decay_(weight_decay)
        self.param_length = len(ordered)
        self.dynamic_weight_decay = any(isinstance(g.decay, Cell) for g in self._groups_)
        self.exec_weight_decay = self.dynamic_weight_decay or any(self.decay_flags)
        self.need_scale, self.reciprocal_scale = self.loss_scale != 1.0, Tensor(1.0 / self.loss_scale, dtypes.float32)
        own = [g.get("weight_decay", weight_decay) for g in given]
        shown = [one if isinstance(one, Cell) else Tensor(one * self.loss_scale, dtypes.float32) for one in own]
        # As MindSpore shows it: of gradients that are yet to be divided by the loss scale, one for each Parameter where there are groups.
        of_place = {place: one for one, places in zip(shown, placed) for place in places}
        self.__dict__["_weight_decay_"] = tuple(of_place[i] for i in range(len(ordered))) if self.is_group else shown[0]
        self.is_group_lr = self.is_group and any("lr" in g for g in given)
        self.is_group_params_ordered = any("order_params" in g for g in given)
        _newest[id(ordered[0])] = self

    def _insert_tuple_(self, name: str, parameters: ParameterTuple) -> None:
        # The second name of the same tuple adds no Parameters; the network's own are kept under their names, as checkpoints have them.
        if name == "_parameters":
            self.__dict__[name] = parameters
        else:
            super()._insert_tuple_(name, parameters)

    def _group_(self, name: str, given: dict[str, Any], places: list[int], rate: Any, decay: Any) -> Group:
        own_decay = given.get("weight_decay", decay)
        check_decay(name, own_decay)
        own_rate = self.learning_rate if rate is None else rate
        return Group(
            places, own_rate, own_decay, _decays(own_decay),
            bool(given.get("grad_centralization", False)),
        )

    def _split_decay_(self, decay: Any) -> None:
        """Without groups: the Parameters named beta or gamma go into a group of their own, which does not decay."""
        group = self._groups_[0]
        if not group.decays:
            return
        kept = [i for i in group.places if "beta" not in self.parameters[i].name and "gamma" not in self.parameters[i].name]
        free = [i for i in group.places if i not in set(kept)]
        self._groups_ = [Group(kept, group.rate, decay, True, False), Group(free, group.rate, 0.0, False, False)]
        self._groups_ = [g for g in self._groups_ if g.places]

    # ---- what the formulas need

    def _moments_(self, prefix: str, init: Any = "zeros") -> ParameterTuple:
        """One Parameter of state for each Parameter, named `prefix.name`; of one that processes share, the own rows."""
        if not self._shares_:
            return self.parameters.clone(prefix, init)
        made = []
        for parameter, share in zip(self.parameters, self._shares_):
            state = optimizer_shards.cut_moment(parameter.clone(init), share)
            state.name = f"{prefix}.{parameter.name}"
            made.append(state)
        return ParameterTuple(made)

    _updates_by_rows_ = True
    """Whether the formula is the same for some rows of a Parameter as for all."""

    def _refuses_rows_(self) -> str:
        """Why processes can't share the state of this optimizer; empty where they can."""
        if not self._updates_by_rows_:
            return f"{type(self).__name__} needs whole Parameters for its formula"
        if not type(self).construct.__module__.startswith("torchspore."):
            return f"{type(self).__name__} is the program's own, and its state is its own affair"
        if said := own_steps.of(self):
            return f"{type(self).__name__} has its own {', '.join(said)}, which looks at whole gradients"
        return ""

    def _share_(self, place: int) -> Any:
        """The share that this process has of a Parameter; None where it has all of it."""
        return self._shares_[place] if self._shares_ else None

    def _updates_(self, gradients: Any, coupled: bool = True) -> Iterator[tuple[list[Any], list[Any], Any, Any, Group]]:
        """For each group: torch's parameters, gradients, rate (0-d tensor), decay (a float or 0-d tensor), the group.

        The gradients are divided by the loss scale, decayed if the decay is `coupled`, then centralized, in MindSpore's order.
        """
        self._check_gradients_(gradients)
        with casts.marked():
            yield from self._by_group_(*own_steps.taken(self, gradients, coupled), coupled)

    def _by_group_(
        self, gradients: Any, groups: list[Group], loss_scale: float, coupled: bool,
    ) -> Iterator[tuple[list[Any], list[Any], Any, Any, Group]]:
        found = [_rows(g) if self._takes_rows_ and self._share_(i) is None else None for i, g in enumerate(gradients)]
        self._check_rows_(gradients)
        found = [raw(g) if rows is None else rows for g, rows in zip(gradients, found)]
        self._check_shapes_(found)
        groups = [part for whole in groups for part in self._parted_(whole, found, loss_scale)]
        for group in [part for whole in groups for part in optimizer_states.parted(self, whole)]:
            whole, own = [self.parameters[i] for i in group.places], [found[i] for i in group.places]
            cut = optimizer_shards.Update(whole, own, [self._shares_[i] for i in group.places]) if self._shares_ else None
            if cut is not None:
                own = cut.gradients
            parameters = [raw(p) for p in whole] if cut is None else cut.parameters
            own = optimizers.scaled(own, loss_scale)
            decay = own_steps.decay_now(group.decay, self.global_step)
            if coupled and group.decays:
                own = optimizers.decayed(parameters, own, decay)
            if group.centralize:
                own = [optimizers.centralized(g) for g in own]
            shards = optimizer_states.of(self, group.places) if self._shares_ else ()
            with optimizer_shards.at_hand(shards), optimizer_states.at_hand(self, group.places):
                yield parameters, own, self._rate_now_(group.rate), decay, group
            if cut is not None:
                cut.gather()

    def _check_gradients_(self, gradients: Any) -> None:
        """Raises TypeError for what are no gradients, ValueError for another number of them."""
        name, expected = type(self).__name__, "a tuple of gradients, one for each Parameter"
        if not isinstance(gradients, (list, tuple)):
            raise TypeError(message(f"{name}(gradients)", f"{expected}, got {type(gradients).__name__}"))
        for place, one in enumerate(gradients):
            if not isinstance(one, _GRADIENTS):
                raise TypeError(message(f"{name}(gradients)", f"{expected}, got {type(one).__name__} in place {place}"))
        if len(gradients) != len(self.parameters):
            raise ValueError(f"{name}: expected {len(self.parameters)} gradients, one for each Parameter, got {len(gradients)}.")

    def _check_shapes_(self, found: list[Any]) -> None:
        """Raises ValueError for a gradient of another shape than its Parameter's: kernels of whole lists look at one of the two alone."""
        for place, (parameter, gradient) in enumerate(zip(self.parameters, found)):
            if self._share_(place) is not None:
                continue
            own, shape = raw(parameter).shape, gradient.fixed() if isinstance(gradient, RowsBase) else gradient.shape
            if tuple(shape) != tuple(own):
                what = f"{type(self).__name__}(gradients): the gradient of {parameter.name!r} with shape {list(shape)}"
                raise ValueError(message(what, f"the Parameter's shape, {list(own)}"))

    def _check_rows_(self, gradients: Any) -> None:
        """Raises RuntimeError for a sparse gradient of a Parameter that is cut, where the formula leaves the other rows alone."""
        if not (self._shares_ and self._takes_rows_ and self._leaves_rows_):
            return
        for place, gradient in enumerate(gradients):
            if self._shares_[place] is not None and _rows(gradient) is not None:
                name = self.parameters[place].name
                raise RuntimeError(message(
                    f"{type(self).__name__}: a sparse gradient of {name!r}, which processes share", "a whole gradient",
                    hint=f"give Parameter {name!r} parallel_optimizer=False",
                ))

    _leaves_rows_ = True
    """Whether a sparse gradient leaves the rows that it has not as they are."""

    def _parted_(self, group: Group, found: list[Any], loss_scale: float) -> Iterator[Group]:
        """The group without the places of sparse gradients, which are dealt with here."""
        sparse = [place for place in group.places if isinstance(found[place], RowsBase)]
        if not sparse:
            yield group
            return
        rate = self._rate_now_(group.rate)
        decay = own_steps.decay_now(group.decay, self.global_step)
        for place in sparse:
            indices, values = (raw(part) for part in found[place].parts())
            values = self._prepared_(raw(self.parameters[place]), indices, values, decay, group, loss_scale)
            self._update_rows_(place, indices, values, rate, group)
        rest = [place for place in group.places if place not in sparse]
        if rest:
            yield replace(group, places=rest)

    def _prepared_(self, table: Any, indices: Any, values: Any, decay: Any, group: Group, loss_scale: float) -> Any:
        """The rows of a gradient, divided by the loss scale, decayed and centralized; each occurrence of a row decays by itself."""
        values = optimizers.scaled([values.to(table.dtype)], loss_scale)[0]
        if group.decays:
            values = values + table.index_select(0, indices.long()) * decay
        return optimizers.centralized(values) if group.centralize else values

    _takes_rows_ = False
    """Whether `_update_rows` deals with sparse gradients; otherwise they come as whole ones."""

    def _update_rows_(self, place: int, indices: Any, values: Any, rate: Any, group: Group) -> None:
        """Updates the Parameter number `place` by rows of its gradient."""
        raise NotImplementedError

    def _decay_all_(self, decay: Any) -> None:
        """Lets weight decay act on Parameters named beta or gamma too."""
        if not self.is_group:
            self._groups_ = [Group(list(range(len(self.parameters))), self.learning_rate, decay, _decays(decay), False)]

    def _rate_now_(self, rate: Any) -> Any:
        return raw(rate(self.global_step)).reshape(()) if isinstance(rate, Cell) else raw(rate)

    def _advance_(self) -> None:
        """Counts the step; called after the rates are read."""
        assign_add(self.global_step, 1)

    def get_lr(self) -> Any:
        """The rate of the next step; a tuple of them, one for each Parameter, where groups have their own."""
        rates = {place: self._shown_(group.rate) for group in self._groups_ for place in group.places}
        return tuple(rates[i] for i in range(len(self.parameters))) if self.is_group_lr else rates[0]

    def _shown_(self, rate: Any) -> Any:
        return rate if isinstance(rate, Parameter) else wrap(self._rate_now_(rate).clone())

    def get_lr_parameter(self, param: Any) -> Any:
        """The rate of one Parameter, or a list of them."""
        if isinstance(param, (list, tuple)):
            return [self.get_lr_parameter(p) for p in param]
        place = next((i for i, p in enumerate(self.parameters) if p is param), None)
        if place is None:
            raise ValueError(f"get_lr_parameter: {getattr(param, 'name', param)!r} is none of this optimizer's Parameters.")
        group = next(g for g in self._groups_ if place in g.places)
        return group.rate

    @property
    def weight_decay(self) -> Any:
        """The weight decay times the loss scale as a Tensor, or its schedule; a tuple, one for each Parameter, where there are groups."""
        return self.__dict__["_weight_decay_"]

    @weight_decay.setter
    def weight_decay(self, value: Any) -> None:
        if isinstance(self.__dict__["_weight_decay_"], tuple):
            if type(self).__module__.startswith("torchspore."):
                raise TypeError(f"{type(self).__name__}.weight_decay = {value!r:.40}: the groups of Parameters have their own.")
            self.__dict__["_weight_decay_"] = value               # a program's optimizer, which may do with it what it likes
            return
        decay = float(value) if isinstance(value, Tensor) else value
        check_decay(type(self).__name__, decay)
        own = decay if isinstance(decay, Cell) else decay / self.loss_scale
        self._groups_ = [replace(group, decay=own) if group.decays else group for group in self._groups_]
        self.__dict__["_weight_decay_"] = value

    def get_weight_decay(self) -> Any:
        """The weight decay of the next step as a Tensor; a tuple of them, one for each Parameter, where there are groups."""
        kept = self.weight_decay
        return tuple(map(self._decay_now_, kept)) if isinstance(kept, tuple) else self._decay_now_(kept)

    def _decay_now_(self, decay: Any) -> Any:
        return decay(self.global_step) * self.loss_scale if isinstance(decay, Cell) else decay

    # ---- steps of an update, for optimizers that programs write

    def scale_grad(self, gradients: Any) -> Any:
        """The gradients divided by the loss scale."""
        return tuple(g * self.reciprocal_scale.astype(g.dtype) for g in gradients) if self.need_scale else gradients

    def decay_weight(self, gradients: Any) -> Any:
        """The gradients, not yet divided by the loss scale, with weight decay for the Parameters that it acts on."""
        decays = {place: group.decay for group in self._groups_ if group.decays for place in group.places}
        now = {i: self._decay_now_(decay) if isinstance(decay, Cell) else decay * self.loss_scale for i, decay in decays.items()}
        if "get_weight_decay" in own_steps.of(self):
            said = self.get_weight_decay()
            now = {i: said[i] if isinstance(said, (tuple, list)) else said for i in now}
        return tuple(g + self.parameters[i].astype(g.dtype) * now[i] if i in now else g for i, g in enumerate(gradients))

    @property
    def grad_centralization_flags(self) -> tuple[bool, ...]:
        """For each Parameter, whether its gradient is centralized."""
        wanted = {place for group in self._groups_ if group.centralize for place in group.places}
        return tuple(place in wanted for place in range(len(self.parameters)))

    def gradients_centralization(self, gradients: Any) -> Any:
        """The gradients, of groups that ask for it less their mean over all axes but the first."""
        wanted = {place for group in self._groups_ if group.centralize for place in group.places}
        return tuple(wrap(optimizers.centralized(raw(g))) if i in wanted else g for i, g in enumerate(gradients))

    def flatten_gradients(self, gradients: Any) -> Any:
        """The gradients as they are; they lie in no common memory here."""
        return gradients

    @property
    def decay_flags(self) -> tuple[bool, ...]:
        """Whether weight decay acts on each Parameter."""
        flags = {place: group.decays for group in self._groups_ for place in group.places}
        return tuple(flags[i] for i in range(len(self.parameters)))

    @property
    def dynamic_decay_flags(self) -> Any:
        """Whether the weight decay is a schedule; for each Parameter where there are groups."""
        flags = {place: isinstance(group.decay, Cell) for group in self._groups_ for place in group.places}
        return tuple(flags[i] for i in range(len(self.parameters))) if self.is_group else self.dynamic_weight_decay

    @property
    def optim_filter(self) -> tuple[bool, ...]:
        """Whether this process updates each Parameter: all of them, as no optimizer is shared among processes here."""
        return (True,) * len(self.parameters)

    @property
    def global_step_increase_tensor(self) -> Tensor:
        """What is added to the global step, shape (1,)."""
        return Tensor([1], dtypes.int32)

    param_rank: Any = None
    """Which process updates each Parameter; None, as each updates all."""
    hyper_map, map_, hyper_map_reverse, map_reverse = HyperMap(), Map(), HyperMap(reverse=True), Map(reverse=True)
    """Apply a function to the elements of tuples of Parameters, gradients and states; `reverse` changes only an order that no one sees."""

    def broadcast_params(self, optim_result: Any) -> Any:
        """Sends what this process updated to the others: nothing to send, as each updates all; gives `optim_result` back."""
        return optim_result

    assignadd = AssignAdd()
    """Adds to a Parameter in place; what optimizers of programs count the global step with."""

    @property
    def cls_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        """Whether the rate or the weight decay changes with the global step, which then must be counted."""
        return self.dynamic_lr or self.dynamic_weight_decay

    def _grad_sparse_indices_deduplicate(self, gradients: Any) -> Any:
        """The gradients as they are: rows that come several times are summed where they are used."""
        return gradients

    def _set_base_target(self, value: str) -> None:
        """Sets `target`."""
        self.target = value

    @property
    def unique(self) -> bool:
        """Whether rows that come several times in a sparse gradient are summed before they are used; here they always are."""
        return True

    @unique.setter
    def unique(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"{type(self).__name__}.unique = {value!r}: expected a bool, got {type(value).__name__}.")

    @property
    def target(self) -> str:
        """Where sparse gradients are dealt with; here it is always where the Parameters are."""
        return str(self.__dict__.get("_target") or STORE.get("device_target"))

    @target.setter
    def target(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"{type(self).__name__}.target = {value!r}: expected a str, got {type(value).__name__}.")
        if value not in ("CPU", "Ascend", "GPU"):
            raise ValueError(f"{type(self).__name__}.target = {value!r}: expected 'CPU', 'Ascend' or 'GPU'.")
        self.__dict__["_target"] = value


FRONT.settled += (Group, optimizer_shards.Share, comm.Group)
FRONT.optimizer = Optimizer


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorates an optimizer's `__init__`, so that its arguments can be read again.

    `init_params` is {'params': ...}, `init_learning_rate` the rate, `init_args` all others by name, defaults too.
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        fn(self, *args, **kwargs)
        # Kept past Cell's own attributes: the Parameters are the network's, not the optimizer's a second time.
        inner = given.pop("optimizer", None)
        self.__dict__["init_params"] = {"params": given.pop("params", None)} if inner is None else dict(inner.init_params)
        self.__dict__["init_learning_rate"] = given.pop("learning_rate", None)
        self.__dict__["init_args"] = given

    return initialise


def _rows(gradient: Any) -> RowsBase | None:
    """A sparse gradient as rows; None for a whole one."""
    if isinstance(gradient, COOTensor):
        return gradient.rows()
    return gradient if isinstance(gradient, RowsBase) else None


def _decays(decay: Any) -> bool:
    return not isinstance(decay, (int, float)) or decay > 0
