"""Pooling to a target size, by powers, its inverse, and at random positions, as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_lengths, checked, open_lengths


class _Adaptive(Cell):
    """Base class of pooling to a size."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extend_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of windows of (N, C, L) or (C, L) whose size follows from the length `output_size`."""

    def __init__(self, output_size: int) -> None:
        super().__init__(output_size)
        _check_length("AdaptiveAvgPool1d", output_size)

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.adaptive_avg_pool1d(input, self.output_size)


def _check_length(name: str, output_size: Any) -> None:
    check_int_type(name, "output_size", output_size)
    if output_size < 1:
        raise ValueError(message(f"{name}(output_size={output_size})", "an int from 1 on"))


class AdaptiveAvgPool3d(_Adaptive):
    """Means of windows whose size follows from the result (N, C, *output_size); None keeps a length."""

    @checked(output_size=open_lengths(1, 3))
    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size)

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_Adaptive):
    """The largest values in `output_size` windows of (N, C, L); `output_size` divides L."""

    def __init__(self, output_size: int) -> None:
        super().__init__(output_size)
        _check_length("AdaptiveMaxPool1d", output_size)

    def construct(self, x: Any) -> Any:
        """The pooled x."""
        return ops.adaptive_max_pool1d(x, self.output_size)


class AdaptiveMaxPool2d(_Adaptive):
    """The largest values in windows whose size follows from the result (N, C, *output_size); `return_indices` adds their indexes."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        check_kinds("AdaptiveMaxPool2d", "bool", return_indices=return_indices)
        self.return_indices = return_indices

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_Adaptive):
    """The largest values in windows whose size follows from the result (N, C, *output_size); `return_indices` adds their indexes."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def construct(self, input: Any) -> Any:
        """The pooled input."""
        return ops.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class LPPool1d(Cell):
    """The root of order `norm_type` of the sum of powers in each window of (N, C, L) or (C, L)."""

    def __init__(self, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def construct(self, x: Any) -> Any:
        """The pooled x."""
        return ops.lp_pool1d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(Cell):
    """The root of order `norm_type` of the sum of powers in each window of (N, C, H, W)."""

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def construct(self, x: Any) -> Any:
        """The pooled x."""
        return ops.lp_pool2d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _Unpool(Cell):
    """Base class of the inverses of pooling."""

    _counts_: tuple[int, ...] = (2,)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        name = type(self).__name__
        check_lengths(name, self._counts_, kernel_size=kernel_size, stride=kernel_size if stride is None else stride)
        check_lengths(name, self._counts_, least=0, padding=padding)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding


class MaxUnpool1d(_Unpool):
    """Puts the values from MaxPool1d back to the positions `indices`; zeros elsewhere."""

    _counts_ = (1,)

    def construct(self, x: Any, indices: Any, output_size: Any = None) -> Any:
        """The longer sequences."""
        return ops.max_unpool1d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_Unpool):
    """Puts the values from MaxPool2d back to the positions `indices`; zeros elsewhere."""

    def construct(self, x: Any, indices: Any, output_size: Any = None) -> Any:
        """The larger images."""
        return ops.max_unpool2d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_Unpool):
    """Puts the values from MaxPool3d back to the positions `indices`; zeros elsewhere."""

    _counts_ = (3,)

    def construct(self, x: Any, indices: Any, output_size: Any = None) -> Any:
        """The larger volumes."""
        return ops.max_unpool3d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class _Fractional(Cell):
    """Base class of pooling at random positions (Graham, 2014)."""

    _counts_: tuple[int, ...] = (2,)

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        check_lengths(type(self).__name__, self._counts_, kernel_size=kernel_size)
        check_kinds(type(self).__name__, "bool", return_indices=return_indices)
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices, self._random_samples = return_indices, _random_samples


class FractionalMaxPool2d(_Fractional):
    """The largest values of (N, C, H, W) in windows at random positions: `output_size` of them, or `output_ratio` times the lengths."""

    def construct(self, input: Any) -> Any:
        """The pooled input, and with `return_indices` the indexes of the values."""
        return ops.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples,
        )


class FractionalMaxPool3d(_Fractional):
    """The largest values of (N, C, D, H, W) in windows at random positions: `output_size` of them, or `output_ratio` times the lengths."""

    _counts_ = (3,)

    def construct(self, input: Any) -> Any:
        """The pooled input, and with `return_indices` the indexes of the values."""
        return ops.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples,
        )


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]
