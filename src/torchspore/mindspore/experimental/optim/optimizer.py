"""The base of these optimizers: groups of Parameters with options."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from torchspore.base.text import message, with_type
from torchspore.engine.formulas.row_gradients import RowsBase
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import TensorBase, raw
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.translations import translate

_GRADIENTS = (TensorBase, RowsBase)


class Optimizer(Cell):
    """The base: `param_groups` is a list of {'params': Parameters, 'lr': a Parameter, option: value}; a call with gradients updates.

    `params` is a list of Parameters or of such groups, `defaults` are the options that a group omits. User-defined subclasses define
    `construct(self, gradients)` and can read `param_groups`, `parameters`, `lrs`, `defaults`. Raises TypeError for values that are not
    Parameters, ValueError for none and for repeated ones.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        if params is None:
            raise ValueError(translate("For 'Optimizer', the argument parameters can not be None."))
        if isinstance(params, (Parameter, str)) or not isinstance(params, Iterable):
            raise TypeError(f"{name}(params={type(params).__name__}): expected a list of Parameters or of groups.")
        listed = list(params)
        if not listed:
            text = "at least one Parameter. For 'Optimizer', the argument parameters must not be empty"
            raise ValueError(message(f"{name}(params=[])", text))
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.lrs: list[Parameter] = []
        self.group_start_id = [0]
        self.parameters = ParameterTuple([])
        groups = listed if isinstance(listed[0], dict) else [{"params": listed}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: {'params': Parameters} and the options that differ from the defaults."""
        name = type(self).__name__
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f"{name}: expected a group such as {{'params': [...]}}, got {param_group!r:.60}.")
        parameters = param_group["params"]
        parameters = [parameters] if isinstance(parameters, Parameter) else list(parameters)
        for parameter in parameters:
            if not isinstance(parameter, Parameter):
                raise TypeError(message(f"{name}", with_type("Parameters", parameter)))
        everything = [*self.parameters, *parameters]
        if len({id(item) for item in everything}) < len(everything):
            raise ValueError(f"{name}: a Parameter occurs twice.")
        group = {**self.defaults, **param_group, "params": parameters}
        rate = group["lr"]
        value = float(rate) if isinstance(rate, (int, float, Tensor)) else None
        if value is None:
            raise TypeError(f"{name}(lr={rate!r:.40}): expected a number or a Tensor, got {type(rate).__name__}.")
        if value < 0:
            raise ValueError(message(f"{name}(lr={value})", "a number from 0 on"))
        if not math.isfinite(value):
            raise ValueError(message(f"{name}(lr={value})", "a finite number"))
        group_index = len(self.param_groups)
        group["lr"] = Parameter(Tensor(value, dtypes.float32), name=f"learning_rate_group_{group_index}")
        self.lrs.append(group["lr"])
        self.param_groups.append(group)
        self.group_start_id.append(len(everything))
        self.parameters = ParameterTuple(everything)

    def construct(self, *hyper_params: Any) -> Any:
        """Update the Parameters; each optimizer defines its own `construct`."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method construct(self, gradients), called with {len(hyper_params)} arguments."
        )

    def _moments_(self, prefix: str, init: Any = "zeros") -> ParameterTuple:
        """Return one Parameter of state for each Parameter, named `prefix.name`."""
        return self.parameters.clone(prefix, init)

    def _counter_(self, name: str) -> Parameter:
        """Return a Parameter that counts steps."""
        return Parameter(initializer(0, [], dtypes.int32), name=name)

    def _updates_(self, gradients: Any, coupled: bool = True) -> Iterator[tuple[Any, Any, Any, dict[str, Any], int]]:
        """Yield for each Parameter: torch's parameter, its gradient (decayed, if the decay is `coupled`), the rate, the group, its index.

        Raises TypeError for values that are not gradients, ValueError for another number of them or a shape other than the Parameter's.
        """
        name, expected = type(self).__name__, "a tuple of gradients, one for each Parameter"
        if not isinstance(gradients, (list, tuple)):
            raise TypeError(message(f"{name}(gradients)", f"{expected}, got {type(gradients).__name__}"))
        listed = list(gradients)
        if len(listed) != len(self.parameters):
            raise ValueError(f"{name}: expected {len(self.parameters)} gradients, one for each Parameter, got {len(listed)}.")
        for index, (parameter, gradient) in enumerate(zip(self.parameters, listed)):
            if not isinstance(gradient, _GRADIENTS):
                raise TypeError(message(f"{name}(gradients)", f"{expected}, got {type(gradient).__name__} at index {index}"))
            expected_shape, shape = raw(parameter).shape, raw(gradient).shape
            if expected_shape != shape:
                description = f"{name}(gradients): the gradient of {parameter.name!r} with shape {list(shape)}"
                raise ValueError(message(description, f"the Parameter's shape, {list(expected_shape)}"))
        index = 0
        for group in self.param_groups:
            rate, decay = raw(group["lr"]), float(group.get("weight_decay", 0.0))
            for parameter in group["params"]:
                p, g = raw(parameter), raw(listed[index])
                g = -g.to(p.dtype) if group.get("maximize") else g.to(p.dtype)
                if coupled and decay:
                    g = g + p * decay
                yield p, g, rate, group, index
                index += 1

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {number}")
            shown = {**group, "lr": float(group["lr"])}
            lines += [f"    {key}: {shown[key]}" for key in sorted(shown) if key != "params"]
        return f"{type(self).__name__} (" + "\n".join(lines) + "\n)"
