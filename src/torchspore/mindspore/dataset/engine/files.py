"""Common code of sources with several record files: files that stay open, and the reading order of their rows."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.engine.mappable import MappableDataset
from torchspore.mindspore.dataset.engine.samplers import BuiltinSampler, Shuffle


class RecordsDataset(MappableDataset):
    """A source over open files. A deep copy reads the same open files in an independent order."""

    def __deepcopy__(self, memory: dict[int, Any]) -> RecordsDataset:
        copied = copy.copy(self)
        copied.sampler = copy.deepcopy(self.sampler, memory)
        return copied


def shuffle_kind(shuffle: Any) -> Shuffle | None:
    """Return the kind of shuffle for several files: None and True mean all rows, False none."""
    return Shuffle.GLOBAL if shuffle is None or shuffle is True else shuffle or None


class FilesOrder(BuiltinSampler):
    """The order of the rows of several files; subclasses define `_positions`."""

    def __init__(self, shuffle: Shuffle | None, lengths: list[int], is_sharded: bool, num_samples: int | None) -> None:
        super().__init__(num_samples)
        self.shuffle, self._is_sharded = shuffle, is_sharded
        ends = np.cumsum(lengths).tolist()
        self._files = [list(range(end - length, end)) for end, length in zip(ends, lengths, strict=True)]

    def is_shuffled(self) -> bool:
        return self.shuffle is not None

    def is_sharded(self) -> bool:
        return self._is_sharded
