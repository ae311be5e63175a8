"""Datasets that a program writes as plain Python classes with the methods of a Dataset.

MindSpore 2.10 takes the batches from `create_tuple_iterator(num_epochs=..., do_copy=False)`, asks it for the next one until StopIteration,
and calls `reset()` at the end of each epoch. Classes from programs of 1.x take no such arguments.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from torchspore.base.frames import warn
from torchspore.base.text import message, short
from torchspore.mindspore.common.tensor import Tensor

METHODS = ("create_tuple_iterator", "get_dataset_size", "reset")


def check_dataset(call: str, name: str, dataset: Any) -> None:
    """Raises TypeError unless `dataset` is a Dataset or has its methods `create_tuple_iterator`, `get_dataset_size` and `reset`."""
    missing_methods = [method for method in METHODS if not callable(getattr(dataset, method, None))]
    if not missing_methods:
        return
    if len(missing_methods) == len(METHODS):
        hint = "wrap it: GeneratorDataset(...)"
        raise TypeError(message(f"{call}({name}={short(dataset)})", f"a Dataset, got {type(dataset).__name__}", hint=hint))
    raise TypeError(message(
        f"{call}({name}={short(dataset)}) of a class without {missing_methods[0]}",
        f"a Dataset, or a class with {', '.join(METHODS[:-1])} and {METHODS[-1]}",
    ))


def batches_of(dataset: Any, epoch_count: int) -> Any:
    """Return the batches of a dataset: each loop over them is one epoch, and `stop()` ends them. -1 epochs are any number."""
    create = dataset.create_tuple_iterator
    try:
        parameters = inspect.signature(create).parameters
    except (TypeError, ValueError):                                  # a function of a C extension
        parameters = {}
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    options = {"num_epochs": epoch_count, "do_copy": False}
    iterator = create(**{name: value for name, value in options.items() if takes_any or name in parameters})
    return iterator if hasattr(iterator, "slow_step") else PlainBatches(dataset, iterator)


class PlainBatches:
    """The batches of a plain Python class, which is reset after each epoch. Raises TypeError if its iterator has no `__next__`."""

    def __init__(self, dataset: Any, iterator: Any) -> None:
        if not hasattr(iterator, "__next__"):
            got = f"{type(dataset).__name__}.create_tuple_iterator() returned {short(iterator)}"
            raise TypeError(message(got, f"an iterator, got {type(iterator).__name__}", hint="write return iter(...)"))
        self._dataset, self._iterator = dataset, iterator

    def __iter__(self) -> Iterator[Any]:
        has_batches = False
        while True:
            try:
                batch = next(self._iterator)
            except StopIteration:
                break
            has_batches = True
            yield (batch,) if isinstance(batch, Tensor) else batch
        if not has_batches:
            warn(f"{type(self._dataset).__name__} has no batch in this epoch: its reset() does not restart the iterator.")
        self._dataset.reset()

    def stop(self) -> None:
        """Does nothing: no thread runs ahead."""

    def slow_step(self) -> str | None:
        """Return None: the steps inside a plain class are unknown."""
        return None
