"""A pipeline of which each of several readers makes every n-th row: the readers of `torchspore.as_iterable` in a DataLoader's workers.

Rows are divided below steps that turn one row into one row (`map`, `project`, `rename`) and below `batch`, so that each reader computes
only its rows. Steps below the division (sources, `shuffle`, `filter`, `repeat`) run in each reader with one seed, in one order.
"""
from __future__ import annotations

import copy
from collections.abc import Iterator

from torchspore.mindspore.dataset.engine.batches import BatchDataset
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.map_dataset import MapDataset
from torchspore.mindspore.dataset.engine.operations import ProjectDataset, RenameDataset
from torchspore.mindspore.dataset.engine.rows import Row, Run


def strided(dataset: Dataset, index: int, count: int, shared_seed: int) -> Dataset:
    """Return the pipeline that makes the rows `index`, `index + count`, ... of `dataset`.

    All `count` readers pass one `shared_seed`, and their processes draw nothing else from the pipeline's seed.
    """
    return _Reader(_divided(dataset, index, count, 1), index, shared_seed)


def _divided(dataset: Dataset, index: int, count: int, block: int) -> Dataset:
    """Return a copy of the steps above the division, with the division below them. `block` rows become one row of the result."""
    is_row_by_row = type(dataset) in (ProjectDataset, RenameDataset) or (type(dataset) is MapDataset and not dataset.callbacks)
    if isinstance(dataset, BatchDataset) and dataset._only_joins:
        is_row_by_row, block = True, block * int(dataset.batch_size)
    if not is_row_by_row or dataset.is_sync():
        return _Stride(dataset, index, count, block)
    step = copy.copy(dataset)
    step.children = [_divided(dataset.children[0], index, count, block)]
    return step


class _Stride(UnionBaseDataset):
    """Every `count`-th block of rows."""

    def __init__(self, input_dataset: Dataset, index: int, count: int, block: int) -> None:
        super().__init__(input_dataset)
        self.index, self.count, self.block = index, count, block

    def _size(self) -> int | None:
        size = self.children[0]._size()
        if size is None:
            return None
        rounds, rest = divmod(size, self.block * self.count)
        return rounds * self.block + min(max(rest - self.index * self.block, 0), self.block)

    def _epoch(self, run: Run) -> Iterator[Row]:
        shared = run.keep(self, lambda: self._shared_run(run))
        shared.epoch = run.epoch
        for number, row in enumerate(self.children[0]._epoch(shared)):
            if number // self.block % self.count == self.index:
                yield row

    @staticmethod
    def _shared_run(run: Run) -> Run:
        """Return the run of the steps below, whose seed all readers share."""
        shared = Run()
        run.on_close(shared.close)
        return shared


class _Reader(UnionBaseDataset):
    """The last step: it gives the steps above the division a seed of this reader, so that readers draw different numbers."""

    def __init__(self, input_dataset: Dataset, index: int, seed: int) -> None:
        super().__init__(input_dataset)
        self.index, self.seed = index, seed

    def _epoch(self, run: Run) -> Iterator[Row]:
        run.seed = (self.seed + self.index) % 2**32
        yield from self.children[0]._epoch(run)

    def _rows_are_fresh(self) -> bool:
        return self.children[0]._rows_are_fresh()
