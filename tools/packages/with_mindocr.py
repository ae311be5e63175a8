"""mindocr 0.5.0: each model builds, runs, and trains a step with the loss that its recipes name."""
from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

PACKAGE = "mindocr==0.5.0"
NEEDS = (
    "tqdm", "pyyaml", "addict", "shapely==1.8.5.post1", "pyclipper", "lmdb", "rapidfuzz", "seqeval", "pycocotools", "albumentations==1.3.1",
    "qudida", "scikit-image", "imageio", "lazy-loader", "tifffile", "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver",
    "pyparsing", "python-dateutil", "six", "sentencepiece", "huggingface_hub==0.36.0", "hf-xet", "requests", "urllib3", "idna", "certifi",
    "charset-normalizer", "beautifulsoup4", "soupsieve", "lxml", "python-docx", "pandas", "pytz", "tzdata", "opencv-python-headless<5",
)

Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options                                    # each model runs at one size, without MindSpore
    from mindocr.models import list_models  # type: ignore[import-not-found]

    # Some models always download the weights of their backbones; here they use the initial weights.
    for path, module in list(sys.modules.items()):
        for fetches in ("load_pretrained", "load_model"):
            if path.startswith("mindocr.models") and inspect.isfunction(getattr(module, fetches, None)):
                setattr(module, fetches, lambda *_, **__: None)
    for name in list_models():
        kind = next((kind for pattern, kind, *_ in RECIPES if re.match(pattern, name)), "others")
        yield name, kind, lambda name=name: _model(name)  # type: ignore[misc]


def _text(classes: int, length: int, dtype: str = "int32", rows: int = 2) -> Any:
    import numpy as np

    return np.random.RandomState(1).randint(1, classes, (rows, length)).astype(dtype)


def _pixels(*shape: int) -> Any:
    import numpy as np

    return np.random.RandomState(0).rand(*shape).astype(np.float32)


def _db(x: Any) -> list[Any]:
    n, _, h, w = x.shape
    return [(_pixels(n, 1, h, w) > 0.7).astype("float32"), _pixels(n, h, w) * 0 + 1, _pixels(n, h, w), _pixels(n, h, w) * 0 + 1]


def _pse(x: Any) -> list[Any]:
    n, _, h, w = x.shape
    texts = _pixels(n, h, w) * 0 + 1           # with both kinds of pixels the loss reads beyond a list: an error on the CPU, also in 2.10
    return [texts, (_pixels(n, 6, h, w) > 0.8).astype("float32"), texts]


