"""Images as arrays (H, W, C), as PIL images and as encoded files."""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.dataset.core import destination
from torchspore.mindspore.dataset.core.operation import TensorOperation, as_array, is_pil
from torchspore.mindspore.dataset.core.validator_helpers import (
    check_bool,
    check_choice,
    check_int,
    check_type,
    type_sentence,
    with_sentence,
)
from torchspore.mindspore.dataset.transforms.transforms import TypeCast, numpy_type


class OnDevice:
    """Base of transforms that MindSpore can run on an Ascend: here they run on the host, and `explain` reports it."""

    def device(self, device_target: str = "CPU") -> Any:
        """Returns the transform itself. Raises ValueError for anything but 'CPU' and 'Ascend'."""
        check_type("device", "device_target", device_target, str, "'CPU' or 'Ascend'")
        check_choice("device", "device_target", device_target, ("CPU", "Ascend"))
        if device_target == "Ascend":
            effects.note("data", f"{type(self).__name__}().device('Ascend'): the transform runs on the host; the pixels are the CPU's")
        return self


class ImageTensorOperation(TensorOperation):
    """A transform of images (H, W) or (H, W, C). A PIL image yields a PIL image if `_gives_picture` is set."""

    _gives_picture = False
    _with_pillow: Callable[[Any, Any], Any] | None = None
    """The transform of a PIL image by Pillow's functions, if MindSpore uses them; otherwise it is transformed as an array."""

    _takes_stacks = False
    """True if it takes (..., H, W, C) too: videos or batches. Each image is transformed in the same way."""
    _name_of_size = "size"
    _of_truths: str | None = None
    """'bool' or 'uint8': the result dtype for a picture of truth values, such as a mask, which is computed as uint8."""

    def _input(self, value: Any) -> Any:
        if type(value) is np.ndarray or is_pil(value):
            return value
        if isinstance(value, (np.ndarray, np.generic)):
            return np.asarray(value)
        raise TypeError(message(f"{type(self).__name__}({short(value)})", f"an array or a PIL image, got {type(value).__name__}"))

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        # A random transform makes the same choice for every column, so that an image and its mask stay aligned.
        if self._takes_stacks and any(_is_stack(value) for value in values):
            chosen = self._choose(tuple([_images(value)[0] if _is_stack(value) else value for value in values]))
            return tuple([self._each(value, chosen) if _is_stack(value) else self._any(value, chosen) for value in values])
        chosen = self._choose(values)
        return tuple([self._any(value, chosen) for value in values])

    def _any(self, value: Any, chosen: Any) -> Any:
        if self._of_truths is None or type(value) is not np.ndarray or value.dtype.kind != "b":
            return self._transform_single(value, chosen)
        transformed = self._transform_single(value.view(np.uint8), chosen)
        return transformed.astype(np.bool_) if self._of_truths == "bool" else transformed

    def _each(self, value: np.ndarray, chosen: Any) -> np.ndarray:
        stacked = np.stack([self._any(image, chosen) for image in _images(value)])
        return stacked.reshape(*value.shape[:-3], *stacked.shape[1:])

    def _choose(self, values: tuple[Any, ...]) -> Any:
        """Draw the random choices of one call, None for a deterministic transform."""
        return None

    def _transform_single(self, value: Any, chosen: Any) -> Any:
        if not is_pil(value):
            return self._apply(value, chosen)
        if self._with_pillow is not None:
            return self._with_pillow(value, chosen)
        transformed = self._apply(np.asarray(value), chosen)
        return to_pil(transformed) if self._gives_picture else transformed

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:  # type: ignore[override]
        raise NotImplementedError


def _is_stack(value: Any) -> bool:
    return type(value) is np.ndarray and value.ndim > 3 and bool(value.size)


def _images(value: np.ndarray) -> np.ndarray:
    return value.reshape(-1, *value.shape[-3:])


