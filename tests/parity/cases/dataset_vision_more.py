"""More image transforms: shapes and places, batches, boxes, Pillow's forms, files."""

from __future__ import annotations

import io
import tempfile
import zlib
from functools import cache
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np
from parity.case import case, raised
from PIL import Image

NOISE = np.random.RandomState(3).randint(0, 256, (23, 31, 3)).astype(np.uint8)
SMALL = (np.arange(6 * 5 * 3) * 7 % 256).astype(np.uint8).reshape(6, 5, 3)
SMOOTH = (np.add.outer(np.arange(23) * 10, np.arange(31) * 8)[..., None] * [0.5, 0.4, 0.3]).clip(0, 255).astype(np.uint8)
FLOAT = (NOISE / np.float32(255)).astype(np.float32)
Inter = vision.Inter
# No pixel's source lies on the picture's border, where the last bit of LAPACK's solution would decide.
FROM = [[1, 1], [29, 2], [28, 21], [2, 20]]
TO = [[3, 2], [25, 4], [29, 20], [2, 18]]
BOXES = np.array([[2, 3, 10, 8, 1, 7], [12, 5, 6, 9, 0, 3]], np.float32)


def pil(array=NOISE):
    return Image.fromarray(array)


def boxed(step, *boxes):
    """What a pipeline gives; 2.10 writes into the boxes that it is given."""
    columns = ["image", "boxes"][: 1 + len(boxes)]
    rows = ds.GeneratorDataset(lambda: iter([(NOISE, *[box.copy() for box in boxes])]), columns, shuffle=False).map(step, columns)
    return list(next(rows.create_tuple_iterator(output_numpy=True, num_epochs=1)))


def lists(values):
    return {str(index): np.asarray(value) for index, value in enumerate(values)}


