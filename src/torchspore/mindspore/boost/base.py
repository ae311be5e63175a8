"""Recreation of optimizers and their Parameter groups for the methods of `boost`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.boost.less_batch_normalization import CommonHeadLastFN
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.conv import Conv2d
from torchspore.mindspore.nn.optim import LARS, Optimizer
from torchspore.public_names import missing

_UNCENTRED = ("beta", "gamma", "bias")


class Maker:
    """The constructor arguments of an optimizer, for creating similar ones."""

    def __init__(self, call: str, optimizer: Any) -> None:
        """Raises TypeError for an optimizer that did not record its arguments."""
        self.is_lars = isinstance(optimizer, LARS)
        self.single = optimizer.opt if self.is_lars else optimizer
        if not isinstance(self.single, Optimizer) or not hasattr(self.single, "init_args"):
            raise TypeError(message(
                f"{call}({short(optimizer)})", "an optimizer of mindspore.nn",
                hint="write @opt_init_args_register before the __init__ of your own",
            ))
        self._lars_arguments = {
            name: getattr(optimizer, name) for name in ("epsilon", "coefficient", "use_clip", "lars_filter")
        } if self.is_lars else {}

    @property
    def rate(self) -> Any:
        """Return the learning-rate argument, or the optimizer's default."""
        argument = self.single.init_learning_rate
        return self.single.learning_rate if argument is None else argument

    def create(self, parameters: Any, rate: Any, prefix: str = "") -> Optimizer:
        """Return an optimizer like this one for other Parameters; `prefix` precedes the names of its state."""
        ids = {id(parameter) for parameter in _parameters(parameters)}
        optimizer = type(self.single)(params=parameters, learning_rate=rate, **self.single.init_args)
        wrapped = LARS(optimizer, **self._lars_arguments) if self.is_lars else optimizer
        for name, parameter in wrapped.parameters_and_names() if prefix else ():
            if id(parameter) not in ids:
                parameter.name = prefix + name
        return wrapped


def _parameters(listed_or_iterable: Any) -> list[Any]:
    listed = list(listed_or_iterable)
    groups = [item for item in listed if isinstance(item, dict)]
    return [parameter for group in groups for parameter in group.get("params", ())] if groups else listed


class OptimizerProcess:
    """Recreates an optimizer with centred gradients, `grad - mean(grad)` over all axes except the first.

    Set `origin_params` to groups, call `add_grad_centralization(network)`, and then `generate_new_optimizer()`. Raises TypeError unless it
    is an optimizer of mindspore.nn.
    """

    def __init__(self, opt: Any) -> None:
        self._maker = Maker("OptimizerProcess", opt)
        self.is_lars, self.single_opt, self.opt_class = self._maker.is_lars, self._maker.single, type(self._maker.single)
        self.opt_init_args, self.learning_rate = self.single_opt.init_args, self.single_opt.init_learning_rate
        self.origin_params = self.single_opt.init_params["params"]

    @staticmethod
    def build_params_dict(network: Cell) -> dict[int, Cell]:
        """Return the Cell of each Parameter by the Parameter's id."""
        return {id(parameter): cell for _, cell in network.cells_and_names() for parameter in cell.get_parameters(expand=False)}

    @staticmethod
    def build_gc_params_group(params_dict: dict[int, Cell], parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Split each group in two: weights with centred gradients, and all others (norms, biases, grouped convolutions)."""
        call = "OptimizerProcess.build_gc_params_group"
        if not isinstance(params_dict, dict):
            raise TypeError(message(f"{call}(params_dict={short(params_dict)})", "the result of build_params_dict"))
        if not isinstance(parameters, (list, tuple)) or not all(isinstance(group, dict) for group in parameters):
            raise TypeError(message(f"{call}(parameters={short(parameters)})", "a list of groups"))
        split_groups: list[dict[str, Any]] = []
        for group in parameters:
            if "order_params" in group:
                split_groups.append(group)
                continue
            centred = [parameter for parameter in group["params"] if _is_centred(parameter, params_dict)]
            others = [parameter for parameter in group["params"] if not _is_centred(parameter, params_dict)]
            split_groups += [{**group, "params": centred, "grad_centralization": True}] if centred else []
            split_groups += [{**group, "params": others}] if others else []
        return split_groups

    def add_grad_centralization(self, network: Cell) -> None:
        """Splits `origin_params` by whether gradients are centred; Parameters without groups stay unchanged.

        Raises ValueError for an empty list, TypeError for anything but Parameters.
        """
        listed = _checked("OptimizerProcess.add_grad_centralization", self.origin_params)
        if isinstance(listed[0], dict):
            self.origin_params = self.build_gc_params_group(self.build_params_dict(network), listed)

    def generate_new_optimizer(self) -> Optimizer:
        """Returns the optimizer, recreated for `origin_params`."""
        return self._maker.create(self.origin_params, self._maker.rate if self.learning_rate is None else self.learning_rate)


def _is_centred(parameter: Parameter, cells: dict[int, Cell]) -> bool:
    if any(part in parameter.name for part in _UNCENTRED):
        return False
    cell = cells[id(parameter)]
    return not isinstance(cell, CommonHeadLastFN) and not (isinstance(cell, Conv2d) and cell.group > 1)


def _checked(call: str, parameters: Any) -> list[Any]:
    listed = [] if parameters is None else list(parameters)
    if not listed:
        raise ValueError(message(f"{call} of an empty list", "at least one Parameter"))
    if not isinstance(listed[0], (dict, Parameter)):
        raise TypeError(message(f"{call} of {short(listed[0])}", "Parameters, or groups {'params': ...}"))
    return listed


class ParameterProcess:
    """Groups Parameters for optimizers and for the fusion of messages."""

    def __init__(self) -> None:
        self._parameter_indices = 1

    @staticmethod
    def generate_group_params(parameters: Sequence[Parameter], origin_params: Any) -> list[dict[str, Any]]:
        """Returns `parameters` in the groups of `origin_params`; those in no group join the group with most entries.

        Raises ValueError for an empty list, TypeError for anything but Parameters.
        """
        origin = _checked("ParameterProcess.generate_group_params", origin_params)
        if not isinstance(origin[0], dict):
            return [{"params": list(parameters)}]
        by_name = {parameter.name: parameter for parameter in parameters}
        remaining, groups, widest = dict(by_name), [], dict[str, Any]()
        for group in origin:
            if "order_params" in group:
                groups.append({**group, "order_params": list(parameters)})
                continue
            names = [parameter.name for parameter in group["params"] if parameter.name in by_name]
            groups.append({**group, "params": [by_name[name] for name in names]})
            for name in names:
                remaining.pop(name, None)
            widest = group if len(group) > len(widest) else widest
        return [*groups, {**widest, "params": list(remaining.values())}] if remaining else groups

    def assign_parameter_group(self, parameters: Any, split_point: Sequence[int] | None = None) -> Any:
        """Sets each Parameter's `comm_fusion`, which increases at each index in `split_point`, or in the middle. Returns the Parameters."""
        if not isinstance(parameters, (list, tuple)) or not parameters:
            return parameters
        indices = split_point or [len(parameters) // 2]
        for index, parameter in enumerate(parameters):
            self._parameter_indices += index in indices
            parameter.comm_fusion = self._parameter_indices
        return parameters


__getattr__ = missing(__name__)
