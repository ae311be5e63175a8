"""Pooling as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.frames import line_prefix
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_divisor, check_lengths, checked, open_lengths
from torchspore.mindspore.ops.images import pooling


class _Pool(Cell):
    """Base class of pooling layers."""

    _kind_, _axes_ = "max", 2
    _counts_: tuple[int, ...] = (1, 2, 4)
    """Return the allowed numbers of window lengths: for two axes also one for both, and four with those of N and C, as in 1.x."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if pad_mode.upper() not in ("SAME", "VALID", "PAD"):
            raise ValueError(f"{name}(pad_mode={pad_mode!r}): expected 'same', 'valid' or 'pad'.")
        wrong_count = TypeError if self._axes_ == 1 else ValueError
        check_lengths(name, self._counts_, wrong_count=wrong_count, kernel_size=kernel_size, stride=stride)
        check_kinds(name, "bool", ceil_mode=False if ceil_mode is None and self._kind_ != "avg" else ceil_mode)
        padding = tuple(padding) if isinstance(padding, list) else padding
        check_lengths(name, (1, self._axes_), least=0, padding=padding)
        if any(padding if isinstance(padding, tuple) else (padding,)) and pad_mode.upper() != "PAD":
            raise ValueError(f"{name}(padding={padding!r}): it needs pad_mode='pad', not {pad_mode!r}.")
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"{name}(data_format={data_format!r}): expected 'NCHW' or 'NHWC'.")
        self.kernel_size, self.stride, self.pad_mode = kernel_size, stride, pad_mode
        self.padding, self.ceil_mode, self.format = padding, ceil_mode, data_format
        self.count_include_pad, self.divisor_override = True, None

    def _select_(self, dilation: Any, return_indices: bool) -> None:
        """Store the two arguments of pooling by maxima. Raises TypeError and ValueError."""
        name = type(self).__name__
        check_kinds(name, "bool", return_indices=return_indices)
        check_lengths(name, (1, self._axes_), dilation=dilation)
        if self.pad_mode.lower() == "same" and (return_indices or dilation not in (1, (1,) * self._axes_)):
            raise ValueError(f"{name}(pad_mode='same'): it requires dilation=1 and return_indices=False.")
        self.dilation, self.return_indices = dilation, return_indices

    def construct(self, x: Any) -> Any:
        """The pooled x; an input without the axis N is treated as a single sample."""
        if x.ndim not in (self._axes_ + 1, self._axes_ + 2):
            raise ValueError(
                f"{line_prefix()}{type(self).__name__}: expected an input of {self._axes_ + 1} or {self._axes_ + 2} axes, "
                f"got shape {x.shape}."
            )
        if x.ndim == self._axes_ + 2:
            return self._call_(x)
        out = self._call_(ops.expand_dims(x, 0))
        return tuple(ops.squeeze(result, 0) for result in out) if isinstance(out, tuple) else ops.squeeze(out, 0)

    def _call_(self, x: Any) -> Any:
        if self.format == "NHWC":
            x = ops.transpose(x, (0, 3, 1, 2))
        out = pooling._pooling(
            x, self._kind_, self.kernel_size, self.stride, self.pad_mode, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )
        return ops.transpose(out, (0, 2, 3, 1)) if self.format == "NHWC" else out

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


class MaxPool2d(_Pool):
    """The largest value in each window of (N, C, H, W)."""

    max_pool = Part(lambda cell: ops.MaxPool(cell.kernel_size, cell.stride, cell.pad_mode, cell.format))

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        self._select_(dilation, return_indices)

    def _call_(self, x: Any) -> Any:
        if self.return_indices or self.dilation not in (1, (1, 1)):
            return ops.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode)
        return super()._call_(x)


class AvgPool2d(_Pool):
    """The mean of each window of (N, C, H, W)."""

    _kind_ = "avg"
    avg_pool = Part(lambda cell: ops.AvgPool(cell.kernel_size, cell.stride, cell.pad_mode, cell.format))

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None, data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        check_kinds(type(self).__name__, "bool", count_include_pad=count_include_pad)
        check_divisor(type(self).__name__, divisor_override)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class AdaptiveAvgPool2d(Cell):
    """Means of windows whose size follows from the result (N, C, *output_size); None keeps a length."""

    @checked(output_size=open_lengths(2))
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.adaptive_avg_pool2d(input, self.output_size)


class _PoolOfAxes(_Pool):
    """Pooling over one or three axes."""

    _axes_, _counts_ = 1, (1,)


class _MaxPoolOfAxes(_PoolOfAxes):
    """Base class of max pooling."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        self._select_(dilation, return_indices)

    def _call_(self, x: Any) -> Any:
        if not self.return_indices and self.dilation == 1:
            return super()._call_(x)
        return pooling._max_pool_with_indices(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices,
        )


class MaxPool1d(_MaxPoolOfAxes):
    """The largest value in each window of (N, C, L) or (C, L), and with `return_indices` its index."""

    _counts_ = ()


class MaxPool3d(_MaxPoolOfAxes):
    """The largest value in each window of (N, C, D, H, W) or (C, D, H, W), and with `return_indices` its index."""

    _axes_, _counts_ = 3, (3,)


class AvgPool1d(_PoolOfAxes):
    """The mean of each window of (N, C, L) or (C, L)."""

    _kind_ = "avg"

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        check_kinds(type(self).__name__, "bool", count_include_pad=count_include_pad)
        self.count_include_pad = count_include_pad


class AvgPool3d(_PoolOfAxes):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W); `divisor_override` replaces the window's size as divisor."""

    _axes_, _counts_, _kind_ = 3, (3,), "avg"

    def __init__(
        self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        check_kinds(type(self).__name__, "bool", count_include_pad=count_include_pad)
        check_divisor(type(self).__name__, divisor_override)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class _AvgPoolExt(Cell):
    """Base class of average pooling in torch's form: the stride is the window by default."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override: int | None = None


class AvgPool1dExt(_AvgPoolExt):
    """The mean of each window of (N, C, L)."""

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2dExt(_AvgPoolExt):
    """The mean of each window of (N, C, H, W); `divisor_override` replaces the window's size as divisor."""

    _pool_ = staticmethod(ops.avg_pool2d)

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return self._pool_(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override or 0,
        )


class AvgPool3dExt(AvgPool2dExt):
    """The mean of each window of (N, C, D, H, W); `divisor_override` replaces the window's size as divisor."""

    _pool_ = staticmethod(ops.avg_pool3d)


class MaxPool2dExt(Cell):
    """The largest value in each window of (N, C, H, W), and with `return_indices` its index; the stride is the window by default."""

    def __init__(
        self, kernel_size: Any = 1, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode)


__all__ = [
    "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool1dExt", "AvgPool2d", "AvgPool2dExt", "AvgPool3d", "AvgPool3dExt", "MaxPool1d", "MaxPool2d",
    "MaxPool2dExt", "MaxPool3d",
]
