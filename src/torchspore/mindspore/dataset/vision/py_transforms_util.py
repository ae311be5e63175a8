"""Functional forms of the transforms of Pillow images and arrays, and their checks."""
# ruff: noqa: F401
from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from torchspore.base.text import message
from torchspore.mindspore.dataset.core.operation import as_array
from torchspore.mindspore.dataset.vision import (
    color,
    color_spaces,
    crops,
    geometry,
    images,
    mixup,
    pillow,
    policies,
    random_adjustments,
    random_transforms,
    warps,
)
from torchspore.mindspore.dataset.vision.utils import Border, Inter

augment_error_message = "expected an image of Pillow, got {}: put Decode(to_pil=True) before it for files, ToPIL() for arrays."
"""The message of these functions for anything else; `{}` is its type."""

AFFINE, PERSPECTIVE = Image.Transform.AFFINE, Image.Transform.PERSPECTIVE
FLIP_LEFT_RIGHT, FLIP_TOP_BOTTOM = Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM


def is_pil(img: Any) -> bool:
    """Return whether `img` is a Pillow image."""
    return isinstance(img, Image.Image)


def is_numpy(img: Any) -> bool:
    """Return whether `img` is an array."""
    return isinstance(img, np.ndarray)


def _picture(img: Any) -> Any:
    if not is_pil(img):
        raise TypeError(augment_error_message.format(type(img).__name__))
    return img


def _array(call: str, img: Any) -> np.ndarray:
    if not is_numpy(img):
        raise TypeError(message(f"{call}({type(img).__name__})", "a NumPy array"))
    return img


def hwc_to_chw(img: Any) -> Any:
    """Convert an array (H, W, C) to (C, H, W). Raises TypeError if it is not an array, ValueError for another rank."""
    if _array("hwc_to_chw", img).ndim != 3:
        raise ValueError(f"hwc_to_chw: expected 3 axes (H, W, C), got shape {img.shape}.")
    return np.ascontiguousarray(img.transpose(2, 0, 1))


def to_tensor(img: Any, output_type: Any) -> Any:
    """Convert a picture (H, W, C) of 0 to 255 to an array (C, H, W) of 0 to 1 of the type `output_type`."""
    if not is_numpy(img) and not is_pil(img):
        raise TypeError(f"to_tensor({type(img).__name__}): expected an array or a PIL image.")
    return hwc_to_chw(np.atleast_3d(np.asarray(img))).astype(output_type) / np.asarray(255, output_type)


def to_pil(img: Any) -> Any:
    """Convert an array (H, W, C) or (H, W), or an image, to a Pillow image."""
    if is_pil(img):
        return img
    return images.to_pil(_array("to_pil", img))


def to_type(img: Any, output_type: Any) -> Any:
    """Convert an array to another dtype."""
    return _array("to_type", img).astype(output_type)


def decode(img: Any) -> Any:
    """Decode the bytes of a file to a PIL image."""
    return images.Decode(to_pil=True)(img)


