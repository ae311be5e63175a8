"""Convolutions as Cells."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import HeUniform, Uniform, initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_lengths, check_words
from torchspore.mindspore.ops.images import conv


def _check_input_3d(input_shape: Any, op_name: str) -> None:
    """Raises ValueError for a shape that does not have three axes; a helper of 1.x."""
    if len(input_shape) != 3:
        raise ValueError(f"{op_name}: expected an input of three axes, got shape {tuple(input_shape)}.")


class _Conv(Cell):
    """Base class of convolutions: arguments, checks, weight (out, in / group, kernel...) and bias."""

    _axes_ = 2
    _transposed_ = False
    _formats_: tuple[str, ...] = ("NCHW", "NHWC")
    bias_add = Part(lambda cell: ops.BiasAdd("NHWC") if cell.data_format == "NHWC" else ops.BiasAdd())

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1,
        group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, data_format: str = "NCHW",
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        for key, value in (("in_channels", in_channels), ("out_channels", out_channels), ("group", group)):
            check_int_type(name, key, value)
            if value < 1:
                raise ValueError(message(f"{name}({key}={value})", "an int from 1 on"))
        if in_channels % group or out_channels % group:
            raise ValueError(f"{name}(group={group}): expected a divisor of in_channels={in_channels} and out_channels={out_channels}.")
        check_kinds(name, "bool", has_bias=has_bias)
        check_words(name, "data_format", data_format, self._formats_)
        self._check_windows_(name, kernel_size, stride, dilation, padding)
        pad_mode = pad_mode.lower() if isinstance(pad_mode, str) and self._axes_ == 3 else pad_mode
        if pad_mode not in ("same", "valid", "pad"):
            raise ValueError(f"{name}(pad_mode={pad_mode!r}): expected 'same', 'valid' or 'pad'.")
        if pad_mode != "pad" and any(conv.pair(padding, 2 * self._axes_)):
            raise ValueError(f"{name}(padding={padding}): it needs pad_mode='pad', not {pad_mode!r}.")
        self.in_channels, self.out_channels, self.group, self.has_bias = in_channels, out_channels, group, has_bias
        self.kernel_size, self.stride, self.dilation = (conv.pair(v, self._axes_) for v in (kernel_size, stride, dilation))
        self.pad_mode, self.padding = pad_mode, padding
        self.data_format, self.weight_init, self.bias_init = data_format, weight_init, bias_init
        first, second = (in_channels, out_channels) if self._transposed_ else (out_channels, in_channels)
        shape = [first, second // group, *self._kernel_of_weight_()]
        if self._axes_ == 1 and isinstance(weight_init, Tensor) and weight_init.ndim == 3:
            weight_init = weight_init.expand_dims(2)         # as Conv1d stores it: (out, in, 1, length)
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)) if weight_init is None else weight_init, shape, dtype), name="weight")
        self.bias = None
        if has_bias:
            bound = 1 / math.sqrt(math.prod(shape[1:]))
            self.bias = Parameter(initializer(Uniform(bound) if bias_init is None else bias_init, [out_channels], dtype), name="bias")

    def _check_windows_(self, name: str, kernel_size: Any, stride: Any, dilation: Any, padding: Any) -> None:
        if self._axes_ == 1:
            check_lengths(name, (), kernel_size=kernel_size, stride=stride, dilation=dilation)
            check_lengths(name, (), least=0, padding=padding)
            return
        wrong_count = TypeError if self._axes_ == 2 else ValueError
        check_lengths(name, (self._axes_,), wrong_count=wrong_count, kernel_size=kernel_size, stride=stride, dilation=dilation)
        check_lengths(name, (2 * self._axes_,), least=0, padding=padding)

    def _kernel_of_weight_(self) -> tuple[int, ...]:
        """Return the lengths of the weight's last axes."""
        return self.kernel_size

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, "
            f"pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}"
        )


class Conv2d(_Conv):
    """Convolution of images (N, in_channels, H, W) into (N, out_channels, H', W'); pad_mode 'same' keeps H and W at stride 1."""

    conv2d = Part(lambda cell: ops.Conv2D(
        cell.out_channels, cell.kernel_size, 1, cell.pad_mode, cell.padding, cell.stride, cell.dilation, cell.group, cell.data_format,
    ))

    def construct(self, x: Any) -> Any:
        """The convolution of x."""
        if self.data_format == "NHWC":
            return ops.transpose(self._convolve_(ops.transpose(x, (0, 3, 1, 2))), (0, 2, 3, 1))
        return self._convolve_(x)

    def _convolve_(self, x: Any) -> Any:
        return ops.conv2d(x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)


