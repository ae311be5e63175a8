"""When rows are shared between workers: by turns that are timed, looked at again after a stretch."""
from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest

from torchspore.mindspore.dataset.engine.pace import Pace, paced_map, tried
from torchspore.mindspore.dataset.engine.workers import Workers


def _play(pace: Pace, here: float, workers: float, rows: int, slower: int = 0) -> dict[bool, int]:
    """How many rows each had, of so many that take so long; the machine changes its speed after each `slower` turns."""
    had, turns = {True: 0, False: 0}, 0
    while sum(had.values()) < rows:
        turn = pace.turn()
        turns += 1
        count, by = turn.rows, turn.by_workers
        had[by] += count
        speed = 2.0 if slower and turns // slower % 2 else 1.0
        pace.record(turn, count, count, count * (workers if by else here) * speed)
    return had


@pytest.mark.parametrize(("here", "workers", "pays"), [
    (4e-3, 2e-3, True),           # they release the lock
    (4e-3, 3e-3, True),           # on two halves of one core
    (4e-3, 4e-3, False),          # they hold the lock
    (4e-3, 8e-3, False),          # and take it from each other
    (1.0, 0.5, True),
])
@pytest.mark.parametrize("slower", [0, 3, 4, 7])
def test_who_is_faster_has_nearly_all_rows(here: float, workers: float, pays: bool, slower: int) -> None:
    pace = Pace(2)
    pace.each = here
    had = _play(pace, here, workers, 20_000, slower)
    assert pace.pays is pays and pace.had_workers is pays
    assert had[pays] > 0.85 * 20_000, had


def test_search_results_change_with_the_machine() -> None:
    pace = Pace(2)
    pace.each = 4e-3
    _play(pace, 4e-3, 6e-3, 10_000)
    assert not pace.pays
    had = _play(pace, 4e-3, 2e-3, 10_000)
    assert pace.pays and had[True] > had[False]


def test_turns_go_on_over_short_epochs() -> None:
    pace = Pace(2)
    pace.each = 4e-3
    for _ in range(60):
        left = 20
        while left:
            turn = pace.turn()
            count = min(turn.rows, left)
            left -= count
            pace.record(turn, count, count, count * (2e-3 if turn.by_workers else 4e-3))
    assert pace.pays and pace.had_workers


def test_one_late_row_says_nothing() -> None:
    pace = Pace(2)
    times = iter([0.0, 9.0, 0.0, *[0.0] * 5])

    def row(_: Any) -> float:
        end = perf_counter() + next(times) / 100
        while perf_counter() < end:
            pass
        return end

    assert len(list(tried(row, iter(range(8)), pace))) == 8
    assert pace.is_light and not pace.is_heavy


@pytest.mark.parametrize("count", [0, 3, 8, 9, 24, 40, 256 + 8, 1000])
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


def test_an_error_comes_out_where_its_row_would_have() -> None:
    def row(number: int) -> int:
        if number == 100:
            raise ValueError("broken")
        return number

    pace = Pace(2)
    pace.each = 1.0
    workers = Workers(2, "test")
    seen: list[int] = []
    try:
        with pytest.raises(ValueError, match="broken"):
            seen.extend(paced_map(row, range(200), workers, pace))
    finally:
        workers.close()
    assert seen == list(range(100))


def test_two_ways_through_one_step() -> None:
    """As both inputs of a `zip` may have the same `map` below them: who ends a turn that the other one has ended ends no further one."""
    pace = Pace(2)
    pace.each = 4e-3
    for _ in range(40):
        first, second = pace.turn(), pace.turn()
        pace.record(first, first.rows, first.rows, 1.0)
        following = pace.turn()
        assert second is first and following is not first
        pace.record(second, max(second.rows, 64), 64, 1.0)
        assert pace.turn() is following


def test_rows_of_two_ways_through_one_step() -> None:
    workers, pace = Workers(2, "tested", is_helped=True), Pace(2, light=0.0)
    try:
        results = list(zip(*[paced_map(lambda item: item * 2, range(2_000), workers, pace) for _ in range(2)]))
    finally:
        workers.close()
    assert results == [(item * 2, item * 2) for item in range(2_000)]
