"""mindyolo 0.5.0: small nets of each version's blocks and head train with its loss, and detect.

The wheel contains no configurations. Those below are written for this tool, with the characteristic blocks of each version.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

PACKAGE = "mindyolo==0.5.0"
NEEDS = ("tqdm", "pyyaml", "opencv-python-headless<5", "pycocotools", "pillow", "setuptools<81", "pybind11")
CLASSES, STRIDES = 4, [8, 16, 32]
ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]
PAIRS = [pair for row in reversed(ANCHORS) for pair in zip(row[::2], row[1::2])]
OLD = {"box": 0.05, "obj": 1.0, "cls": 0.5, "anchor_t": 4.0, "label_smoothing": 0.0, "fl_gamma": 0.0, "cls_pw": 1.0, "obj_pw": 1.0}
NEW = {"box": 7.5, "cls": 0.5, "dfl": 1.5, "reg_max": 16, "stride": STRIDES}

VERSIONS: dict[str, dict[str, Any]] = {
    "yolov3": {"block": ["Bottleneck", [32]], "head": ["YOLOv3Head", ["nc", "anchors", "stride"]], "loss": ("YOLOv3Loss", OLD)},
    "yolov4": {"block": ["Residualblock", [32]], "head": ["YOLOv4Head", ["nc", "pairs"]],
               "loss": ("YOLOv4Loss", {**OLD, "ignore_threshold": 0.7, "iou_threshold": 0.2})},
    "yolov5": {"block": ["C3", [32]], "head": ["YOLOv5Head", ["nc", "anchors", "stride"]], "loss": ("YOLOv5Loss", OLD)},
    "yolov7": {"block": ["SPPCSPC", [32]], "head": ["YOLOv7Head", ["nc", "anchors", "stride"]], "loss": ("YOLOv7Loss", OLD)},
    "yolov8": {"block": ["C2f", [32, True]], "head": ["YOLOv8Head", ["nc", "reg_max", "stride"]], "loss": ("YOLOv8Loss", NEW)},
    "yolov9": {"block": ["RepNCSPELAN4", [32, 32, 16, 1]], "head": ["YOLOv9Head", ["nc", "reg_max", "stride"]],
               "loss": ("YOLOv9Loss", NEW)},
    "yolov10": {"block": ["C2fCIB", [32, True]], "head": ["YOLOv10Head", ["nc", "reg_max", "stride"]], "loss": ("YOLOv10Loss", NEW)},
    "yolov11": {"block": ["C3k2", [32, False, 0.25]], "head": ["YOLOv11Head", ["nc", "reg_max", "stride"]], "loss": ("YOLOv11Loss", NEW)},
    "yolox": {"block": ["C3", [32]], "head": ["YOLOXHead", ["nc", "stride"]], "loss": ("YOLOXLoss", {"strides": STRIDES, "use_l1": True})},
}

Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    for name in VERSIONS:
        yield name, "models", lambda name=name: _model(name)  # type: ignore[misc]


def _config(version: dict[str, Any], of_loss: dict[str, Any]) -> Any:
    """Return a model: a backbone that halves five times, with the version's block at the last three sizes, and its head on those."""
    from mindyolo.utils.config import Config  # type: ignore[import-not-found]

    block, arguments = version["block"]
    conv = ["ConvNormAct", [32, 3, 2]]
    backbone = [[-1, 1, "ConvNormAct", [16, 3, 2]]]
    for _ in range(4):
        backbone += [[-1, 1, *conv], [-1, 1, block, arguments]]
    kind, words = version["head"]
    sizes = {"YOLOv4Head": [8, 6, 4], "YOLOv9Head": [4, 6, 8, 4, 6, 8]}.get(kind, [4, 6, 8])        # YOLOv9 has auxiliary heads
    head = [[sizes, 1, kind, words]]
    names = {"nc": CLASSES, "anchors": ANCHORS, "pairs": PAIRS, "stride": STRIDES, "reg_max": of_loss.get("reg_max", 16)}
    head[0][3] = [names[word] for word in words]
    return Config({
        "backbone": backbone, "head": head, "stride": STRIDES, "anchors": ANCHORS, "depth_multiple": 1.0, "width_multiple": 1.0,
        "reg_max": 16, "max_channels": 64, "scale": "n", "nc": CLASSES,
    })


def _model(name: str) -> dict[str, Any] | None:
    """Train three steps with the version's loss, which must stay finite; then compute boxes by non-maximum suppression."""
    import mindspore as ms
    import numpy as np
    from mindyolo.models import create_loss, create_model  # type: ignore[import-not-found]
    from mindyolo.utils.metrics import non_max_suppression  # type: ignore[import-not-found]

    ms.set_seed(1)
    version = VERSIONS[name]
    loss_name, keywords = version["loss"]
    size = 128
    net = create_model(name, model_cfg=_config(version, keywords), num_classes=CLASSES)
    anchors = PAIRS if name == "yolov4" else ANCHORS
    keywords_of_loss = {**keywords, "nc": CLASSES, "anchors": anchors, "stride": STRIDES, "input_size": (size, size)}
    loss = create_loss(name=loss_name, **keywords_of_loss)
    pictures = ms.Tensor(np.random.RandomState(0).rand(2, 3, size, size).astype(np.float32))
    boxes = np.zeros((2, 8, 6), np.float32)
    boxes[:, :, 0] = -1.0                            # marks an unused row
    for picture in range(2):
        boxes[picture, 0] = [picture, picture + 1, 0.5, 0.5, 0.4, 0.3]
        boxes[picture, 1] = [picture, 2, 0.3, 0.6, 0.2, 0.3]
    targets = ms.Tensor(boxes)
    optimizer = ms.nn.Momentum(net.trainable_params(), 1e-3, 0.9)
    net.set_train(True)

    def forward(images: Any, labels: Any) -> Any:
        total, items = loss(net(images), labels, images)
        return total, ms.ops.stop_gradient(items)

    step = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    losses = []
    for _ in range(3):
        (value, _), gradients = step(pictures, targets)
        optimizer(gradients)
        losses.append(float(value.asnumpy().sum()))
    if not np.isfinite(losses).all():
        raise ValueError(f"the losses are {losses}")
    net.set_train(False)
    out = net(pictures)
    while isinstance(out, (tuple, list)):
        out = out[0]
    is_free = name in ("yolov8", "yolov9", "yolov10", "yolov11")
    boxes_of_pictures = non_max_suppression(out.asnumpy(), conf_thres=1e-4, iou_thres=0.6, conf_free=is_free)
    if len(boxes_of_pictures) != 2 or boxes_of_pictures[0].shape[-1] != 6:
        raise ValueError(f"detections of shapes {[f.shape for f in boxes_of_pictures]}")
    return None
