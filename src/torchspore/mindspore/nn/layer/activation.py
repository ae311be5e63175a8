"""Activation functions as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.frames import line_prefix
from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration.limits import axes, checked


def _simple(name: str, function: Any, part: str = "", primitive: str = "") -> type[Cell]:
    """A Cell without arguments that calls an operator and has its primitive as `part`."""

    def construct(self: Cell, x: Any) -> Any:
        return function(x)

    def init(self: Cell) -> None:
        Cell.__init__(self)

    construct.__doc__ = function.__doc__
    parts = {part: Part(lambda _: getattr(ops, primitive)())} if part else {}
    return type(name, (Cell,), {"__init__": init, "construct": construct, "__doc__": function.__doc__, "__module__": __name__, **parts})


ReLU6 = _simple("ReLU6", ops.relu6, "relu6", "ReLU6")
Sigmoid = _simple("Sigmoid", ops.sigmoid, "sigmoid", "Sigmoid")
Tanh = _simple("Tanh", ops.tanh, "tanh", "Tanh")
HSigmoid = _simple("HSigmoid", ops.hardsigmoid, "hsigmoid", "HSigmoid")
HSwish = _simple("HSwish", ops.hardswish, "hswish", "HSwish")
SiLU = _simple("SiLU", ops.silu)
Mish = _simple("Mish", ops.mish, "mish", "Mish")
SeLU = _simple("SeLU", ops.selu, "selu", "SeLU")
LogSigmoid = _simple("LogSigmoid", ops.logsigmoid)
Softsign = _simple("Softsign", ops.softsign, "softsign", "Softsign")


class ReLU(Cell):
    """max(x, 0)."""

    relu = Part(lambda _: ops.ReLU())

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
            raise TypeError(message(f"LeakyReLU(alpha={alpha!r})", with_type("a number", alpha)))
        self.alpha = alpha

    def construct(self, x: Any) -> Any:
        """x where positive, else alpha * x."""
        return ops.leaky_relu(x, self.alpha)


class ELU(Cell):
    """x where positive, else alpha * (exp(x) - 1)."""

    elu = Part(lambda cell: ops.Elu(cell.alpha))

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
            raise TypeError(message(f"GELU(approximate={approximate!r})", with_type("a bool", approximate)))
        self.approximate = approximate

    def construct(self, x: Any) -> Any:
        """The GELU of x."""
        return ops.gelu(x, "tanh" if self.approximate else "none")


class Softmax(Cell):
    """exp(x) divided by its sum along `axis`."""

    softmax = Part(lambda cell: ops.Softmax(cell.axis))

    @checked(axis=axes(tuple))
    def __init__(self, axis: Any = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """The softmax of x."""
        return ops.softmax(x, self.axis) if self.axis.__class__ is int else ops.Softmax(self.axis)(x)


class LogSoftmax(Cell):
    """The logarithm of softmax along `axis`."""

    log_softmax = Part(lambda cell: ops.LogSoftmax(cell.axis))

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """The log softmax of x."""
        return ops.log_softmax(x, self.axis)


class PReLU(Cell):
    """x where positive, else w * x, with one trained w or one for each of `channel` channels."""

    prelu = Part(lambda _: ops.PReLU())

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        if channel < 1:
            raise ValueError(message(f"PReLU(channel={channel})", "an int from 1 on"))
        if not isinstance(w, (float, list, Tensor)):
            raise TypeError(f"PReLU(w={short(w)}): expected a float, a list or a Tensor, got {type(w).__name__}.")
        self.channel = channel
        start = initializer(w, [channel], dtypes.float32) if isinstance(w, float) else w
        self.w = Parameter(start if not isinstance(start, list) else initializer(1, [len(start)]), name="a")

    def construct(self, x: Any) -> Any:
        """x where positive, else w * x."""
        return ops.prelu(x, self.w)


FastGelu = _simple("FastGelu", ops.fast_gelu, "fast_gelu", "FastGeLU")
Tanhshrink = _simple("Tanhshrink", ops.tanhshrink)


class _Checked(Cell):
    """Base class of activations with numbers, each of which is checked."""

    def _numbers_(self, **numbers: Any) -> None:
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(message(f"{type(self).__name__}({name}={value!r:.40})", with_type("a number", value)))
            setattr(self, name, value)


class CELU(_Checked):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""

    celu = Part(lambda cell: ops.CeLU(cell.alpha))

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._numbers_(alpha=alpha)
        if alpha == 0:
            raise ValueError("CELU(alpha=0): expected another number.")

    def construct(self, x: Any) -> Any:
        """The activation of x."""
        return ops.celu(x, self.alpha)


class Hardtanh(_Checked):
    """Clip x to the range from `min_val` to `max_val`."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self._numbers_(min_val=min_val, max_val=max_val)
        if max_val < min_val:
            raise ValueError(f"Hardtanh(min_val={min_val}, max_val={max_val}): expected the smaller number first.")

    def construct(self, x: Any) -> Any:
        """The activation of x."""
        return ops.hardtanh(x, self.min_val, self.max_val)


