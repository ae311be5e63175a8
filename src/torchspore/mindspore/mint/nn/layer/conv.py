"""Convolutions as Cells."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.arguments import check_counts
from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.common.initializer import HeUniform, Uniform, initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.limits import check_lengths

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Conv(Cell):
    """Base class of convolutions: `weight` (out, in / groups, kernel...), He-uniform, and `bias`, uniform within 1 / sqrt(fan in)."""

    _axes_ = 2
    _call_ = staticmethod(F.conv2d)
    _transposed_ = False

    def _prepare_(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, groups: int, bias: bool,
        padding_mode: str, dtype: Any,
    ) -> None:
        name = type(self).__name__
        check_counts(name, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}(groups={groups}): expected a divisor of in_channels={in_channels} and out_channels={out_channels}.")
        if padding_mode not in _MODES or (self._transposed_ and padding_mode != "zeros"):
            raise ValueError(f"{name}(padding_mode={padding_mode!r}): expected {'zeros' if self._transposed_ else ', '.join(_MODES)}.")
        if isinstance(padding, str) and (padding not in ("same", "valid") or self._transposed_):
            raise ValueError(f"{name}(padding={padding!r}): expected ints, 'same' or 'valid' ('same' and 'valid' not when transposed).")
        if not isinstance(bias, bool):
            raise TypeError(message(f"{name}(bias={short(bias)})", with_type("a bool", bias)))
        counts = (1, self._axes_) if self._transposed_ else (self._axes_,)
        check_lengths(name, counts, wrong_count=TypeError, kinds=(tuple, list), kernel_size=kernel_size, stride=stride, dilation=dilation)
        if not isinstance(padding, str):
            check_lengths(name, counts, 0, wrong_count=TypeError, kinds=(tuple, list), padding=padding)
        self.in_channels, self.out_channels, self.groups, self.has_bias = in_channels, out_channels, groups, bias
        self.kernel_size, self.stride, self.dilation = (self._each_(value) for value in (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) else self._each_(padding)
        if self.padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"{name}(padding='same', stride={stride}): expected a stride of 1.")
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self._transposed_ else (out_channels, in_channels)
        shape = [first, second // groups, *self.kernel_size]
        kind = dtype or dtypes.float32
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)), shape, kind), name="weight")
        self.bias = None
        if bias:
            self.bias = Parameter(initializer(Uniform(1 / math.sqrt(math.prod(shape[1:]))), [out_channels], kind), name="bias")

    def _each_(self, value: Any) -> tuple[int, ...]:
        listed = tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._axes_
        return listed * self._axes_ if len(listed) == 1 else listed

    def _around_(self) -> tuple[int, ...]:
        """Return the padding before and after each axis, last axis first."""
        if self.padding == "valid":
            return (0,) * (2 * self._axes_)
        if self.padding == "same":
            totals = [step * (length - 1) for step, length in zip(self.dilation, self.kernel_size)]
            pairs = [(total // 2, total - total // 2) for total in totals]
        else:
            pairs = [(amount, amount) for amount in self._each_(self.padding)]
        return tuple(number for two in reversed(pairs) for number in two)

    def construct(self, input: Any) -> Any:
        """The convolved input."""
        if self.padding_mode == "zeros":
            return self._call_(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        input = F.pad(input, self._around_(), _MODES[self.padding_mode])
        return self._call_(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, groups={self.groups}, bias={self.has_bias}"
        )


class _Straight(_Conv):
    """A convolution that is not transposed."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", dtype: Any = None,
    ) -> None:
        super().__init__()
        self._prepare_(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype)


class Conv1d(_Straight):
    """Convolution of sequences (N, in_channels, L)."""

    _axes_ = 1
    _call_ = staticmethod(F.conv1d)


class Conv2d(_Straight):
    """Convolution of images (N, in_channels, H, W)."""


class Conv3d(_Straight):
    """Convolution of volumes (N, in_channels, D, H, W)."""

    _axes_ = 3
    _call_ = staticmethod(F.conv3d)


class ConvTranspose2d(_Conv):
    """Transposed convolution of images (N, in_channels, H, W); `weight` is (in, out / groups, kernel...)."""

    _transposed_ = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", dtype: Any = None,
    ) -> None:
        super().__init__()
        self._prepare_(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype)
        self.output_padding = self._each_(output_padding)

    def construct(self, input: Any, output_size: Any = None) -> Any:
        """The transposed convolution of the input; `output_size` (H, W) chooses among the sizes that the stride allows."""
        extra = self.output_padding if output_size is None else self._extra_(input, tuple(output_size)[-2:])
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra_(self, input: Any, output_size: Any) -> tuple[int, ...]:
        sizes = zip(input.shape[-2:], self.stride, self._each_(self.padding), self.dilation, self.kernel_size)
        least = [(length - 1) * step - 2 * pad + spread * (kernel - 1) + 1 for length, step, pad, spread, kernel in sizes]
        extra = tuple(difference - smallest for difference, smallest in zip(output_size, least))
        if any(not 0 <= difference < step for difference, step in zip(extra, self.stride)):
            raise ValueError(f"ConvTranspose2d(output_size={output_size}): expected sizes from {least} on, less than a stride more.")
        return extra
