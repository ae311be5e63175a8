"""`Metric`, the base of the metrics."""
from __future__ import annotations

import functools
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.text import message, short


class Metric(metaclass=ABCMeta):
    """Base of the metrics: `clear()`, then `update(...)` for each batch, then `eval()`. Calling it does all three for one batch."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Returns the indexes of `set_indexes`: the outputs that `update` takes."""
        return getattr(self, "_indexes", None)

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Selects the values that `update` takes, by index; returns the metric."""
        if not isinstance(indexes, list) or not all(isinstance(index, int) for index in indexes):
            raise ValueError(message(f"set_indexes({short(indexes)})", "a list of ints"))
        self._indexes = indexes
        return self

    def _convert_data(self, data: Any) -> np.ndarray:
        """Convert a Tensor, list or array to an array. Raises TypeError for anything else."""
        if hasattr(data, "asnumpy"):
            return data.asnumpy()
        if isinstance(data, (list, np.ndarray, np.generic)):
            return np.array(data)
        raise TypeError(message(f"{type(self).__name__}.update({short(data)})", f"a Tensor, a list or an array, got {type(data).__name__}"))

    def __call__(self, *inputs: Any) -> Any:
        self.clear()
        self.update(*inputs)
        return self.eval()

    @abstractmethod
    def clear(self) -> None:
        """Resets the metric."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Adds one batch."""

    @abstractmethod
    def eval(self) -> Any:
        """Returns the result over all batches."""

    def _take_(self, inputs: tuple[Any, ...], count: int = 2) -> list[np.ndarray]:
        if len(inputs) != count:
            expected = {1: "one value, the loss or output", 2: "two values, output and label", 3: "three values"}[count]
            raise ValueError(message(f"{type(self).__name__}.update of {len(inputs)} values", expected))
        return [self._convert_data(value) for value in inputs]

    def _need_(self, count: Any) -> None:
        if not count:
            raise RuntimeError(message(f"{type(self).__name__}.eval before any sample", "update(...) first"))


def rearrange_inputs(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes an `update` take its values in the order of `set_indexes`."""

    @functools.wraps(func)
    def wrapper(self: Any, *inputs: Any) -> Any:
        return func(self, *inputs) if not self.indexes else func(self, *[inputs[index] for index in self.indexes])

    return wrapper


class EvaluationBase(Metric):
    """Base of Accuracy, Precision and Recall: of classes ('classification') or of sets of labels ('multilabel')."""

    def __init__(self, eval_type: str) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(message(f"{type(self).__name__}(eval_type={short(eval_type)})", "'classification' or 'multilabel'"))
        self._type = eval_type

    def _check_(self, predicted: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Checks shapes and values; a one-hot label becomes class numbers."""
        name = type(self).__name__
        subject = f"{name}.update of shapes {list(predicted.shape)} and {list(label.shape)}"
        if self._type == "classification":
            if predicted.ndim == label.ndim and predicted.shape == label.shape:
                label = label.argmax(axis=1)
            elif predicted.ndim != label.ndim + 1 or predicted.shape[:1] + predicted.shape[2:] != label.shape:
                raise ValueError(message(subject, "outputs (N, C, ...) with labels (N, ...) or (N, C, ...)"))
            return predicted, label
        if predicted.shape != label.shape or predicted.ndim < 2:
            raise ValueError(message(subject, "two of the same shape (N, C, ...)"))
        if not np.isin(predicted, (0, 1)).all() or not np.isin(label, (0, 1)).all():
            raise ValueError(
                message(f"{name}(eval_type='multilabel').update", "zeros and ones", hint="compare with a threshold first: (output > 0.5)")
            )
        return predicted, label


def rows_by_class(values: np.ndarray) -> np.ndarray:
    """Convert (N, C, ...) to (C, N * ...)."""
    return np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
