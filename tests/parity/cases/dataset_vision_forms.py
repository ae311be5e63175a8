"""Transforms of images that are no single (H, W, 3) uint8: videos and batches, grey ones, other dtypes."""
from __future__ import annotations

import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import vision
from mindspore.dataset.vision import Inter
from parity.case import case

PICTURES = np.random.RandomState(0).randint(0, 256, (2, 2, 12, 14, 3)).astype(np.uint8)


def mapped(operation, image):
    dataset = ds.NumpySlicesDataset({"x": image[None]}, shuffle=False).map([operation], ["x"])
    return next(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))["x"]


STACKS = {
    "AdjustGamma": lambda: vision.AdjustGamma(0.7),
    "Rotate": lambda: vision.Rotate(20),
    "VerticalFlip": lambda: vision.VerticalFlip(),
    "HorizontalFlip": lambda: vision.HorizontalFlip(),
    "RandomHorizontalFlip": lambda: vision.RandomHorizontalFlip(1.0),
    "Resize": lambda: vision.Resize((5, 6)),
    "Resize shorter": lambda: vision.Resize(5),
    "Resize area": lambda: vision.Resize((5, 6), Inter.AREA),
    "CenterCrop": lambda: vision.CenterCrop(5),
    "CenterCrop larger": lambda: vision.CenterCrop(20),
    "RandomCrop": lambda: vision.RandomCrop((12, 14)),
    "RandomResizedCrop": lambda: vision.RandomResizedCrop(5, (1.0, 1.0), (14 / 12, 14 / 12)),
    "Normalize": lambda: vision.Normalize([1.0, 2.0, 3.0], [2.0, 2.0, 1.0]),
}


@case(over=list(STACKS))
def images_in_stacks(name):
    operation = STACKS[name]()
    return {"four axes": mapped(operation, PICTURES[0]), "five axes": mapped(operation, PICTURES), "direct": operation(PICTURES[0])}


IMAGE = PICTURES[0, 0]
IMAGES = {
    "grey": IMAGE[..., 0], "one channel": IMAGE[..., :1], "float32": IMAGE.astype(np.float32) / 255, "uint16": IMAGE.astype(np.uint16),
    "int32": IMAGE.astype(np.int32), "float64": IMAGE.astype(np.float64), "grey float32": IMAGE[..., 0].astype(np.float32) / 255,
}


@case(over=list(IMAGES))
def brightness(kind):
    return {"image": mapped(vision.AdjustBrightness(1.5), IMAGES[kind])}


@case(over=["float32", "uint16"], atol=1e-6)                      # differences of numbers near 1 come near 0
def contrast_and_saturation(kind):
    return {
        "contrast": mapped(vision.AdjustContrast(0.5), IMAGES[kind]), "saturation": mapped(vision.AdjustSaturation(1.5), IMAGES[kind]),
    }