def check_image(call: str, image: np.ndarray, *, channels: tuple[int, ...] | None = None) -> None:
    """Raises RuntimeError unless the value is an image (H, W) or (H, W, C)."""
    if image.ndim not in (2, 3):
        raise RuntimeError(
            message(
                f"{call} of shape {list(image.shape)}",
                "an image (H, W) or (H, W, C)",
                hint="put Decode() first where the column holds files",
            )
        )
    if channels is not None and (image.shape[2] if image.ndim == 3 else 1) not in channels:
        raise RuntimeError(message(f"{call} of shape {list(image.shape)}", f"an image with {' or '.join(map(str, channels))} channels"))


def height_width(value: Any) -> tuple[int, int]:
    """Return the height and width of an array or PIL image."""
    return (value.height, value.width) if is_pil(value) else (value.shape[0], value.shape[1])


def check_size(call: str, size: Any, *, name: str = "size", high: int = 16777216) -> tuple[int, int]:
    """Return a size as (height, width), from one int for a square, or a list or tuple of two."""
    sizes = (size, size) if is_int(size) else size
    if not isinstance(sizes, (list, tuple)) or len(sizes) != 2:
        text = message(f"{call}({name}={short(size)})", "an int or (height, width)")
        sentence = "Size should be a single integer or a list/tuple (h, w) of length 2."
        if not isinstance(sizes, (list, tuple)):
            sentence = type_sentence(name, size, (int, list, tuple))
        raise TypeError(with_sentence(text, sentence))
    for index, side in enumerate(sizes):
        if is_int(side):
            check_int(call, name, side, 1, high)
        else:
            check_type(call, f"{name}[{index}]", side, int, "an int")
    return sizes[0], sizes[1]


def decode(data: np.ndarray, where: str) -> np.ndarray:
    """Decode an image to RGB (H, W, 3) uint8. Raises RuntimeError if that fails."""
    import cv2

    flat = np.ascontiguousarray(data).reshape(-1)
    check_pixels(flat, where)
    if flat.dtype == np.uint8 and flat[:2].tobytes() == _JPEG:
        picture = _jpeg(flat)
        if picture is not None:
            return picture
    image = cv2.imdecode(flat, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION) if flat.dtype == np.uint8 and flat.size else None
    if image is None:
        raise RuntimeError(message(f"{where}: {flat.size} bytes", "the bytes of an image file (JPEG, PNG, BMP, TIFF, WebP)"))
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


_JPEG, _END = b"\xff\xd8", b"\xff\xd9"
_HEAD = 65_536
"""Number of bytes of a file that are searched for its size."""


def _jpeg(flat: np.ndarray) -> np.ndarray | None:
    """Decode a JPEG file, even without its end marker; None for damage that OpenCV may tolerate."""
    import simplejpeg

    try:
        if _inks(flat):
            return _of_print(flat)
        return simplejpeg.decode_jpeg(flat, "RGB")
    except (ValueError, OSError, SyntaxError):
        pass
    try:
        return None if flat[-2:].tobytes() == _END else simplejpeg.decode_jpeg(flat.tobytes() + _END, "RGB")
    except ValueError:
        return None


def _inks(flat: np.ndarray) -> bool:
    """Return whether a JPEG has four colour components (CMYK). Raises ValueError if it is not a JPEG."""
    frame = _frame(flat[:_HEAD].tobytes())
    if frame is not None and frame[1] != 4:
        return False

    import simplejpeg  # which tolerates damage that can look like a frame of four colours

    return simplejpeg.decode_jpeg_header(flat)[2] in ("CMYK", "YCCK")


def _of_print(flat: np.ndarray) -> np.ndarray:
    """Convert a picture from cyan, magenta, yellow and black, with MindSpore's arithmetic."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(flat.tobytes())) as picture:
        inks = np.asarray(picture).astype(np.uint16)
        # Adobe's programs store inverted ink values; Pillow inverts every file.
        light = 255 - inks if "adobe" in picture.info else inks
    return (light[..., :3] * light[..., 3:] // 255).astype(np.uint8)


MOST_PIXELS = 178_956_970
"""Pillow's maximum number of pixels. OPENCV_IO_MAX_IMAGE_PIXELS overrides it."""


