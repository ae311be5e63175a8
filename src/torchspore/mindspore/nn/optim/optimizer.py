"""The base of optimizers: parameter groups, learning rates, weight decay, the global step."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.engine import dtypes, optim
from torchspore.engine.tensor import raw
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.state import assign_add

_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


@dataclass
class Group:
    """Parameters that are updated alike: their places in the optimizer's order, rate, decay and whether gradients are centralized."""

    places: list[int]
    rate: Any
    decay: Any
    decays: bool
    centralize: bool


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
        self.loss_scale = _number(name, "loss_scale", loss_scale)
        if self.loss_scale <= 0:
            raise ValueError(f"{name}(loss_scale={loss_scale}): expected a number above 0.")
        _check_decay(name, weight_decay)
        groups = _groups(name, parameters)
        self.is_group = groups is not None
        rate = _rate(name, learning_rate)
        given = [{"params": _listed(name, parameters)}] if groups is None else groups
        ordered, placed = _ordered(name, given)
        self.global_step = Parameter(initializer(0, [1], dtypes.int32), name="global_step", requires_grad=False)
        self.parameters = ParameterTuple(ordered)
        self._parameters = self.parameters
        self.groups = [self._group(name, g, places, rate, weight_decay) for g, places in zip(given, placed) if places]
        if groups is None:
            self._split_decay(weight_decay)
        self.learning_rate = _as_parameter(rate)
        self.weight_decay, self.param_length = weight_decay, len(ordered)
        self.dynamic_lr = any(not isinstance(g.rate, float) for g in self.groups)
        self.is_group_lr = self.is_group and any("lr" in g for g in given)

    def _insert_tuple(self, name: str, parameters: ParameterTuple) -> None:
        # The network's Parameters belong to the network: they are held here, but are not among the optimizer's own.
        if name in ("parameters", "_parameters"):
            self.__dict__[name] = parameters
        else:
            super()._insert_tuple(name, parameters)

    def _group(self, name: str, given: dict[str, Any], places: list[int], rate: Any, decay: Any) -> Group:
        own = _rate(name, given["lr"]) if "lr" in given else rate
        own_decay = given.get("weight_decay", decay)
        _check_decay(name, own_decay)
        return Group(places, own, own_decay, not isinstance(own_decay, (int, float)) or own_decay > 0, bool(given.get("grad_centralization", False)))

    def _split_decay(self, decay: Any) -> None:
        """Without groups: the Parameters named beta or gamma go into a group of their own, which does not decay."""
        group = self.groups[0]
        if not group.decays:
            return
        kept = [i for i in group.places if "beta" not in self.parameters[i].name and "gamma" not in self.parameters[i].name]
        free = [i for i in group.places if i not in set(kept)]
        self.groups = [Group(kept, group.rate, decay, True, False), Group(free, group.rate, 0.0, False, False)]
        self.groups = [g for g in self.groups if g.places]

    # ---- what the formulas need

    def moments(self, prefix: str, init: Any = "zeros") -> ParameterTuple:
        """One Parameter of state for each Parameter, named `prefix.name`."""
        made = self.parameters.clone(prefix, init)
        for parameter in made:
            parameter.requires_grad = False
        return made

    def updates(self, gradients: Any) -> Iterator[tuple[list[Any], list[Any], Any, Any, Group]]:
        """For each group: torch's parameters, gradients (scaled, centralized), rate (0-d tensor), decay (a float or 0-d tensor), the group."""
        found = [raw(g) for g in gradients]
        if len(found) != len(self.parameters):
            raise ValueError(f"{type(self).__name__}: expected {len(self.parameters)} gradients, one for each Parameter, got {len(found)}.")
        for group in self.groups:
            own = optim.scaled([found[i] for i in group.places], self.loss_scale)
            if group.centralize:
                own = [optim.centralized(g) for g in own]
            rate = self._rate_now(group.rate)
            decay = raw(group.decay(self.global_step)).reshape(()) if isinstance(group.decay, Cell) else float(group.decay)
            yield [raw(self.parameters[i]) for i in group.places], own, rate, decay, group

    def _rate_now(self, rate: Any) -> Any:
        if isinstance(rate, float):
            return raw(self.learning_rate) if not self.is_group_lr else raw(self._constant(rate))
        if isinstance(rate, Cell):
            return raw(rate(self.global_step)).reshape(())
        return optim.scheduled(raw(rate), raw(self.global_step))

    def _constant(self, rate: float) -> Any:
        kept = self.__dict__.setdefault("_rates", {})
        if rate not in kept:
            kept[rate] = Tensor(rate, dtypes.float32)
        return kept[rate]

    def advance(self) -> None:
        """Counts the step; called after the rates are read."""
        assign_add(self.global_step, 1)

    def get_lr(self) -> Any:
        """The rate of the next step; a tuple of them, one for each Parameter, where groups have their own."""
        from torchspore.engine.tensor import wrap

        if not self.is_group_lr:
            return wrap(self._rate_now(self.groups[0].rate).clone())
        rates = {place: wrap(self._rate_now(group.rate).clone()) for group in self.groups for place in group.places}
        return tuple(rates[i] for i in range(len(self.parameters)))

    def get_lr_parameter(self, param: Any) -> Any:
        """The rate of one Parameter, or a list of them."""
        if isinstance(param, (list, tuple)):
            return [self.get_lr_parameter(p) for p in param]
        place = next((i for i, p in enumerate(self.parameters) if p is param), None)
        if place is None:
            raise ValueError(f"get_lr_parameter: {getattr(param, 'name', param)!r} is none of this optimizer's Parameters.")
        group = next(g for g in self.groups if place in g.places)
        return self.learning_rate if isinstance(group.rate, float) and not self.is_group_lr else group.rate

    @property
    def unique(self) -> bool:
        """Whether sparse gradients would be made unique; there are none here."""
        return True