ARRAYS = {
    "Affine": lambda: vision.Affine(15, [0.1, -0.1], 1.1, [5.0, 3.0])(NOISE),
    "Affine turn": lambda: vision.Affine(30.0, [0, 0], 1.0, 0.0)(NOISE),
    "Affine shear": lambda: vision.Affine(0.0, [0, 0], 1.0, 20.0, Inter.BILINEAR, 9)(NOISE),
    "Affine shift": lambda: vision.Affine(0.0, [0.2, 0.1], 0.8, [0.0, 0.0], Inter.NEAREST, (1, 2, 3))(NOISE),
    "Affine bilinear": lambda: vision.Affine(15, [0.1, -0.1], 1.1, [5.0, 3.0], Inter.BILINEAR)(NOISE),
    "Affine grey": lambda: vision.Affine(15, [0.1, -0.1], 1.1, [5.0, 3.0])(NOISE[..., 0]),
    "Erase": lambda: vision.Erase(2, 3, 5, 6)(NOISE),
    "Erase value": lambda: vision.Erase(2, 3, 21, 28, 7)(NOISE),
    "Erase values": lambda: vision.Erase(2, 3, 5, 6, (1, 2, 3))(NOISE),
    "Erase float": lambda: vision.Erase(2, 3, 5, 6, 0.5)(FLOAT),
    "HsvToRgb": lambda: vision.HsvToRgb(True)(FLOAT),
    "HsvToRgb CHW": lambda: vision.HsvToRgb()(FLOAT.transpose(2, 0, 1)),
    "HsvToRgb batch": lambda: vision.HsvToRgb(True)(FLOAT[None]),
    "RgbToHsv": lambda: vision.RgbToHsv(True)(FLOAT),
    "RgbToHsv CHW": lambda: vision.RgbToHsv()(FLOAT.transpose(2, 0, 1)),
    "RgbToHsv batch": lambda: vision.RgbToHsv()(np.stack([FLOAT.transpose(2, 0, 1)] * 2)),
    "RgbToHsv uint8": lambda: vision.RgbToHsv(True)(NOISE),
    "LinearTransformation": lambda: vision.LinearTransformation(np.eye(12)[::-1] * 2.0, np.arange(12.0))(
        np.arange(12.0).reshape(3, 2, 2) ** 2
    ),
    "PadToSize": lambda: vision.PadToSize(40)(NOISE),
    "PadToSize odd": lambda: vision.PadToSize((30, 36), None, 7)(NOISE),
    "PadToSize offset": lambda: vision.PadToSize((30, 40), 2, (1, 2, 3))(NOISE),
    "PadToSize edge": lambda: vision.PadToSize([30, 40], [1, 4], 0, vision.Border.EDGE)(NOISE),
    "PadToSize reflect": lambda: vision.PadToSize((30, 40), None, 0, vision.Border.REFLECT)(NOISE[..., 0]),
    "Perspective": lambda: vision.Perspective(FROM, TO)(NOISE),
    "Perspective nearest": lambda: vision.Perspective(FROM, TO, Inter.NEAREST)(NOISE),
    "Perspective grey": lambda: vision.Perspective(FROM, TO)(NOISE[..., 0]),
    "RandomAdjustSharpness always": lambda: vision.RandomAdjustSharpness(2.0, 1.0)(NOISE),
    "RandomAdjustSharpness never": lambda: vision.RandomAdjustSharpness(2.0, 0.0)(NOISE),
    "RandomLighting none": lambda: vision.RandomLighting(0.0)(NOISE),
    "ResizedCrop": lambda: vision.ResizedCrop(2, 3, 10, 12, (7, 9))(NOISE),
    "ResizedCrop side": lambda: vision.ResizedCrop(2, 3, 12, 12, 8, Inter.NEAREST)(NOISE),
    "ResizedCrop area": lambda: vision.ResizedCrop(2, 3, 10, 12, (5, 6), Inter.AREA)(NOISE),
    "TrivialAugmentWide shape": lambda: np.array(vision.TrivialAugmentWide()(NOISE).shape),
    "RandAugment none": lambda: vision.RandAugment(0)(NOISE),
    "GaussianBlur sigma": lambda: vision.GaussianBlur((5, 3), (1.5, 0.7))(NOISE),
    "GaussianBlur grey": lambda: vision.GaussianBlur(5, 1.0)(NOISE[..., 0]),
    "AdjustGamma gain": lambda: vision.AdjustGamma(0.5, 1.3)(NOISE),
    "AdjustGamma float": lambda: vision.AdjustGamma(2.0)(FLOAT),
    "AutoContrast cutoff": lambda: vision.AutoContrast(10.0, [10, 20])(NOISE),
    "Solarize one": lambda: vision.Solarize(100)(NOISE),
    "Rotate center": lambda: vision.Rotate(20, Inter.BILINEAR, False, (5, 6), 9)(NOISE),
    "Rotate bicubic": lambda: vision.Rotate(20, Inter.NEAREST, True, None, 3)(NOISE[..., 0]),
    "NormalizePad CHW": lambda: vision.NormalizePad([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "float32", False)(NOISE.transpose(2, 0, 1))[:3],
}
MANY = {
    "SlicePatches": lambda: vision.SlicePatches(2, 3)(NOISE),
    "SlicePatches drop": lambda: vision.SlicePatches(2, 3, vision.SliceMode.DROP)(NOISE),
    "SlicePatches fill": lambda: vision.SlicePatches(2, 2, vision.SliceMode.PAD, 9)(NOISE[..., 0]),
    "SlicePatches one": lambda: [vision.SlicePatches()(NOISE)],
    "FiveCrop": lambda: [np.asarray(crop) for crop in vision.FiveCrop((10, 12))(pil())],
    "TenCrop": lambda: [np.asarray(crop) for crop in vision.TenCrop(10)(pil())],
    "TenCrop upside down": lambda: [np.asarray(crop) for crop in vision.TenCrop((10, 9), True)(pil())],
    "flip boxes": lambda: boxed(vision.RandomHorizontalFlipWithBBox(1.0), BOXES),
    "flip boxes down": lambda: boxed(vision.RandomVerticalFlipWithBBox(1.0), BOXES),
    "flip boxes never": lambda: boxed(vision.RandomVerticalFlipWithBBox(0.0), BOXES),
    "resize boxes": lambda: boxed(vision.ResizeWithBBox((12, 40)), BOXES),
    "resize boxes side": lambda: boxed(vision.ResizeWithBBox(15, Inter.NEAREST), BOXES),
    "resize boxes random": lambda: [boxed(vision.RandomResizeWithBBox((12, 40)), BOXES)[1]],
    "crop boxes all": lambda: boxed(vision.RandomCropWithBBox((23, 31)), BOXES),
    "crop boxes padded": lambda: boxed(vision.RandomCropWithBBox((27, 37), [3, 2, 3, 2]), BOXES),
    "crop resized boxes all": lambda: boxed(vision.RandomResizedCropWithBBox((11, 9), (1.0, 1.0), (31 / 23, 31 / 23)), BOXES),
    "augment no box": lambda: boxed(vision.BoundingBoxAugment(vision.RandomVerticalFlip(1.0), 0.0), BOXES),
    "augment every box": lambda: boxed(vision.BoundingBoxAugment(vision.RandomVerticalFlip(1.0), 1.0), BOXES),
    "augment every box, sizes": lambda: boxed(vision.BoundingBoxAugment(vision.RandomRotation((90, 90)), 1.0), BOXES),
}
NEAR_PICTURES = {
    "RandomPerspective flat": lambda: vision.RandomPerspective(0.0, 1.0)(pil()),    # LAPACK's last bit decides about a pixel's source
    "Resize bicubic": lambda: vision.Resize((14, 37), Inter.BICUBIC)(pil(SMOOTH)),  # the rounding of Pillow 12 and 13 differs
}
PICTURES = {
    "Affine": lambda: vision.Affine(15, [0.1, -0.1], 1.1, [5.0, 3.0])(pil()),
    "AdjustBrightness": lambda: vision.AdjustBrightness(1.7)(pil()),
    "AdjustContrast": lambda: vision.AdjustContrast(1.7)(pil()),
    "AdjustGamma": lambda: vision.AdjustGamma(2.0, 1.1)(pil()),
    "AdjustHue": lambda: vision.AdjustHue(0.2)(pil()),
    "AdjustHue back": lambda: vision.AdjustHue(-0.3)(pil()),
    "AdjustSaturation": lambda: vision.AdjustSaturation(1.7)(pil()),
    "AdjustSharpness": lambda: vision.AdjustSharpness(1.7)(pil()),
    "AutoContrast": lambda: vision.AutoContrast(10.0, [10, 20])(pil()),
    "CenterCrop": lambda: vision.CenterCrop((10, 12))(pil()),
    "CenterCrop odd": lambda: vision.CenterCrop((9, 12))(pil()),
    "CenterCrop larger": lambda: vision.CenterCrop((30, 12))(pil()),
    "Crop": lambda: vision.Crop((1, 2), (3, 2))(pil()),
    "Equalize": lambda: vision.Equalize()(pil()),
    "GaussianBlur": lambda: vision.GaussianBlur(3)(pil()),
    "HorizontalFlip": lambda: vision.HorizontalFlip()(pil()),
    "VerticalFlip": lambda: vision.VerticalFlip()(pil()),
    "Invert": lambda: vision.Invert()(pil()),
    "Pad": lambda: vision.Pad((1, 2, 3, 4), (1, 2, 3))(pil()),
    "Pad edge": lambda: vision.Pad(2, 0, vision.Border.EDGE)(pil()),
    "Pad reflect": lambda: vision.Pad(2, 0, vision.Border.REFLECT)(pil()),
    "PadToSize": lambda: vision.PadToSize((30, 36), None, 7)(pil()),
    "Perspective": lambda: vision.Perspective(FROM, TO)(pil()),
    "Perspective nearest": lambda: vision.Perspective(FROM, TO, Inter.NEAREST)(pil()),
    "Perspective bicubic": lambda: vision.Perspective(FROM, TO, Inter.BICUBIC)(pil()),
    "RandomPerspective never": lambda: vision.RandomPerspective(0.5, 0.0)(pil()),
    "Posterize": lambda: vision.Posterize(3)(pil()),
    "RandomAdjustSharpness": lambda: vision.RandomAdjustSharpness(2.0, 1.0)(pil()),
    "RandomEqualize": lambda: vision.RandomEqualize(1.0)(pil()),
    "RandomInvert": lambda: vision.RandomInvert(1.0)(pil()),
    "RandomAutoContrast": lambda: vision.RandomAutoContrast(10.0, [10], 1.0)(pil()),
    "RandomSharpness": lambda: vision.RandomSharpness((1.7, 1.7))(pil()),
    "RandomColor": lambda: vision.RandomColor((1.7, 1.7))(pil()),
    "RandomColorAdjust": lambda: vision.RandomColorAdjust()(pil()),
    "RandomGrayscale": lambda: vision.RandomGrayscale(1.0)(pil()),
    "RandomHorizontalFlip": lambda: vision.RandomHorizontalFlip(1.0)(pil()),
    "RandomRotation": lambda: vision.RandomRotation((30, 30))(pil()),
    "RandomRotation expand": lambda: vision.RandomRotation((30, 30), Inter.BILINEAR, True, None, (1, 2, 3))(pil()),
    "RandomAffine": lambda: vision.RandomAffine((30, 30))(pil()),
    "RandomResizedCrop": lambda: vision.RandomResizedCrop((7, 9), (1.0, 1.0), (31 / 23, 31 / 23))(pil()),
    "RandomCrop all": lambda: vision.RandomCrop((23, 31))(pil()),
    "RandomCrop padded": lambda: vision.RandomCrop((27, 37), [3, 2, 3, 2], False, (1, 2, 3))(pil()),
    "RandomLighting none": lambda: vision.RandomLighting(0.0)(pil()),
    "Resize antialias": lambda: vision.Resize((14, 17), Inter.ANTIALIAS)(pil()),
    "Resize nearest": lambda: vision.Resize(15, Inter.NEAREST)(pil()),
    "ResizedCrop": lambda: vision.ResizedCrop(2, 3, 10, 12, (7, 9))(pil()),
    "Rotate": lambda: vision.Rotate(30)(pil()),
    "Rotate expand": lambda: vision.Rotate(30, Inter.BILINEAR, True, None, 7)(pil()),
    "Solarize": lambda: vision.Solarize((5, 100))(pil()),
    "Erase": lambda: vision.Erase(2, 3, 5, 6)(pil()),
}


@case(over=list(ARRAYS), rtol=2e-6, atol=2e-6)
def array(name):
    return {"image": np.asarray(ARRAYS[name]())}


@case(over=["rotate", "perspective"], atol=1)
def bicubic(name):
    """OpenCV 5 rounds once where OpenCV 4, which 2.10 has, rounds twice."""
    step = vision.Rotate(30, Inter.BICUBIC, False, (3, 4)) if name == "rotate" else vision.Perspective(FROM, TO, Inter.BICUBIC)
    return {"image": step(SMOOTH).astype(np.float32)}


@case(over=list(MANY), rtol=2e-6, atol=2e-6)
def several(name):
    return lists(MANY[name]())


@case(over=list(PICTURES))
def picture(name):
    return shown(PICTURES[name])


@case(over=list(NEAR_PICTURES), atol=1)
def near_picture(name):
    result = shown(NEAR_PICTURES[name])
    return {**result, "image": result["image"].astype(np.float32)}


def shown(make):
    error = raised(make)
    if error is not None:
        return {"error": error}
    result = make()
    return {"kind": "picture" if isinstance(result, Image.Image) else "array", "image": np.asarray(result)}


def hot(count=4):
    return np.eye(count, 3, dtype=np.float32)


@case()
def batches():
    images = np.stack([np.full((6, 5, 3), 10 * number, np.uint8) for number in range(1, 5)])
    out = {}
    for name, part in (("NHWC", images), ("NCHW", images.transpose(0, 3, 1, 2))):
        layout = vision.ImageBatchFormat[name]
        mixed, labels = vision.CutMixBatch(layout, 1.0, 1.0)(part, hot())
        plain, unchanged = vision.CutMixBatch(layout, 1.0, 0.0)(part, hot())
        out |= {name: [str(mixed.dtype), list(mixed.shape), str(labels.dtype), list(labels.shape)], name + " never": np.asarray(plain),
                name + " labels": np.asarray(unchanged)}
    mixed, labels = vision.MixUpBatch(1.0)(images, hot())
    out["mix"] = [str(mixed.dtype), list(mixed.shape), str(labels.dtype), list(labels.shape)]
    return out


@cache
def folder():
    folder_path = Path(tempfile.mkdtemp())
    for name, mode in {"grey.png": "L", "colour.png": "RGB", "alpha.png": "RGBA", "colour.bmp": "RGB", "colour.tif": "RGB"}.items():
        pil().convert(mode).save(folder_path / name)
    (folder_path / "text.txt").write_text("no picture")
    return folder_path


MODES = vision.ImageReadMode
FILES = {
    **{
        f"{name} {mode.name}": lambda name=name, mode=mode: vision.read_image(str(folder() / name), mode)
        for name in ("grey.png", "colour.png", "alpha.png", "colour.bmp", "colour.tif") for mode in MODES
    },
    "bytes": lambda: vision.read_file(str(folder() / "text.txt")),
    "png": lambda: np.array(Image.open(io.BytesIO(vision.encode_png(NOISE, 3).tobytes()))),
    "png grey": lambda: np.array(Image.open(io.BytesIO(vision.encode_png(NOISE[..., :1]).tobytes()))),
    "png plane": lambda: np.array(Image.open(io.BytesIO(vision.encode_png(NOISE[..., 0]).tobytes()))),
    "png Tensor": lambda: np.array(Image.open(io.BytesIO(vision.encode_png(ms.Tensor(NOISE)).tobytes()))),
    "size": lambda: np.array([vision.get_image_size(NOISE), vision.get_image_size(pil()), vision.get_image_size(NOISE[..., 0])]),
    "channels": lambda: np.array([vision.get_image_num_channels(value) for value in (NOISE, NOISE[..., 0], pil(), pil().convert("L"))]),
}


@case(over=list(FILES))
def file(name):
    return {"image": np.asarray(FILES[name]())}


@case(atol=3)
def jpeg():
    file_path = str(folder() / "written.jpg")
    vision.write_jpeg(file_path, SMOOTH, 90)
    vision.write_png(file_path + ".png", SMOOTH, 2)
    vision.write_file(file_path + ".bin", np.arange(9, dtype=np.uint8))
    encoded = np.array(Image.open(io.BytesIO(vision.encode_jpeg(SMOOTH, 90).tobytes())))
    return {
        "read": vision.read_image(file_path).astype(np.float32), "png": vision.read_image(file_path + ".png"),
        "bytes": vision.read_file(file_path + ".bin"), "encoded": encoded.astype(np.float32),
    }


REFUSED = {
    "Affine degrees": lambda: vision.Affine("a", [0, 0], 1.0, 0.0),
    "Affine 200": lambda: vision.Affine(200, [0, 0], 1.0, 0.0),
    "Affine shift": lambda: vision.Affine(0, [0, 2], 1.0, 0.0),
    "Affine shift one": lambda: vision.Affine(0, [0], 1.0, 0.0),
    "Affine scale": lambda: vision.Affine(0, [0, 0], 0, 0.0),
    "Affine shear": lambda: vision.Affine(0, [0, 0], 1.0, [1, 2, 3]),
    "Affine fill": lambda: vision.Affine(0, [0, 0], 1.0, 0.0, Inter.NEAREST, 300),
    "Affine resample": lambda: vision.Affine(0, [0, 0], 1.0, 0.0, 3),
    "Affine row": lambda: vision.Affine(0, [0, 0], 1.0, 0.0)(NOISE[0, 0]),
    "Erase below 0": lambda: vision.Erase(-1, 0, 1, 1),
    "Erase nothing": lambda: vision.Erase(0, 0, 0, 1),
    "Erase value": lambda: vision.Erase(0, 0, 1, 1, 300),
    "Erase values": lambda: vision.Erase(0, 0, 1, 1, (1, 2)),
    "Erase inplace": lambda: vision.Erase(0, 0, 1, 1, 0, 3),
    "Erase outside": lambda: vision.Erase(50, 50, 1, 1)(NOISE),
    "Erase large": lambda: vision.Erase(2, 3, 50, 60, 7)(NOISE),
    "Erase grey": lambda: vision.Erase(0, 0, 1, 1)(NOISE[..., 0]),
    "PadToSize small": lambda: vision.PadToSize(5)(NOISE),
    "PadToSize 0": lambda: vision.PadToSize(0),
    "PadToSize offset": lambda: vision.PadToSize(50, -1),
    "PadToSize far": lambda: vision.PadToSize(25, 20)(SMALL[:, :, :]) if False else vision.PadToSize((25, 33), 20)(NOISE),
    "PadToSize fill": lambda: vision.PadToSize(50, 1, 300),
    "PadToSize mode": lambda: vision.PadToSize(50, 1, 0, 3),
    "Perspective three": lambda: vision.Perspective(FROM[:3], TO),
    "Perspective point": lambda: vision.Perspective([[0, 0, 0]] * 4, TO),
    "Perspective text": lambda: vision.Perspective("a", TO),
    "Perspective inter": lambda: vision.Perspective(FROM, TO, 3),
    "sharpness": lambda: vision.RandomAdjustSharpness(-1.0),
    "sharpness prob": lambda: vision.RandomAdjustSharpness(1.0, 2.0),
    "lighting": lambda: vision.RandomLighting(-1.0),
    "lighting text": lambda: vision.RandomLighting("a"),
    "lighting grey": lambda: vision.RandomLighting(1.0)(NOISE[..., 0]),
    "perspective array": lambda: vision.RandomPerspective(0.5, 1.0)(NOISE),
    "perspective scale": lambda: vision.RandomPerspective(2.0),
    "perspective prob": lambda: vision.RandomPerspective(0.5, 2.0),
    "five array": lambda: vision.FiveCrop(3)(NOISE),
    "five 0": lambda: vision.FiveCrop(0),
    "five large": lambda: vision.FiveCrop(50)(pil()),
    "ten flip": lambda: vision.TenCrop(3, 3),
    "resized crop": lambda: vision.ResizedCrop(-1, 0, 3, 3, 3),
    "resized crop 0": lambda: vision.ResizedCrop(0, 0, 0, 3, 3),
    "resized crop outside": lambda: vision.ResizedCrop(20, 0, 30, 3, 3)(NOISE),
    "resized crop size": lambda: vision.ResizedCrop(0, 0, 3, 3, 0),
    "slice 0": lambda: vision.SlicePatches(0, 1),
    "slice mode": lambda: vision.SlicePatches(1, 1, 3),
    "slice fill": lambda: vision.SlicePatches(1, 1, vision.SliceMode.PAD, 300),
    "slice many": lambda: vision.SlicePatches(50, 1)(NOISE),
    "hsv float": lambda: vision.HsvToRgb(3),
    "hsv channels": lambda: vision.HsvToRgb(True)(FLOAT[..., :2]),
    "hsv plane": lambda: vision.RgbToHsv(True)(FLOAT[..., 0]),
    "linear shape": lambda: vision.LinearTransformation(np.eye(3), np.arange(3.0))(np.zeros((2, 2, 2))),
    "linear mean": lambda: vision.LinearTransformation(np.eye(3), np.arange(2.0))(np.zeros((3, 1, 1))),
    "linear list": lambda: vision.LinearTransformation([[1.0]], np.arange(1.0)),
    "linear not square": lambda: vision.LinearTransformation(np.ones((2, 3)), np.arange(2.0))(np.zeros((2, 1, 1))),
    "auto policy": lambda: vision.AutoAugment("imagenet"),
    "auto fill": lambda: vision.AutoAugment(fill_value=300),
    "auto inter": lambda: vision.AutoAugment(interpolation=3),
    "auto grey": lambda: vision.AutoAugment()(NOISE[..., 0]),
    "rand ops": lambda: vision.RandAugment(-1),
    "rand magnitude": lambda: vision.RandAugment(2, 40),
    "rand bins": lambda: vision.RandAugment(2, 0, 1),
    "rand grey": lambda: vision.RandAugment()(NOISE[..., 0]),
    "trivial bins": lambda: vision.TrivialAugmentWide(1),
    "trivial grey": lambda: vision.TrivialAugmentWide()(NOISE[..., 0]),
    "uniform none": lambda: vision.UniformAugment([]),
    "uniform number": lambda: vision.UniformAugment([3]),
    "uniform ops": lambda: vision.UniformAugment([vision.Invert()], 0),
    "uniform few": lambda: vision.UniformAugment([vision.Invert()], 2),
    "box missing": lambda: boxed(vision.RandomHorizontalFlipWithBBox(1.0)),
    "box int": lambda: boxed(vision.RandomHorizontalFlipWithBBox(1.0), BOXES.astype(np.int32)),
    "box short": lambda: boxed(vision.RandomHorizontalFlipWithBBox(1.0), BOXES[:, :3]),
    "box row": lambda: boxed(vision.RandomHorizontalFlipWithBBox(1.0), BOXES[0]),
    "box outside": lambda: boxed(vision.RandomHorizontalFlipWithBBox(1.0), BOXES + 20),
    "box below 0": lambda: vision.RandomVerticalFlipWithBBox(1.0)(NOISE, -BOXES),
    "box prob": lambda: vision.RandomVerticalFlipWithBBox(2.0),
    "box resize": lambda: vision.ResizeWithBBox(0),
    "box crop large": lambda: boxed(vision.RandomCropWithBBox(90), BOXES),
    "box augment": lambda: vision.BoundingBoxAugment(3),
    "box ratio": lambda: vision.BoundingBoxAugment(vision.RandomRotation(3), 2.0),
    "cutmix format": lambda: vision.CutMixBatch(3),
    "cutmix alpha": lambda: vision.CutMixBatch(vision.ImageBatchFormat.NHWC, 0.0),
    "cutmix prob": lambda: vision.CutMixBatch(vision.ImageBatchFormat.NHWC, 1.0, 2.0),
    "cutmix one": lambda: vision.CutMixBatch(vision.ImageBatchFormat.NHWC)(NOISE, hot(1)[0]),
    "cutmix labels": lambda: vision.CutMixBatch(vision.ImageBatchFormat.NHWC)(NOISE[None], np.array([1])),
    "cutmix channels": lambda: vision.CutMixBatch(vision.ImageBatchFormat.NCHW)(NOISE[None], hot(1)),
    "mixup alpha": lambda: vision.MixUpBatch(0.0),
    "mixup text": lambda: vision.MixUpBatch("a"),
    "mixup one": lambda: vision.MixUpBatch()(NOISE, hot(1)),
    "mixup labels": lambda: vision.MixUpBatch()(NOISE[None], np.array([1])),
    "mixup float labels": lambda: vision.MixUpBatch()(NOISE[None], np.array([1.0])),
    "mixup images": lambda: vision.MixUpBatch()(NOISE[None]),
    "MixUp alpha": lambda: vision.MixUp(2, 0),
    "MixUp size": lambda: vision.MixUp(0, 1.0),
    "MixUp single": lambda: vision.MixUp(2, 1.0, 3),
    "read none": lambda: vision.read_image(str(folder() / "none.png")),
    "read text": lambda: vision.read_image(str(folder() / "text.txt")),
    "read number": lambda: vision.read_image(3),
    "read mode": lambda: vision.read_image(str(folder() / "grey.png"), 0),
    "file none": lambda: vision.read_file(str(folder() / "none.png")),
    "file number": lambda: vision.read_file(3),
    "write float": lambda: vision.write_file(str(folder() / "a.bin"), np.zeros(3)),
    "write axes": lambda: vision.write_file(str(folder() / "a.bin"), np.zeros((3, 3), np.uint8)),
    "write list": lambda: vision.write_file(str(folder() / "a.bin"), [1]),
    "write folder": lambda: vision.write_file(str(folder()), np.zeros(3, np.uint8)),
    "jpeg quality": lambda: vision.encode_jpeg(NOISE, 0),
    "jpeg quality text": lambda: vision.encode_jpeg(NOISE, "a"),
    "jpeg float": lambda: vision.encode_jpeg(FLOAT),
    "jpeg channels": lambda: vision.encode_jpeg(NOISE[..., :2]),
    "jpeg list": lambda: vision.encode_jpeg([1]),
    "png level": lambda: vision.encode_png(NOISE, 10),
    "png row": lambda: vision.encode_png(NOISE[0, 0]),
    "png number": lambda: vision.write_png(3, NOISE),
    "jpeg folder": lambda: vision.write_jpeg(str(folder()), NOISE),
    "size of list": lambda: vision.get_image_size([1]),
    "size of row": lambda: vision.get_image_size(NOISE[0, 0]),
    "channels of list": lambda: vision.get_image_num_channels([1]),
    "video none": lambda: vision.read_video(str(folder() / "none.mp4")),
    "video number": lambda: vision.read_video(3),
    "video unit": lambda: vision.read_video(str(folder() / "text.txt"), pts_unit="a"),
    "video start": lambda: vision.read_video(str(folder() / "text.txt"), -1),
    "video end": lambda: vision.read_video(str(folder() / "text.txt"), 3, 1),
    "video times none": lambda: vision.read_video_timestamps(str(folder() / "none.mp4")),
    "video times unit": lambda: vision.read_video_timestamps(str(folder() / "text.txt"), "a"),
    "video float": lambda: vision.DecodeVideo()(np.zeros(4)),
    "video axes": lambda: vision.DecodeVideo()(np.zeros((2, 2), np.uint8)),
    "video empty": lambda: vision.DecodeVideo()(np.zeros(0, np.uint8)),
    "device": lambda: vision.Affine(0, [0, 0], 1.0, 0.0).device("GPU"),
    "device number": lambda: vision.Affine(0, [0, 0], 1.0, 0.0).device(3),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": raised(REFUSED[name])}


@case()
def devices():
    step = vision.Resize((3, 3))
    policies = {member.name: member.value for member in vision.AutoAugmentPolicy}
    return {"self": step.device("CPU") is step, "image": step.device()(NOISE), "policies": policies}


def is_shifted(image, picture_before):
    """Whether it is `whole` moved along one axis, or black: 2.10 moves by far too much."""
    if not image.any():
        return True
    for axis in (0, 1):
        for step in range(1, picture_before.shape[axis]):
            turned, other = np.swapaxes(image, 0, axis), np.swapaxes(picture_before, 0, axis)
            if np.array_equal(turned[step:], other[:-step]) or np.array_equal(turned[:-step], other[step:]):
                return True
    return False


CHANGES = {
    "rand": lambda: vision.RandAugment(1, 30), "rand weak": lambda: vision.RandAugment(1, 9),
    "rand coarse": lambda: vision.RandAugment(1, 1, 3),
    "trivial": lambda: vision.TrivialAugmentWide(2), "trivial three": lambda: vision.TrivialAugmentWide(3),
}


@case()
def learned_changes():
    """Every picture of the policies learned on ImageNet, which move nothing."""
    step, picture_before = vision.AutoAugment(), SMOOTH[:20, :24]
    return {"sums": sorted({zlib.crc32(step(picture_before).tobytes()) for _ in range(12000)})}


@case(over=list(CHANGES))
def changes(name):
    """Every picture that can come out, those aside that are moved."""
    step, picture_before = CHANGES[name](), SMOOTH[:20, :24]
    results = {step(picture_before).tobytes() for _ in range(1500)}
    images = [np.frombuffer(content, np.uint8).reshape(picture_before.shape) for content in results]
    return {"sums": sorted(zlib.crc32(image.tobytes()) for image in images if not is_shifted(image, picture_before))}
