"""The compat functions of images: boxes, pools and interpolation have the same values as MindSpore's operators."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mindspore import Tensor, ops

from torchspore.port import complete_port
from torchspore.port.compat import boxes, images

ANCHORS = np.array([[0, 0, 9, 9], [20, 5, 40, 18], [-4, 12, 6, 30], [3, 3, 3, 3]], np.float32)
DELTAS = np.array([[0.3, -0.2, 0.1, 0.4], [2, 3, 1, 1], [-2, -2, 9, -9], [0, 0, 0, 0]], np.float32)


def assert_same(result: Any, expected: Any) -> None:
    np.testing.assert_allclose(result.numpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


def test_boxes() -> None:
    other, anchors, deltas = ANCHORS[::-1] + np.float32(2.5), torch.tensor(ANCHORS), torch.tensor(DELTAS)
    for mode in ("iou", "iof"):
        assert_same(boxes.box_iou(anchors, torch.tensor(other[:3]), mode), ops.IOU(mode)(Tensor(ANCHORS), Tensor(other[:3])))
    meta = np.array([20, 25, 1.5], np.float32)
    assert_same(boxes.boxes_inside(anchors, torch.tensor(meta)), ops.CheckValid()(Tensor(ANCHORS), Tensor(meta)))
    means, deviations = (0.1, 0.0, 0.2, 0.0), (1.0, 0.5, 2.0, 1.0)
    result = boxes.encode_boxes(anchors, torch.tensor(other), means, deviations)
    assert_same(result, ops.BoundingBoxEncode(means, deviations)(Tensor(ANCHORS), Tensor(other)))
    result = boxes.decode_boxes(anchors, deltas, (24, 36), means, deviations, 0.016)          # beyond each border of the image
    assert_same(result, ops.BoundingBoxDecode((24, 36), means, deviations)(Tensor(ANCHORS), Tensor(DELTAS)))
    # without equal scores, whose order is not defined
    scored = np.concatenate([ANCHORS, [[0.5], [0.9], [0.7], [0.1]]], 1).astype(np.float32)
    scored = np.concatenate([scored, scored + np.float32(1.05)])
    for part, expected in zip(boxes.suppress_boxes(torch.tensor(scored), 0.4), ops.NMSWithMask(0.4)(Tensor(scored))):
        assert_same(part, expected)


@pytest.mark.parametrize("end", [0, 1])
def test_roi_align(end: int) -> None:
    random = np.random.default_rng(0)
    features = random.standard_normal((2, 3, 9, 7), np.float32)
    rois = np.array([[0, 0, 0, 20, 30], [1, 10, 12, 50, 60], [1, -8, 3, 2, 4]], np.float32)
    expected = ops.ROIAlign(3, 2, 0.25, 2, end)(Tensor(features), Tensor(rois)).asnumpy()
    result = boxes.roi_align(torch.tensor(features), torch.tensor(rois), (3, 2), 0.25, 2, end)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


PICTURES = np.random.default_rng(0).standard_normal((2, 3, 5, 7), np.float32)
VOLUMES = np.random.default_rng(0).standard_normal((1, 2, 5, 6, 7), np.float32)


@pytest.mark.parametrize(("align", "half"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("size", [(3, 11), (10, 14), (1, 1)])
def test_bicubic(align: bool, half: bool, size: Any) -> None:
    expected = ops.ResizeBicubic(align, half)(Tensor(PICTURES), Tensor(np.array(size, np.int32)))
    assert_same(images.resize_bicubic(torch.tensor(PICTURES), size, align, half), expected)


HEAD = "import mindspore as ms\nimport numpy as np\nfrom mindspore import Tensor, nn, ops\n\n\nclass Net(nn.Cell):\n"
CELLS = {
    "ops.MaxPool3D(2, 2)(x)": "F.max_pool3d(x, 2, 2)",
    "ops.MaxPool3D((2, 3, 2), (1, 2, 2), 'same')(x)": "max_pool3d(x, (2, 3, 2), (1, 2, 2), 'same')",
    "ops.MaxPool3D(3, 2, 'pad', 1)(x)": "F.max_pool3d(x, 3, 2, padding=1)",
    "ops.MaxPool3D(3, 2, 'pad', (1, 1, 0, 0, 1, 1))(x)": "F.max_pool3d(x, 3, 2, padding=(1, 0, 1))",
    "ops.AvgPool3D(2, 2)(x)": "F.avg_pool3d(x, 2, 2)",
    "ops.AvgPool3D(3, 2, 'same')(x)": "avg_pool3d(x, 3, 2, 'same')",
    "ops.AvgPool3D(3, 2, 'pad', 1, True, False)(x)": "F.avg_pool3d(x, 3, 2, padding=1, ceil_mode=True, count_include_pad=False)",
    "nn.MaxPool3d(3, 2, 'same')(x)": "KeepSizeMaxPool3d(3, 2)(x)",
    "nn.AvgPool3d(2, 2)(x)": "nn.AvgPool3d(2, stride=2)(x)",
    "nn.AdaptiveAvgPool3d((2, 3, 1))(x)": "nn.AdaptiveAvgPool3d((2, 3, 1))(x)",
    "ops.interpolate(x[0], size=(9, 4), mode='bicubic')": "interpolate_bicubically(x[0], size=(9, 4))",
    "ops.interpolate(x[0], scale_factor=2.0, mode='bicubic', align_corners=True, recompute_scale_factor=True)":
        "interpolate_bicubically(x[0], scale_factor=2.0, align_corners=True)",
    "nn.Upsample(scale_factor=2.0, mode='bicubic', recompute_scale_factor=True)(x[0])": "BicubicUpsample(scale_factor=2.0)(x[0])",
    "ops.ResizeBicubic(True)(x[0], Tensor([4, 9], ms.int32))": "resize_bicubic(x[0], ",
}


@pytest.mark.parametrize("expression", CELLS)
def test_pools_and_interpolation(expression: str, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"{HEAD}    def construct(self, x):\n        return {expression}\n", encoding="utf-8")
    outcome = complete_port.port_file(str(path), ["Net"], None, ["1,2,5,6,7"])
    assert CELLS[expression] in outcome.ported.text
    assert [verdict.is_equal for verdict in outcome.verdicts] == [True], outcome.verdicts


@pytest.mark.parametrize("expression, reason", [
    ("ops.MaxPool3D(3, 2, 'pad', (1, 0, 0, 0, 1, 1))(x)", "a padding that differs between sides"),
    ("ops.MaxPool3D(3, 2, 'pad', 1, True)(x)", "ceil_mode with a padding"),
    ("ops.AvgPool3D(3, 2, 'pad', len(x))(x)", "a pad that is not a literal"),
    ("ops.interpolate(x[0], size=(9, 4), mode=self.cls_name)", "a mode that is not a literal"),
])
def test_pools_without_a_rule(expression: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"{HEAD}    def construct(self, x):\n        return {expression}\n", encoding="utf-8")
    outcome = complete_port.port_file(str(path), ["Net"], None, ["1,2,5,6,7"])
    assert [reason in problem.text for problem in outcome.ported.problems] == [True], outcome.ported.problems
