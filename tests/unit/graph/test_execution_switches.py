"""`exec_order`, `jit_compile` and `op_debug_option`, each by what a compiled graph does."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import kernel_compilers

from torchspore.cli import explain
from torchspore.context.store import STORE
from torchspore.engine.torch_internals import torch_private
from torchspore.graph.backend import inductor
from torchspore.graph.fx.order import reorder

X = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))


@pytest.fixture(autouse=True)
def defaults_after() -> Iterator[None]:
    yield
    STORE.reset("context")


def outcome(key: str) -> str:
    return {row[0]: row[3] for row in explain.rows()}[key]


class Two(nn.Cell):
    """Two branches of three operators each."""

    def construct(self, x):
        left = ops.tanh(ops.cos(ops.sin(x)))
        right = ops.exp(ops.abs(ops.neg(x)))
        return left - right


@pytest.mark.parametrize(("order", "expected"), [
    (None, "sin cos tanh neg abs exp sub"), ("bfs", "sin neg cos abs tanh exp sub"), ("dfs", "sin cos tanh neg abs exp sub"),
])
def test_exec_order_is_the_order_in_which_kernels_run(order: str | None, expected: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    if order:
        ms.set_context(exec_order=order)
    net = Two()
    result = net(X)
    assert np.array_equal(result.asnumpy(), Two()(X).asnumpy()) and ran(lambda: net(X)) == expected.split()
    if order:
        assert outcome("exec_order").startswith("applied: ")


@pytest.mark.parametrize("order", ["bfs", "dfs"])
@pytest.mark.parametrize("way", ["jit", "jit_config", "set_jit_config"])
def test_a_function_or_cell_has_a_separate_order(way: str, order: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE if way == "set_jit_config" else ms.PYNATIVE_MODE, exec_order="dfs" if order == "bfs" else "bfs")
    net: Any = Two()
    if way == "set_jit_config":
        net.set_jit_config(ms.JitConfig(exec_order=order))
    else:
        options: dict[str, Any] = {"exec_order": order} if way == "jit" else {"jit_config": ms.JitConfig(exec_order=order)}
        net = ms.jit(Two().construct, **options)
    net(X)
    expected = "sin neg cos abs tanh exp sub" if order == "bfs" else "sin cos tanh neg abs exp sub"
    assert ran(lambda: net(X)) == expected.split()


@pytest.mark.parametrize("call", [lambda: ms.jit(lambda x: x, exec_order="bsf"), lambda: ms.JitConfig(exec_order="bsf")])
def test_an_order_that_there_is_not_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"exec_order='bsf'.*'bfs', 'dfs'"):
        call()


def ran(call: Callable[[], Any]) -> list[str]:
    """The kernels that ran, as torch's profiler saw them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as seen:
        call()
    names = [event.name.removeprefix("aten::") for event in sorted(seen.events(), key=lambda e: e.time_range.start)]
    return list(dict.fromkeys(name for name in names if name in ("sin", "cos", "tanh", "neg", "abs", "exp", "sub")))


@pytest.mark.parametrize("order", ["bfs", "dfs"])
def test_a_training_step_in_another_order_has_the_same_bits(order: str) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            ms.set_seed(1)
            self.first, self.norm, self.drop, self.last = nn.Dense(4, 8), nn.BatchNorm1d(8), nn.Dropout(p=0.5), nn.Dense(8, 4)
            self.seen = ms.Parameter(ops.zeros((3, 8)), requires_grad=False)

        def construct(self, x):
            y = self.norm(self.first(x))
            before = self.seen + 0
            ops.assign(self.seen, y)
            z = self.drop(y) + self.drop(before) + self.seen
            if z.sum() > 0:
                z = z * 2
            else:
                z = z - 1
            return self.last(z)

    def losses() -> list[Any]:
        net = Net()
        cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.01)).set_train()
        ms.set_seed(7)
        return [float(cell(X, X).asnumpy()) for _ in range(4)] + [net.seen.asnumpy().tolist(), net.norm.moving_mean.asnumpy().tolist()]

    ms.set_context(mode=ms.GRAPH_MODE)
    expected = losses()
    ms.set_context(exec_order=order)
    assert losses() == expected


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="exec_order='bsf'") as error:
        ms.set_context(exec_order="bsf")
    assert "bfs" in str(error.value)


def test_without_jit_compile_no_kernel_is_written() -> None:
    x = Tensor(np.ones((4096, X.shape[1]), np.float32))    # enough numbers that kernels could pay
    for level in ("O1", "O2"):
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level}, ascend_config={"jit_compile": False})
        with inductor.compiled_by(kernel_compilers.nobody):
            assert np.allclose(Two()(x).asnumpy(), Two()(x).asnumpy())
    assert outcome("ascend_config") == "applied: jit_compile: graphs run existing kernels, nothing is compiled"


def test_jit_compile_at_o0_says_that_nothing_is_compiled() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"jit_compile": True})
    Two()(X)
    assert outcome("ascend_config") == "no effect here: jit_compile: graphs at O0 run existing kernels in any case; jit_level O1 compiles"


INDEX = Tensor([1, 7], ms.int32)
READERS = [
    lambda x: ops.gather(x, INDEX, 0), lambda x: ops.gather_nd(x, Tensor([[0, 9]], ms.int32)), lambda x: x[INDEX],
    lambda x: ops.gather_elements(x, 0, Tensor([[0, 9]], ms.int32)),
    lambda x: ops.tensor_scatter_update(x, Tensor([[9]], ms.int32), Tensor([[1.0, 2.0, 3.0, 4.0]], ms.float32)),
    lambda x: ops.unsorted_segment_sum(x, Tensor([0, 9, 1], ms.int32), 3),
]


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("function", READERS)
def test_an_index_out_of_range_is_an_error_at_its_line(function: Any, mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, x):
            return function(x)

    ms.set_context(mode=mode, ascend_config={"op_debug_option": "oom"})
    with pytest.raises(IndexError, match=rf"{re.escape(__file__)}:\d+: "):
        Net()(X)
    assert outcome("ascend_config").startswith("no effect here: op_debug_option: the kernels of this device check each index")


@pytest.mark.parametrize("order", ["bfs", "dfs"])
def test_a_write_stays_before_and_after_who_reads_the_memory_by_any_view(order: str) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        aten = torch.ops.aten
        diagonal, first = aten.diagonal(x), aten.unbind(x)[0]
        before = aten.mul(aten.sin(aten.sin(diagonal)), 2)
        aten.add_(diagonal, 1)
        aten.mul_(aten.squeeze(aten.unsqueeze(x, 0), [0]), 3)
        return [before, aten.neg(diagonal), aten.neg(first), aten.neg(x)]

    x = torch.rand(3, 3)
    module = reorder(torch_private.make_fx(function)(x.clone()), order)
    for expected, other in zip(function(x.clone()), module(x.clone())):
        assert torch.equal(expected, other)


def test_a_graph_that_prints_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    class Prints(nn.Cell):
        def construct(self, x):
            ops.print_("here")
            return ops.sin(x)

    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"}, enable_graph_kernel=True, inter_op_parallel_num=2,
                   aoe_tune_mode="online", aoe_config={"job_type": "2"})
    Prints()(X)
    why = "it prints, so that it can't be run to be measured"
    assert outcome("jit_config") == f"applied: the graph runs as at O0: {why}"
    assert outcome("enable_graph_kernel") == f"applied: nothing is fused: {why}"
    for key in ("inter_op_parallel_num", "aoe_tune_mode", "aoe_config"):
        assert outcome(key) == f"no effect here: {why}"
