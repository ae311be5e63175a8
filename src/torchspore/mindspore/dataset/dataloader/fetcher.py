"""Reads and collates the samples of one batch."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from torchspore.mindspore.dataset.dataloader.collate import default_collate, default_convert
from torchspore.mindspore.dataset.dataloader.dataset import IterableDataset


class Fetcher:
    """Reads the samples that a sampler selects. `in_batches` means that it yields lists; `reset` restarts a data set in order."""

    def __init__(self, dataset: Any, in_batches: bool, collate_fn: Callable[[Any], Any] | None, drop_last: bool) -> None:
        self.dataset, self._in_batches, self._drop_last = dataset, in_batches, drop_last
        self._collate = collate_fn or (default_collate if in_batches else default_convert)
        self._samples: Iterator[Any] | None = None
        self._has_ended = False

    def reset(self) -> None:
        """Restart a data set that is read in order."""
        if isinstance(self.dataset, IterableDataset):
            self._samples, self._has_ended = iter(self.dataset), False

    def fetch(self, indices: Any) -> Any:
        """Return the batch of `indices`, or the sample of one index. Raises StopIteration at the end of a data set in order."""
        if not isinstance(self.dataset, IterableDataset):
            return self._collate([self.dataset[number] for number in indices] if self._in_batches else self.dataset[indices])
        if self._samples is None:
            self.reset()
        assert self._samples is not None
        if self._has_ended:
            raise StopIteration
        if not self._in_batches:
            return self._collate(next(self._samples))
        batch = list(islice(self._samples, len(indices)))
        self._has_ended = len(batch) < len(indices)
        if not batch or (self._drop_last and self._has_ended):
            raise StopIteration
        return self._collate(batch)
