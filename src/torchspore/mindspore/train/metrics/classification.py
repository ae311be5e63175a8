"""Metrics of classification: Accuracy, Precision, Recall, Fbeta, top k."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.arguments import check_int_type, is_int
from torchspore.base.text import message, short
from torchspore.mindspore.train.metrics.metric import EvaluationBase, Metric, rearrange_inputs, rows_by_class


class Accuracy(EvaluationBase):
    """The share of correct predictions. `update(output, label)`: scores (N, C) and classes (N,) or one-hot rows (N, C)."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._correct_num = 0
        self._total_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._check_(*self._take_(inputs))
        if self._type == "classification":
            right = predicted.argmax(axis=1) == label
        else:
            right = np.all(
                np.moveaxis(predicted, 1, -1).reshape(-1, predicted.shape[1]) == np.moveaxis(label, 1, -1).reshape(-1, label.shape[1]),
                axis=1,
            )
        self._correct_num += int(right.sum())
        self._total_num += int(right.size)

    def eval(self) -> float:
        self._need_(self._total_num)
        return self._correct_num / self._total_num


class _PerClass(EvaluationBase):
    """Base of Precision and Recall: counts true positives and the denominators, for each class or, multilabel, each sample."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._true_positives: Any = np.zeros(0)
        self._divisor: Any = np.zeros(0)
        self._has_data = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._check_(*self._take_(inputs))
        if self._type == "classification":
            classes = predicted.shape[1]
            if label.size and int(label.max()) + 1 > classes:
                raise ValueError(message(f"{type(self).__name__}.update: label {int(label.max())}", f"classes from 0 to {classes - 1}"))
            actual = np.eye(classes, dtype=np.int64)[label.astype(np.int64).reshape(-1)]
            chosen = np.eye(classes, dtype=np.int64)[predicted.argmax(axis=1).reshape(-1)]
            axis = 0
        else:
            actual, chosen, axis = rows_by_class(label).T.astype(np.int64), rows_by_class(predicted).T.astype(np.int64), 1
        hits = (actual * chosen).sum(axis=axis).astype(np.float64)
        divisor = self._base_(actual, chosen).sum(axis=axis).astype(np.float64)
        if self._type == "classification" and self._has_data:
            self._true_positives, self._divisor = self._true_positives + hits, self._divisor + divisor
        elif self._type == "classification":
            self._true_positives, self._divisor = hits, divisor
        else:
            self._true_positives = np.concatenate([self._true_positives, hits])
            self._divisor = np.concatenate([self._divisor, divisor])
        self._has_data = True

    def _base_(self, actual: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def eval(self, average: bool = False) -> Any:
        """Returns the value of each class as an array (C,), for multilabel of each sample; their mean with `average`."""
        self._need_(self._has_data)
        values = self._true_positives / (self._divisor + 1e-20)
        return float(values.mean()) if average else values


class Precision(_PerClass):
    """For each class, the share of correct ones among the predictions of that class."""

    def _base_(self, actual: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return chosen


class Recall(_PerClass):
    """For each class, the share of its samples that were predicted correctly."""

    def _base_(self, actual: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return actual


class Fbeta(Metric):
    """The F score of each class: (1 + beta^2) P R / (beta^2 P + R) of precision P and recall R."""

    def __init__(self, beta: float) -> None:
        super().__init__()
        if not beta > 0:
            raise ValueError(message(f"Fbeta(beta={short(beta)})", "a number above 0"))
        self.beta = beta
        self.clear()

    def clear(self) -> None:
        self._true_positives: Any = 0
        self._actual_: Any = 0
        self._predicted_: Any = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._take_(inputs)
        if predicted.ndim == label.ndim and predicted.shape == label.shape:
            label = label.argmax(axis=1)
        classes = predicted.shape[1]
        if self._class_num not in (0, classes):
            raise ValueError(message(f"Fbeta.update of {classes} classes", f"{self._class_num}, as before"))
        if label.size and int(label.max()) >= classes:
            raise ValueError(message(f"Fbeta.update: label {int(label.max())}", f"classes from 0 to {classes - 1}"))
        self._class_num = classes
        actual = np.eye(classes)[label.astype(np.int64).reshape(-1)]
        chosen = np.eye(classes)[predicted.argmax(axis=1).reshape(-1)]
        self._true_positives = self._true_positives + (actual * chosen).sum(0)
        self._actual_, self._predicted_ = self._actual_ + actual.sum(0), self._predicted_ + chosen.sum(0)

    def eval(self, average: bool = False) -> Any:
        """Returns the score of each class as an array (C,); their mean with `average`."""
        if not isinstance(average, bool):
            raise TypeError(message(f"{type(self).__name__}.eval(average={short(average)})", "True or False"))
        self._need_(self._class_num)
        square = self.beta**2
        score = (1 + square) * self._true_positives / (square * self._actual_ + self._predicted_ + 1e-20)
        return float(score.mean()) if average else score


class F1(Fbeta):
    """The F score with beta 1."""

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """The share of samples whose class is among the `k` with the highest scores."""

    def __init__(self, k: int) -> None:
        super().__init__()
        if not is_int(k):
            raise TypeError(message(f"{type(self).__name__}(k={short(k)})", f"an int, got {type(k).__name__}"))
        if k < 1:
            raise ValueError(message(f"{type(self).__name__}(k={k})", "an int from 1"))
        self.k = k
        self.clear()

    def clear(self) -> None:
        self._correct_num = 0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._take_(inputs)
        if predicted.ndim == label.ndim and predicted.shape == label.shape:
            label = label.argmax(axis=1)
        best = np.argsort(-predicted, axis=1, kind="stable")[:, : self.k]        # the first class wins among equal scores
        self._correct_num += int((best == label.reshape(-1, 1)).any(axis=1).sum())
        self._samples_num += int(label.shape[0])

    def eval(self) -> float:
        self._need_(self._samples_num)
        return self._correct_num / self._samples_num


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """`TopKCategoricalAccuracy(1)`."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """`TopKCategoricalAccuracy(5)`."""

    def __init__(self) -> None:
        super().__init__(5)


class ConfusionMatrix(Metric):
    """The number of samples of each class (row) with each predicted class (column), as an array (C, C).

    `normalize` is 'no_norm', 'target' (rows add up to 1; MindSpore's documents call it 'label'), 'prediction' (columns do) or 'all'.
    Binary scores with one number per sample are compared with `threshold`.
    """

    _KINDS_ = ("no_norm", "target", "label", "prediction", "all", None)

    def __init__(self, num_classes: int, normalize: str | None = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        check_int_type("ConfusionMatrix", "num_classes", num_classes)
        if num_classes < 1:
            raise ValueError(message(f"ConfusionMatrix(num_classes={short(num_classes)})", "an int from 1"))
        if normalize not in self._KINDS_:
            raise ValueError(message(f"ConfusionMatrix(normalize={short(normalize)})", "'no_norm', 'target', 'prediction' or 'all'"))
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, label = self._take_(inputs)
        if predicted.ndim not in (label.ndim, label.ndim + 1):
            raise ValueError(
                message(f"ConfusionMatrix.update of shapes {list(predicted.shape)} and {list(label.shape)}", "(N, ...) or (N, C, ...)")
            )
        if predicted.ndim == label.ndim + 1:
            predicted = predicted.argmax(axis=1)
        elif predicted.dtype.kind == "f":
            predicted = (predicted >= self.threshold).astype(np.int64)
        actual, answered = label.astype(np.int64).reshape(-1), predicted.astype(np.int64).reshape(-1)
        if any(((classes < 0) | (classes >= self.num_classes)).any() for classes in (actual, answered)):
            raise ValueError(message("ConfusionMatrix.update", f"classes from 0 to {self.num_classes - 1}"))
        counts = np.bincount(actual * self.num_classes + answered, minlength=self.num_classes**2)
        self.confusion_matrix += counts.reshape(self.num_classes, self.num_classes)
        self._is_update = True

    def eval(self) -> np.ndarray:
        self._need_(self._is_update)
        matrix = self.confusion_matrix
        if self.normalize in ("no_norm", None):
            return matrix
        with np.errstate(invalid="ignore", divide="ignore"):
            axis = {"target": 1, "label": 1, "prediction": 0, "all": None}[str(self.normalize)]
            return np.nan_to_num(matrix / matrix.sum(axis=axis, keepdims=True))
