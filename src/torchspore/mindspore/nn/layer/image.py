"""Images as Cells: similarity, crops, gradients, resizing."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.arguments import check_int_type
from torchspore.base.frames import line_prefix
from torchspore.base.text import message, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.images import resize


def _number(call: str, name: str, value: Any, above: float | None = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(message(f"{call}({name}={value!r:.40})", with_type("a number", value)))
    if above is not None and value <= above:
        raise ValueError(f"{call}({name}={value}): expected a number above {above:g}.")
    return float(value)


def _check_equal_pictures(call: str, first: Any, second: Any) -> None:
    if first.shape != second.shape or first.dtype != second.dtype:
        raise (ValueError if first.dtype == second.dtype else TypeError)(
            f"{line_prefix()}{call}: expected two pictures of one shape and dtype, got {first.shape} of {first.dtype} "
            f"and {second.shape} of {second.dtype}."
        )
    if first.ndim != 4:
        raise ValueError(f"{line_prefix()}{call}: expected pictures (N, C, H, W), got shape {first.shape}.")


class ImageGradients(Cell):
    """The differences of neighbours in images (N, C, H, W): (down, right), 0 at the last row and column."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, images: Any) -> Any:
        """Return (dy, dx), each in the shape of the images."""
        if images.ndim != 4:
            raise ValueError(f"{line_prefix()}ImageGradients: expected pictures (N, C, H, W), got shape {images.shape}.")
        n, c, h, w = images.shape
        dy = images[:, :, 1:, :] - images[:, :, :h - 1, :]
        dx = images[:, :, :, 1:] - images[:, :, :, :w - 1]
        rows, columns = ops.zeros((n, c, 1, w), images.dtype), ops.zeros((n, c, h, 1), images.dtype)
        return ops.concat((dy, rows), 2), ops.concat((dx, columns), 3)


def _window(size: int, sigma: float) -> np.ndarray[Any, Any]:
    """Return a Gaussian of `size` times `size` whose sum is 1."""
    at = np.arange(size, dtype=np.float64) - (size - 1) / 2
    line = np.exp(-at * at / (2 * sigma * sigma))
    window = np.outer(line, line)
    return (window / window.sum()).astype(np.float32)


class _Likeness(Cell):
    """Base class of SSIM and MSSSIM: the structure of two images in Gaussian windows."""

    def __init__(self, max_val: float, filter_size: int, filter_sigma: float, k1: float, k2: float) -> None:
        super().__init__()
        name = type(self).__name__
        self.max_val = _number(name, "max_val", max_val)
        check_int_type(name, "filter_size", filter_size)
        if filter_size < 1:
            raise ValueError(message(f"{name}(filter_size={filter_size})", "an int from 1 on"))
        for key, value in (("k1", k1), ("k2", k2)):
            _number(name, key, value)
        self.filter_size, self.filter_sigma = filter_size, _number(name, "filter_sigma", filter_sigma)
        self.c1, self.c2 = (k1 * self.max_val) ** 2, (k2 * self.max_val) ** 2
        self.window = Tensor(_window(filter_size, self.filter_sigma).reshape(1, 1, filter_size, filter_size))

    def _parts_(self, first: Any, second: Any) -> tuple[Any, Any]:
        """Return the means over each image of similarity (with luminance) and of contrast and structure alone (N,)."""
        channels = first.shape[1]
        window = ops.tile(self.window, (channels, 1, 1, 1))
        mean = lambda x: ops.conv2d(x, window, groups=channels)
        mean1, mean2 = mean(first), mean(second)
        product_of_means, squares = mean1 * mean2, mean1 * mean1 + mean2 * mean2
        light = (2 * product_of_means + self.c1) / (squares + self.c1)
        shape = (2 * (mean(first * second) - product_of_means) + self.c2) / (mean(first * first + second * second) - squares + self.c2)
        return ops.mean(light * shape, (-3, -2, -1)), ops.mean(shape, (-3, -2, -1))

    def _checked_(self, first: Any, second: Any) -> tuple[Any, Any]:
        name = type(self).__name__
        if first.dtype not in (dtypes.float32, dtypes.float16):
            raise TypeError(f"{line_prefix()}{name}: expected float32 or float16 pictures, got {first.dtype}.")
        _check_equal_pictures(name, first, second)
        return first.astype(dtypes.float32), second.astype(dtypes.float32)


class SSIM(_Likeness):
    """The similarity of images (N, C, H, W) (Wang and others, 2004), in Gaussian windows of `filter_size`; 1 for equal ones.

    `max_val` is the range of values, `k1` and `k2` prevent quotients 0 / 0. Raises TypeError and ValueError for wrong arguments.
    """

    def __init__(
        self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
    ) -> None:
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)

    def construct(self, img1: Any, img2: Any) -> Any:
        """The similarity (N,)."""
        return self._parts_(*self._checked_(img1, img2))[0]


