"""Checks of optimizer arguments: Parameters in groups, learning rates, numbers and flags."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from torchspore.base.text import message, with_type
from torchspore.engine.formulas import optimizers
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.errors import NameRefused
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.limits import check_finite
from torchspore.translations import translate

_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


def check_floats(name: str, arguments: dict[str, Any], least: float | None = 0.0) -> None:
    """Raises TypeError for arguments that are not floats, ValueError for those below `least`."""
    for key, value in arguments.items():
        if not isinstance(value, float):
            raise TypeError(f"{name}({key}={value!r:.40}): expected a float, got {type(value).__name__}.")
        check_finite(name, **{key: value})
        if least is not None and value < least:
            raise ValueError(f"{name}({key}={value}): expected a number from {least:g} on.")


def number(name: str, key: str, value: Any) -> float:
    """Return an int or a float as a float. Raises TypeError for other values."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(message(f"{name}({key}={value!r})", with_type("a number", value)))
    check_finite(name, **{key: value})
    return float(value)


def check_decay(name: str, decay: Any) -> None:
    """Raises TypeError for a `weight_decay` that is neither a number nor a Cell, ValueError for one below 0."""
    if isinstance(decay, Cell):
        return
    if number(name, "weight_decay", decay) < 0:
        raise ValueError(message(f"{name}(weight_decay={decay})", "a number from 0 on"))


def rate_of(name: str, rate: Any) -> Any:
    """Return a `learning_rate` as a float, a Cell, or a Tensor of rates by step. Raises TypeError or ValueError for other values."""
    if isinstance(rate, (Cell, Parameter)):
        return rate if isinstance(rate, Cell) or rate.ndim else float(rate)
    if isinstance(rate, bool):
        raise TypeError(f"{name}(learning_rate={rate!r}): expected a number, rates or a LearningRateSchedule, got bool.")
    if isinstance(rate, (int, float)):
        check_finite(name, learning_rate=rate)
        if rate < 0:
            raise ValueError(message(f"{name}(learning_rate={rate})", "a number from 0 on"))
        return float(rate)
    if isinstance(rate, Tensor) and rate.ndim > 1:
        raise ValueError(f"{name}(learning_rate=Tensor of shape {rate.shape}): expected none or one axis.")
    if isinstance(rate, Tensor) and rate.ndim == 0:
        return float(rate)
    if isinstance(rate, (Tensor, Iterable)):
        values = np.asarray(rate.asnumpy() if isinstance(rate, Tensor) else list(rate), np.float32)
        return Tensor(values)
    raise TypeError(f"{name}(learning_rate={rate!r:.40}): expected a number, rates or a LearningRateSchedule, got {type(rate).__name__}.")


def check_equal_lengths(name: str, rates: list[Any]) -> None:
    """Raises ValueError for lists of rates by step with different lengths."""
    lengths = {len(rate) for rate in rates if isinstance(rate, Tensor) and rate.ndim}
    if len(lengths) > 1:
        raise ValueError(translate(
            "For '{name}', the Tensor type dynamic learning rate in group must be the same size as the argument "
            "'learning_rate', but the lengths are {lengths}."
        ).format(name=name, lengths=", ".join(map(str, sorted(lengths)))))


class RateTable(Cell):
    """The learning rate of each step from a Parameter that lists them; the last one applies beyond its end."""

    def __init__(self, rates: Any, name: str) -> None:
        super().__init__(auto_prefix=False)
        self.learning_rate = Parameter(rates, name=name)

    def construct(self, global_step: Any) -> Any:
        """Return the rate of this step."""
        rates = raw(self.learning_rate)
        return wrap(optimizers.scheduled(rates, raw(global_step)) if rates.ndim else rates)


def stored_rate(rate: Any, name: str, dynamic: bool) -> Any:
    """Return the rate as a Parameter of the optimizer, the schedule itself, or, if rates change from step to step, a table."""
    if isinstance(rate, Cell):
        return rate
    values = Tensor(rate, dtypes.float32) if isinstance(rate, float) else rate
    return RateTable(values, name) if dynamic else Parameter(values, name=name)


