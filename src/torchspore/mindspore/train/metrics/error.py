"""Metrics of numbers: mean errors, the loss, perplexity, similarity, overlap."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.engine.tensors import tree
from torchspore.mindspore.train.metrics.metric import Metric, rearrange_inputs


class _MeanError(Metric):
    """Base of MAE and MSE: the sum over a sample's elements, averaged over samples."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._error_sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._take_(inputs)
        if label.size != predicted.size:
            raise ValueError(
                message(f"{type(self).__name__}.update of shapes {list(predicted.shape)} and {list(label.shape)}", "two of one size")
            )
        self._error_sum += float(self._errors_(predicted, label.reshape(predicted.shape)).sum())
        self._samples_num += int(label.shape[0])

    def _errors_(self, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def eval(self) -> float:
        self._need_(self._samples_num)
        return self._error_sum / self._samples_num


class MAE(_MeanError):
    """The mean over samples of the sum of absolute errors."""

    def _errors_(self, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        return np.abs(label - predicted)


class MSE(_MeanError):
    """The mean over samples of the sum of squared errors."""

    def _errors_(self, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        return np.power(label - predicted, 2)


class Loss(Metric):
    """The mean of the losses of all batches."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum_loss = 0.0
        self._total_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        (loss,) = self._take_(inputs, 1)
        if loss.ndim == 0:
            loss = loss.reshape(1)
        if loss.ndim != 1:
            raise ValueError(message(f"Loss.update of shape {list(loss.shape)}", "a number or a row of them"))
        self._sum_loss += float(loss.mean(-1))
        self._total_num += 1

    def eval(self) -> float:
        self._need_(self._total_num)
        return self._sum_loss / self._total_num


class Perplexity(Metric):
    """exp of the mean negative log of the predicted probability of the correct class; the class `ignore_label` is ignored."""

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None and not is_int(ignore_label):
            raise TypeError(message(f"Perplexity(ignore_label={short(ignore_label)})", "an int or None"))
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        self._sum_metric = 0.0
        self._num_inst = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 2:
            raise ValueError(message(f"Perplexity.update of {len(inputs)} values", "two values, output and label"))
        batches = [[self._convert_data(item) for item in tree.listed(value)] for value in inputs]
        if len(batches[0]) != len(batches[1]):
            raise ValueError(message(f"Perplexity.update of {len(batches[0])} outputs and {len(batches[1])} labels", "as many of both"))
        for predicted, label in zip(*batches):
            if label.size != predicted.size / predicted.shape[-1]:
                raise ValueError(
                    message(f"Perplexity.update of shapes {list(predicted.shape)} and {list(label.shape)}", "(..., C) and (...)")
                )
            classes = label.reshape(-1).astype(np.int64)
            chosen = predicted.reshape(-1, predicted.shape[-1])[np.arange(classes.size), classes]
            count = classes.size
            if self.ignore_label is not None:
                ignored = classes == self.ignore_label
                count -= int(ignored.sum())
                chosen = np.where(ignored, 1.0, chosen)
            self._sum_metric -= float(np.log(np.maximum(1e-10, chosen)).sum())
            self._num_inst += count

    def eval(self) -> float:
        self._need_(self._num_inst)
        return math.exp(self._sum_metric / self._num_inst)


class CosineSimilarity(Metric):
    """The cosine ('cosine') or product ('dot') of each pair of rows, as (N, N), or its 'mean' or 'sum' over a row; see `reduction`."""

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot"):
            raise ValueError(message(f"CosineSimilarity(similarity={short(similarity)})", "'cosine' or 'dot'"))
        if reduction not in ("none", "sum", "mean"):
            raise ValueError(message(f"CosineSimilarity(reduction={short(reduction)})", "'none', 'sum' or 'mean'"))
        if not isinstance(zero_diagonal, bool):
            raise TypeError(message(f"CosineSimilarity(zero_diagonal={short(zero_diagonal)})", "True or False"))
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self) -> None:
        self.sqr_mtx_res: np.ndarray | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        (rows,) = self._take_(inputs, 1)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=1, keepdims=True)
        similarity = rows @ rows.T
        if self.zero_diagonal:
            np.fill_diagonal(similarity, 0)
        self.sqr_mtx_res = similarity

    def eval(self) -> Any:
        self._need_(self.sqr_mtx_res is not None)
        assert self.sqr_mtx_res is not None
        if self.reduction == "mean":
            return self.sqr_mtx_res.mean(axis=-1)
        return self.sqr_mtx_res.sum(axis=-1) if self.reduction == "sum" else self.sqr_mtx_res


class Dice(Metric):
    """Twice the overlap divided by the sum of squares of both, for each batch; their sum divided by the number of rows, as in MindSpore.

    `smooth` avoids a division by zero. For the mean over batches, pass each batch as one row (1, ...).
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if not isinstance(smooth, (int, float)) or isinstance(smooth, bool) or smooth < 0:
            raise ValueError(message(f"Dice(smooth={short(smooth)})", "a number from 0"))
        self.smooth = smooth
        self.clear()

    def clear(self) -> None:
        self._dice_coeff_sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._take_(inputs)
        if predicted.shape != label.shape:
            raise ValueError(message(f"Dice.update of shapes {list(predicted.shape)} and {list(label.shape)}", "two of one shape"))
        overlap = float(np.dot(predicted.reshape(-1), label.reshape(-1)))
        squares = float(np.dot(predicted.reshape(-1), predicted.reshape(-1))) + float(np.dot(label.reshape(-1), label.reshape(-1)))
        self._dice_coeff_sum += 2 * overlap / (squares + self.smooth)
        self._samples_num += int(label.shape[0])

    def eval(self) -> float:
        self._need_(self._samples_num)
        return self._dice_coeff_sum / self._samples_num


def auc(x: Any, y: Any, reorder: bool = False) -> float:
    """Returns the area under a curve of points (x, y) by the trapezoid rule; `reorder` sorts them by x first.

    Raises TypeError unless both are arrays or lists, ValueError if x is not monotonic.
    """
    if not isinstance(x, (list, np.ndarray)) or not isinstance(y, (list, np.ndarray)):
        raise TypeError(message("auc(x, y)", "arrays or lists"))
    xs, ys = np.asarray(x), np.asarray(y)
    if len(xs) != len(ys) or len(xs) < 2:
        raise ValueError(message(f"auc of {len(xs)} and {len(ys)} points", "two rows of one length, at least 2"))
    if reorder:
        order = np.lexsort((ys, xs))
        xs, ys = xs[order], ys[order]
    steps = np.diff(xs)
    if (steps < 0).any() and not (steps <= 0).all():
        raise ValueError(message("auc(x, y)", "an x that only rises or only falls", hint="write reorder=True"))
    area = float((steps * (ys[1:] + ys[:-1]) / 2).sum())
    return -area if (steps < 0).any() else area
