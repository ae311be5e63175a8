"""Helpers of training loops: gradients as values, metrics, data sets, steps to do by hand."""
from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset


def to_do_by_hand(what: str) -> Any:
    """Mark a step that the port leaves to do by hand."""
    raise NotImplementedError(f"left to do by hand: {what}")


def evaluate(
    model: nn.Module, dataset: Any, loss_fn: Callable[..., Tensor] | None = None, metrics: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The metrics of a model by their names."""
    was_training = model.training
    model.eval()
    metrics = metrics or {}
    for metric in metrics.values():
        metric.clear()
    with torch.no_grad():
        for inputs, labels in dataset:
            outputs = model(inputs)
            for metric in metrics.values():
                if isinstance(metric, Loss):
                    metric.update(loss_fn(outputs, labels) if loss_fn is not None else outputs)
                else:
                    metric.update(outputs, labels)
    model.train(was_training)
    return {name: metric.eval() for name, metric in metrics.items()}


class Accuracy:
    """The share of samples whose class has the highest score."""

    def __init__(self, eval_type: str = "classification") -> None:
        self.eval_type = eval_type
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self.correct, self.total = 0, 0

    def update(self, *inputs: Any) -> None:
        """Add a batch of scores and labels."""
        scores, labels = (torch.as_tensor(value) for value in inputs)
        if self.eval_type == "multilabel":
            correct = (scores == labels).movedim(1, -1).reshape(-1, scores.shape[1]).all(1)
        else:
            labels = labels.argmax(1) if labels.ndim == scores.ndim else labels
            correct = scores.argmax(1) == labels
        self.correct += int(correct.sum())
        self.total += correct.numel()

    def eval(self) -> float:
        """Return the share."""
        return self.correct / self.total


class TopKCategoricalAccuracy:
    """The share of samples whose class is among the k with the highest scores."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self.correct, self.total = 0, 0

    def update(self, *inputs: Any) -> None:
        """Add a batch of scores and labels."""
        scores, labels = (torch.as_tensor(value) for value in inputs)
        labels = labels.argmax(1) if labels.ndim == scores.ndim else labels
        best = torch.argsort(-scores, dim=1, stable=True)[:, : self.k]
        self.correct += int((best == labels.reshape(-1, 1)).sum())
        self.total += len(labels)

    def eval(self) -> float:
        """Return the share."""
        return self.correct / self.total


class Loss:
    """The mean loss of all batches."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all batches."""
        self.total, self.count = 0.0, 0

    def update(self, *inputs: Any) -> None:
        """Add the loss of a batch."""
        self.total += float(inputs[0].mean())
        self.count += 1

    def eval(self) -> float:
        """Return the mean."""
        return self.total / self.count


class MeanError:
    """The mean of a power of the differences: 1 for MAE, 2 for MSE."""

    def __init__(self, power: int) -> None:
        self.power = power
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self.total, self.count = 0.0, 0

    def update(self, *inputs: Any) -> None:
        """Add a batch of predictions and labels."""
        predicted, labels = (torch.as_tensor(value) for value in inputs)
        self.total += float(((predicted - labels.reshape(predicted.shape)).abs() ** self.power).sum())
        self.count += len(labels)

    def eval(self) -> float:
        """Return the mean."""
        return self.total / self.count


class FromGenerator(IterableDataset[Any]):
    """The rows of a generator function, or of an iterable."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        for row in self.source() if callable(self.source) else self.source:
            yield tuple(map(np.asarray, row)) if isinstance(row, (tuple, list)) else (np.asarray(row),)


class Rows(Dataset[Any]):
    """The rows of a source with `__getitem__` and `__len__`, as tuples of arrays."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getitem__(self, index: int) -> Any:
        row = self.source[index]
        return tuple(map(np.asarray, row)) if isinstance(row, (tuple, list)) else (np.asarray(row),)

    def __len__(self) -> int:
        return len(self.source)


class Slices(Dataset[Any]):
    """The rows of arrays: one, several in a tuple, or a dict."""

    def __init__(self, arrays: Any) -> None:
        columns = list(arrays.values()) if isinstance(arrays, dict) else arrays if isinstance(arrays, tuple) else [arrays]
        self.columns = [np.asarray(column) for column in columns]

    def __getitem__(self, index: int) -> Any:
        return tuple(np.asarray(column[index]) for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])


def replaced_columns(row: Any, functions: Sequence[Callable[..., Any]], columns: Sequence[int]) -> tuple[Any, ...]:
    """A row with functions applied to some columns; results of another number are before the other columns."""
    values: Any = tuple(row[column] for column in columns)
    for function in functions:
        values = function(*values)
        values = values if isinstance(values, tuple) else (values,)
    if len(values) != len(columns):
        return tuple(map(np.asarray, (*values, *(value for number, value in enumerate(row) if number not in columns))))
    new = dict(zip(columns, values))
    return tuple(np.asarray(new.get(number, value)) for number, value in enumerate(row))


