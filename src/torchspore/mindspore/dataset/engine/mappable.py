"""Sources whose rows are read by index, in the order of a sampler."""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import (
    check_num_samples,
    check_shards,
    check_type,
)
from torchspore.mindspore.dataset.engine import blocks
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import Dataset, SourceDataset, split_seed
from torchspore.mindspore.dataset.engine.pace import Pace, paced_map
from torchspore.mindspore.dataset.engine.rows import Row, Run
from torchspore.mindspore.dataset.engine.samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
    SubsetSampler,
)
from torchspore.mindspore.dataset.engine.workers import Workers

_GATHERED = 64
"""Rows that are read at once."""


def choose_sampler(
    call: str, num_samples: int | None, sampler: Any, shuffle: Any, num_shards: int | None, shard_id: int | None
) -> BuiltinSampler:
    """Return the sampler for a source's arguments. Raises RuntimeError if they contradict each other."""
    if num_samples is not None:
        check_num_samples(call, num_samples)
    check_shards(call, num_shards, shard_id)
    if shuffle is not None and not isinstance(shuffle, (bool, Shuffle)):
        raise TypeError(message(f"{call}(shuffle={short(shuffle)})", "True, False or None"))
    if sampler is not None:
        if shuffle is not None:
            raise RuntimeError(message(f"{call}(sampler=..., shuffle={shuffle!r})", "one of the two", hint="leave shuffle out"))
        if num_shards is not None:
            raise RuntimeError(message(f"{call}(sampler=..., num_shards={num_shards})", "one of the two", hint="leave num_shards out"))
        return as_sampler(call, sampler, num_samples)
    is_shuffled = True if shuffle is None else bool(shuffle)
    if num_shards is not None:
        return DistributedSampler(num_shards, shard_id or 0, shuffle=is_shuffled, num_samples=num_samples)
    if not is_shuffled:
        return SequentialSampler(num_samples=num_samples)
    # With num_samples MindSpore draws with replacement: some rows come twice.
    return RandomSampler(replacement=num_samples is not None, num_samples=num_samples)


def as_sampler(call: str, sampler: Any, num_samples: int | None) -> BuiltinSampler:
    """Return a sampler for a sampler, a list of indexes or any iterable of them."""
    if isinstance(sampler, BuiltinSampler):
        if num_samples is not None:
            outer = SequentialSampler(num_samples=num_samples)
            outer.add_child(sampler)
            return outer
        return sampler
    if isinstance(sampler, (list, tuple, np.ndarray)):
        return SubsetSampler(sampler, num_samples)
    if hasattr(sampler, "__iter__"):
        return IterSampler(sampler, num_samples)
    raise TypeError(message(f"{call}(sampler={short(sampler)})", f"a sampler or an iterable of indexes, got {type(sampler).__name__}"))


