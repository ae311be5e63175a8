"""What a graph asks torchspore itself is part of the state that it depends on, and what it sets is set at each call."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, context, nn


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    depth, seed = ms.get_context("max_call_depth"), ms.get_seed()
    yield
    context.reset_auto_parallel_context()
    ms.set_context(max_call_depth=depth)
    ms.set_seed(seed or 0)
    ms.set_context(mode=ms.PYNATIVE_MODE)


def options(k: int) -> None:
    ms.set_context(max_call_depth=k + 500)


def strategies(k: int) -> None:
    context.set_auto_parallel_context(dataset_strategy=((k, 1), (1, 1)))


ASKED: list[tuple[Callable[[int], None], Callable[[], Any]]] = [
    (options, lambda: ms.get_context("max_call_depth")), (ms.set_seed, lambda: ms.get_seed()),
    (strategies, lambda: context.get_auto_parallel_context("dataset_strategy")[0][0]),
]


@pytest.mark.parametrize(("change", "ask"), ASKED)
def test_a_graph_asks_anew(change: Callable[[int], None], ask: Callable[[], Any]) -> None:
    scaled = ms.jit(lambda x: x * ask())
    results = []
    for k in (1, 2, 2, 1, 3):
        change(k)
        results.append(float(scaled(Tensor(1.0))) == ask())
    assert all(results)


def test_what_a_graph_sets_is_set_at_each_call() -> None:
    def sets(x):
        ms.set_context(max_call_depth=600)
        return x * 2

    compiled = ms.jit(sets)
    for k in range(4):
        ms.set_context(max_call_depth=700 + k)
        assert float(compiled(Tensor(1.0))) == 2
        assert ms.get_context("max_call_depth") == 600


def test_an_option_that_stays_costs_no_capture() -> None:
    compiled = ms.jit(lambda x: x * ms.get_context("max_call_depth") + len(context.get_offload_context()))
    for _ in range(4):
        compiled(Tensor(1.0))
    assert len(compiled._graphs_) == 1 and len(next(iter(compiled._graphs_.values())).graphs) == 1


def test_other_managers_are_no_scope() -> None:
    @contextlib.contextmanager
    def doubled():
        yield 2

    def uses(x):
        with doubled() as factor:
            return x * factor

    def calls(x):
        return uses(x) + 1

    compiled = ms.jit(calls)
    assert [float(compiled(Tensor(1.0))) for _ in range(2)] == [3.0, 3.0]
    assert next(iter(compiled._graphs_.values())).graphs


@pytest.mark.parametrize("filters", ["always", "error", "default", "ignore", "ignore always ignore error"])
def test_what_a_call_warns_appears_as_often_as_in_pynative(filters: str) -> None:
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        class Warns(nn.Cell):
            def construct(self, x):
                warnings.warn("of the call", stacklevel=1)
                return x * 2

        ms.set_context(mode=mode)
        net, shown = Warns(), []
        globals().pop("__warningregistry__", None)
        for how in filters.split():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(how)
                for _ in range(3):
                    try:
                        shown.append(float(net(Tensor([1.0]))))
                    except UserWarning as error:
                        shown.append(str(error))
                    shown.append(len([message for message in caught if "of the call" in str(message.message)]))
        results.append(shown)
    assert results[0] == results[1]