def check_pixels(flat: np.ndarray, where: str) -> None:
    """Raises RuntimeError for a picture whose header has more pixels than the maximum: a small file can fill the memory."""
    if flat.dtype != np.uint8 or flat.size < 4096:
        return
    pixels, setting = _pixels(flat[:_HEAD].tobytes()), os.environ.get("OPENCV_IO_MAX_IMAGE_PIXELS", "")
    max_pixels = int(setting) if setting.isdigit() else MOST_PIXELS
    if pixels > max_pixels:
        hint = "make it smaller, or set OPENCV_IO_MAX_IMAGE_PIXELS if the size is right"
        raise RuntimeError(message(f"{where}: a picture of {pixels} pixels", f"at most {max_pixels} pixels", hint=hint))


def _pixels(head: bytes) -> int:
    """Return the number of pixels in a picture's header; 0 if unknown. A PNG and a JPEG take a few microseconds."""
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return int.from_bytes(head[16:20], "big") * int.from_bytes(head[20:24], "big")
    frame = _frame(head)
    if frame is not None:
        return frame[0]
    import io
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(head))
            return picture.width * picture.height
    except Image.DecompressionBombError as error:
        return max(map(int, re.findall(r"\d+", str(error))))
    except Exception:  # the decoder reports the error
        return 0


