"""Small layers: one-hot vectors, windows, channel shuffle, channel dropout, products of two inputs."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type, is_int
from torchspore.base.text import message, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import HeUniform, Uniform, initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration.limits import truth


class OneHot(Cell):
    """Converts indexes to vectors of `depth` along `axis`: `on_value` at the index, `off_value` elsewhere, of `dtype`."""

    onehot = Part(lambda cell: ops.OneHot(cell.axis))

    def __init__(self, axis: int = -1, depth: int = 1, on_value: Any = 1.0, off_value: Any = 0.0, dtype: Any = dtypes.float32) -> None:
        super().__init__()
        self.axis, self.depth, self.dtype = axis, depth, dtype
        self.on_value, self.off_value = on_value, off_value

    def construct(self, indices: Any) -> Any:
        """The vectors."""
        return ops.one_hot(indices, self.depth, Tensor(self.on_value, self.dtype), Tensor(self.off_value, self.dtype), self.axis)


class Unflatten(Cell):
    """Splits the axis `axis` into several, of the lengths `unflattened_size`."""

    def __init__(self, axis: int, unflattened_size: Any) -> None:
        super().__init__()
        check_int_type("Unflatten", "axis", axis)
        if not isinstance(unflattened_size, (tuple, list)):
            call = f"Unflatten(unflattened_size={unflattened_size!r:.40})"
            raise TypeError(f"{call}: expected a tuple, got {type(unflattened_size).__name__}.")
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def construct(self, input_x: Any) -> Any:
        """The input with more axes."""
        axis = self.axis % input_x.ndim
        return ops.reshape(input_x, (*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1:]))


class Unfold(Cell):
    """Each window of (N, C, H, W) as the channels of one pixel: (N, KH * KW * C, rows, columns).

    `ksizes`, `strides` and `rates` are (1, rows, columns, 1); `padding` is 'same' or 'valid'.
    """

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(value, (tuple, list)):
                raise TypeError(f"Unfold({name}={value!r:.40}): expected a tuple of 4 ints, got {type(value).__name__}.")
            if len(value) != 4 or value[0] != 1 or value[3] != 1:
                raise ValueError(f"Unfold({name}={value!r:.40}): expected (1, rows, columns, 1).")
        self.extract_image_patches = ops.ExtractImagePatches(ksizes, strides, rates, padding)

    def construct(self, input_x: Any) -> Any:
        """The windows."""
        return self.extract_image_patches(input_x)


class L1Regularizer(Cell):
    """`scale` times the sum of absolute values."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        if isinstance(scale, bool) or not isinstance(scale, (int, float)):
            raise TypeError(message(f"L1Regularizer(scale={scale!r:.40})", with_type("a number", scale)))
        if not 0 < scale < float("inf"):
            raise ValueError(f"L1Regularizer(scale={scale}): expected a finite number above 0.")
        self.scale = scale

    def construct(self, weights: Any) -> Any:
        """The loss."""
        total = ops.sum(ops.abs(weights)) * self.scale
        return ops.cast(total, dtypes.float32) if weights.dtype == dtypes.float16 else total


class ChannelShuffle(Cell):
    """Distributes the channels (axis 1) one by one over `groups` groups."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        check_int_type("ChannelShuffle", "groups", groups)
        if groups < 1:
            raise ValueError(message(f"ChannelShuffle(groups={groups})", "an int from 1 on"))
        self.groups = groups

    def construct(self, x: Any) -> Any:
        """The channels in their new order."""
        return ops.channel_shuffle(x, self.groups)

    def extend_repr(self) -> str:
        return f"groups={self.groups}"


class _DropChannels(Cell):
    """Base class of the layers that drop channels."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        name = type(self).__name__
        if isinstance(p, bool) or not isinstance(p, float):
            raise TypeError(f"{name}(p={p!r:.40}): expected a float, got {type(p).__name__}.")
        if not 0 <= p <= 1:
            raise ValueError(f"{name}(p={p}): expected a number from 0 to 1.")
        self.prob = p

    def extend_repr(self) -> str:
        return f"p={self.prob}"


class Dropout1d(_DropChannels):
    """Sets channels of (N, C, L) or (C, L) to 0 with probability `p` while training, and divides the others by 1 - p."""

    def construct(self, x: Any) -> Any:
        """x with channels dropped while training, else x."""
        return ops.dropout1d(x, self.prob) if self.training and self.prob else x


class Dropout2d(_DropChannels):
    """Sets channels of (N, C, H, W) to 0 with probability `p` while training, and divides the others by 1 - p."""

    def construct(self, x: Any) -> Any:
        """x with channels dropped while training, else x."""
        return ops.dropout2d(x, self.prob) if self.training and self.prob else x


class Dropout3d(_DropChannels):
    """Sets channels of (N, C, D, H, W) to 0 with probability `p` while training, and divides the others by 1 - p."""

    def construct(self, x: Any) -> Any:
        """x with channels dropped while training, else x."""
        return ops.dropout3d(x, self.prob) if self.training and self.prob else x


