"""Image transforms that crop, fill or pad parts: patches, five and ten crops, erasing, padding to a size."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.mindspore.dataset.core.operation import is_pil
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_number, check_type
from torchspore.mindspore.dataset.vision import geometry
from torchspore.mindspore.dataset.vision.color import pillow
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, OnDevice, check_image, check_size
from torchspore.mindspore.dataset.vision.utils import Border, Inter, SliceMode


class Erase(OnDevice, ImageTensorOperation):
    """Fills a part of an image (H, W, C) with `value`: one number, or one for each of three channels."""

    def __init__(self, top: int, left: int, height: int, width: int, value: Any = 0.0, inplace: bool = False) -> None:
        for name, number, low in (("top", top, 0), ("left", left, 0), ("height", height, 1), ("width", width, 1)):
            check_int("Erase", name, number, low)
        check_type("Erase", "value", value, (float, int, tuple), "a number or three of them")
        values = list(value) if isinstance(value, tuple) else [value]
        if isinstance(value, tuple) and len(values) != 3:
            text = message(f"Erase(value={value!r})", "a number or three of them")
            raise TypeError(f"{text} value should be a single integer/float or a 3-tuple.")
        for number in values:
            check_number("Erase", "value", number, 0, 255)
        check_bool("Erase", "inplace", inplace)
        self.part, self.value, self.inplace = (top, left, height, width), values, inplace

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        if value.ndim != 3:
            raise RuntimeError(message(f"Erase of shape {list(value.shape)}", "an image (H, W, C)"))
        top, left, height, width = self.part
        if top + height > value.shape[0] or left + width > value.shape[1]:
            raise RuntimeError(message(f"Erase{self.part} of an image {value.shape[0]}x{value.shape[1]}", "a part inside it"))
        image = value if self.inplace else value.copy()
        image[top : top + height, left : left + width] = np.array(self.value).astype(image.dtype)
        return image


class ResizedCrop(OnDevice, ImageTensorOperation):
    """Crops a part and resizes it to `size`: (height, width), or one int for the shorter side."""

    _of_truths = "bool"

    def __init__(self, top: int, left: int, height: int, width: int, size: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        for name, number, low in (("top", top, 0), ("left", left, 0), ("height", height, 1), ("width", width, 1)):
            check_int("ResizedCrop", name, number, low)
        check_size("ResizedCrop", size)
        geometry.check_inter("ResizedCrop", interpolation)
        self.part, self._resize = (top, left, height, width), geometry.Resize(size, interpolation)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("ResizedCrop", value)
        top, left, height, width = self.part
        if top + height > value.shape[0] or left + width > value.shape[1]:
            raise RuntimeError(message(f"ResizedCrop{self.part} of an image {value.shape[0]}x{value.shape[1]}", "a part inside it"))
        return self._resize._transform_single(geometry.crop(value, top, left, height, width), None)


class PadToSize(ImageTensorOperation):
    """Pads to `size` (height, width), with `offset` (top, left) pixels before the image; by default the image is centered."""

    _of_truths = "uint8"

    def __init__(self, size: Any, offset: Any = None, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self.size = check_size("PadToSize", size)
        self.offset: tuple[int, int] | None = None
        if offset is not None:
            check_type("PadToSize", "offset", offset, (int, list, tuple), "an int or (top, left)")
            sides = [offset] * 2 if is_int(offset) else offset
            check_type("PadToSize", "offset", sides, (list, tuple), "an int or (top, left)")
            if len(sides) not in (0, 2):
                text = message(f"PadToSize(offset={offset!r})", "an int or (top, left)")
                raise ValueError(f"{text} The offset must be empty or a sequence of length 2.")
            for side in sides:
                check_int("PadToSize", "offset", side, 0)
            self.offset = (sides[0], sides[1]) if sides else None
        self.fill_value = geometry.check_fill("PadToSize", fill_value)
        check_type("PadToSize", "padding_mode", padding_mode, Border, "a member of Border")
        self.padding_mode = padding_mode

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("PadToSize", value)
        more = self.size[0] - value.shape[0], self.size[1] - value.shape[1]
        top, left = (more[0] // 2, more[1] // 2) if self.offset is None else self.offset
        if min(more) < 0 or top > more[0] or left > more[1]:
            subject = f"PadToSize({self.size}, {self.offset}) of an image {value.shape[0]}x{value.shape[1]}"
            raise RuntimeError(message(subject, "a size that is not smaller"))
        return geometry.pad(value, (left, top, more[1] - left, more[0] - top), self.fill_value, self.padding_mode)


class SlicePatches(ImageTensorOperation):
    """Cuts an image into `num_height` x `num_width` equal patches, row by row; pads or drops the remainder at the right and bottom."""

    def __init__(self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0) -> None:
        check_int("SlicePatches", "num_height", num_height, 1)
        check_int("SlicePatches", "num_width", num_width, 1)
        check_type("SlicePatches", "slice_mode", slice_mode, SliceMode, "a member of SliceMode")
        check_int("SlicePatches", "fill_value", fill_value, 0, 255)
        self.num_height, self.num_width, self.slice_mode, self.fill_value = num_height, num_width, slice_mode, fill_value

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return tuple(patch for value in values for patch in self._patches(np.asarray(value)))

    def _patches(self, image: np.ndarray) -> list[np.ndarray]:
        check_image("SlicePatches", image)
        if image.dtype.kind == "b":
            image = image.view(np.uint8)
        height, width = image.shape[:2]
        if self.num_height > height or self.num_width > width:
            subject = f"SlicePatches({self.num_height}, {self.num_width}) of an image {height}x{width}"
            raise RuntimeError(message(subject, "at most one patch for each row and column of pixels"))
        if self.slice_mode is SliceMode.PAD:
            more = -height % self.num_height, -width % self.num_width
            image = geometry.pad(image, (0, 0, more[1], more[0]), self.fill_value, Border.CONSTANT) if any(more) else image
        high, wide = image.shape[0] // self.num_height, image.shape[1] // self.num_width
        corners = [(row * high, column * wide) for row in range(self.num_height) for column in range(self.num_width)]
        return [geometry.crop(image, top, left, high, wide) for top, left in corners]


class FiveCrop(ImageTensorOperation):
    """Crops the four corners and the middle of a PIL image, each of `size` (height, width)."""

    def __init__(self, size: Any) -> None:
        self.size = check_size(type(self).__name__, size)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return tuple(part for value in values for part in self._parts(value))

    def _parts(self, image: Any) -> tuple[Any, ...]:
        if not is_pil(image):
            raise TypeError(message(f"{type(self).__name__} of {type(image).__name__}", "a PIL image", hint="put ToPIL() first"))
        return five_parts(image, self.size)


def five_parts(image: Any, size: tuple[int, int]) -> tuple[Any, ...]:
    """Return the upper left, upper right, lower left and lower right corner, and the middle. Raises ValueError if the image is smaller."""
    height, width = size
    if height > image.height or width > image.width:
        raise ValueError(message(f"a crop of {size} of an image {image.height}x{image.width}", "a part that is not larger"))
    low, right = image.height - height, image.width - width
    corners = [pillow().crop(image, top, left, height, width) for top, left in ((0, 0), (0, right), (low, 0), (low, right))]
    return (*corners, pillow().center_crop(image, size))


class TenCrop(FiveCrop):
    """Applies `FiveCrop` to an image, and to the image flipped horizontally or vertically."""

    def __init__(self, size: Any, use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        if use_vertical_flip is not None:
            check_bool("TenCrop", "use_vertical_flip", use_vertical_flip)
        self.use_vertical_flip = use_vertical_flip

    def _parts(self, image: Any) -> tuple[Any, ...]:
        parts = super()._parts(image)
        from PIL import ImageOps

        return (*parts, *five_parts(ImageOps.flip(image) if self.use_vertical_flip else ImageOps.mirror(image), self.size))