def _east(x: Any) -> list[Any]:
    n, _, h, w = x.shape
    score = (_pixels(n, 1, h // 4, w // 4) > 0.5).astype("float32")
    return [score, _pixels(n, 5, h // 4, w // 4) * 5 + 1, score * 0]


def _boxes(_: Any) -> list[Any]:
    import numpy as np

    return [np.array([[[0, 1, 0.5, 0.5, 0.3, 0.2]], [[1, 2, 0.4, 0.6, 0.2, 0.2]]], np.float32)]


def _layout(visual: bool) -> list[Any]:
    import numpy as np

    corners = np.sort(np.random.RandomState(2).randint(0, 1000, (1, 512, 4)), -1)[..., [0, 1, 2, 3]].astype(np.int32)
    tokens = [_text(200, 512, rows=1), corners, np.ones((1, 512), np.int32), np.zeros((1, 512), np.int32)]
    return [*tokens, _pixels(1, 3, 224, 224)] if visual else tokens


RECIPES: tuple[tuple[str, str, Any, Any, str, dict[str, Any], Any], ...] = (
    # Pattern, group, inputs, further inputs of the head while training, loss, its arguments, its targets.
    ("dbnet|dbnetpp", "detection", lambda: [_pixels(2, 3, 128, 128)], None, "DBLoss", {}, _db),
    ("psenet", "detection", lambda: [_pixels(2, 3, 128, 128)], None, "PSEDiceLoss", {}, _pse),
    ("east", "detection", lambda: [_pixels(2, 3, 512, 512)], None, "EASTLoss", {}, _east),
    ("crnn", "recognition", lambda: [_pixels(2, 3, 32, 100)], None, "CTCLoss", {"pred_seq_len": 24, "max_label_len": 23, "batch_size": 2},
     lambda _: [_text(36, 23)]),
    ("svtr_tiny_ch", "recognition", lambda: [_pixels(2, 3, 32, 320)], None, "CTCLoss",
     {"pred_seq_len": 80, "max_label_len": 25, "batch_size": 2}, lambda _: [_text(36, 25)]),
    ("svtr_tiny", "recognition", lambda: [_pixels(2, 3, 64, 256)], None, "CTCLoss",
     {"pred_seq_len": 25, "max_label_len": 24, "batch_size": 2}, lambda _: [_text(36, 24)]),
    ("svtr_ppocrv3", "recognition", lambda: [_pixels(2, 3, 48, 320)], lambda: [
        _text(36, 25), _text(36, 25), _pixels(2) * 0 + 1, _pixels(2, 1, 40) * 0 + 1,
    ], "MultiLoss", {"loss_config_list": [{"CTCLossForSVTR": None}, {"SARLoss": None}]},
     lambda _: [_text(36, 25), _text(36, 25), _text(26, 1)[:, 0], _pixels(2) * 0 + 1]),
    ("rare", "recognition", lambda: [_pixels(2, 3, 32, 100)], lambda: [_text(36, 26)], "AttentionLoss", {}, lambda _: [_text(36, 27)]),
    ("master", "recognition", lambda: [_pixels(2, 3, 48, 160)], lambda: [_text(36, 27)], "AttentionLoss", {"ignore_index": 2},
     lambda _: [_text(36, 27)]),
    ("robustscanner", "recognition", lambda: [_pixels(2, 3, 48, 160)], lambda: [
        _text(36, 40), _pixels(2, 1, 40) * 0 + 1, _text(40, 40),
    ], "SARLoss", {"ignore_index": 92}, lambda _: [_text(36, 40)]),
    ("visionlan", "recognition", lambda: [_pixels(2, 3, 64, 256)], lambda: [_text(5, 1)[:, 0]], "VisionLANLoss", {"mode": "LF_1"},
     lambda _: [_text(36, 26), _text(36, 26), _text(36, 26), _text(20, 1)[:, 0]]),
    ("abinet", "recognition", lambda: [_pixels(96, 3, 32, 128)], None, "", {}, None),
    ("cls", "classification", lambda: [_pixels(2, 3, 48, 192)], None, "CrossEntropySmooth", {}, lambda _: [_text(2, 1)[:, 0]]),
    ("table_master", "tables", lambda: [_pixels(1, 3, 480, 480)], lambda: [_text(36, 501, rows=1)], "TableMasterLoss", {"ignore_index": 42},
     lambda _: [_text(36, 501, rows=1), _pixels(1, 501, 4), _pixels(1, 501, 1) * 0 + 1]),
    ("yolov8", "layout", lambda: [_pixels(2, 3, 256, 256)], None, "YOLOv8Loss", {
        "box": 7.5, "cls": 0.5, "dfl": 1.5, "reg_max": 16, "nc": 5, "stride": [8, 16, 32, 64],
    }, _boxes),
    ("layoutxlm", "key information", lambda: _layout(True), None, "VQASerTokenLayoutLMLoss", {"num_classes": 7},
     lambda _: [None, _text(6, 512, rows=1)]),
    ("vi_layoutxlm", "key information", lambda: _layout(False), None, "VQASerTokenLayoutLMLoss", {"num_classes": 7},
     lambda _: [None, _text(6, 512, rows=1)]),
)


def _model(name: str) -> dict[str, Any] | None:
    """Build and run the model, and train two steps with its loss, which must stay finite."""
    import mindspore as ms
    import numpy as np
    from mindocr.losses import build_loss  # type: ignore[import-not-found]
    from mindocr.models import build_model  # type: ignore[import-not-found]

    _, _, inputs, further, loss_name, keywords, targets = next(recipe for recipe in RECIPES if re.match(recipe[0], name))
    ms.set_seed(1)
    net = build_model(name, pretrained=False, pretrained_backbone=False)

    def tensors(arrays: Any) -> list[Any]:
        return [None if a is None else ms.Tensor(np.ascontiguousarray(a)) for a in arrays]

    x = tensors(inputs())
    if "layoutxlm" in name:
        x = [tuple(x)]
    net.set_train(False)
    if name != "table_master":                   # it generates 500 tokens one by one, each from all earlier ones: many minutes
        net(*x, *(tensors(further()) if name.startswith("robustscanner") else ()))
    net.set_train(True)
    expected = tensors(targets(inputs()[0])) if targets else []
    loss = build_loss(loss_name, **keywords) if loss_name else lambda out: _total(out)
    optimizer = ms.nn.SGD(net.trainable_params(), learning_rate=1e-4)
    x += tensors(further()) if further else []

    def forward(*tensors_in: Any) -> Any:
        out = loss(net(*tensors_in), *expected)
        return out[0] if isinstance(out, tuple) else out

    step = ms.value_and_grad(forward, None, optimizer.parameters)
    losses = []
    for _ in range(2):
        value, gradients = step(*x)
        optimizer(gradients)
        losses.append(float(value.asnumpy().sum()))
    if not np.isfinite(losses).all():
        raise ValueError(f"the losses are {losses}")
    return None


def _total(out: Any) -> Any:
    """Return the sum of the means of all floating-point Tensors in a nest."""
    import mindspore as ms

    if isinstance(out, dict):
        out = list(out.values())
    if isinstance(out, (list, tuple)):
        return sum(_total(part) for part in out)
    return out.mean() if isinstance(out, ms.Tensor) and out.is_floating_point() else 0.0