class HShrink(_Checked):
    """x outside of [-lambd, lambd], else 0."""

    hshrink = Part(lambda cell: ops.HShrink(cell.lambd))

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self._numbers_(lambd=lambd)

    def construct(self, input: Any) -> Any:
        """The activation of the input."""
        return ops.hardshrink(input, self.lambd)


class SoftShrink(_Checked):
    """Move x towards 0 by lambd."""

    softshrink = Part(lambda cell: ops.SoftShrink(cell.lambd))

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self._numbers_(lambd=lambd)

    def construct(self, input: Any) -> Any:
        """The activation of the input."""
        return ops.softshrink(input, self.lambd)


class Threshold(_Checked):
    """x where above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self._numbers_(threshold=threshold, value=value)

    def construct(self, input_x: Any) -> Any:
        """The activation of the input."""
        return ops.threshold(input_x, self.threshold, self.value)


class RReLU(_Checked):
    """x where positive, else x times a random number between `lower` and `upper`, drawn for each element."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> None:
        super().__init__()
        self._numbers_(lower=lower, upper=upper)
        if upper < lower:
            raise ValueError(f"RReLU(lower={lower}, upper={upper}): expected the smaller number first.")

    def construct(self, x: Any) -> Any:
        """The activation of x."""
        return ops.rrelu(x, self.lower, self.upper)


class GLU(Cell):
    """The first half along `axis` times the sigmoid of the second."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        check_int_type("GLU", "axis", axis)
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """The activation of x."""
        return ops.glu(x, self.axis)


class Softmin(Cell):
    """exp(-x) divided by its sum along `axis`."""

    def __init__(self, axis: Any = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """The softmin of x."""
        return ops.softmin(x, self.axis)


class Softmax2d(Cell):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """The softmax of x."""
        if x.ndim not in (3, 4):
            raise ValueError(f"{line_prefix()}Softmax2d: expected (N, C, H, W) or (C, H, W), got shape {x.shape}.")
        return ops.softmax(x, -3)


class LogSoftmaxExt(Cell):
    """The logarithm of softmax along `dim`. None means the first axis for inputs of 0, 1 or 3 axes, else the second."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, x: Any) -> Any:
        """The log softmax of x."""
        return ops.LogSoftmaxExt()(x, self.dim)


class LRN(Cell):
    """x / (bias + alpha * s)^beta; s is the sum of squares over `depth_radius` channels (axis 1) on each side."""

    def __init__(
        self, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        self.local_response_norm = ops.LRN(depth_radius, bias, alpha, beta, norm_region)

    def construct(self, input_x: Any) -> Any:
        """The normalized input."""
        return self.local_response_norm(input_x)


class PReLUExt(Cell):
    """x where positive, else weight * x, with one trained weight or one for each of `num_parameters` channels."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(initializer(init, [num_parameters], dtypes.float32 if dtype is None else dtype), name="weight")

    def construct(self, input: Any) -> Any:
        """The input where positive, else weight * input."""
        return ops.prelu(input, self.weight)


ACTIVATIONS: dict[str, Any] = {
    "softmax": Softmax, "logsoftmax": LogSoftmax, "relu": ReLU, "relu6": ReLU6, "tanh": Tanh, "gelu": GELU, "elu": ELU, "sigmoid": Sigmoid,
    "prelu": PReLU, "leakyrelu": LeakyReLU, "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid, "softshrink": SoftShrink,
    "hshrink": HShrink, "fast_gelu": FastGelu, "softmin": Softmin, "softmax2d": Softmax2d, "logsoftmaxExt": LogSoftmaxExt, "rrelu": RReLU,
    "tanhshrink": Tanhshrink, "hardtanh": Hardtanh, "softsign": Softsign, "preluExt": PReLUExt, "threshold": Threshold,
    "silu": SiLU, "mish": Mish,
}

_activation = ACTIVATIONS

__all__ = [
    "CELU", "ELU", "FastGelu", "GELU", "GLU", "HShrink", "HSigmoid", "HSwish", "Hardtanh", "LRN", "LeakyReLU", "LogSigmoid", "LogSoftmax",
    "LogSoftmaxExt", "Mish", "PReLU", "PReLUExt", "RReLU", "ReLU", "ReLU6", "SeLU", "SiLU", "Sigmoid", "SoftShrink", "Softmax", "Softmax2d",
    "Softmin", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]
