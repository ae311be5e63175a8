"""Data across the border: a MindSpore data set as torch's IterableDataset, and torch's loaders and data sets in `Model`."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from torchspore.base.arguments import check_bool
from torchspore.base.text import message, short
from torchspore.engine.tensors.tensor import wrap
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.strides import strided


def as_iterable(dataset: Any, output_dict: bool = False) -> IterableDataset[Any]:
    """Return the rows of a MindSpore data set as torch's IterableDataset. Raises TypeError for another value."""
    if not isinstance(dataset, Dataset):
        raise TypeError(message(f"as_iterable({short(dataset)})", f"a MindSpore data set, got {type(dataset).__name__}"))
    check_bool("as_iterable", "output_dict", output_dict)
    return RowIterable(dataset, output_dict)


class RowIterable(IterableDataset[Any]):
    """The rows of a data set: tuples of torch tensors, or dicts by the names of columns. Texts are NumPy arrays, or str without axes.

    In the workers of a DataLoader each row is read by one of them.
    """

    def __init__(self, dataset: Dataset, output_dict: bool) -> None:
        self._dataset, self._output_dict = dataset, output_dict
        self._forget()

    def _forget(self) -> None:
        """Begin with the first epoch of this process."""
        self._epochs: Any = None
        self._is_reading = False
        self._process, self._epoch = os.getpid(), 0

    def __getstate__(self) -> dict[str, Any]:
        return {"_dataset": self._dataset, "_output_dict": self._output_dict}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __len__(self) -> int:
        return int(self._dataset.get_dataset_size())

    def __iter__(self) -> Iterator[Any]:
        if self._process != os.getpid():                     # a worker: threads of the parent's iterators do not exist here
            self._forget()
        worker = get_worker_info()
        if worker is None:
            return self._rows_of_next_epoch()
        seed = (worker.seed - worker.id + self._epoch) % 2**32
        self._epoch += 1
        config._seed_pipelines(seed)
        part = strided(self._dataset, worker.id, worker.num_workers, seed)
        return (self._converted(row) for row in part.create_dict_iterator(num_epochs=1, output_numpy=True))

    def _rows_of_next_epoch(self) -> Iterator[Any]:
        """Yield the rows of an epoch. Complete epochs follow one another in one iterator of MindSpore, as in `Model.train`."""
        if self._epochs is None or self._is_reading:
            self._epochs = self._dataset.create_dict_iterator(num_epochs=-1, output_numpy=True)
        epochs, self._is_reading = self._epochs, True
        for row in epochs:
            yield self._converted(row)
        if epochs is self._epochs:
            self._is_reading = False

    def _converted(self, row: dict[str, Any]) -> Any:
        values = {name: _torch_value(value) for name, value in row.items()}
        return values if self._output_dict else tuple(values.values())


def _torch_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _torch_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_torch_value, value))
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind == "O":
        return value
    if value.dtype.kind in "SU":
        return value if value.ndim else str(value.astype(str)[()])
    array = np.require(value, requirements=["C", "W"]) if isinstance(value, np.ndarray) else np.array(value)
    return torch.from_numpy(array) if array.dtype.isnative else torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))


def as_dataset(data: Any) -> TorchData:
    """Return torch's loader or data set with the methods that `Model` calls. Raises TypeError if it has no length."""
    return data if isinstance(data, TorchData) else TorchData(data)


class TorchData:
    """The batches of a DataLoader, or the rows of torch's Dataset, as a data set of MindSpore."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self._loader = data if isinstance(data, DataLoader) else DataLoader(data, batch_size=None)
        try:
            self._size = len(self._loader)
        except (TypeError, NotImplementedError):
            raise TypeError(message(
                f"{type(data).__name__} without a length", "a length: Model counts the steps of an epoch",
                hint="define __len__ in the data set",
            )) from None

    def get_dataset_size(self) -> int:
        """Return the number of batches."""
        return self._size

    def get_batch_size(self) -> int:
        """Return the number of samples in a batch; 1 if the data set or a sampler decides."""
        return self._loader.batch_size or 1

    def reset(self) -> None:
        """Does nothing: each loop begins anew."""

    def create_tuple_iterator(self, num_epochs: int = -1, do_copy: bool = False) -> TorchBatches:  # noqa: ARG002
        """Return the batches; each loop over them is one epoch."""
        return TorchBatches(self._loader)


class TorchBatches:
    """The batches of a DataLoader as lists of Tensors."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self._loader:
            columns = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else [batch]
            yield [_mindspore_value(value) for value in columns]

    def stop(self) -> None:
        """Does nothing: the loader ends its workers."""

    def slow_step(self) -> str | None:
        """Return None: the steps inside of the loader are unknown."""
        return None


def _mindspore_value(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return wrap(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_mindspore_value, value)) if not hasattr(value, "_fields") else type(value)(*map(_mindspore_value, value))
    if isinstance(value, dict):
        return {name: _mindspore_value(item) for name, item in value.items()}
    is_number = isinstance(value, (bool, int, float, np.generic)) or (isinstance(value, np.ndarray) and value.dtype.kind not in "OSU")
    return Tensor(value) if is_number else value
