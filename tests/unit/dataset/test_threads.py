"""Pipelines run in threads: order, bounds, errors and early ends, and no thread is left."""

from __future__ import annotations

import threading
import time
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest

from torchspore.mindspore.dataset.engine.workers import Workers


class Counted:
    """A source that counts how many rows were read."""

    def __init__(self, count: int = 100) -> None:
        self.count, self.read = count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, ...]:
        self.read += 1
        return (np.array(index),)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("torchspore-")]


def numbers(dataset: ds.Dataset) -> list[int]:
    return [int(row[0]) for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)]


def slow_for_even(value: np.ndarray) -> np.ndarray:
    time.sleep(0.002 if value % 2 == 0 else 0)
    return value


def test_order_is_preserved_with_workers() -> None:
    dataset = ds.GeneratorDataset(Counted(60), ["a"], shuffle=False, num_parallel_workers=3)
    assert numbers(dataset.map(slow_for_even, "a", num_parallel_workers=4)) == list(range(60))
    assert threads() == []


def test_reading_ahead_is_bounded() -> None:
    source = Counted(1000)
    ds.config.set_prefetch_size(4)
    try:
        iterator = ds.GeneratorDataset(source, ["a"], shuffle=False).create_tuple_iterator(output_numpy=True)
        next(iterator)
        time.sleep(0.05)
        assert source.read <= 1 + 4 + 1  # given out, waiting, in hand
    finally:
        ds.config.set_prefetch_size(16)
        iterator.stop()


def test_a_consumer_that_stops_early_leaves_no_thread() -> None:
    dataset = ds.GeneratorDataset(Counted(1000), ["a"], num_parallel_workers=2).map(slow_for_even, "a", num_parallel_workers=2)
    for _ in dataset.create_dict_iterator(num_epochs=1):
        break
    iterator = dataset.create_dict_iterator()
    next(iterator)
    del iterator
    assert threads() == []


def test_a_stopped_iterator_says_so() -> None:
    iterator = ds.GeneratorDataset(Counted(5), ["a"]).create_tuple_iterator()
    iterator.stop()
    with pytest.raises(RuntimeError) as caught:
        next(iterator)
    assert str(caught.value) == "next(iterator) after stop(): expected an iterator that was not stopped."


@pytest.mark.parametrize("workers", [None, 3])
def test_an_error_comes_after_the_rows_before_it(workers: int | None) -> None:
    def third(value: np.ndarray) -> np.ndarray:
        if value == 3:
            raise KeyError("boom")
        return value

    seen = []
    dataset = ds.GeneratorDataset(Counted(9), ["a"], shuffle=False).map(third, "a", num_parallel_workers=workers)
    with pytest.raises(RuntimeError) as caught:
        for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1):
            seen.append(int(row[0]))
    assert seen == [0, 1, 2]
    assert isinstance(caught.value.__cause__, KeyError)
    head, tail = str(caught.value).split("\n")
    assert head.startswith(f"{__file__}:") and head.endswith(": KeyError: 'boom'")
    assert tail == "map(operations=third, input_columns=['a']): expected a function that returns, it raised KeyError."
    assert threads() == []


def test_an_error_of_a_source_names_it() -> None:
    class Broken(Counted):
        def __getitem__(self, index: int) -> tuple[np.ndarray, ...]:
            raise ValueError("no such row")

    with pytest.raises(RuntimeError) as caught:
        numbers(ds.GeneratorDataset(Broken(), ["a"], shuffle=False))
    assert str(caught.value).split("\n")[1] == "GeneratorDataset(source=Broken)[0]: expected a function that returns, it raised ValueError."


def test_an_error_of_a_generator_names_it() -> None:
    def rows() -> object:
        yield (np.array(1),)
        raise OSError("disk")

    with pytest.raises(RuntimeError, match="GeneratorDataset\\(source=rows\\): expected a function that returns, it raised OSError"):
        numbers(ds.GeneratorDataset(rows, ["a"]))


def test_debug_mode_runs_in_the_readers_thread() -> None:
    seen = set()

    def where(value: np.ndarray) -> np.ndarray:
        seen.add(threading.current_thread().name)
        return value

    ds.config.set_debug_mode(True)
    try:
        numbers(ds.GeneratorDataset(Counted(3), ["a"]).map(where, "a", num_parallel_workers=4))
    finally:
        ds.config.set_debug_mode(False)
    assert seen == {threading.current_thread().name}


