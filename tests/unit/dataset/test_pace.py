"""When rows are shared between workers: by what was timed, looked at again after a stretch."""
from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest

from torchspore.mindspore.dataset.engine.pace import Pace, paced_map, tried
from torchspore.mindspore.dataset.engine.workers import Workers


def _pace(workers: int, each: float, busy: float = 1.0) -> Pace:
    pace = Pace(workers)
    pace.each, pace.busy = each, busy
    return pace


@pytest.mark.parametrize(("each", "busy", "seconds", "computed", "pays"), [
    (4e-3, 1.0, 4e-3, 4e-3, True),          # they release the lock
    (4e-3, 1.0, 7.8e-3, 7.8e-3, True),      # the same, on two halves of one core, or after rows that were lucky
    (4e-3, 0.6, 6.6e-3, 4e-3, True),        # the same on a machine that others use
    (4e-3, 1.0, 8e-3, 4e-3, False),         # they hold the lock: each computes half of the time
    (4e-3, 0.01, 4e-3, 4e-5, True),         # they wait for a disk
    (4e-3, 1.0, 6e-3, 3.6e-3, True),        # they hold it half of the time
    (4e-3, 1.0, 12e-3, 12e-3, False),       # busy, with what they take from each other
])
def test_workers_go_on_where_they_gain(each: float, busy: float, seconds: float, computed: float, pays: bool) -> None:
    pace = _pace(2, each, busy)
    for _ in range(20):
        pace.note(1, seconds, computed)
    assert pace.pays is pays and pace.shares is pays


def test_one_late_row_says_nothing() -> None:
    pace = Pace(2)
    times = iter([0.0, 9.0, 0.0, *[0.0] * 5])

    def row(_: Any) -> float:
        end = perf_counter() + next(times) / 100
        while perf_counter() < end:
            pass
        return end

    assert len(list(tried(row, iter(range(8)), pace))) == 8
    assert pace.is_light and not pace.shares


def test_after_a_stretch_it_is_looked_at_again() -> None:
    pace = _pace(2, 4e-3)
    pace.pays = False
    pace.count(pace.left() - 1)
    assert pace.pays is False
    pace.count(1)
    assert (pace.each, pace.pays) == (None, None) and not pace.had_workers


@pytest.mark.parametrize("count", [0, 3, 8, 9, 256 + 8, 1000])
@pytest.mark.parametrize("each", [None, 1e-6, 1.0])
def test_all_rows_in_their_order(count: int, each: float | None) -> None:
    pace = Pace(2)
    pace.each = each
    workers = Workers(2, "test")
    try:
        for _ in range(2):
            assert list(paced_map(lambda item: item * 2, range(count), workers, pace)) == [item * 2 for item in range(count)]
    finally:
        workers.close()
