"""The cache of rows on a worker, compared with a table that has all rows."""
from __future__ import annotations

import random

import pytest
import torch

from torchspore.distributed.parameter_server.row_cache import RowCache


def test_rows_are_those_of_the_table_whatever_happens() -> None:
    generator = random.Random(1)
    for size in (0, 7, 40):
        table = torch.randn(60, 3)
        cache = RowCache("table", 60, (3,), torch.float32, size)
        fetched: list[int] = []

        def fetch(rows: torch.Tensor, table: torch.Tensor = table, fetched: list[int] = fetched) -> torch.Tensor:
            assert torch.equal(rows, rows.unique())
            fetched += rows.tolist()
            return table[rows]

        for _ in range(300):
            action = generator.random()
            rows = torch.tensor([generator.randrange(60) for _ in range(generator.randint(1, 7))])
            if action < 0.6:
                assert torch.equal(cache.lookup(rows, fetch), table[rows])
                continue
            rows = rows.unique()
            table[rows] = torch.randn(len(rows), 3)
            if action < 0.8:
                cache.invalidate(rows)
            elif action < 0.95:
                cache.update(rows, table[rows])
            else:
                table.copy_(torch.randn(60, 3))
                cache.clear()
        assert 0 < len(fetched) < cache.hits + cache.misses and cache.misses == len(fetched)


def test_the_least_recently_used_rows_make_room() -> None:
    table, fetched = torch.arange(10.0).view(10, 1), []

    def fetch(rows: torch.Tensor) -> torch.Tensor:
        fetched.append(rows.tolist())
        return table[rows]

    cache = RowCache("table", 10, (1,), torch.float32, 3)
    for rows in ([0, 1, 2], [0, 2], [3], [0, 2, 3], [1]):
        cache.lookup(torch.tensor(rows), fetch)
    assert fetched == [[0, 1, 2], [3], [1]]
    cache.lookup(torch.tensor([0]), fetch)                # row 0, 2 or 3 made room for row 1: the first of them
    assert len(fetched) == 4 or cache.hits == 7


def test_a_batch_that_is_larger_than_the_cache_is_refused() -> None:
    cache = RowCache("deep.embedding_table", 10, (1,), torch.float32, 3)
    with pytest.raises(ValueError, match=r"deep.embedding_table: a batch with 4 different rows and vocab_cache_size=3: expected"):
        cache.lookup(torch.tensor([1, 2, 3, 3, 4]), lambda rows: torch.zeros(len(rows), 1))


def test_rows_are_right_if_the_cache_is_emptied_during_a_fetch() -> None:
    table = torch.arange(10.0).view(10, 1)
    cache = RowCache("table", 10, (1,), torch.float32, 6)
    cache.lookup(torch.tensor([0, 1, 2]), table.__getitem__)
    fetched: list[list[int]] = []

    def fetch(rows: torch.Tensor) -> torch.Tensor:
        fetched.append(rows.tolist())
        if len(fetched) == 1:                              # a server was lost, and its rows are those of an earlier step again
            cache.clear()
            table.add_(100)
        return table[rows]

    assert torch.equal(cache.lookup(torch.tensor([2, 3, 0]), fetch), table[[2, 3, 0]])
    assert fetched == [[3], [0, 2, 3]]
