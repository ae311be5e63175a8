"""Python functions of a pipeline draw from `random` and `numpy.random` in the order of the rows, also while graphs are captured."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.base import user_threads

COUNT = 250


class Slow(nn.Cell):
    """Takes a while to be captured."""

    def construct(self, x: Any) -> Any:
        for _ in range(2_000_000):
            pass
        return ops.sin(x)


def draw(*_: Any) -> Any:
    time.sleep(0.002)
    return np.array(np.random.rand())


class Rows:
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, _: int) -> tuple[Any]:
        return (draw(),)


def mapped() -> Any:
    return ds.NumpySlicesDataset(np.zeros(COUNT), ["a"], shuffle=False).map(draw)


def by_index() -> Any:
    return ds.GeneratorDataset(Rows(), ["a"], shuffle=False, python_multiprocessing=False)


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    before = ds.config.get_prefetch_size()
    ds.config.set_prefetch_size(COUNT)
    yield
    ds.config.set_prefetch_size(before)
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("build", [mapped, by_index])
def test_a_capture_takes_no_draws_away(build: Any) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    Slow()(Tensor(np.ones(3, np.float32)))            # what captures need is loaded
    np.random.seed(3)
    net, results = Slow(), []
    for number, (value,) in enumerate(build().create_tuple_iterator(num_epochs=1, output_numpy=True)):
        if number == 2:
            net(Tensor(np.ones(3, np.float32)))
        results.append(float(value))
    assert np.array_equal(results, np.random.RandomState(3).rand(COUNT))


def test_who_waits_for_the_pipeline_lets_it_go_on() -> None:
    rows = by_index().create_tuple_iterator(num_epochs=1)
    next(rows)
    with user_threads.exclusive():
        start = time.monotonic()
        assert len(list(rows)) == COUNT - 1 and time.monotonic() - start < 5


def test_a_function_that_waits_is_waited_for_once_and_not_long() -> None:
    go, began = threading.Event(), threading.Event()

    def waits() -> None:
        entered = user_threads.enter()
        began.set()
        go.wait(20)
        user_threads.leave(entered)

    thread = threading.Thread(target=waits)
    thread.start()
    assert began.wait(20)
    start = time.monotonic()
    for _ in range(5):
        with user_threads.exclusive():
            pass
    took = time.monotonic() - start
    go.set()
    thread.join()
    assert 0.4 < took < 2
