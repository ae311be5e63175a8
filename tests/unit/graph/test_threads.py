"""One thread captures while others run the same Cell; a scope of one thread reaches its own compilation and no other."""
from __future__ import annotations

import threading
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.context import store
from torchspore.graph import dispatch


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        ms.set_seed(3)
        self.dense, self.norm = nn.Dense(4, 4), nn.LayerNorm((4,))

    def construct(self, x):
        return self.norm(ops.relu(self.dense(x))) * 2


@pytest.fixture(autouse=True)
def pynative_after():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def in_threads(functions: list[Any]) -> list[Any]:
    """Runs all at once; gives what each gave, raises what one raised."""
    results: list[Any] = [None] * len(functions)
    barrier = threading.Barrier(len(functions))

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = functions[number]()
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_a_cell_is_captured_and_run_by_several_threads_at_once() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    inputs = [np.random.RandomState(n).randn(2 + n % 3, 4).astype(np.float32) for n in range(12)]
    expected = [net.construct(Tensor(x)).asnumpy() for x in inputs]

    def work(first: int) -> list[np.ndarray]:
        return [net(Tensor(x)).asnumpy() for x in inputs[first:] + inputs[:first]]

    for first, actual in zip((0, 4, 8), in_threads([lambda f=f: work(f) for f in (0, 4, 8)])):
        for a, b in zip(actual, expected[first:] + expected[:first]):
            np.testing.assert_array_equal(a, b)


def test_a_plain_run_in_another_thread_is_not_captured() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, other, stop = Net(), Net(), threading.Event()
    x = Tensor(np.ones((2, 4), np.float32))
    expected = other.construct(x).asnumpy()

    def eager() -> int:
        rounds = 0
        while not stop.is_set():
            np.testing.assert_array_equal(other.construct(x).asnumpy(), expected)
            rounds += 1
        return rounds

    def captures() -> None:
        try:
            for rows in (*range(2, 8), *range(2, 8)):
                net(Tensor(np.ones((rows, 4), np.float32)))
        finally:
            stop.set()

    rounds, _ = in_threads([eager, captures])
    assert rounds and len(dispatch.graphs(net)) == 6


def test_a_scope_of_one_thread_reaches_its_compilation() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Net(), Tensor(np.ones((2, 4), np.float32))

    def scoped() -> None:
        with ms.context.scope(check_bprop=True):
            for _ in range(3):
                net(x)

    in_threads([scoped, lambda: [net(x) for _ in range(3)]])
    values = [dict(entry.form[2])["check_bprop"] for entry in net._graphs_.values()]
    assert sorted(values) == [False, True]
    assert store.STORE.get("check_bprop") is False