def listed_parameters(name: str, parameters: Any) -> list[Parameter]:
    """Return the Parameters as a list. Raises TypeError for other values, ValueError for an empty list."""
    if parameters is None:
        raise ValueError(translate("For 'Optimizer', the argument parameters can not be None."))
    if isinstance(parameters, (Parameter, str)) or not isinstance(parameters, Iterable):
        hint = translate("write {word}").format(word="net.trainable_params()")
        raise TypeError(message(f"{name}(parameters={type(parameters).__name__})", "a list of Parameters", hint=hint))
    listed = list(parameters)
    if not listed:
        text = "at least one Parameter. For 'Optimizer', the argument parameters must not be empty"
        raise ValueError(message(f"{name}(parameters=[])", text, hint=translate("check their requires_grad")))
    for parameter in listed:
        if not isinstance(parameter, Parameter):
            hint = None
            if type(parameter).__module__.partition(".")[0] == "torch":
                hint = "write torchspore.as_cell(module).trainable_params() for the parameters of a torch Module"
            raise TypeError(message(f"{name}(parameters=...)", with_type("Parameters", parameter), hint=hint))
    return listed


def groups_of(name: str, parameters: Any) -> list[dict[str, Any]] | None:
    """Return the groups of Parameters; None without groups. Raises NameRefused for unknown keys."""
    if not isinstance(parameters, (list, tuple)) or not parameters or not isinstance(parameters[0], dict):
        return None
    for group in parameters:
        if not isinstance(group, dict):
            raise TypeError(f"{name}(parameters=...): expected groups only, got {type(group).__name__} among them.")
        unknown = [key for key in group if key not in _GROUP_KEYS]
        if unknown or ("params" not in group and "order_params" not in group):
            raise NameRefused(f"{name}: group with {', '.join(group)}: expected the keys {', '.join(_GROUP_KEYS)}.")
    return list(parameters)


def ordered_parameters(name: str, groups: list[dict[str, Any]]) -> tuple[list[Parameter], list[list[int]]]:
    """Return all Parameters in the order of the gradients, and each group's indexes.

    Raises RuntimeError if a Parameter occurs in two groups, and ValueError if it occurs twice in a list.
    """
    listed = [listed_parameters(name, g["params"]) if "params" in g else [] for g in groups]
    if len(groups) > 1:
        _check_groups_are_disjoint(name, listed)
    order = next((list(g["order_params"]) for g in groups if "order_params" in g), None)
    everything = order if order is not None else [p for group in listed for p in group]
    position_of: dict[int, int] = {}
    names: set[str] = set()
    for i, parameter in enumerate(everything):
        if id(parameter) in position_of or parameter.name in names:
            raise ValueError(
                f"{name}: two Parameters have the name {parameter.name!r}, or one occurs twice.\n\nhint: give each a unique name."
            )
        position_of[id(parameter)] = i
        names.add(parameter.name)
    missing = [p.name for group in listed for p in group if id(p) not in position_of]
    if missing:
        raise ValueError(f"{name}: order_params lacks {', '.join(missing)}.")
    return everything, [[position_of[id(p)] for p in group] for group in listed]


def _check_groups_are_disjoint(name: str, groups: list[list[Parameter]]) -> None:
    names: set[str] = set()
    for parameter in (parameter for group in groups for parameter in group):
        if parameter.name in names:
            raise RuntimeError(translate(
                "For '{name}', the {parameter} parameter already exists, it does not support repeated setting."
            ).format(name=name, parameter=parameter.name))
        names.add(parameter.name)


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorate an optimizer's `__init__`, so that its arguments can be read later.

    `init_params` is {'params': ...}, `init_learning_rate` the rate, `init_args` all others by name, including defaults.
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(list(bound.arguments.items())[1:])
        fn(self, *args, **kwargs)
        # Stored without Cell's __setattr__, because the Parameters already belong to the network.
        inner = arguments.pop("optimizer", None)
        self.__dict__["init_params"] = {"params": arguments.pop("params", None)} if inner is None else dict(inner.init_params)
        self.__dict__["init_learning_rate"] = arguments.pop("learning_rate", None)
        self.__dict__["init_args"] = arguments

    return initialise
