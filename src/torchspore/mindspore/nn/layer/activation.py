"""Activation functions as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.engine import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell


def _simple(name: str, function: Any) -> type[Cell]:
    """A Cell without arguments around an operator."""

    def construct(self: Cell, x: Any) -> Any:
        return function(x)

    construct.__doc__ = function.__doc__
    return type(name, (Cell,), {"construct": construct, "__doc__": function.__doc__, "__module__": __name__})


ReLU6 = _simple("ReLU6", ops.relu6)
Sigmoid = _simple("Sigmoid", ops.sigmoid)
Tanh = _simple("Tanh", ops.tanh)
HSigmoid = _simple("HSigmoid", ops.hardsigmoid)
HSwish = _simple("HSwish", ops.hardswish)
SiLU = _simple("SiLU", ops.silu)
Mish = _simple("Mish", ops.mish)
SeLU = _simple("SeLU", ops.selu)
LogSigmoid = _simple("LogSigmoid", ops.logsigmoid)
Softsign = _simple("Softsign", ops.softsign)


class ReLU(Cell):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def construct(self, x: Any) -> Any:
        """max(x, 0)."""
        return ops.relu(x)


class LeakyReLU(Cell):
    """x where positive, else alpha * x."""

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
            raise TypeError(f"LeakyReLU(alpha={alpha!r}): expected a number, got {type(alpha).__name__}.")
        self.alpha = alpha

    def construct(self, x: Any) -> Any:
        """x where positive, else alpha * x."""
        return ops.leaky_relu(x, self.alpha)


class ELU(Cell):
    """x where positive, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Any) -> Any:
        """x where positive, else alpha * (exp(x) - 1)."""
        return ops.elu(x, self.alpha)


class GELU(Cell):
    """x times the normal distribution function of x, in its tanh form if `approximate`."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        if not isinstance(approximate, bool):
            raise TypeError(f"GELU(approximate={approximate!r}): expected a bool, got {type(approximate).__name__}.")
        self.approximate = approximate

    def construct(self, x: Any) -> Any:
        """The GELU of x."""
        return ops.gelu(x, "tanh" if self.approximate else "none")


class Softmax(Cell):
    """exp(x) divided by its sum along `axis`."""

    def __init__(self, axis: Any = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """The softmax of x."""
        return ops.Softmax(self.axis)(x)


class LogSoftmax(Cell):
    """The logarithm of softmax along `axis`."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """The log softmax of x."""
        return ops.log_softmax(x, self.axis)


class PReLU(Cell):
    """x where positive, else w * x, with one trained w for all or one for each of `channel` channels."""

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        if channel < 1:
            raise ValueError(f"PReLU(channel={channel}): expected an int from 1 on.")
        self.channel = channel
        start = initializer(w, [channel], dtypes.float32) if isinstance(w, (int, float)) else w
        self.w = Parameter(start if not isinstance(start, list) else initializer(1, [len(start)]), name="a")

    def construct(self, x: Any) -> Any:
        """x where positive, else w * x."""
        return ops.prelu(x, self.w)




ACTIVATIONS: dict[str, Any] = {
    "softmax": Softmax, "logsoftmax": LogSoftmax, "relu": ReLU, "relu6": ReLU6, "tanh": Tanh, "gelu": GELU, "elu": ELU, "sigmoid": Sigmoid,
    "prelu": PReLU, "leakyrelu": LeakyReLU, "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid, "silu": SiLU, "mish": Mish,
}
