"""Boxes in images, parts cut out by them, and colours."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised
from parity.forms import probe

BOXES = np.array([[0, 0, 10, 10], [2, 2, 8, 12], [20, 20, 30, 25], [5, 5, 7, 9]], np.float32)
TRUTH = np.array([[1, 1, 9, 9], [25, 22, 40, 40]], np.float32)
SCORED = np.array([
    [100, 100, 50, 68, 0.63], [150, 75, 165, 115, 0.55], [12, 190, 288, 200, 0.9], [28, 130, 106, 172, 0.3],
    [30, 130, 105, 170, 0.35], [11, 190, 290, 201, 0.85], [14, 190, 250, 199, 0.2], [60, 140, 200, 180, 0.32],
], np.float32)  # fmt: skip
IMAGES = np.arange(2 * 5 * 6 * 2, dtype=np.float32).reshape(2, 5, 6, 2)
FEATURES = (np.arange(2 * 3 * 8 * 9).reshape(2, 3, 8, 9) % 17).astype(np.float32) / 7
REGIONS = np.array([[0, 1, 2, 9, 8], [1, 0, 0, 4, 4], [0, 3.5, 1.25, 14, 13]], np.float32)
CROPS = np.array([[0, 0, 1, 1], [0.2, 0.3, 0.6, 1.4], [1, 0.3, 0, 0.9]], np.float32)
WHICH = np.array([0, 1, 0], np.int32)
COLOURS = np.array([[[0.2, 0.5, 0.9], [0.3, 0.3, 0.3], [0.0, 0.0, 0.0]], [[0.9, 0.1, 0.2], [0.4, 0.8, 0.4], [1.0, 0.9, 0.95]]], np.float32)
SOME = np.array(0.3, np.float32)
META = np.array([20.0, 25.0, 1.5], np.float32)
OVERLAPS = np.array([[1, 0.6, 0.1], [0.6, 1, 0], [0.1, 0, 1]], np.float32)
SCORES = np.array([0.7, 0.9, 0.8], np.float32)

BY_BOXES = {
    "IOU": lambda: probe(ops.IOU(), BOXES, TRUTH, by=()),
    "IOU_iof": lambda: probe(ops.IOU("iof"), BOXES, TRUTH, by=()),
    "iou": lambda: probe(ops.iou, BOXES, TRUTH, by=()),
    "iou_f16": lambda: probe(ops.iou, BOXES.astype(np.float16), TRUTH.astype(np.float16), by=()),
    "NMSWithMask": lambda: probe(ops.NMSWithMask(0.5), SCORED, by=()),
    "NMSWithMask_low": lambda: probe(ops.NMSWithMask(0.1), SCORED, by=()),
    "NMSWithMask_high": lambda: probe(ops.NMSWithMask(0.9), SCORED, by=()),
    "CheckValid": lambda: probe(ops.CheckValid(), BOXES, META, by=()),
    "check_valid": lambda: probe(ops.check_valid, BOXES, META / 3, by=()),
    "BoundingBoxEncode": lambda: probe(ops.BoundingBoxEncode(), BOXES, BOXES[::-1] + 1, by=()),
    "bounding_box_encode": lambda: probe(
        ops.bounding_box_encode, BOXES, BOXES + 1, (0.1, 0.2, 0.0, 0.0), (2.0, 1.0, 0.5, 1.0), by=(),
    ),
    "BoundingBoxDecode": lambda: probe(ops.BoundingBoxDecode((15, 20)), BOXES, BOXES / 30, by=()),
    "bounding_box_decode": lambda: probe(
        ops.bounding_box_decode, BOXES, BOXES / 5, (30, 40), (0.1, 0.0, 0.0, 0.0), (2.0, 1.0, 1.0, 0.5), 0.2, by=(),
    ),
    "ROIAlign": lambda: probe(ops.ROIAlign(2, 2, 0.5, 2), FEATURES, REGIONS, by=(0,)),
    "ROIAlign_end": lambda: probe(ops.ROIAlign(3, 2, 0.5, 3, 0), FEATURES, REGIONS, by=()),
    "CropAndResize": lambda: probe(ops.CropAndResize(), IMAGES, CROPS, WHICH, (3, 2), by=()),
    "CropAndResize_nearest": lambda: probe(ops.CropAndResize("nearest", 7.0), IMAGES, CROPS, WHICH, (3, 4), by=()),
    "crop_and_resize": lambda: probe(ops.crop_and_resize, IMAGES, CROPS, WHICH, (1, 2), by=()),
    "crop_and_resize_value": lambda: probe(ops.crop_and_resize, IMAGES, CROPS, WHICH, (4, 5), "bilinear", -1.0, by=()),
    "crop_and_resize_gradient": lambda: probe(ops.crop_and_resize, IMAGES, CROPS[:2], WHICH[:2], (2, 3), by=(0,)),
    "RGBToHSV": lambda: probe(ops.RGBToHSV(), COLOURS, by=()),
    "HSVToRGB": lambda: probe(ops.HSVToRGB(), COLOURS[None], by=()),
    "AdjustHue": lambda: probe(ops.AdjustHue(), COLOURS, SOME, by=()),
    "AdjustSaturation": lambda: probe(ops.AdjustSaturation(), COLOURS, SOME, by=()),
    "AdjustSaturation_up": lambda: probe(ops.AdjustSaturation(), COLOURS, np.array(3.0, np.float32), by=()),
    "NonMaxSuppressionWithOverlaps": lambda: probe(
        ops.NonMaxSuppressionWithOverlaps(), OVERLAPS, SCORES, np.array(3, np.int32), np.array(0.5, np.float32), SOME, by=(),
    ),
}


@case(over=BY_BOXES, rtol=1e-5, atol=1e-5, graph=True)
def boxes(ask):
    return ask()


@case()
def refused():
    truth = ms.Tensor(TRUTH)
    return {
        "a list": raised(lambda: ops.iou([1], truth)), "method": raised(
            lambda: ops.CropAndResize("linear")(ms.Tensor(IMAGES), ms.Tensor(CROPS), ms.Tensor(WHICH), (3, 2)),
        ),
    }  # fmt: skip