class MSSSIM(_Likeness):
    """SSIM at several sizes, each half the one before (Wang and others, 2003): a product with the powers `power_factors`."""

    def __init__(
        self, max_val: float = 1.0, power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size: int = 11,
        filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
    ) -> None:
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, (tuple, list)):
            raise TypeError(f"MSSSIM(power_factors={power_factors!r:.40}): expected a tuple, got {type(power_factors).__name__}.")
        self.power_factors = tuple(_number("MSSSIM", "power_factors", factor, None) for factor in power_factors)

    def construct(self, img1: Any, img2: Any) -> Any:
        """The similarity (N,)."""
        first, second = self._checked_(img1, img2)
        total = None
        for level, power in enumerate(self.power_factors):
            if level:
                first, second = ops.avg_pool2d(first, 2, 2), ops.avg_pool2d(second, 2, 2)
            alike, structure = self._parts_(first, second)
            part = ops.pow(ops.relu(alike if level == len(self.power_factors) - 1 else structure), power)
            total = part if total is None else total * part
        return total


class PSNR(Cell):
    """10 * log10(max_val^2 / mean squared difference) of images (N, C, H, W)."""

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        self.max_val = _number("PSNR", "max_val", max_val)

    def construct(self, img1: Any, img2: Any) -> Any:
        """The ratio (N,) in decibels."""
        _check_equal_pictures("PSNR", img1, img2)
        first, second = img1.astype(dtypes.float32), img2.astype(dtypes.float32)
        return 10 * ops.log(self.max_val**2 / ops.mean(ops.square(first - second), (-3, -2, -1))) / math.log(10)


class CentralCrop(Cell):
    """The center of images (C, H, W) or (N, C, H, W): the fraction `central_fraction` of height and width."""

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        if not isinstance(central_fraction, float):
            raise TypeError(
                f"CentralCrop(central_fraction={central_fraction!r:.40}): expected a float, got {type(central_fraction).__name__}."
            )
        if not 0 < central_fraction <= 1:
            raise ValueError(f"CentralCrop(central_fraction={central_fraction}): expected a number above 0 and up to 1.")
        self.central_fraction = central_fraction

    def construct(self, image: Any) -> Any:
        """The center."""
        if image.ndim not in (3, 4):
            raise ValueError(f"{line_prefix()}CentralCrop: expected pictures (C, H, W) or (N, C, H, W), got shape {image.shape}.")
        top, left = (int((length - length * self.central_fraction) / 2) for length in image.shape[-2:])
        return image[..., top:image.shape[-2] - top, left:image.shape[-1] - left]


class ResizeBilinear(Cell):
    """Resizes images (N, C, H, W), bilinear; a layer of 1.x.

    Without `half_pixel_centers` the corner pixels stay at the corners. A call takes `size`, (height, width), or `scale_factor`, an int, and
    `align_corners`.
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        if not isinstance(half_pixel_centers, bool):
            raise TypeError(
                f"ResizeBilinear(half_pixel_centers={half_pixel_centers!r:.40}): expected a bool, got {type(half_pixel_centers).__name__}."
            )
        self.half_pixel_centers = half_pixel_centers

    def construct(self, x: Any, size: Any = None, scale_factor: int | None = None, align_corners: bool = False) -> Any:
        """The resized images."""
        if self.half_pixel_centers and not align_corners:
            new_size = size if scale_factor is None else tuple(length * scale_factor for length in x.shape[2:])
            return ops.ResizeBilinear(new_size, half_pixel_centers=True)(x)
        return resize._resize_as_image(x, size, scale_factor, align_corners)


class Upsample(Cell):
    """Resizes: to `size`, or to lengths times `scale_factor`; `mode` as in ops.interpolate."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Any) -> Any:
        """The resized values."""
        return ops.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class PixelShuffle(Cell):
    """(..., C * r * r, H, W) as (..., C, H * r, W * r), with r the `upscale_factor`."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def construct(self, input: Any) -> Any:
        """The pixels moved."""
        return ops.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Cell):
    """(..., C, H * r, W * r) as (..., C * r * r, H, W), with r the `downscale_factor`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def construct(self, input: Any) -> Any:
        """The pixels moved."""
        return ops.pixel_unshuffle(input, self.downscale_factor)


__all__ = ["CentralCrop", "ImageGradients", "MSSSIM", "PSNR", "PixelShuffle", "PixelUnshuffle", "ResizeBilinear", "SSIM", "Upsample"]
