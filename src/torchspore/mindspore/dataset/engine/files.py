"""What sources of several files of records share: files that stay open, and the order in which their rows are read."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.engine.mappable import MappableDataset
from torchspore.mindspore.dataset.engine.samplers import BuiltinSampler, Shuffle


class RecordsDataset(MappableDataset):
    """A source over open files. A deep copy reads the same files, which stay open once, in an order of its own."""

    def __deepcopy__(self, memory: dict[int, Any]) -> RecordsDataset:
        made = copy.copy(self)
        made.sampler = copy.deepcopy(self.sampler, memory)
        return made


def wanted_shuffle(shuffle: Any) -> Shuffle | None:
    """What `shuffle` asks of several files: None and True mean all rows, False none."""
    return Shuffle.GLOBAL if shuffle is None or shuffle is True else shuffle or None


class FilesOrder(BuiltinSampler):
    """The order of the rows of several files; subclasses give `_positions`."""

    def __init__(self, shuffle: Shuffle | None, lengths: list[int], is_sharded: bool, num_samples: int | None) -> None:
        super().__init__(num_samples)
        self.shuffle, self._is_sharded = shuffle, is_sharded
        ends = np.cumsum(lengths).tolist()
        self._files = [list(range(end - length, end)) for end, length in zip(ends, lengths, strict=True)]

    def is_shuffled(self) -> bool:
        return self.shuffle is not None

    def is_sharded(self) -> bool:
        return self._is_sharded