class Mapped(Dataset[Any]):
    """A data set with functions applied to some columns of each row."""

    def __init__(self, dataset: Any, functions: Sequence[Callable[..., Any]], columns: Sequence[int]) -> None:
        self.dataset, self.functions, self.columns = dataset, functions, columns

    def __getitem__(self, index: int) -> Any:
        return replaced_columns(self.dataset[index], self.functions, self.columns)

    def __len__(self) -> int:
        return len(self.dataset)


class Repeated:
    """A data set several times in a row."""

    def __init__(self, dataset: Any, count: int) -> None:
        self.dataset, self.count = dataset, count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.count):
            yield from self.dataset

    def __len__(self) -> int:
        return self.count * len(self.dataset)


class FirstBatches:
    """The first batches of a loader."""

    def __init__(self, loader: Any, count: int) -> None:
        self.loader, self.count = loader, count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.loader), self.count)

    def __len__(self) -> int:
        return min(self.count, len(self.loader))


class LaterBatches:
    """The batches of a loader behind the first ones."""

    def __init__(self, loader: Any, count: int) -> None:
        self.loader, self.count = loader, count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.loader), self.count, None)

    def __len__(self) -> int:
        return max(0, len(self.loader) - self.count)


class Columns(Dataset[Any]):
    """Some columns of the rows of a data set."""

    def __init__(self, dataset: Any, columns: Sequence[int]) -> None:
        self.dataset, self.columns = dataset, columns

    def __getitem__(self, index: int) -> Any:
        row = self.dataset[index]
        return tuple(row[column] for column in self.columns)

    def __len__(self) -> int:
        return len(self.dataset)


class IterableColumns(IterableDataset[Any]):
    """Some columns of the rows of an iterable."""

    def __init__(self, dataset: Any, columns: Sequence[int]) -> None:
        self.dataset, self.columns = dataset, columns

    def __iter__(self) -> Iterator[Any]:
        for row in self.dataset:
            yield tuple(row[column] for column in self.columns)


class ArraysOf:
    """The batches of a loader as arrays."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            yield tuple(np.asarray(column) for column in batch)

    def __len__(self) -> int:
        return len(self.loader)


class NamedBatches:
    """The batches of a loader as dicts: all in each loop, or the next one."""

    def __init__(self, loader: Any, names: Sequence[str]) -> None:
        self.loader, self.names = loader, names
        self.rest: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            yield dict(zip(self.names, batch))

    def __next__(self) -> Any:
        self.rest = self.rest or iter(self)
        return next(self.rest)


class Checkpoints:
    """Saves a model every few steps, and retains the last files."""

    def __init__(self, prefix: str = "CKP", directory: str = ".", steps: int = 1, most: int = 5) -> None:
        self.prefix, self.directory, self.steps, self.most = prefix, directory, steps, most
        self.paths: list[str] = []

    def save(self, model: nn.Module, name: str) -> None:
        """Write a file, and remove the oldest beyond the limit."""
        os.makedirs(self.directory, exist_ok=True)
        path = os.path.join(self.directory, f"{self.prefix}-{name}.pt")
        torch.save(model.state_dict(), path)
        self.paths = [*(old for old in self.paths if old != path), path]
        while len(self.paths) > self.most:
            os.remove(self.paths.pop(0))


class MappedIterable(IterableDataset[Any]):
    """The rows of an iterable with functions applied to some columns."""

    def __init__(self, dataset: Any, functions: Sequence[Callable[..., Any]], columns: Sequence[int]) -> None:
        self.dataset, self.functions, self.columns = dataset, functions, columns

    def __iter__(self) -> Iterator[Any]:
        for row in self.dataset:
            yield replaced_columns(row, self.functions, self.columns)


def predict(model: nn.Module, *inputs: Tensor) -> Any:
    """The result of a model in evaluation."""
    model.eval()
    with torch.no_grad():
        return model(*inputs)


class Evaluation:
    """A network with its loss and metrics, for callbacks that evaluate it."""

    def __init__(self, network: nn.Module, loss_fn: Callable[..., Tensor] | None = None, metrics: dict[str, Any] | None = None) -> None:
        self.network, self.loss_fn, self.metrics = network, loss_fn, metrics

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Return the metrics by their names."""
        return evaluate(self.network, valid_dataset, self.loss_fn, self.metrics)

    def predict(self, *inputs: Tensor) -> Any:
        """Return the result of the network."""
        return predict(self.network, *inputs)
