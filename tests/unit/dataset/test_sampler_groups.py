"""Custom samplers that yield a list or an array of indices for each row, as programs for MindSpore 1.x have them (the zoo's NCF)."""
from __future__ import annotations

from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest


class Batches:
    """A source whose rows are batches: its length is their number, and its indices are arrays."""

    def __getitem__(self, indices: Any) -> tuple[np.ndarray, np.ndarray]:
        array = np.asarray(indices)
        return array * 2, np.int32(array.size)

    def __len__(self) -> int:
        return 3


class Arrays(ds.Sampler):
    def __iter__(self) -> Any:
        return iter([np.arange(start, start + 4, dtype=np.int32) for start in range(0, 12, 4)])


class Lists(ds.Sampler):
    def __iter__(self) -> Any:
        return iter([[0, 1, 2, 3], [4, 5, 6, 7], (8, 9, 10, 11)])


class Iterable:
    def __iter__(self) -> Any:
        return iter(Arrays(3))


EXPECTED = [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22]]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("sampler", [lambda: Arrays(3), Lists, Iterable])
def test_a_row_is_the_item_of_a_group(sampler: Any, workers: int) -> None:
    data = ds.GeneratorDataset(Batches(), ["a", "count"], sampler=sampler(), num_parallel_workers=workers)
    assert data.get_dataset_size() == 3
    rows = list(data.create_tuple_iterator(output_numpy=True, num_epochs=1))
    assert [row.tolist() for row, _ in rows] == EXPECTED and [int(count) for _, count in rows] == [4, 4, 4]
    data = ds.GeneratorDataset(Batches(), ["a", "count"], sampler=sampler(), num_parallel_workers=workers).repeat(2)
    assert data.get_dataset_size() == 6
    assert [row.tolist() for row, _ in data.create_tuple_iterator(output_numpy=True, num_epochs=1)] == EXPECTED * 2


def test_num_samples_counts_groups() -> None:
    data = ds.GeneratorDataset(Batches(), ["a", "count"], sampler=Arrays(2))
    assert data.get_dataset_size() == 2
    assert [row.tolist() for row, _ in data.create_tuple_iterator(output_numpy=True, num_epochs=1)] == EXPECTED[:2]


def test_a_group_is_no_index_of_other_sources() -> None:
    hint = r"\n\nhint: pass a batch_sampler to a GeneratorDataset, or write \.batch\(\.\.\.\)\.$"
    data = ds.NumpySlicesDataset(list(range(12)), sampler=Lists())
    with pytest.raises(TypeError, match=r"Lists: index \[0, 1, 2, 3\]: expected an int\." + hint):
        list(data.create_tuple_iterator(num_epochs=1))


def test_a_group_is_no_index_of_the_rows_of_a_child() -> None:
    sampler = Lists()
    sampler.add_child(ds.SequentialSampler())
    data = ds.GeneratorDataset(Batches(), ["a", "count"], sampler=sampler)
    with pytest.raises(TypeError, match=r"Lists: index \[0, 1, 2, 3\]: expected an int\."):
        list(data.create_tuple_iterator(num_epochs=1))
