"""Data sets of a DataLoader: by index and in order."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from torchspore.base.text import message
from torchspore.mindspore.common.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A data set that is read by index; a subclass defines `__getitem__`, and `__len__` if a sampler needs it."""

    def __getitem__(self, index: int) -> T_co:
        """Return the sample at this index."""
        raise NotImplementedError(message(f"{type(self).__name__} without __getitem__", "a method __getitem__(self, index)"))


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A data set that is read in order; a subclass defines `__iter__`."""

    def __iter__(self) -> Iterator[T_co]:
        """Iterate over the samples."""
        raise NotImplementedError(message(f"{type(self).__name__} without __iter__", "a method __iter__(self)"))


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors with a common first axis: a sample is a tuple with one row of each. Raises ValueError if their first sizes differ."""

    def __init__(self, *tensors: Tensor) -> None:
        super().__init__()
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            shapes = ", ".join(str(tensor.shape) for tensor in tensors)
            raise ValueError(message(f"TensorDataset of shapes {shapes}", "Tensors of one length along their first axis"))
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])