class Conv1d(_Conv):
    """Convolution of sequences (N, in_channels, L) into (N, out_channels, L'); weight (out_channels, in_channels / group, 1, kernel)."""

    _axes_, _formats_ = 1, ("NCL",)
    expand_dims, squeeze = Part(lambda _: ops.ExpandDims()), Part(lambda _: ops.Squeeze(2))
    conv2d = Part(lambda cell: ops.Conv2D(
        cell.out_channels, (1, *cell.kernel_size), 1, cell.pad_mode, (0, 0, cell.padding, cell.padding), (1, *cell.stride),
        (1, *cell.dilation), cell.group,
    ))

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: int = 1,
        group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init, "NCL",
            dtype,
        )

    def _kernel_of_weight_(self) -> tuple[int, ...]:
        """Return (1, kernel): MindSpore, and its checkpoints, store the weight of a 1-D convolution with height 1."""
        return 1, *self.kernel_size

    def construct(self, x: Any) -> Any:
        """The convolution of x."""
        return ops.conv1d(x, ops.squeeze(self.weight, 2), self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)


class Conv3d(_Conv):
    """Convolution of volumes (N, in_channels, D, H, W)."""

    _axes_, _formats_ = 3, ("NCDHW",)
    conv3d = Part(lambda cell: ops.Conv3D(
        cell.out_channels, cell.kernel_size, 1, cell.pad_mode, cell.padding, cell.stride, cell.dilation, cell.group,
    ))

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1,
        group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None, data_format: str = "NCDHW",
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init,
            data_format, dtype,
        )

    def construct(self, x: Any) -> Any:
        """The convolution of x."""
        return ops.conv3d(x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)


class Conv2dTranspose(_Conv):
    """Transposed convolution of images (N, in_channels, H, W); weight (in_channels, out_channels / group, kernel...)."""

    _transposed_ = True
    conv2d_transpose = Part(lambda cell: ops.Conv2DTranspose(
        cell.in_channels, cell.kernel_size, cell.pad_mode, cell.padding, None, 1, cell.stride, cell.dilation, cell.group,
    ))

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init, "NCHW",
            dtype,
        )
        self.output_padding = output_padding
        check_lengths("Conv2dTranspose", (2,), least=0, output_padding=output_padding)
        self._rows_behind_, self._columns_behind_ = conv.pair(output_padding)
        for behind, most in zip(conv.pair(output_padding), map(max, zip(self.stride, self.dilation))):
            if behind >= most:
                raise ValueError(
                    f"Conv2dTranspose(output_padding={output_padding!r}): expected at most {most - 1}, below the stride or dilation."
                )
        if (self._rows_behind_ or self._columns_behind_) and self.pad_mode != "pad":
            raise ValueError(
                f"Conv2dTranspose(output_padding={output_padding!r}, pad_mode={pad_mode!r}): expected output_padding=0 or pad_mode='pad'."
            )

    def construct(self, x: Any) -> Any:
        """The transposed convolution of x, followed by `output_padding` rows and columns of zeros."""
        out = conv._conv_transposed(x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, 0, self.dilation, self.group)
        return self._padded_(out)

    def _padded_(self, out: Any) -> Any:
        """Append the zeros to `out`: MindSpore adds them after the bias, where torch would continue the convolution."""
        if not self._rows_behind_ and not self._columns_behind_:
            return out
        return ops.pad(out, [0, self._columns_behind_, 0, self._rows_behind_])


class Conv1dTranspose(_Conv):
    """Transposed convolution of sequences (N, in_channels, L); weight (in_channels, out_channels / group, 1, kernel)."""

    _axes_, _transposed_, _formats_ = 1, True, ("NCL",)

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, pad_mode: str = "same", padding: int = 0,
        dilation: int = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init, "NCL",
            dtype,
        )

    def _kernel_of_weight_(self) -> tuple[int, ...]:
        """Return (1, kernel): MindSpore, and its checkpoints, store the weight of a 1-D convolution with height 1."""
        return 1, *self.kernel_size

    def construct(self, x: Any) -> Any:
        """The transposed convolution of x."""
        weight = ops.squeeze(self.weight, 2)
        return conv._conv_transposed(x, weight, self.bias, self.stride, self.pad_mode, self.padding, 0, self.dilation, self.group)


class Conv3dTranspose(_Conv):
    """Transposed convolution of volumes (N, in_channels, D, H, W); weight (in_channels, out_channels / group, kernel...)."""

    _axes_, _transposed_, _formats_ = 3, True, ("NCDHW",)

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, output_padding: Any = 0, has_bias: bool = False, weight_init: Any = None,
        bias_init: Any = None, data_format: str = "NCDHW", dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init,
            data_format, dtype,
        )
        check_lengths("Conv3dTranspose", (3,), 0, output_padding=output_padding)
        if self.pad_mode != "pad" and any(conv.pair(output_padding, 3)):
            raise ValueError(f"Conv3dTranspose(output_padding={output_padding}): it needs pad_mode='pad', not {self.pad_mode!r}.")
        self.output_padding = output_padding

    def construct(self, x: Any) -> Any:
        """The transposed convolution of x."""
        return conv._conv_transposed(
            x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.output_padding, self.dilation, self.group,
        )


__all__ = ["Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dTranspose", "Conv3d", "Conv3dTranspose"]