class MappableDataset(SourceDataset):
    """A source whose rows are read by index, in the order of a sampler. Subclasses define `_count` and `_read`."""

    _indexable = True
    _reads_groups = False
    """True if `_read` accepts a list or an array of indices."""

    def __init__(
        self, call: str, num_parallel_workers: int | None, sampler: Any, num_samples: int | None, shuffle: Any, num_shards: int | None,
        shard_id: int | None, cache: Any = None,
    ) -> None:
        super().__init__(None, num_parallel_workers)
        if cache is not None and not isinstance(cache, DatasetCache):
            raise TypeError(message(f"{call}(cache={short(cache)})", f"a DatasetCache, got {type(cache).__name__}"))
        self.cache = cache
        self._cache_key = object()
        self.num_samples, self.shuffle_flag, self.num_shards, self.shard_id = num_samples, shuffle, num_shards, shard_id
        self._use(choose_sampler(call, num_samples, sampler, shuffle, num_shards, shard_id))

    def _use(self, sampler: BuiltinSampler) -> None:
        self.sampler: BuiltinSampler = sampler._reading_(self._class_labels)
        self.sampler._accepts_groups_ = self._reads_groups

    def _class_labels(self, column: str) -> list[Any]:
        """Return the label of each row, for a sampler that chooses by class. Raises ValueError if rows have none."""
        subject = f"{type(self).__name__}(sampler=PKSampler(class_column={column!r}))"
        raise ValueError(message(subject, "a source whose rows have one such label"))

    def use_sampler(self, new_sampler: Any) -> None:
        """Reads the rows that `new_sampler` chooses, from the source or from the child of the present sampler."""
        if new_sampler is None:
            raise TypeError(message("use_sampler(None)", "a sampler"))
        chosen = as_sampler("use_sampler", new_sampler, None)
        if self.sampler.child_sampler is not None:
            chosen = copy.copy(chosen)                    # several sources may share one sampler
            chosen.add_child(self.sampler.child_sampler)
        self._use(chosen)

    def add_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Makes `new_sampler` choose from the rows of the present sampler."""
        check_type("add_sampler", "new_sampler", new_sampler, BuiltinSampler, "a sampler")
        new_sampler.add_child(self.sampler)
        self._use(new_sampler)

    def split(self, sizes: list[Any], randomize: bool = True) -> tuple[Dataset, ...]:
        """Splits like `Dataset.split`; `use_sampler` of a part chooses from its rows. Raises RuntimeError if the source is a share."""
        if not self._indexable:
            return super().split(sizes, randomize)
        counts = self._split_counts(sizes, randomize)
        if self.is_sharded():
            raise RuntimeError(message(
                "split of a share (num_shards)", "all rows", hint="split first, then write part.use_sampler(DistributedSampler(...))",
            ))
        seed = split_seed() if randomize else None
        return tuple(self._part(sum(counts[:index]), count, seed) for index, count in enumerate(counts))

    def _part(self, start: int, count: int, seed: int | None) -> MappableDataset:
        """Return the part of `size` rows from `start`, in an order that all parts of a split share if there is a `seed`."""
        part = copy.copy(self)
        samplers: list[BuiltinSampler] = [SequentialSampler(start, count), SequentialSampler()]
        if seed is not None:
            order = RandomSampler()
            order.reshuffle_each_epoch, order._shared_seed_ = False, seed
            samplers.insert(0, order)
        for sampler in samplers:                          # `use_sampler` replaces the last one
            part.add_sampler(sampler)
        return part

    def is_shuffled(self) -> bool:
        return self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        return self.sampler.is_sharded()

    def _count(self) -> int:
        raise NotImplementedError

    def _read(self, index: int) -> Row:
        raise NotImplementedError

    def sampled_indices(self, run: Run) -> Iterator[int]:
        """Return the indices that the sampler chooses for the next epoch."""
        return self.sampler._indices_(self._count(), run.keep(self, self.sampler._open_))

    def _indices(self, run: Run) -> Iterator[int]:
        """Return the indices of the rows to read: those that a cached `map` requests, or those of the sampler."""
        requested = run.take_request(self)
        return self.sampled_indices(run) if requested is None else iter(requested)

    def has_numbered_rows(self) -> bool:
        """Return whether each row has an index that does not change from epoch to epoch."""
        return self._indexable

    def _gathers(self) -> bool:
        """Return whether `_gather`, which returns copies, reads many light rows at once.

        Only if reading ahead runs no user code.
        """
        return False

    def _gather(self, indices: list[int]) -> list[np.ndarray]:
        raise NotImplementedError

    def _blocks(self, run: Run, size: int) -> Iterator[list[Any]] | None:
        return self._gathered(run, size) if self._gathers() else None

    def _gathered(self, run: Run, size: int) -> Iterator[list[Any]]:
        indices = self._indices(run)
        while part := list(islice(indices, size)):
            yield self._gather(part)

    def _rows_are_fresh(self) -> bool:
        return self._gathers()

    def _size(self) -> int | None:
        return self.sampler._length_(self._count())

    def _epoch(self, run: Run) -> Iterator[Row]:
        indices = self._indices(run)
        read = self._read if self.cache is None else self._read_once
        if self._gathers():
            while part := list(islice(indices, _GATHERED)):
                yield from blocks.rows(self._gather(part))
            return
        if (self.num_parallel_workers or 1) < 2:
            for index in indices:
                yield read(index)
            return
        yield from self._shared(read, indices, run)

    def _shared(self, read: Callable[[int], Row], indices: Iterator[int], run: Run) -> Iterator[Row]:
        """Yield the rows of the indices, in their order, by several threads if they are faster."""
        workers = run.keep(self, lambda: _workers(run, self.num_parallel_workers or 1), "workers")
        yield from paced_map(read, indices, workers, run.keep(self, lambda: Pace(workers.count), "pace"))

    def _read_once(self, index: int) -> Row:
        return self.cache.row((self._cache_key, index), lambda: self._read(index))  # type: ignore[union-attr]


def _workers(run: Run, count: int) -> Workers:
    return run.closing(Workers(count, "torchspore-source", is_helped=True))
