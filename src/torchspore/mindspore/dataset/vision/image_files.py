"""Reading and writing of images and bytes."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.core.operation import is_pil
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.vision.images import check_pixels
from torchspore.mindspore.dataset.vision.utils import ImageReadMode


def _bytes_of(call: str, filename: Any) -> bytes:
    check_type(call, "filename", filename, str, "a path")
    if not Path(filename).is_file():
        raise RuntimeError(message(f"{call}({filename!r})", "an existing file"))
    try:
        return Path(filename).read_bytes()
    except OSError as error:
        raise RuntimeError(message(f"{call}({filename!r})", f"a file that can be read ({error.strerror})")) from None


def _write(call: str, filename: Any, contents: bytes) -> None:
    from torchspore.base.files import write_atomically

    check_type(call, "filename", filename, str, "a path")
    path = Path(filename)
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise RuntimeError(message(f"{call}({filename!r})", "a file in an existing folder"))
    try:
        write_atomically(path, contents)
    except OSError as error:
        raise RuntimeError(message(f"{call}({filename!r})", f"a file that can be written ({error.strerror})")) from None


def read_file(filename: Any) -> np.ndarray:
    """Returns the bytes of a file, uint8 (N,). Raises RuntimeError for a file that is missing."""
    return np.frombuffer(_bytes_of("read_file", filename), np.uint8).copy()


def write_file(filename: Any, data: Any) -> None:
    """Writes bytes, uint8 (N,), to a file."""
    array = _array("write_file", "data", data)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise RuntimeError(message(f"write_file of {array.dtype} {list(array.shape)}", "bytes: uint8 with one axis"))
    _write("write_file", filename, array.tobytes())


def read_image(filename: Any, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> np.ndarray:
    """Returns the picture of a JPEG, PNG, BMP or TIFF file, uint8 (H, W, C): RGB or grey (C = 1), as stored or as `mode` requests."""
    import cv2

    data = np.frombuffer(_bytes_of("read_image", filename), np.uint8)
    check_type("read_image", "mode", mode, ImageReadMode, "a member of ImageReadMode")
    check_pixels(data, f"read_image({filename!r})")
    kind = {
        ImageReadMode.UNCHANGED: cv2.IMREAD_ANYCOLOR | cv2.IMREAD_IGNORE_ORIENTATION,
        ImageReadMode.GRAYSCALE: cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION,
        ImageReadMode.COLOR: cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION,
    }[mode]
    image = cv2.imdecode(data, kind) if data.size else None
    if image is None:
        raise RuntimeError(message(f"read_image({filename!r})", "a JPEG, PNG, BMP or TIFF file"))
    return image[..., None] if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _array(call: str, argument: str, value: Any) -> np.ndarray:
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    check_type(call, argument, value, np.ndarray, "an array or a Tensor")
    return value


def _encode(call: str, image: Any, ending: str, setting: int, name: str, amount: Any, low: int, high: int) -> np.ndarray:
    import cv2

    array = _array(call, "image", image)
    check_type(call, name, amount, int, "an int")
    if not low <= amount <= high:
        raise RuntimeError(message(f"{call}({name}={amount})", f"an int from {low} to {high}"))
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)) or not array.size:
        raise RuntimeError(message(f"{call} of {array.dtype} {list(array.shape)}", "an image (H, W), (H, W, 1) or (H, W, 3) of uint8"))
    picture = cv2.cvtColor(array, cv2.COLOR_RGB2BGR) if array.ndim == 3 and array.shape[2] == 3 else array
    return cv2.imencode(ending, picture, [setting, amount])[1].reshape(-1)


def encode_jpeg(image: Any, quality: int = 75) -> np.ndarray:
    """Encodes an image as a JPEG file of `quality` 1 to 100; returns the bytes, uint8 (N,)."""
    import cv2

    return _encode("encode_jpeg", image, ".jpg", cv2.IMWRITE_JPEG_QUALITY, "quality", quality, 1, 100)


def encode_png(image: Any, compression_level: int = 6) -> np.ndarray:
    """Encodes an image as a PNG file of `compression_level` 0 to 9; returns the bytes, uint8 (N,)."""
    import cv2

    return _encode("encode_png", image, ".png", cv2.IMWRITE_PNG_COMPRESSION, "compression_level", compression_level, 0, 9)


def write_jpeg(filename: Any, image: Any, quality: int = 75) -> None:
    """Writes an image to a JPEG file of `quality` 1 to 100."""
    check_type("write_jpeg", "filename", filename, str, "a path")
    _write("write_jpeg", filename, encode_jpeg(image, quality).tobytes())


def write_png(filename: Any, image: Any, compression_level: int = 6) -> None:
    """Writes an image to a PNG file of `compression_level` 0 to 9."""
    check_type("write_png", "filename", filename, str, "a path")
    _write("write_png", filename, encode_png(image, compression_level).tobytes())


def get_image_size(image: Any) -> list[int]:
    """Returns [height, width] of an array (..., H, W, C) or (H, W), or of a PIL image."""
    return list(_shape("get_image_size", image)[:2])


def get_image_num_channels(image: Any) -> int:
    """Returns the number of channels of an array (H, W, C) or a PIL image; 1 for (H, W)."""
    return _shape("get_image_num_channels", image)[2]


def _shape(call: str, image: Any) -> tuple[int, int, int]:
    if is_pil(image):
        return image.height, image.width, len(image.getbands())
    check_type(call, "image", image, np.ndarray, "an array or a PIL image")
    if image.ndim < 2:
        raise RuntimeError(message(f"{call} of shape {list(image.shape)}", "an image (H, W) or (H, W, C)"))
    return (*image.shape, 1) if image.ndim == 2 else image.shape[-3:]
