"""Drawing of boxes and masks on a picture, to inspect a dataset."""
from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from torchspore.base.text import message, short

_CALL = "imshow_det_bbox"
_ESCAPE = 27


class NotDrawable(AssertionError, ValueError):
    """Arguments that can't be drawn: an AssertionError, as in MindSpore, and a ValueError."""


def _expect(holds: bool, subject: str, expected: str, hint: str | None = None) -> None:
    if not holds:
        raise NotDrawable(message(f"{_CALL}({subject})", expected, hint=hint))


def imshow_det_bbox(
    image: np.ndarray, bboxes: np.ndarray | None, labels: np.ndarray | None, segm: np.ndarray | None = None, class_names: Any = None,
    score_threshold: float = 0, bbox_color: tuple[int, ...] = (0, 255, 0), text_color: tuple[int, ...] = (203, 192, 255),
    mask_color: tuple[int, ...] = (128, 0, 128), thickness: int = 2, font_size: float = 0.8, show: bool = True, win_name: str = "win",
    wait_time: int = 2000, out_file: str | None = None,
) -> np.ndarray:
    """Draws boxes (x, y, width, height[, score]), classes and masks on an RGB picture (H, W, 3) or (3, H, W); returns it in BGR.

    The picture is shown in a window for `wait_time` ms (Escape ends the program) and written to `out_file`. Raises AssertionError for
    invalid arguments, RuntimeError without a screen.
    """
    import cv2

    _check_picture(image, bboxes, labels, segm, class_names)
    _check_looks(bbox_color, text_color, mask_color, thickness, font_size, show, win_name, wait_time, out_file)
    if bboxes is not None and score_threshold > 0:
        _expect(bboxes.shape[1] == 5, f"score_threshold={score_threshold}", "boxes of five columns, the last one their scores")
    drawn = cv2.cvtColor(np.ascontiguousarray(image.transpose(1, 2, 0) if image.shape[0] == 3 else image), cv2.COLOR_RGB2BGR)
    for at, box in enumerate(() if bboxes is None else bboxes):
        if len(box) > 4 and box[4] < score_threshold:
            continue
        right, bottom = int(box[0] + box[2]), int(box[1] + box[3])
        cv2.rectangle(drawn, (int(box[0]), int(box[1])), (right, bottom), bbox_color, thickness)
        text = _name(class_names, labels[at][0]) + (f"|{box[-1]:.02f}" if len(box) > 4 else "")  # type: ignore[index]
        cv2.putText(drawn, text, (int(box[0]), bottom), cv2.FONT_HERSHEY_SIMPLEX, font_size, text_color, thickness)
        _cover(drawn, segm, at, mask_color)
    if bboxes is None and segm is not None:
        for at in range(len(segm)):
            _cover(drawn, segm, at, mask_color)
    if show:
        _show(cv2, drawn, win_name, wait_time)
    if out_file:
        if not cv2.imwrite(out_file, drawn):
            raise OSError(message(f"{_CALL}(out_file={out_file!r})", "a file that can be written"))
        os.chmod(out_file, 0o600)
    return np.asarray(drawn)


def _name(class_names: Any, label: Any) -> str:
    try:
        return f"class {label}" if class_names is None else str(class_names[label])
    except (IndexError, KeyError):
        return f"class {label}"


def _cover(drawn: np.ndarray, segm: np.ndarray | None, at: int, color: tuple[int, ...]) -> None:
    if segm is not None:
        mask = segm[at].astype(bool)
        drawn[mask] = drawn[mask] * 0.5 + np.array(color) * 0.5


def _show(cv2: Any, drawn: np.ndarray, name: str, wait_time: int) -> None:
    try:
        cv2.imshow(name, drawn)
        pressed = cv2.waitKey(wait_time)
    except cv2.error:
        hint = "write show=False, out_file='picture.jpg'; opencv-python, not -headless, opens windows"
        raise RuntimeError(message(f"{_CALL}(show=True)", "a screen that OpenCV can show windows on", hint=hint)) from None
    if pressed == _ESCAPE:
        sys.exit()


def _check_picture(image: Any, bboxes: Any, labels: Any, segm: Any, class_names: Any) -> None:
    is_picture = isinstance(image, np.ndarray) and image.ndim == 3 and 3 in (image.shape[0], image.shape[2])
    _expect(is_picture, f"image={_shape(image)}", "an array (H, W, 3) or (3, H, W)")
    if bboxes is not None:
        is_boxes = isinstance(bboxes, np.ndarray) and bboxes.ndim == 2 and bboxes.shape[1] in (4, 5)
        _expect(is_boxes, f"bboxes={_shape(bboxes)}", "an array (N, 4) or (N, 5)")
        is_labels = isinstance(labels, np.ndarray) and labels.shape == (len(bboxes), 1)
        _expect(is_labels, f"labels={_shape(labels)}", f"an array ({len(bboxes)}, 1), one label for each box")
    if segm is not None:
        size = image.shape[:2] if image.shape[2] == 3 else image.shape[1:]
        _expect(isinstance(segm, np.ndarray) and segm.ndim == 3, f"segm={_shape(segm)}", "an array (M, H, W)")
        _expect(segm.shape[1:] == size, f"segm={_shape(segm)}", f"masks of the picture's size {size}")
        _expect(bboxes is None or len(bboxes) <= len(segm), f"segm={_shape(segm)}", "a mask for each box")
    _expect(isinstance(class_names, (tuple, list, dict, type(None))), f"class_names={short(class_names)}", "a list, a tuple or a dict")


def _check_looks(*looks: Any) -> None:
    names = ("bbox_color", "text_color", "mask_color", "thickness", "font_size", "show", "win_name", "wait_time", "out_file")
    for name, value in zip(names, looks, strict=True):
        subject = f"{name}={short(value)}"
        if name.endswith("color"):
            _expect(isinstance(value, tuple) and len(value) == 3, subject, "a tuple (blue, green, red)")
        elif name in ("thickness", "wait_time"):
            _expect(isinstance(value, int) and value >= 0, subject, "an int from 0 on")
        elif name == "font_size":
            _expect(isinstance(value, (int, float)) and value >= 0, subject, "a number from 0 on")
        elif name == "show":
            _expect(isinstance(value, bool), subject, "True or False")
        else:
            _expect(isinstance(value, str) or (name == "out_file" and value is None), subject, "a str")
    show, out_file = looks[5], looks[8]
    _expect(show or out_file is not None, "show=False, out_file=None", "one of the two", hint="write out_file='picture.jpg'")


def _shape(value: Any) -> str:
    return f"array{value.shape}" if isinstance(value, np.ndarray) else short(value)
