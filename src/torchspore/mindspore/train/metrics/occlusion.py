"""Occlusion sensitivity: the change of a network's output when parts of one image are covered."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message, short
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.metrics.metric import Metric, rearrange_inputs


class OcclusionSensitivity(Metric):
    """The decrease of a network's output for one label when the part around each position of one image is set to `pad_val`.

    The part extends from `margin` before (inclusive) to `margin` after (exclusive); a list has one margin for each axis except the first.
    `n_batch` images are evaluated at once. `b_box` [low, high, low, high, ...] limits the positions, both ends included, axis by axis; -1
    means the image's ends. Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(
        self, pad_val: float = 0.0, margin: int | Sequence[int] = 2, n_batch: int = 128, b_box: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(pad_val, float):
            raise TypeError(message(f"OcclusionSensitivity(pad_val={short(pad_val)})", f"a float, got {type(pad_val).__name__}"))
        if isinstance(margin, bool) or not isinstance(margin, (int, list, tuple)):
            raise TypeError(message(f"OcclusionSensitivity(margin={short(margin)})", f"an int or a list, got {type(margin).__name__}"))
        check_int_type("OcclusionSensitivity", "n_batch", n_batch)
        if b_box is not None and not isinstance(b_box, (list, tuple)):
            raise TypeError(message(f"OcclusionSensitivity(b_box={short(b_box)})", f"a list, got {type(b_box).__name__}"))
        self.pad_val, self.margin, self.n_batch, self.b_box = pad_val, margin, n_batch, b_box
        self.clear()

    def clear(self) -> None:
        self._sensitivity: np.ndarray | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Evaluates one image (1, ...) with a network and a label. Raises ValueError and RuntimeError if they do not fit."""
        if len(inputs) != 3:
            raise ValueError(message(f"OcclusionSensitivity.update of {len(inputs)} values", "three values: network, image, label"))
        network, (image, label) = inputs[0], (self._convert_data(value) for value in inputs[1:])
        if image.shape[:1] != (1,):
            raise RuntimeError(message(f"OcclusionSensitivity.update of shape {list(image.shape)}", "one image, (1, ...)"))
        if label.size != 1:
            raise RuntimeError(message(f"OcclusionSensitivity.update with {label.size} labels", "one label"))
        label_index, corners = int(label.reshape(-1)[0]), self._corners_(image.shape[1:])
        positions = list(product(*[range(low, high + 1) for low, high in corners]))
        unoccluded = self._answers_(network, [image[0]], label_index)[0]
        decreases, step = [], max(self.n_batch, 1)
        for start in range(0, len(positions), step):
            images = [self._covered_(image[0], position) for position in positions[start : start + step]]
            decreases.append(unoccluded - self._answers_(network, images, label_index))
        self._sensitivity = np.concatenate(decreases).reshape([high - low + 1 for low, high in corners]).squeeze()

    def eval(self) -> np.ndarray:
        """Returns the decrease of the output for each position. Raises RuntimeError before any `update`."""
        if self._sensitivity is None:
            raise RuntimeError(message("OcclusionSensitivity.eval before any image", "update(...) first"))
        return self._sensitivity

    def _corners_(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        if self.b_box is None:
            return [(0, size - 1) for size in shape]
        if len(self.b_box) != 2 * len(shape):
            raise ValueError(message(f"OcclusionSensitivity(b_box={short(self.b_box)})", f"{2 * len(shape)} numbers for {list(shape)}"))
        pairs = zip(self.b_box[::2], self.b_box[1::2])
        return [(max(low, 0), size - 1 if high == -1 else high) for (low, high), size in zip(pairs, shape)]

    def _covered_(self, image: np.ndarray, position: tuple[int, ...]) -> np.ndarray:
        margins = [self.margin] * image.ndim if isinstance(self.margin, int) else list(self.margin)
        if len(margins) != image.ndim:
            raise ValueError(message(f"OcclusionSensitivity(margin={short(self.margin)})", f"{image.ndim} numbers, one for each axis"))
        covered = image.copy()
        covered[tuple(slice(max(at - margin, 0), max(at + margin, 0)) for at, margin in zip(position, margins))] = self.pad_val
        return covered

    @staticmethod
    def _answers_(network: Any, images: list[np.ndarray], label_index: int) -> np.ndarray:
        return network(Tensor(np.stack(images))).asnumpy()[:, label_index]  # type: ignore[no-any-return]