class _DropoutExt(Cell):
    """Base class of the next two layers: with `inplace` the input itself is overwritten."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p, self.inplace = p, inplace

    def _result_(self, x: Any, dropped: Any) -> Any:
        if not self.inplace:
            return dropped
        ops.assign(x, dropped)
        return x


class DropoutExt(_DropoutExt):
    """Sets elements to 0 with probability `p` while training, and divides the others by 1 - p."""

    def construct(self, input: Any) -> Any:
        """The input with elements dropped while training, else the input."""
        return self._result_(input, ops.dropout(input, self.p)) if self.training and self.p else input


class Dropout2dExt(_DropoutExt):
    """Sets channels of (N, C, H, W) to 0 with probability `p` while training, and divides the others by 1 - p."""

    def construct(self, input: Any) -> Any:
        """The input with channels dropped while training, else the input."""
        return self._result_(input, ops.dropout2d(input, float(self.p))) if self.training and self.p else input


class BiDense(Cell):
    """x1 @ weight @ x2 + bias for each of `out_channels` matrices: (..., in1), (..., in2) give (..., out).

    `weight` (out, in1, in2) and `bias` (out,) are initialized uniformly within 1 / sqrt(in1), unless the initializers say otherwise.
    """

    def __init__(
        self, in1_channels: int, in2_channels: int, out_channels: int, weight_init: Any = None, bias_init: Any = None,
        has_bias: bool = True, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        for name, value in (("in1_channels", in1_channels), ("in2_channels", in2_channels), ("out_channels", out_channels)):
            check_int_type("BiDense", name, value)
            if value < 1:
                raise ValueError(message(f"BiDense({name}={value})", "an int from 1 on"))
        if not isinstance(has_bias, bool):
            raise TypeError(message(f"BiDense(has_bias={has_bias!r:.40})", with_type("a bool", has_bias)))
        self.in1_channels, self.in2_channels, self.out_channels, self.has_bias = in1_channels, in2_channels, out_channels, has_bias
        bound = 1 / in1_channels**0.5
        start = Uniform(bound) if weight_init is None else weight_init
        self.weight = Parameter(initializer(start, [out_channels, in1_channels, in2_channels], dtype), name="weight")
        self.bias = None
        if has_bias:
            self.bias = Parameter(initializer(Uniform(bound) if bias_init is None else bias_init, [out_channels], dtype), name="bias")

    def construct(self, input1: Any, input2: Any) -> Any:
        """The products."""
        return ops.bidense(input1, input2, self.weight, self.bias)

    def extend_repr(self) -> str:
        return (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, output_channels={self.out_channels}, "
            f"has_bias={self.has_bias}"
        )


class Linear(Cell):
    """x @ weight.T + bias: (..., in_features) gives (..., out_features).

    `weight` (out, in) is initialized He-uniform, `bias` uniform within 1 / sqrt(in), unless the initializers say otherwise.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, weight_init: Any = None, bias_init: Any = None, dtype: Any = None,
    ) -> None:
        super().__init__()
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            check_int_type("Linear", name, value)
            if value < 1:
                raise ValueError(message(f"Linear({name}={value})", "an int from 1 on"))
        truth("Linear", "bias", bias)
        self.in_features, self.out_features, self.has_bias = in_features, out_features, bias
        dtype = dtypes.float32 if dtype is None else dtype
        start = HeUniform(5**0.5) if weight_init is None else weight_init
        self.weight = Parameter(initializer(start, [out_features, in_features], dtype), name="weight")
        self.bias = None
        if bias:
            begin = Uniform(1 / in_features**0.5) if bias_init is None else bias_init
            self.bias = Parameter(initializer(begin, [out_features], dtype), name="bias")

    def construct(self, x: Any) -> Any:
        """The layer's result for x."""
        return ops.dense(x, self.weight, self.bias)

    def extend_repr(self) -> str:
        return f"input_features={self.in_features}, output_features={self.out_features}, has_bias={self.has_bias}"


class TimeDistributed(Cell):
    """Applies `layer` to each time step: axis `time_axis` is unstacked and stacked again.

    With `reshape_with_axis`, that axis and the time axis are merged for a single call of the layer. Raises TypeError for a layer that is
    not a Cell or Primitive.
    """

    def __init__(self, layer: Any, time_axis: int, reshape_with_axis: int | None = None) -> None:
        super().__init__()
        if not isinstance(layer, (Cell, ops.Primitive)):
            raise TypeError(f"TimeDistributed(layer={layer!r:.40}): expected a Cell or a Primitive, got {type(layer).__name__}.")
        for name, value in (("time_axis", time_axis), ("reshape_with_axis", reshape_with_axis)):
            if (value is not None or name == "time_axis") and not is_int(value):
                raise TypeError(message(f"TimeDistributed({name}={value!r:.40})", with_type("an int", value)))
        self.layer, self.time_axis, self.reshape_with_axis = layer, time_axis, reshape_with_axis

    def construct(self, inputs: Any) -> Any:
        """The results, with the time at the same axis."""
        time = self.time_axis % inputs.ndim
        if self.reshape_with_axis is None:
            outs = [self.layer(ops.squeeze(part, time)) for part in ops.split(inputs, 1, time)]
            return ops.stack(outs, time)
        other = self.reshape_with_axis % inputs.ndim
        if other == time:
            raise ValueError(f"TimeDistributed(time_axis={self.time_axis}, reshape_with_axis={self.reshape_with_axis}): expected two axes.")
        moved = ops.movedim(inputs, time, other if other < time else other - 1)
        at = other if other < time else other - 1
        # The time axis is moved right before the axis that it is merged with.
        shape = moved.shape
        joined = self.layer(ops.reshape(moved, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:])))
        parted = ops.reshape(joined, (*joined.shape[:at], shape[at], shape[at + 1], *joined.shape[at + 1:]))
        return ops.movedim(parted, at, time)


__all__ = [
    "BiDense", "ChannelShuffle", "Dropout1d", "Dropout2d", "Dropout2dExt", "Dropout3d", "DropoutExt", "L1Regularizer", "Linear", "OneHot",
    "TimeDistributed", "Unflatten", "Unfold",
]
