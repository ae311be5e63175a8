"""Pooling as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops import conv


class _Pool(Cell):
    """What pooling layers share."""

    kind = "max"

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if pad_mode.upper() not in ("SAME", "VALID", "PAD"):
            raise ValueError(f"{name}(pad_mode={pad_mode!r}): expected 'same', 'valid' or 'pad'.")
        for key, value in (("kernel_size", kernel_size), ("stride", stride)):
            if not isinstance(value, (int, tuple)) or isinstance(value, bool):
                raise TypeError(f"{name}({key}={value!r}): expected an int or a tuple of ints, got {type(value).__name__}.")
            if any(v < 1 for v in ((value,) if isinstance(value, int) else value)):
                raise ValueError(f"{name}({key}={value!r}): expected ints from 1 on.")
        self.kernel_size, self.stride, self.pad_mode = kernel_size, stride, pad_mode
        self.padding, self.ceil_mode, self.format = padding, ceil_mode, data_format
        self.count_include_pad = True

    def construct(self, x: Any) -> Any:
        """The pooled x."""
        if self.format == "NHWC":
            x = ops.transpose(x, (0, 3, 1, 2))
        out = conv._pooling(
            x, self.kind, self.kernel_size, self.stride, self.pad_mode, self.padding, self.ceil_mode, self.count_include_pad,
        )
        return ops.transpose(out, (0, 2, 3, 1)) if self.format == "NHWC" else out

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


class MaxPool2d(_Pool):
    """The largest value in each window of (N, C, H, W)."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        self.dilation, self.return_indices = dilation, return_indices

    def construct(self, x: Any) -> Any:
        """The pooled x, and with `return_indices` where each value lay."""
        if self.return_indices or self.dilation not in (1, (1, 1)):
            return ops.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode)
        return super().construct(x)


class AvgPool2d(_Pool):
    """The mean of each window of (N, C, H, W)."""

    kind = "avg"

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def construct(self, x: Any) -> Any:
        """The pooled x."""
        if self.divisor_override is not None:
            return ops.avg_pool2d(
                x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override,
            )
        return super().construct(x)


class AdaptiveAvgPool2d(Cell):
    """Means of windows chosen so that the result is (N, C, *output_size); None keeps a length."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.adaptive_avg_pool2d(input, self.output_size)
