"""Requests for rows of the next batch, with servers that are a table in this process."""
from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import torch

from torchspore.distributed.parameter_server.prefetch import Prefetcher
from torchspore.distributed.parameter_server.row_cache import RowCache
from torchspore.distributed.parameter_server.transport import ConnectionLost

KEY = "Adam 0", 0


class _Table:
    """A table of 10 rows on two servers, a worker's cache and its prefetcher."""

    def __init__(self, is_cleared_by_steps: bool = False) -> None:
        self.values, self.is_lost = torch.arange(10.0).view(10, 1), False
        self.cache = RowCache("table", 10, (1,), torch.float32, 8, is_cleared_by_steps)
        self.requested: list[list[int]] = []
        self.answers: list[tuple[torch.Tensor, Future[Any]]] = []
        self.prefetcher = Prefetcher({KEY: self.cache}, self._request)

    def _request(self, plan: str, rows: dict[int, torch.Tensor], step: int) -> list[Future[Any]]:
        self.requested.append(rows[0].tolist())
        self.answers = [(part, Future()) for part in (rows[0][rows[0] < 5], rows[0][rows[0] >= 5])]
        return [answer for _, answer in self.answers]

    def look_up(self, *ids: int) -> list[float]:
        numbers = torch.tensor(ids)
        self.prefetcher.record_lookup(KEY, numbers)
        return [float(value) for value in self.cache.lookup(numbers, self._fetch)]

    def _fetch(self, rows: torch.Tensor) -> torch.Tensor:
        taken = self.prefetcher.take(KEY, rows)
        values = self.values[rows].clone()
        if taken is not None:
            values[taken[0]] = taken[1]
        return values

    def step(self, next_row: tuple[Any, ...] | None, changed: int = 1) -> None:
        """Apply a step that adds 100 to a row."""
        self.prefetcher.receive_row(self.row, lambda: next_row)
        self.prefetcher.drop("Adam 0")
        self.answers = []
        self.prefetcher.start("Adam 0", 1)
        self.values[changed] += 100
        for part, answer in self.answers:
            if self.is_lost:
                answer.set_exception(ConnectionLost("lost"))
            else:
                answer.set_result({0: [self.values[part].clone()]} if len(part) else {})
        self.cache.update(torch.tensor([changed]), self.values[[changed]])
        self.cache.clear_after_step()
        self.prefetcher.finish_step("Adam 0")

    def begin(self, *ids: int) -> None:
        self.row: tuple[Any, ...] = (np.zeros(3, np.float32), np.array([ids], np.int32))
        self.prefetcher.receive_row(self.row, lambda: None)
        self.look_up(*ids)


def _next(*ids: int) -> tuple[Any, ...]:
    return np.zeros(3, np.float32), np.array([ids], np.int32)


def test_rows_that_the_cache_lacks_are_requested_with_the_values_after_the_step() -> None:
    table = _Table()
    table.begin(1, 2, 3)
    table.step(_next(3, 6, 1, 6), changed=6)
    assert table.requested == [[6]]
    assert table.look_up(3, 6, 1, 6) == [3, 106, 1, 106] and table.prefetcher.count == 1


def test_a_cache_that_steps_empty_needs_all_rows() -> None:
    table = _Table(is_cleared_by_steps=True)
    table.begin(1, 2, 3)
    table.step(_next(3, 6, 1), changed=1)
    assert table.requested == [[1, 3, 6]]
    assert table.look_up(3, 6, 1) == [3, 6, 101] and table.prefetcher.count == 3


def test_a_lookup_of_other_rows_takes_those_that_fit() -> None:
    table = _Table()
    table.begin(1, 2, 3)
    table.step(_next(6, 7, 8), changed=7)
    assert table.look_up(9, 7, 0) == [9, 107, 0] and table.prefetcher.count == 1


@pytest.mark.parametrize("ids", [(-1, 4, 10), (4, 4, 4)])
def test_numbers_outside_the_table_are_not_requested(ids: tuple[int, ...]) -> None:
    table = _Table()
    table.begin(1, 2, 3)
    table.step(_next(*ids))
    assert table.requested == [[4]]


def test_lookups_of_other_numbers_than_a_column_request_nothing() -> None:
    table = _Table()
    table.begin(1, 2, 3)
    table.look_up(3, 2, 1)
    table.step(_next(6, 7, 8))
    assert table.requested == []


@pytest.mark.parametrize("next_row", [None, (), (np.zeros(3), np.array(["a", "b", "c"]))])
def test_without_a_next_row_nothing_is_requested(next_row: Any) -> None:
    table = _Table()
    table.begin(1, 2, 3)
    table.step(next_row)
    assert table.requested == []


def test_values_from_before_a_load_or_another_step_are_not_used() -> None:
    table = _Table()
    table.begin(1, 2, 3)
    table.step(_next(6, 7, 8))
    table.values += 1000                                  # the program loads a checkpoint
    table.cache.clear()
    assert table.look_up(6, 7, 8) == [1006, 1007, 1008] and table.prefetcher.count == 0
    table.begin(1, 2, 3)
    table.step(_next(0, 4, 5))
    table.step(None, changed=4)                           # a second step without a lookup
    assert table.look_up(0, 4, 5) == [1000, 1104, 1005] and table.prefetcher.count == 0


def test_answers_of_a_lost_server_are_fetched_again() -> None:
    table = _Table()
    table.is_lost = True
    table.begin(1, 2, 3)
    table.step(_next(6, 7, 8))
    assert table.requested == [[6, 7, 8]] and table.look_up(6, 7, 8) == [6, 7, 8] and table.prefetcher.count == 0
