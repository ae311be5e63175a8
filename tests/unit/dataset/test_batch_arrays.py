"""Large rows land in their batch as they are made: nobody sees a difference but the time."""
from __future__ import annotations

import time
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision
from mindspore.dataset.engine import batch_arrays, blocks, pace

LARGE = (64, 65)
WORKERS = pytest.mark.parametrize("workers", [1, 2, 4])


def numbered(count: int, **options: Any) -> Any:
    return ds.NumpySlicesDataset({"number": np.arange(count, dtype=np.float32)}, shuffle=False, **options)


def large(number: Any) -> Any:
    """A row that is worth a worker's while."""
    time.sleep(3e-4)
    return np.full(LARGE, number, np.float32)


def batches(dataset: Any, epochs: int = 1) -> list[Any]:
    rows = dataset.create_tuple_iterator(output_numpy=True)
    return [batch for _ in range(epochs) for batch in rows]


@WORKERS
@pytest.mark.parametrize("drops", [True, False])
def test_batches_are_the_rows_in_order(workers: int, drops: bool) -> None:
    dataset = numbered(75).map(large, "number", num_parallel_workers=workers).batch(8, drop_remainder=drops)
    result = batches(dataset, 3)
    assert len(result) == 3 * (9 if drops else 10)
    for epoch in range(3):
        rows = np.concatenate([column for column, in result[epoch * len(result) // 3:(epoch + 1) * len(result) // 3]])
        assert np.array_equal(rows, np.broadcast_to(np.arange(len(rows), dtype=np.float32)[:, None, None], (len(rows), *LARGE)))


def test_rows_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []
    concatenate = np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda values, *a, **k: joined.append(len(values)) or concatenate(values, *a, **k))
    batches(numbered(64).map(large, "number", num_parallel_workers=2).batch(8), 2)
    assert len(joined) <= 1                      # the first batch, whose rows showed what shape they have


def test_every_batch_is_a_separate_array() -> None:
    first, *others = [batch for batch, in batches(numbered(48).map(large, "number").batch(8), 2)]
    copies = [array.copy() for array in others]
    first[:] = -1
    assert all(np.array_equal(array, before) for array, before in zip(others, copies))
    assert not any(np.shares_memory(first, array) for array in others)


@WORKERS
def test_maps_above_each_other(workers: int) -> None:
    dataset = ds.NumpySlicesDataset({"a": np.arange(40, dtype=np.float32), "b": np.arange(40, dtype=np.float32)}, shuffle=False)
    dataset = dataset.map(large, "a", ["big"], num_parallel_workers=workers)
    dataset = dataset.map(lambda b: (b + 100, large(b + 200)), "b", ["small", "also"], num_parallel_workers=workers)
    dataset = dataset.map(lambda also: also * 2, "also", num_parallel_workers=workers)
    for at, (big, small, also) in enumerate(batches(dataset.project(["big", "small", "also"]).batch(8))):
        assert big[:, 1, 2].tolist() == list(range(8 * at, 8 * at + 8))
        assert small.tolist() == (also[:, 3, 4] / 2 - 100).tolist() == (big[:, 0, 0] + 100).tolist()
    big, also, small = batches(dataset.map(lambda s: s, "small", column_order=["big", "also", "small"]).batch(8))[2]
    assert big[:, 5, 5].tolist() == list(range(16, 24)) and also[0, 0, 0] == 432 and small[0] == 116


def test_rows_of_other_shapes_are_refused_as_ever() -> None:
    def grows(number: Any) -> Any:
        return np.zeros((64, 65 + (number == 21)), np.float32)

    with pytest.raises(RuntimeError, match=r"shape \[64, 65\] in the batch's first row and \[64, 66\] in row 5"):
        batches(numbered(32).map(grows, "number").batch(8))


def test_shapes_may_differ_from_batch_to_batch() -> None:
    result = batches(numbered(48).map(lambda n: np.full((64, 65 + int(n) // 8 % 2), n, np.float32), "number").batch(8), 2)
    assert [batch.shape[2] for batch, in result] == [65, 66] * 6
    assert np.concatenate([batch[:, 0, 64] for batch, in result]).tolist() == 2 * list(range(48))


def test_rows_that_are_omitted_leave_no_holes() -> None:
    def fails(number: Any) -> Any:
        if number % 5 == 3:
            raise ValueError("broken")
        return np.full(LARGE, number, np.float32)

    before = ds.config.get_error_samples_mode()
    try:
        ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.SKIP)
        result = np.concatenate([batch for batch, in batches(numbered(40).map(fails, "number").batch(8), 2)])
        assert result[:, 0, 0].tolist() == 2 * [n for n in range(40) if n % 5 != 3]
    finally:
        ds.config.set_error_samples_mode(before)


def test_a_skipped_beginning_and_a_repeat_below_the_map() -> None:
    dataset = numbered(20).repeat(2).skip(3).map(large, "number").batch(8, drop_remainder=True)
    assert np.concatenate([batch[:, 0, 0] for batch, in batches(dataset)]).tolist() == [n % 20 for n in range(3, 35)]


def test_a_column_that_is_one_row_everywhere_is_joined() -> None:
    row = np.ones(LARGE, np.float32)
    batch_array = batch_arrays.BatchArrays(2, {0: (LARGE, row.dtype)})
    first = batch_array.put(0, 0, row)
    assert batch_array.taken(0, [[first, first]]) == [None]


@WORKERS
@pytest.mark.parametrize(("steps", "is_direct"), [
    ([vision.Normalize([3.0] * 3, [2.0] * 3), vision.HWC2CHW()], True),
    ([vision.ToTensor()], True),
    ([vision.Normalize([3.0] * 3, [2.0] * 3)], False),            # its result is seen as (H, W, C), and lies as (C, H, W)
    ([vision.ToTensor(), vision.Normalize([0.5] * 3, [2.0] * 3, is_hwc=False)], False),
])
@pytest.mark.parametrize("size", [96, 3])
def test_transforms_make_rows_where_they_land(
    steps: list[Any], is_direct: bool, workers: int, size: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared_flags: list[bool] = []
    share_memory = batch_arrays._share_memory
    monkeypatch.setattr(batch_arrays, "_LARGE", 16)
    monkeypatch.setattr(blocks, "_LARGE", 16)
    monkeypatch.setattr(pace.Pace, "is_light", False)
    monkeypatch.setattr(batch_arrays, "_share_memory", lambda a, b: shared_flags.append(share_memory(a, b)) or shared_flags[-1])
    pictures = np.random.RandomState(0).randint(0, 256, (40, size, size, 3)).astype(np.uint8)

    def by_hand(picture: Any) -> Any:
        for step in steps:
            picture = step(picture)
        return picture

    dataset = ds.GeneratorDataset([(p,) for p in pictures], ["picture"], shuffle=False)
    result = batches(dataset.map(steps, "picture", num_parallel_workers=workers).batch(8), 2)
    assert len(shared_flags) >= 70 and (sum(shared_flags) >= 60 if is_direct else not any(shared_flags))
    for (batch,), start in zip(result, [*range(0, 40, 8)] * 2, strict=True):
        assert np.array_equal(batch, np.stack([by_hand(picture) for picture in pictures[start : start + 8]]))


@WORKERS
def test_a_batch_size_that_means_all_rows(workers: int) -> None:
    """No array has room for as many rows: there are not so many."""
    result = batches(numbered(20).map(large, "number", num_parallel_workers=workers).batch(2**31 - 1), 2)
    assert [column.shape for column, in result] == [(20, *LARGE)] * 2
