"""The DataLoader: samples of a data set in batches, read in this process or by workers."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

import numpy as np

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_number
from torchspore.mindspore.dataset.core.validator_helpers import check_type as _check_type
from torchspore.mindspore.dataset.dataloader.dataset import Dataset, IterableDataset
from torchspore.mindspore.dataset.dataloader.fetcher import Fetcher
from torchspore.mindspore.dataset.dataloader.sampler import BatchSampler, Endless, RandomSampler, SequentialSampler, check_generator
from torchspore.mindspore.dataset.dataloader.worker import END, Pool

T_co = TypeVar("T_co", covariant=True)
_PREFETCH = 2


class DataLoader(Generic[T_co]):
    """Iterates over the batches of a data set, any number of times.

    Indices come from `batch_sampler`, or from `sampler` (in order by default, at random with `shuffle`) in lists of `batch_size`; None
    yields single samples. `collate_fn` makes a batch of samples, by default `default_collate`. With `num_workers`, processes read ahead
    `prefetch_factor` batches each. They call `worker_init_fn(number)` first, and with `persistent_workers` they stay between epochs.
    Each worker reads a full IterableDataset, unless the data set uses `get_worker_info`.

    Raises TypeError and ValueError for invalid arguments, NotImplementedError for a data set without `__getitem__`.
    """

    def __init__(
        self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0.0, worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: BaseContext | str | None = None, generator: np.random.Generator | None = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False, in_order: bool = True,
    ) -> None:
        _check_reading(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        check_int("DataLoader", "num_workers", num_workers, 0)
        check_bool("DataLoader", "pin_memory", pin_memory)
        check_number("DataLoader", "timeout", timeout, 0, float("inf"))
        check_generator("DataLoader", generator)
        _check_workers(num_workers, multiprocessing_context, prefetch_factor, persistent_workers)
        check_bool("DataLoader", "in_order", in_order)
        self.dataset, self.num_workers, self.collate_fn, self.timeout = dataset, num_workers, collate_fn, timeout
        self.pin_memory, self.worker_init_fn, self.in_order = pin_memory, worker_init_fn, in_order
        self.persistent_workers, self.multiprocessing_context = persistent_workers, multiprocessing_context
        self.generator = np.random.default_rng() if generator is None else generator
        self.prefetch_factor = _PREFETCH if prefetch_factor is None and num_workers else prefetch_factor
        if sampler is None:
            in_turn = Endless() if isinstance(dataset, IterableDataset) else SequentialSampler(dataset)
            sampler = RandomSampler(dataset, generator=self.generator) if shuffle else in_turn
        self.sampler = sampler
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.batch_sampler = batch_size, drop_last, batch_sampler
        self._numbers: Iterable[Any] = sampler if batch_sampler is None else batch_sampler
        self._pool: Pool | None = None
        self._epoch = 0
        if pin_memory:
            because = "Tensors are created on the device"
            effects.note("data", f"DataLoader(pin_memory=True): no effect here, because {because}")

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._numbers)  # type: ignore[arg-type]
        count: int = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> _Batches:
        fetcher = Fetcher(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)
        if not self.num_workers:
            return _Batches(self, self._in_this_process(fetcher))
        self._epoch += 1
        if not self.persistent_workers:
            return _Batches(self, self._from_workers(self._start(fetcher), self._epoch, closes=True))
        if self._pool is None:
            self._pool = self._start(fetcher)
            weakref.finalize(self, self._pool.close)
        return _Batches(self, self._from_workers(self._pool, self._epoch, closes=False))

    def _in_this_process(self, fetcher: Fetcher) -> Iterator[Any]:
        fetcher.reset()
        for indices in self._numbers:
            try:
                yield fetcher.fetch(indices)
            except StopIteration:
                return

    def _start(self, fetcher: Fetcher) -> Pool:
        context = self.multiprocessing_context
        method = context.get_start_method() if isinstance(context, BaseContext) else context
        seed = int(self.generator.integers(0, 2**63, dtype=np.int64))
        return Pool(fetcher, self.num_workers, method, seed, self.worker_init_fn)

    def _from_workers(self, pool: Pool, epoch: int, *, closes: bool) -> Iterator[Any]:
        """Yield the workers' batches in turn; a worker whose data set has ended gets no more tasks."""
        numbers, alive = iter(self._numbers), list(range(self.num_workers))
        pending: dict[int, int] = {}
        waiting: dict[int, Any] = {}
        order = next_order = 0
        ahead = self.num_workers * (self.prefetch_factor or _PREFETCH)
        try:
            while True:
                while alive and len(pending) + len(waiting) < ahead:
                    try:
                        indices = next(numbers)
                    except StopIteration:
                        alive.clear()
                        break
                    worker = alive[order % len(alive)]
                    pool.ask(worker, epoch, order, indices)
                    pending[order] = worker
                    order += 1
                if not pending and not waiting:
                    return
                if pending and (not self.in_order or next_order not in waiting):
                    answered_order, batch = pool.answer(epoch, self.timeout)
                    worker = pending.pop(answered_order)
                    waiting[answered_order] = batch
                    if batch is END and worker in alive:
                        alive.remove(worker)
                for answered_order in [next_order] if self.in_order else list(waiting):
                    if answered_order in waiting:
                        batch = waiting.pop(answered_order)
                        next_order += 1
                        if batch is not END:
                            yield batch
        finally:
            if closes:
                pool.close()


