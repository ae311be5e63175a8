"""`inter_op_parallel_num`: operators of a graph at the same time, seen by the threads that their kernels run in."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings

import torchspore
from torchspore.cli import explain
from torchspore.context.store import STORE
from torchspore.graph.backend import lanes, measurement
from torchspore.graph.backend import lanes as parallel

X = Tensor(np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64))

EVERYWHERE = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
"""Lets torch's profiler see lanes."""


class Branches(nn.Cell):
    """Four towers that don't need each other."""

    def __init__(self) -> None:
        super().__init__()
        ms.set_seed(1)
        self.towers = nn.CellList([nn.SequentialCell([nn.Dense(64, 64), nn.Tanh(), nn.Dense(64, 64)]) for _ in range(4)])

    def construct(self, x):
        return sum([tower(x) for tower in self.towers][1:], self.towers[0](x))


class Chain(nn.Cell):
    def construct(self, x):
        return ops.tanh(ops.sin(ops.tanh(x)))


def step(net: nn.Cell) -> nn.Cell:
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))


@pytest.fixture(autouse=True)
def defaults_after() -> Iterator[None]:
    yield
    STORE.reset("context")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def always(measured_by: Any, two_threads: None) -> Iterator[None]:
    """Lanes are taken whether they are faster or not: the machine may be busy."""
    measured_by(fake_timings.Last())
    with measurement.timed_by(fake_timings.ticks()):
        yield


def threads_of(call: Any) -> set[int]:
    """The threads in which kernels of products ran."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True, experimental_config=EVERYWHERE) as seen:
        call()
    return {event.thread for event in seen.events() if event.name in ("aten::addmm", "aten::mm")}


def test_operators_run_in_two_threads(always: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, inter_op_parallel_num=2)
    net = Branches()
    net(X)
    assert len(threads_of(lambda: net(X))) == 2
    assert torch.get_num_threads() == 2, "the caller's kernels have their threads again"
    ms.set_context(inter_op_parallel_num=1)
    net(X)
    assert len(threads_of(lambda: net(X))) == 1


@pytest.mark.parametrize("level", ["O0", pytest.param("O1", marks=pytest.mark.slow)])
def test_training_in_lanes_gives_the_numbers_of_one_line(always: None, level: str) -> None:
    def losses(count: int) -> list[float]:
        ms.set_context(mode=ms.GRAPH_MODE, inter_op_parallel_num=count, jit_config={"jit_level": level})
        cell, y = step(Branches()), ops.zeros((64, 64))
        return [float(cell(X, y).asnumpy()) for _ in range(4)]

    assert losses(2) == pytest.approx(losses(0), rel=1e-6)


def test_explain_says_what_came_of_it(always: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, inter_op_parallel_num=4)
    Branches()(X)
    rows = {row[0]: row[3] for row in explain.rows()}
    assert rows["inter_op_parallel_num"] == "applied: graphs run in up to 2 lanes with 1 of 2 threads each, where that is faster"


def test_a_chain_of_operators_stays_one_line(two_threads: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, inter_op_parallel_num=2)
    net = Chain()
    net(X)
    rows = {row[0]: row[3] for row in explain.rows()}
    assert rows["inter_op_parallel_num"].startswith("no effect here: no graph has operators that gain by running at the same time")


def test_writes_and_random_numbers_keep_their_order(always: None) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = ms.Parameter(ops.zeros((4,)), name="count")
            self.dropout = nn.Dropout(p=0.5)

        def construct(self, x):
            left = self.dropout(x) + self.count
            ops.assign_add(self.count, ops.ones((4,)))
            right = self.dropout(x) * self.count
            ops.assign_add(self.count, ops.ones((4,)))
            return left, right, self.count * 1

    def run(count: int) -> list[Any]:
        ms.set_context(mode=ms.GRAPH_MODE, inter_op_parallel_num=count)
        ms.set_seed(5)
        net = Net().set_train()
        x = ops.ones((8, 4))
        return [[t.asnumpy().tolist() for t in net(x)] for _ in range(3)]

    assert run(2) == run(0)


def _parallel(function: Any, lane_numbers: list[int], *inputs: torch.Tensor) -> parallel.Parallel:
    """A function of tensors as lanes; `places` are the lanes of its operators."""
    from torchspore.engine.torch_internals.torch_private import make_fx

    module = make_fx(function)(*inputs)
    nodes = [node for node in module.graph.nodes if node.op not in ("placeholder", "output")]
    return parallel.Parallel(module, dict(zip(nodes, lane_numbers, strict=True)), 1)


def test_what_a_lane_raises_reaches_the_caller_and_the_next_call_runs() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> list[torch.Tensor]:
        row = torch.ops.aten.index_select(x, 0, i)
        return [torch.ops.aten.sin(row), torch.ops.aten.cos(x)]

    x = torch.ones(3, 2)
    lanes_ = _parallel(function, [1, 0, 1], x, torch.tensor([1]))
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        lanes_.run(x, torch.tensor([7]))
    assert torch.equal(lanes_.run(x, torch.tensor([2]))[0], torch.sin(x[2:]))


def test_two_callers_at_once_get_their_results() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.ops.aten.add(torch.ops.aten.sin(x), torch.ops.aten.cos(x))]

    lanes_ = _parallel(function, [0, 1, 0], torch.ones(2000))
    wrong: list[float] = []

    def call(value: float) -> None:
        x = torch.full((2000,), value)
        for _ in range(50):
            if not torch.allclose(lanes_.run(x)[0], torch.sin(x) + torch.cos(x)):
                wrong.append(value)

    callers = [threading.Thread(target=call, args=(value,)) for value in (0.5, 1.5, 2.5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_value_is_freed_after_its_last_reader() -> None:
    references: list[weakref.ref[torch.Tensor]] = []
    most = 0

    def plus_one(x: torch.Tensor) -> torch.Tensor:
        nonlocal most
        output = x + 1
        references.append(weakref.ref(output))
        most = max(most, sum(reference() is not None for reference in references))
        return output

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    nodes = [x]
    for _ in range(6):
        nodes.append(graph.call_function(plus_one, (nodes[-1],)))
    graph.output([nodes[-1]])
    lane_of = {node: at % 2 for at, node in enumerate(nodes[1:])}
    result = parallel.Parallel(torch.fx.GraphModule({}, graph), lane_of, 1).run(torch.zeros(3))
    assert result[0].tolist() == [6.0] * 3 and most <= 3, "a value, the one that it comes from, and one that its lane is about to free"


def test_the_plan_spreads_what_is_independent(two_threads: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Branches()
    net(X)
    (graph,) = torchspore.graphs(net)
    result = lanes.plan(graph.module, lambda: [measurement.copy(t) for t in graph._examples([X])], 2, 1)
    assert set(result.lane_of.values()) == {0, 1} and result.seconds > 0