def _frame(head: bytes) -> tuple[int, int] | None:
    """Return the numbers of pixels and colours in a JPEG's frame header (ITU T.81, B.2.2); None if the first bytes do not contain it."""
    position = 2
    while head[:2] == _JPEG and position + 9 < len(head) and head[position] == 0xFF:
        kind = head[position + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = head[position + 5 : position + 7], head[position + 7 : position + 9]
            return int.from_bytes(height, "big") * int.from_bytes(width, "big"), head[position + 9]
        if kind == 0:                              # damage instead of a marker: the position of the next one is unknown
            return None
        size = int.from_bytes(head[position + 2 : position + 4], "big")
        position += 1 if kind == 0xFF else 2 if kind == 1 or 0xD0 <= kind <= 0xD9 else 2 + size
    return None


def planar(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W, C) as (C, H, W) in one array, because arithmetic by channel is fast."""
    import cv2

    channels = image.shape[2]
    if image.dtype.char not in "BbHhifd" or not 0 < channels <= _MOST_SPLIT or not image.size:
        return np.ascontiguousarray(image.transpose(2, 0, 1))
    result = np.empty((channels, *image.shape[:2]), image.dtype)
    cv2.split(image, list(result))
    return result


_MOST_SPLIT = 128


def to_pil(image: np.ndarray) -> Any:
    """Convert an array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) to a PIL image."""
    from PIL import Image

    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    try:
        return Image.fromarray(image)
    except TypeError:
        hint = "convert it: (image * 255).astype(numpy.uint8)"
        raise TypeError(
            message(f"ToPIL of {image.dtype} {list(image.shape)}", "uint8 values, for an image of colours", hint=hint)
        ) from None


class Decode(OnDevice, TensorOperation):
    """Decodes the bytes of an image file (uint8, one axis) to an RGB image (H, W, 3); with `to_pil`, to a PIL image.

    Raises TypeError for an array of more axes, RuntimeError for bytes that are not an image.
    """

    def __init__(self, to_pil: bool = False, rgb: bool | None = None) -> None:
        check_bool("Decode", "to_pil", to_pil)
        if rgb is not None and not rgb:
            raise ValueError(message("Decode(rgb=False)", "rgb=True", hint="add ConvertColor(ConvertMode.COLOR_RGB2BGR) for BGR"))
        self.to_pil = to_pil

    def _input(self, value: Any) -> np.ndarray:
        if isinstance(value, bytes):
            return np.frombuffer(value, np.uint8)
        if isinstance(value, TensorBase):
            text = message("Decode(Tensor)", "the bytes of a file in a NumPy array")
            raise TypeError(f"{text} The type of the encoded image should be {np.ndarray}, but got {type(value)}.")
        array = as_array(value, "Decode")
        if array.dtype.kind == "S" and array.size == 1:
            return np.frombuffer(array.tobytes(), np.uint8)
        if array.ndim != 1:
            raise TypeError(message(f"Decode of shape {list(array.shape)}", "the bytes of a file, one axis"))
        return array

    def _apply(self, value: np.ndarray) -> Any:
        if not self.to_pil:
            return decode(value, "Decode")
        import io

        from PIL import Image, UnidentifiedImageError

        check_pixels(value, "Decode")
        try:
            return Image.open(io.BytesIO(value.tobytes())).convert("RGB")
        except UnidentifiedImageError:
            raise RuntimeError(message(f"Decode of {value.size} bytes", "the bytes of an image file")) from None


class ToPIL(ImageTensorOperation):
    """Converts an array (H, W) or (H, W, C) to a PIL image."""

    def _transform_single(self, value: Any, chosen: Any) -> Any:
        return value if is_pil(value) else self._apply(value)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("ToPIL", value)
        return to_pil(value)


class ToNumpy(ImageTensorOperation):
    """Converts a PIL image to an array."""

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return np.array(value)


_SCALE = np.float32(1 / 255)
"""MindSpore multiplies: the last bit of half the results differs from that of a division."""


class ToTensor(ImageTensorOperation):
    """Converts an image (H, W) or (H, W, C) to (C, H, W), divided by 255, of the dtype `output_type`."""

    def __init__(self, output_type: Any = np.float32) -> None:
        self._dtype = numpy_type("ToTensor", "output_type", output_type)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("ToTensor", value)
        split = value[None] if value.ndim == 2 else planar(value)
        scaled = np.multiply(split, _SCALE, out=destination.empty(split.shape, np.float32), dtype=np.float32, casting="unsafe")
        return scaled.astype(self._dtype, copy=False)

    def _apply_stack(self, values: np.ndarray) -> np.ndarray:
        if values.ndim not in (3, 4):
            raise ValueError  # processing the row separately reports the error
        split = values[:, None] if values.ndim == 3 else values.transpose(0, 3, 1, 2)
        scaled = np.multiply(split, _SCALE, dtype=np.float32, casting="unsafe")
        return np.ascontiguousarray(scaled.astype(self._dtype, copy=False))


class ToType(TypeCast):
    """Converts an image to a dtype."""


class HWC2CHW(ImageTensorOperation):
    """Moves the channels of (H, W, C) to the front: (C, H, W); leaves (H, W) unchanged."""

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("HWC2CHW", value)
        return value if value.ndim == 2 else np.ascontiguousarray(value.transpose(2, 0, 1))

    def _apply_stack(self, values: np.ndarray) -> np.ndarray:
        if values.ndim not in (3, 4):
            raise ValueError  # processing the row separately reports the error
        return values if values.ndim == 3 else np.ascontiguousarray(values.transpose(0, 3, 1, 2))


class Grayscale(ImageTensorOperation):
    """Converts a colour image to grey, in `num_output_channels` (1 or 3) equal channels."""

    _gives_picture = True

    def __init__(self, num_output_channels: int = 1) -> None:
        check_type("Grayscale", "num_output_channels", num_output_channels, int, "1 or 3")
        check_choice("Grayscale", "num_output_channels", num_output_channels, (1, 3))
        self.num_output_channels = num_output_channels

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Grayscale", value)
        grey = gray(value)
        return grey if self.num_output_channels == 1 else np.repeat(grey[..., None], 3, 2)


def gray(image: np.ndarray) -> np.ndarray:
    """Return the brightness (H, W) of an RGB image with PIL's weights: (19595 R + 38470 G + 7471 B + 32768) >> 16."""
    if image.ndim == 2:
        return image
    if image.shape[2] == 1:
        return image[..., 0]
    wide = image[..., :3].astype(np.int64)
    return ((wide[..., 0] * 19595 + wide[..., 1] * 38470 + wide[..., 2] * 7471 + 0x8000) >> 16).astype(np.uint8)
