"""Image transforms that make no random choice: the very numbers, and what they refuse."""

from __future__ import annotations

import io

import mindspore as ms
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
from parity.case import case

IMAGE = (np.arange(6 * 5 * 3) * 7 % 256).astype(np.uint8).reshape(6, 5, 3)
NOISE = np.random.RandomState(3).randint(0, 256, (23, 31, 3)).astype(np.uint8)
ROW = np.array([1, 2, 3], np.int32)


def kind(call):
    """The built-in error that `call` raises, or None."""
    try:
        call()
    except Exception as error:
        return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
    return None


def png(image):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return np.frombuffer(file.getvalue(), np.uint8)


RESULTS = {
    "HWC2CHW": lambda: vision.HWC2CHW()(IMAGE),
    "HWC2CHW, grey": lambda: vision.HWC2CHW()(IMAGE[..., 0]),
    "Rescale": lambda: vision.Rescale(1 / 255.0, 0.0)(NOISE),
    "Rescale twice": lambda: vision.Rescale(1 / 0.3081, -0.4242)(vision.Rescale(1 / 255.0, 0.0)(NOISE)),
    "Rescale float64": lambda: vision.Rescale(0.5, 1.0)(IMAGE.astype(np.float64)),
    "Normalize": lambda: vision.Normalize([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])(NOISE),
    "Normalize CHW": lambda: vision.Normalize([0.5, 0.4, 0.3], [2.0, 3.0, 4.0], False)(NOISE.transpose(2, 0, 1).astype(np.float32)),
    "Normalize, one": lambda: vision.Normalize([0.5], [2.0])(IMAGE),
    "Normalize, grey": lambda: vision.Normalize([0.5], [2.0])(IMAGE[..., 0]),
    "Resize": lambda: vision.Resize((4, 4))(IMAGE),
    "Resize, shorter side": lambda: vision.Resize(11)(NOISE),
    "Resize, grey": lambda: vision.Resize((3, 3))(IMAGE[..., 0]),
    "Resize, channel of one": lambda: vision.Resize((3, 3))(IMAGE[..., :1]),
    "Resize larger": lambda: vision.Resize((60, 57))(NOISE),
    "Resize float": lambda: vision.Resize((9, 9))(IMAGE.astype(np.float32)),
    "Resize nearest": lambda: vision.Resize((14, 37), vision.Inter.NEAREST)(NOISE),
    "Resize area": lambda: vision.Resize((14, 17), vision.Inter.AREA)(NOISE),
    "CenterCrop": lambda: vision.CenterCrop((2, 3))(IMAGE),
    "CenterCrop larger": lambda: vision.CenterCrop(9)(IMAGE),
    "CenterCrop one side larger": lambda: vision.CenterCrop((3, 8))(IMAGE),
    "CenterCrop noise": lambda: vision.CenterCrop((10, 12))(NOISE),
    "Crop": lambda: vision.Crop((1, 2), (3, 2))(IMAGE),
    "Pad": lambda: vision.Pad(1)(IMAGE),
    "Pad two": lambda: vision.Pad((1, 2), 9)(IMAGE),
    "Pad four": lambda: vision.Pad((1, 2, 3, 4), (1, 2, 3))(IMAGE),
    "Pad edge": lambda: vision.Pad([1, 1], 0, vision.Border.EDGE)(IMAGE),
    "Pad reflect": lambda: vision.Pad([1, 1], 0, vision.Border.REFLECT)(IMAGE),
    "Pad symmetric": lambda: vision.Pad([1, 1], 0, vision.Border.SYMMETRIC)(IMAGE),
    "HorizontalFlip": lambda: vision.HorizontalFlip()(IMAGE),
    "VerticalFlip": lambda: vision.VerticalFlip()(IMAGE),
    "RandomHorizontalFlip always": lambda: vision.RandomHorizontalFlip(1.0)(IMAGE),
    "RandomVerticalFlip never": lambda: vision.RandomVerticalFlip(0.0)(IMAGE),
    "RandomResizedCrop of all": lambda: vision.RandomResizedCrop((7, 9), scale=(1.0, 1.0), ratio=(31 / 23, 31 / 23))(NOISE),
    "ToTensor": lambda: vision.ToTensor()(IMAGE),
    "ToTensor, grey": lambda: vision.ToTensor()(IMAGE[..., 0]),
    "ToTensor float": lambda: vision.ToTensor()(IMAGE.astype(np.float32)),
    "ToTensor float16": lambda: vision.ToTensor("float16")(IMAGE),
    "ToPIL": lambda: np.asarray(vision.ToPIL()(IMAGE)),
    "ToType": lambda: vision.ToType(np.float16)(IMAGE),
    "Invert": lambda: vision.Invert()(IMAGE),
    "ToNumpy": lambda: vision.ToNumpy()(vision.ToPIL()(IMAGE)),
    "Grayscale": lambda: np.asarray(vision.Grayscale()(vision.ToPIL()(NOISE))),
    "Grayscale three": lambda: np.asarray(vision.Grayscale(3)(vision.ToPIL()(NOISE))),
    "ConvertColor BGR": lambda: vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGR)(IMAGE),
    "ConvertColor grey": lambda: vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY)(NOISE),
    "ConvertColor RGBA": lambda: vision.ConvertColor(vision.ConvertMode.COLOR_BGR2RGBA)(IMAGE),
    "Decode": lambda: vision.Decode()(png(NOISE)),
    "Decode grey": lambda: vision.Decode()(png(NOISE[..., 0])),
    "Decode PIL": lambda: np.asarray(vision.Decode(True)(png(NOISE))),
    "AdjustBrightness": lambda: vision.AdjustBrightness(1.7)(NOISE),
    "AdjustContrast": lambda: vision.AdjustContrast(1.7)(NOISE),
    "AdjustSaturation": lambda: vision.AdjustSaturation(1.7)(NOISE),
    "AdjustHue": lambda: vision.AdjustHue(0.2)(NOISE),
    "AdjustGamma": lambda: vision.AdjustGamma(2.0)(NOISE),
    "AdjustSharpness": lambda: vision.AdjustSharpness(1.7)(NOISE),
    "RandomEqualize always": lambda: vision.RandomEqualize(1.0)(NOISE),
    "RandomInvert always": lambda: vision.RandomInvert(1.0)(NOISE),
    "RandomAutoContrast always": lambda: vision.RandomAutoContrast(prob=1.0)(NOISE),
    "RandomPosterize 3": lambda: vision.RandomPosterize(3)(NOISE),
    "AutoContrast": lambda: vision.AutoContrast()(NOISE),
    "Equalize": lambda: vision.Equalize()(NOISE),
    "Posterize": lambda: vision.Posterize(3)(NOISE),
    "Solarize": lambda: vision.Solarize((5, 100))(NOISE),
    "GaussianBlur": lambda: vision.GaussianBlur(3)(NOISE),
    "Rotate": lambda: vision.Rotate(30)(NOISE),
    "Rotate expand": lambda: vision.Rotate(30, vision.Inter.BILINEAR, True)(NOISE),
    "TypeCast": lambda: transforms.TypeCast(ms.float32)(ROW),
    "TypeCast NumPy": lambda: transforms.TypeCast(np.int8)(ROW),
    "TypeCast wraps": lambda: transforms.TypeCast(ms.uint8)(np.array([-1.5, 300.7, 2.5], np.float32)),
    "TypeCast bool": lambda: transforms.TypeCast(ms.bool_)(ROW),
    "OneHot": lambda: transforms.OneHot(5)(np.array(2)),
    "OneHot row": lambda: transforms.OneHot(5)(np.array([2, 1])),
    "OneHot smooth": lambda: transforms.OneHot(5, 0.1)(np.array(2)),
    "OneHot uint8": lambda: transforms.OneHot(3)(np.array(1, np.uint8)),
    "Fill": lambda: transforms.Fill(7)(ROW),
    "Fill float": lambda: transforms.Fill(7.5)(ROW),
    "Concatenate": lambda: transforms.Concatenate(0, np.array([9], np.int32), np.array([8], np.int32))(ROW),
    "Duplicate": lambda: transforms.Duplicate()(ROW)[1],
    "Mask": lambda: transforms.Mask(transforms.Relational.GE, 2)(ROW),
    "PadEnd": lambda: transforms.PadEnd([5], -1)(ROW),
    "PadEnd cuts": lambda: transforms.PadEnd([2], -1)(ROW),
    "Slice": lambda: transforms.Slice(slice(1, 3))(ROW),
    "Slice list": lambda: transforms.Slice([0, 2])(ROW),
    "Slice int": lambda: transforms.Slice(1)(ROW),
    "Slice two axes": lambda: transforms.Slice(slice(0, 2), [1])(IMAGE[..., 0]),
    "Slice all": lambda: transforms.Slice(...)(ROW),
    "Compose": lambda: transforms.Compose([vision.Rescale(1.0, 0.0), vision.HWC2CHW(), lambda image: image + 1])(IMAGE),
    "RandomApply always": lambda: transforms.RandomApply([vision.Invert()], 1.0)(IMAGE),
    "RandomChoice of one": lambda: transforms.RandomChoice([vision.Invert()])(IMAGE),
}