def normalize(img: Any, mean: Any, std: Any, pad_channel: bool = False, dtype: str = "float32") -> Any:
    """Compute `(img - mean) / std` of an array (C, H, W) of floats; `pad_channel` adds a channel of zeros, of `dtype`."""
    if _array("normalize", img).dtype.kind != "f":
        raise NotImplementedError(message(f"normalize of {img.dtype}", "floats", hint="put ToTensor() first"))
    return (color.NormalizePad(mean, std, dtype, False) if pad_channel else color.Normalize(mean, std, False))(img)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Adjust brightness: black for 0, the image for 1, brighter above."""
    return pillow.brightness(_picture(img), brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Adjust contrast: grey for 0, the image for 1, more contrast above."""
    return pillow.contrast(_picture(img), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Adjust saturation: grey for 0, the image for 1, more colour above."""
    return pillow.saturation(_picture(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Rotate the hue by `hue_factor`, in [-0.5, 0.5], of a full turn."""
    color.AdjustHue(hue_factor)  # checks the range
    return pillow.hue(_picture(img), hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float) -> Any:
    """Compute `255 * gain * (img / 255) ** gamma`."""
    return pillow.gamma(_picture(img), gamma, gain)


def auto_contrast(img: Any, cutoff: float, ignore: Any) -> Any:
    """Stretch the brightness of each band, ignoring `cutoff` percent at both ends and the values `ignore`."""
    return pillow.auto_contrast(_picture(img), cutoff, ignore)


def equalize(img: Any) -> Any:
    """Equalize the histogram of each band."""
    return ImageOps.equalize(_picture(img))


def invert_color(img: Any) -> Any:
    """Compute `255 - img`."""
    return ImageOps.invert(_picture(img))


def grayscale(img: Any, num_output_channels: int) -> Any:
    """Convert to grey, in 1 or 3 bands."""
    return images.Grayscale(num_output_channels)(_picture(img))


def horizontal_flip(img: Any) -> Any:
    """Flip left and right."""
    return ImageOps.mirror(_picture(img))


def vertical_flip(img: Any) -> Any:
    """Flip top and bottom."""
    return ImageOps.flip(_picture(img))


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Crop a part of the image; black outside it."""
    return pillow.crop(_picture(img), top, left, height, width)


def center_crop(img: Any, size: Any) -> Any:
    """Crop the middle of the image to `size` (height, width) or a square."""
    return geometry.CenterCrop(size)(_picture(img))


def five_crop(img: Any, size: Any) -> Any:
    """Crop the four corners and the middle."""
    return crops.FiveCrop(size)(_picture(img))


def ten_crop(img: Any, size: Any, use_vertical_flip: bool = False) -> Any:
    """Apply `five_crop` to the image and to the flipped image."""
    return crops.TenCrop(size, use_vertical_flip)(_picture(img))


def resize(img: Any, size: Any, interpolation: Inter = Inter.BILINEAR) -> Any:
    """Resize the image to `size`: (height, width), or one int for the shorter side."""
    return geometry.Resize(size, interpolation)(_picture(img))


def pad(img: Any, padding: Any, fill_value: Any, padding_mode: Any) -> Any:
    """Pad the image, see `Pad`."""
    return geometry.Pad(padding, fill_value, Border(padding_mode))(_picture(img))


def rotate(img: Any, angle: float, resample: Inter, expand: bool, center: Any, fill_value: Any) -> Any:
    """Rotate counter-clockwise by `angle` degrees."""
    geometry.check_inter("rotate", resample, "resample")
    return pillow.rotate(_picture(img), angle, resample, expand, center, fill_value)


def perspective(img: Any, start_points: Any, end_points: Any, interpolation: Inter = Inter.BICUBIC) -> Any:
    """Map the quadrilateral `start_points` to `end_points`."""
    return pillow.perspective(_picture(img), start_points, end_points, interpolation)


def get_perspective_params(img: Any, distortion_scale: float) -> Any:
    """Return the corners of an image, and random points to which `RandomPerspective` moves them."""
    return warps.perspective_points(_picture(img), distortion_scale)


def random_affine(img: Any, angle: float, translations: Any, scale: float, shear: Any, resample: Inter, fill_value: Any = 0) -> Any:
    """Rotate clockwise by `angle` degrees, shift by pixels, scale, and shear by degrees."""
    return pillow.affine(_picture(img), angle, translations, scale, shear, resample, fill_value)


def random_color(img: Any, degrees: Any) -> Any:
    """Apply `RandomColor` to the image."""
    return random_transforms.RandomColor(degrees)(_picture(img))


def random_color_adjust(img: Any, brightness: Any, contrast: Any, saturation: Any, hue: Any) -> Any:
    """Apply `RandomColorAdjust` to the image."""
    return random_transforms.RandomColorAdjust(brightness, contrast, saturation, hue)(_picture(img))


def random_crop(img: Any, size: Any, padding: Any, pad_if_needed: bool, fill_value: Any, padding_mode: Any) -> Any:
    """Apply `RandomCrop` to the image."""
    return random_transforms.RandomCrop(size, padding or None, pad_if_needed, fill_value, Border(padding_mode))(_picture(img))


def random_horizontal_flip(img: Any, prob: float) -> Any:
    """Apply `RandomHorizontalFlip` to the image."""
    return random_transforms.RandomHorizontalFlip(prob)(_picture(img))


def random_vertical_flip(img: Any, prob: float) -> Any:
    """Apply `RandomVerticalFlip` to the image."""
    return random_transforms.RandomVerticalFlip(prob)(_picture(img))


def random_lighting(img: Any, alpha: float) -> Any:
    """Apply `RandomLighting` to the image."""
    return policies.RandomLighting(alpha)(_picture(img))


def random_resize_crop(img: Any, size: Any, scale: Any, ratio: Any, interpolation: Inter = Inter.BILINEAR, max_attempts: int = 10) -> Any:
    """Apply `RandomResizedCrop` to the image."""
    return random_transforms.RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)(_picture(img))


def random_rotation(img: Any, degrees: Any, resample: Inter, expand: bool, center: Any, fill_value: Any) -> Any:
    """Apply `RandomRotation` to the image."""
    return random_transforms.RandomRotation(degrees, resample, expand, center, fill_value)(_picture(img))


def random_sharpness(img: Any, degrees: Any) -> Any:
    """Apply `RandomSharpness` to the image."""
    return random_adjustments.RandomSharpness(degrees)(_picture(img))


def uniform_augment(img: Any, transforms: Any, num_ops: int) -> Any:
    """Apply `UniformAugment` to any value that the transforms take."""
    return policies.UniformAugment(transforms, num_ops)._apply_all(img)[0]


def get_erase_params(np_img: Any, scale: Any, ratio: Any, value: Any, bounded: bool, max_attempts: int) -> Any:
    """Draw (top, left, height, width, value) of a part of an array (C, H, W); unless `bounded`, it may exceed the lower right edges."""
    image = _array("get_erase_params", np_img)
    height, width = image.shape[-2:]
    part = random_transforms.RandomErasing(1.0, scale, ratio, 0, max_attempts=max_attempts)._choose((image,))
    if part is None:
        return 0, 0, height, width, image
    top, left, high, wide, drawn = part
    if not bounded:
        top, left = int(drawn.integers(height)), int(drawn.integers(width))
    return top, left, high, wide, drawn.standard_normal((image.shape[0], high, wide)) if value == "random" else value


def erase(np_img: Any, i: int, j: int, height: int, width: int, erase_value: Any, inplace: bool = False) -> Any:
    """Fill a part of an array (C, H, W), whose upper left corner is (i, j)."""
    image = _array("erase", np_img)
    image = image if inplace else image.copy()
    image[:, i : i + height, j : j + width] = erase_value
    return image


def linear_transform(np_img: Any, transformation_matrix: Any, mean_vector: Any) -> Any:
    """Subtract a mean from the image and multiply by a matrix; see `LinearTransformation`."""
    return color_spaces.linear_transform(_array("linear_transform", np_img), transformation_matrix, mean_vector)


def mix_up_single(batch_size: int, img: Any, label: Any, alpha: float = 0.2) -> Any:
    """Mix each image and label of a batch with the next one's."""
    return mixup.MixUp(batch_size, alpha)(as_array(img, "mix_up_single"), as_array(label, "mix_up_single"))


def mix_up_muti(tmp: Any, batch_size: int, img: Any, label: Any, alpha: float = 0.2) -> Any:
    """Mix each image and label of a batch with those of the previous batch, which `tmp` stores."""
    if getattr(tmp, "mixer", None) is None:
        tmp.mixer = mixup.MixUp(batch_size, alpha, False)
    return tmp.mixer(as_array(img, "mix_up_muti"), as_array(label, "mix_up_muti"))


def rgb_to_bgrs(np_rgb_imgs: Any, is_hwc: bool) -> Any:
    """Reverse the channels of images, or of a batch of them."""
    return color_spaces.rgb_to_bgr(np_rgb_imgs, is_hwc)


def rgb_to_hsvs(np_rgb_imgs: Any, is_hwc: bool) -> Any:
    """Convert images, or a batch of them, to hue, saturation and value."""
    return color_spaces.rgb_to_hsv(np_rgb_imgs, is_hwc)


def hsv_to_rgbs(np_hsv_imgs: Any, is_hwc: bool) -> Any:
    """Convert images, or a batch of them, from hue, saturation and value."""
    return color_spaces.hsv_to_rgb(np_hsv_imgs, is_hwc)


def rgb_to_bgr(np_rgb_img: Any, is_hwc: bool) -> Any:
    """Reverse the channels of an image."""
    return color_spaces.rgb_to_bgr(np_rgb_img, is_hwc)


def rgb_to_hsv(np_rgb_img: Any, is_hwc: bool) -> Any:
    """Convert an image to hue, saturation and value."""
    return color_spaces.rgb_to_hsv(np_rgb_img, is_hwc)


def hsv_to_rgb(np_hsv_img: Any, is_hwc: bool) -> Any:
    """Convert an image from hue, saturation and value."""
    return color_spaces.hsv_to_rgb(np_hsv_img, is_hwc)