def _number(name: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}({key}={value!r}): expected a number, got {type(value).__name__}.")
    return float(value)


def _check_decay(name: str, decay: Any) -> None:
    if isinstance(decay, Cell):
        return
    if _number(name, "weight_decay", decay) < 0:
        raise ValueError(f"{name}(weight_decay={decay}): expected a number from 0 on.")


def _rate(name: str, rate: Any) -> Any:
    """A float, a Cell, or a Tensor of rates by step."""
    if isinstance(rate, (Cell, Parameter)):
        return rate if isinstance(rate, Cell) or rate.ndim else float(rate)
    if isinstance(rate, bool):
        raise TypeError(f"{name}(learning_rate={rate!r}): expected a number, rates or a LearningRateSchedule, got bool.")
    if isinstance(rate, (int, float)):
        if rate < 0:
            raise ValueError(f"{name}(learning_rate={rate}): expected a number from 0 on.")
        return float(rate)
    if isinstance(rate, Tensor) and rate.ndim > 1:
        raise ValueError(f"{name}(learning_rate=Tensor of shape {rate.shape}): expected none or one axis.")
    if isinstance(rate, Tensor) and rate.ndim == 0:
        return float(rate)
    if isinstance(rate, (Tensor, Iterable)):
        values = np.asarray(rate.asnumpy() if isinstance(rate, Tensor) else list(rate), np.float32)
        return Tensor(values)
    raise TypeError(f"{name}(learning_rate={rate!r:.40}): expected a number, rates or a LearningRateSchedule, got {type(rate).__name__}.")


def _as_parameter(rate: Any) -> Any:
    if isinstance(rate, Cell):
        return rate
    return Parameter(Tensor(rate, dtypes.float32) if isinstance(rate, float) else rate, name="learning_rate", requires_grad=False)


def _listed(name: str, parameters: Any) -> list[Parameter]:
    if isinstance(parameters, (Parameter, str)) or not isinstance(parameters, Iterable):
        raise TypeError(f"{name}(parameters={type(parameters).__name__}): expected a list of Parameters.\n\nhint: write net.trainable_params().")
    found = list(parameters)
    if not found:
        raise ValueError(f"{name}: there are no Parameters to train.\n\nhint: check requires_grad.")
    for parameter in found:
        if not isinstance(parameter, Parameter):
            raise TypeError(f"{name}(parameters=...): expected Parameters, got {type(parameter).__name__}.")
    return found


def _groups(name: str, parameters: Any) -> list[dict[str, Any]] | None:
    if not isinstance(parameters, (list, tuple)) or not parameters or not isinstance(parameters[0], dict):
        return None
    for group in parameters:
        if not isinstance(group, dict):
            raise TypeError(f"{name}(parameters=...): expected groups only, got {type(group).__name__} among them.")
        unknown = [key for key in group if key not in _GROUP_KEYS]
        if unknown or ("params" not in group and "order_params" not in group):
            raise KeyError(f"{name}: group with {', '.join(group)}: expected the keys {', '.join(_GROUP_KEYS)}.")
    return list(parameters)


def _ordered(name: str, groups: list[dict[str, Any]]) -> tuple[list[Parameter], list[list[int]]]:
    """All Parameters in the order in which gradients come, and each group's places among them."""
    listed = [_listed(name, g["params"]) if "params" in g else [] for g in groups]
    order = next((list(g["order_params"]) for g in groups if "order_params" in g), None)
    everything = order if order is not None else [p for own in listed for p in own]
    place: dict[int, int] = {}
    names: set[str] = set()
    for i, parameter in enumerate(everything):
        if id(parameter) in place or parameter.name in names:
            raise ValueError(f"{name}: two Parameters are named {parameter.name!r}, or one comes twice.\n\nhint: give each a name of its own.")
        place[id(parameter)] = i
        names.add(parameter.name)
    missing = [p.name for own in listed for p in own if id(p) not in place]
    if missing:
        raise ValueError(f"{name}: order_params lacks {', '.join(missing)}.")
    return everything, [[place[id(p)] for p in own] for own in listed]