@case(over=list(RESULTS), rtol=2e-6, atol=2e-6)
def result(name):
    return {"image": np.asarray(RESULTS[name]())}


@case(over=["bicubic"], atol=1)
def resize_bicubic(_):
    return {"image": vision.Resize((14, 37), vision.Inter.BICUBIC)(NOISE).astype(np.float32)}


@case(atol=1)
def resize_picture():
    """The rounding of Pillow 12 and 13 differs."""
    return {"image": np.asarray(vision.Resize((14, 37))(vision.ToPIL()(NOISE))).astype(np.float32)}


REFUSED = {
    "HWC2CHW of four axes": lambda: vision.HWC2CHW()(IMAGE[None]),
    "Rescale text": lambda: vision.Rescale("a", 0),
    "Normalize uneven": lambda: vision.Normalize([0.5], [2.0, 3.0]),
    "Normalize below 0": lambda: vision.Normalize([-1.0], [1.0]),
    "Normalize std 0": lambda: vision.Normalize([1.0], [0.0]),
    "Normalize above 255": lambda: vision.Normalize([300.0], [1.0]),
    "Normalize channels": lambda: vision.Normalize([1.0, 2.0], [1.0, 1.0])(IMAGE),
    "Resize 0": lambda: vision.Resize(0),
    "Resize text": lambda: vision.Resize("a"),
    "Resize three": lambda: vision.Resize([1, 2, 3]),
    "Resize interpolation": lambda: vision.Resize(4, "x"),
    "Resize int32": lambda: vision.Resize((9, 9))(IMAGE.astype(np.int32)),
    "Resize antialias": lambda: vision.Resize((4, 7), vision.Inter.ANTIALIAS)(IMAGE),
    "Resize a row": lambda: vision.Resize(3)(np.zeros(3, np.uint8)),
    "CenterCrop 0": lambda: vision.CenterCrop(0),
    "Crop outside": lambda: vision.Crop((1, 2), (30, 2))(IMAGE),
    "Pad three": lambda: vision.Pad([1, 2, 3]),
    "flip 1.5": lambda: vision.RandomHorizontalFlip(1.5),
    "flip text": lambda: vision.RandomHorizontalFlip("a"),
    "ToPIL float": lambda: vision.ToPIL()(IMAGE.astype(np.float32)),
    "ConvertColor grey of three": lambda: vision.ConvertColor(vision.ConvertMode.COLOR_GRAY2RGB)(IMAGE),
    "RandomCrop larger": lambda: vision.RandomCrop(9)(IMAGE),
    "RandomResizedCrop scale": lambda: vision.RandomResizedCrop(3, scale=(2, 1)),
    "Decode nothing": lambda: vision.Decode()(np.zeros(5, np.uint8)),
    "Decode an image": lambda: vision.Decode()(IMAGE),
    "list": lambda: vision.Rescale(1.0, 0.0)([1, 2]),
    "text": lambda: vision.Rescale(1.0, 0.0)("a"),
    "Tensor": lambda: vision.Rescale(1.0, 0.0)(ms.Tensor([1.0])),
    "TypeCast text": lambda: transforms.TypeCast("zz"),
    "OneHot too large": lambda: transforms.OneHot(2)(np.array(2)),
    "OneHot float": lambda: transforms.OneHot(2)(np.array(1.0)),
    "OneHot 0": lambda: transforms.OneHot(0),
    "Compose nothing": lambda: transforms.Compose([]),
    "Compose number": lambda: transforms.Compose([3]),
    "RandomApply nothing": lambda: transforms.RandomApply([], 1.0),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": kind(REFUSED[name])}


@case()
def names_of_choices():
    return {
        "inter": {member.name: int(member) for member in vision.Inter},
        "border": {member.name: member.value for member in vision.Border},
        "convert": {member.name: int(member) for member in vision.ConvertMode},
        "relational": {member.name: int(member) for member in transforms.Relational},
    }
