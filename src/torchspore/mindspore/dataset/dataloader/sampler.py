"""Samplers: the reading order of a DataLoader, and its batches."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from torchspore.mindspore.dataset.core.validator_helpers import INT32_MAX, check_bool, check_int
from torchspore.mindspore.dataset.core.validator_helpers import check_type as _check_type

T_co = TypeVar("T_co", covariant=True)
_DRAWN_AT_ONCE = 32
"""Indices with replacement are drawn in blocks of this size: another size would draw other indices from the same generator."""


class Sampler(Generic[T_co]):
    """The base of samplers; a subclass defines `__iter__`, and `__len__` if the loader's length is needed."""

    def __init__(self, data_source: Any = None) -> None:
        pass


class SequentialSampler(Sampler[int]):
    """The indices of all samples in order."""

    def __init__(self, data_source: Any) -> None:
        super().__init__(data_source)
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        yield from range(len(self.data_source))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Random indices: each once, or with `replacement`; `num_samples` of them, all by default."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: np.random.Generator | None = None,
    ) -> None:
        super().__init__(data_source)
        check_bool("RandomSampler", "replacement", replacement)
        if num_samples is not None:
            check_int("RandomSampler", "num_samples", num_samples, 1)
        check_generator("RandomSampler", generator)
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """The number of indices."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, num_samples = len(self.data_source), self.num_samples
        generator = self.generator or np.random.default_rng(np.random.randint(0, 2**63, dtype=np.int64))
        if self.replacement:
            for start in range(0, num_samples, _DRAWN_AT_ONCE):
                yield from generator.integers(0, count, size=min(_DRAWN_AT_ONCE, num_samples - start), dtype=np.int64).tolist()
            return
        for start in range(0, num_samples, count):
            yield from generator.permutation(count).tolist()[:num_samples - start]

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices from another sampler; `drop_last` drops the last, shorter one."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        super().__init__()
        check_int("BatchSampler", "batch_size", batch_size, 1, INT32_MAX)
        check_bool("BatchSampler", "drop_last", drop_last)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class Endless(Sampler[None]):
    """A placeholder sampler for a data set that is read in order: an endless sequence of None."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def check_generator(call: str, generator: Any) -> None:
    """Raises TypeError unless `generator` is None or one of NumPy's."""
    if generator is not None:
        _check_type(call, "generator", generator, np.random.Generator, "a numpy.random.Generator", hint="write numpy.random.default_rng(1)")