def test_a_batch_may_be_written_to_and_a_sources_row_is_not_shared() -> None:
    array = np.zeros(3, np.float32)
    dataset = ds.GeneratorDataset([(array,)], ["a"], shuffle=False)
    row = next(dataset.create_tuple_iterator())[0]
    row += 1
    row[0] = 5.0
    assert array.tolist() == [0, 0, 0]
    assert isinstance(next(dataset.batch(1).create_tuple_iterator())[0], ms.Tensor)


def test_one_dataset_may_feed_several_pipelines() -> None:
    dataset = ds.GeneratorDataset(Counted(4), ["a"], shuffle=False)
    assert [len(list(dataset.batch(size))) for size in (1, 2, 4)] == [4, 2, 1]
    assert numbers(ds.zip((dataset, dataset.rename("a", "b")))) == [0, 1, 2, 3]


def test_infinite_repeat_ends_with_its_reader() -> None:
    iterator = iter(ds.GeneratorDataset(Counted(3), ["a"], shuffle=False).repeat().create_tuple_iterator(output_numpy=True))
    assert [int(next(iterator)[0]) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    iterator.stop()
    assert threads() == []


def test_iterators_of_one_generator_each_have_all_its_rows() -> None:
    def slow() -> Any:
        for number in range(30):
            time.sleep(1e-3)
            yield (np.array(number),)

    dataset, results = ds.GeneratorDataset(slow(), ["n"]), {}

    def read(reader: int) -> None:
        results[reader] = [int(row[0]) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    readers = [threading.Thread(target=read, args=(reader,)) for reader in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(20)
    assert results == {reader: list(range(30)) for reader in range(3)}


def test_a_pipeline_inside_a_function_leaves_its_random_numbers() -> None:
    inner = ds.NumpySlicesDataset(np.arange(3), ["n"], shuffle=False).map(lambda n: n, ["n"])
    crop = ds.vision.RandomCrop(2)

    def alone(image: Any) -> Any:
        return crop(image)

    def crop_in_thread(image: Any) -> Any:
        for _ in inner.create_tuple_iterator(num_epochs=1, output_numpy=True):
            pass
        return crop(image)

    images = np.arange(5 * 48, dtype=np.uint8).reshape(5, 4, 4, 3)
    seed, results = ds.config.get_seed(), []
    ds.config.set_seed(1)
    ds.config.set_debug_mode(True)                # all in one thread
    try:
        for function in (alone, crop_in_thread):
            rows = ds.NumpySlicesDataset(images, ["n"], shuffle=False).map(function, ["n"])
            results.append([row[0].tolist() for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)])
    finally:
        ds.config.set_debug_mode(False)
        ds.config.set_seed(seed)
    assert results[0] == results[1]


def test_who_waits_for_rows_is_one_of_the_workers() -> None:
    seen: set[str] = set()
    at_once: list[int] = []
    active: list[int] = []

    def heavy(value: np.ndarray) -> np.ndarray:
        seen.add(threading.current_thread().name)
        active.append(1)
        at_once.append(len(active))
        time.sleep(0.002)
        active.pop()
        return value

    for workers in (2, 4):
        seen.clear()
        at_once.clear()
        dataset = ds.GeneratorDataset(Counted(400), ["a"], shuffle=False).map(heavy, "a", num_parallel_workers=workers)
        assert numbers(dataset) == list(range(400)) and max(at_once) == workers
        assert seen == {"torchspore-dataset", *(f"torchspore-map-{number}" for number in range(workers - 1))}
    assert threads() == []


def test_helping_ends_with_the_call_that_is_waited_for() -> None:
    workers = Workers(2, "test", is_helped=True)
    block = threading.Event()
    blocked_job = workers.submit(block.wait, 10)
    while not blocked_job.thread:
        time.sleep(0.001)
    calls = [workers.submit(lambda n=n: (n, threading.get_ident())) for n in range(5)]
    assert [workers.result(call) for call in calls] == [(n, threading.get_ident()) for n in range(5)]
    block.set()
    assert workers.result(blocked_job) is True
    workers.close()
    assert workers.submit(int).is_done is False


def test_an_interrupt_while_helping_is_not_postponed() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    workers = Workers(2, "test", is_helped=True)
    block = threading.Event()
    blocked_job = workers.submit(block.wait, 10)
    while not blocked_job.thread:
        time.sleep(0.001)
    first = workers.submit(interrupted)
    last = workers.submit(int)
    with pytest.raises(KeyboardInterrupt):
        workers.result(last)
    with pytest.raises(KeyboardInterrupt):
        first.result()
    block.set()
    workers.close()