class _Batches:
    """One pass through a DataLoader."""

    def __init__(self, loader: DataLoader[Any], batches: Iterator[Any]) -> None:
        self._loader, self._batches = loader, batches

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self._loader._numbers)  # type: ignore[arg-type]

    def __next__(self) -> Any:
        return next(self._batches)


def _refuse(argument: str, value: Any, reason: str) -> None:
    raise ValueError(message(f"DataLoader({argument}={short(value)})", f"no {argument} {reason}"))


def _check_reading(dataset: Any, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any) -> None:
    """Check the arguments for order and batches: only one way may be used."""
    if isinstance(dataset, IterableDataset):
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                _refuse(name, value, "with an IterableDataset, which determines the order")
    elif not hasattr(dataset, "__getitem__"):
        hint = "derive it from IterableDataset if it has __iter__"
        raise NotImplementedError(message(f"DataLoader({type(dataset).__name__})", "a data set with __getitem__", hint=hint))
    if batch_size is not None:
        check_int("DataLoader", "batch_size", batch_size, 1)
    if shuffle is not None:
        check_bool("DataLoader", "shuffle", shuffle)
    if sampler is not None and shuffle:
        _refuse("shuffle", shuffle, "beside a sampler")
    if batch_sampler is not None:
        is_set = {"batch_size": batch_size != 1, "shuffle": bool(shuffle), "sampler": sampler is not None, "drop_last": bool(drop_last)}
        values = {"batch_size": batch_size, "shuffle": shuffle, "sampler": sampler, "drop_last": drop_last}
        for name, has_value in is_set.items():
            if has_value:
                _refuse(name, values[name], "beside a batch_sampler")
    check_bool("DataLoader", "drop_last", drop_last)


def _check_workers(num_workers: int, context: Any, prefetch_factor: Any, persistent_workers: Any) -> None:
    """Check the arguments about workers, if there are any."""
    check_bool("DataLoader", "persistent_workers", persistent_workers)
    options = {"multiprocessing_context": context, "prefetch_factor": prefetch_factor, "persistent_workers": persistent_workers or None}
    for name, value in options.items():
        if value is not None and not num_workers:
            _refuse(name, value, "without num_workers")
    if context is not None:
        expected = "'fork', 'spawn', 'forkserver' or a context of multiprocessing"
        _check_type("DataLoader", "multiprocessing_context", context, (str, BaseContext), expected)
    if prefetch_factor is not None:
        check_int("DataLoader", "prefetch_factor", prefetch_factor, 1)
