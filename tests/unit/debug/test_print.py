"""ops.Print in both modes: order and text on the screen, in branches, loops and backward passes of one graph."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.graph import dispatch


@pytest.fixture(autouse=True)
def eager_afterwards() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


# What MindSpore 2.10 prints on a CPU: (values, in PyNative mode, in a graph).
SHOWN = [
    (np.arange(6, dtype=np.float32).reshape(2, 3),
     "Tensor(shape=[2, 3], dtype=Float32, value=\n[[ 0.00000000e+00,  1.00000000e+00,  2.00000000e+00],\n"
     " [ 3.00000000e+00,  4.00000000e+00,  5.00000000e+00]])",
     "Tensor(shape=[2, 3], dtype=Float32, value=\n[[ 0.00000000e+00  1.00000000e+00  2.00000000e+00]\n"
     " [ 3.00000000e+00  4.00000000e+00  5.00000000e+00]])"),
    (np.float32(3.5), "Tensor(shape=[], dtype=Float32, value= 3.5)", "3.5"),
    (np.bool_(True), "Tensor(shape=[], dtype=Bool, value= True)", "1"),
    (np.array([True, False]), "Tensor(shape=[2], dtype=Bool, value= [ True, False])", "Tensor(shape=[2], dtype=Bool, value=[ True False])"),
    (np.arange(1001, dtype=np.int32), "Tensor(shape=[1001], dtype=Int32, value= [   0,    1,    2 ...  998,  999, 1000])",
     "Tensor(shape=[1001], dtype=Int32, value=[   0    1    2 ...  998  999 1000])"),
    (np.array([[1.5, np.nan], [np.inf, -1e-8]]),
     "Tensor(shape=[2, 2], dtype=Float64, value=\n[[ 1.50000000e+00,             nan],\n [            inf, -1.00000000e-08]])",
     "Tensor(shape=[2, 2], dtype=Float64, value=\n[[ 1.50000000e+00             nan]\n [            inf -1.00000000e-08]])"),
    (np.array([0.1, 2], np.float16), "Tensor(shape=[2], dtype=Float16, value= [ 9.9976e-02,  2.0000e+00])",
     "Tensor(shape=[2], dtype=Float16, value=[ 9.9976e-02  2.0000e+00])"),
    (np.arange(26) % 5, f"Tensor(shape=[26], dtype=Int64, value= [{', '.join(str(i % 5) for i in range(24))}, \n 4, 0])",
     f"Tensor(shape=[26], dtype=Int64, value=[{' '.join(str(i % 5) for i in range(24))} \n 4 0])"),
    (np.array([1 + 2j], np.complex64), "Tensor(shape=[1], dtype=Complex64, value= [1+2j])",
     "Tensor(shape=[1], dtype=Complex64, value=[1+2j])"),
]


class Shows(nn.Cell):
    def construct(self, x: Any) -> Any:
        ops.Print()(x)
        return x + x


@pytest.mark.parametrize("values, eager, graph", SHOWN, ids=lambda value: str(getattr(value, "dtype", "")))
def test_the_text_of_a_tensor_is_mindspores(values: Any, eager: str, graph: str, capfd: pytest.CaptureFixture[str]) -> None:
    net = Shows()
    for mode, text in ((ms.PYNATIVE_MODE, eager), (ms.GRAPH_MODE, graph)):
        ms.set_context(mode=mode)
        net(Tensor(values))
        assert capfd.readouterr().out == text + "\n"
    assert repr(Tensor(values)) == eager


def test_each_argument_has_a_line_and_graphs_show_what_is_in_a_list_one_by_one(capfd: pytest.CaptureFixture[str]) -> None:
    class Mixed(nn.Cell):
        def construct(self, x: Any) -> Any:
            ops.print_("x", x, 2.0, [x, (x, True)], {"k": x}, None, -1, (1, 2))
            return x + 1

    shown, graphs = "Tensor(shape=[1], dtype=Int64, value= [7])", "Tensor(shape=[1], dtype=Int64, value=[7])"
    net = Mixed()
    net(Tensor([7]))
    assert capfd.readouterr().out.splitlines() == ["x", shown, "2.0", f"[{shown}, ({shown}, True)]", f"{{'k': {shown}}}", "None", "-1",
                                               "(1, 2)"]
    ms.set_context(mode=ms.GRAPH_MODE)
    for _ in range(2):
        net(Tensor([7]))
        assert capfd.readouterr().out.splitlines() == ["x", graphs, "2", graphs, graphs, "1", graphs, "None", "-1",
                                               "(1, 2)"]
    assert len(dispatch.graphs(net)) == 1


def test_a_tensor_that_is_known_prints_as_any_other(capfd: pytest.CaptureFixture[str]) -> None:
    tensor = Tensor([1, 2])

    class PrintsConstant(nn.Cell):
        def construct(self, x: Any) -> Any:
            ops.print_(tensor, Tensor(True))
            return x

    ms.set_context(mode=ms.GRAPH_MODE)
    PrintsConstant()(Tensor(1))
    assert capfd.readouterr().out == "Tensor(shape=[2], dtype=Int64, value=[1 2])\n1\n"


class Order(nn.Cell):
    def construct(self, x: Any) -> Any:
        ops.print_("start")
        i = Tensor(0)
        while i < 3:
            ops.print_("round", i)
            if x.sum() > i:
                ops.print_("above")
            else:
                ops.print_("below")
            i = i + 1
        x = ops.InsertGradientOf(seen)(x * 2)
        ops.print_("end")
        return x


def seen(gradient: Any) -> Any:
    ops.print_("gradient", gradient)
    return gradient * 3


ORDER = ["start", "round", "0", "above", "round", "1", "above", "round", "2", "below", "end"]


def words(text: str) -> list[str]:
    return [re.sub(r"Tensor\(shape=\[\], dtype=\w+, value= (.*)\)", r"\1", line) for line in text.splitlines()]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_gradients_of_second_order_and_vmap_print_once(mode: int, capfd: pytest.CaptureFixture[str]) -> None:
    class Twice(nn.Cell):
        def construct(self, x: Any) -> Any:
            i = Tensor(0)
            while i < 2:
                x = x * x
                ops.print_("round")
                i = i + 1
            if x.sum() > 1:
                x = x * x
                ops.print_("then")
            else:
                x = x * 3
            return x

    ms.set_context(mode=mode)
    assert ms.grad(ms.grad(Twice()))(Tensor([2.0])).asnumpy().tolist() == [56 * 2.0**6]
    assert capfd.readouterr().out.split() == ["round", "round", "then"]
    assert ms.vmap(shows_and_doubles)(Tensor([[1.0], [2.0]])).asnumpy().tolist() == [[2.0], [4.0]]
    assert "Tensor(shape=[2, 1]" in capfd.readouterr().out


def shows_and_doubles(x: Any) -> Any:
    ops.print_(x, ms.Parameter(Tensor([1.0]), name="weight"))
    return x * 2


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_prints_keep_the_programs_order_in_loops_branches_and_the_backward_pass(mode: int, capfd: pytest.CaptureFixture[str]) -> None:
    ms.set_context(mode=mode)
    net = Order()
    net(Tensor([2.0]))
    assert words(capfd.readouterr().out) == ORDER
    gradient = ms.grad(net)
    for _ in range(2):
        assert gradient(Tensor([2.0])).asnumpy().tolist() == [6.0]
        shown = words(capfd.readouterr().out)
        assert shown[:-2] == ORDER and shown[-2] == "gradient" and "1.00000000e+00" in shown[-1]
    if mode == ms.GRAPH_MODE:
        assert len(dispatch.graphs(net)) == 1 and not net.__dict__["_graphs_"].refused_in


def test_forward_differentiation_prints(capfd: pytest.CaptureFixture[str]) -> None:
    def squared(x: Any) -> Any:
        ops.print_(x)
        return x * x

    ms.jvp(squared, (Tensor(3.0),), (Tensor(1.0),))
    assert words(capfd.readouterr().out) == ["3"]


def test_prints_are_printed_once_in_loops_with_gradients_and_at_every_level(capfd: pytest.CaptureFixture[str]) -> None:
    class Rounds(nn.Cell):
        def construct(self, x: Any) -> Any:
            i = Tensor(0)
            while i < 2:
                x = ops.InsertGradientOf(seen)(ops.tanh(x * x))
                ops.print_("round")
                i = i + 1
            return x

    expected = ["round", "round", *["gradient", "value"] * 2]
    for level in ("O0", "O1"):
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
        ms.grad(Rounds())(Tensor([2.0]))
        assert ["value" if line.startswith("Tensor") else line for line in capfd.readouterr().out.splitlines()] == expected
    ms.set_context(jit_config={"jit_level": "O0"})


def test_a_graph_that_fails_prints_what_came_before_once(capfd: pytest.CaptureFixture[str]) -> None:
    class Fails(nn.Cell):
        def construct(self, x: Any, labels: Any) -> Any:
            ops.print_("before")
            loss = ops.nll_loss(x, labels)
            ops.print_("after")
            return loss

    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Fails(), Tensor(np.ones((1, 3), np.float32))
    net(x, Tensor([1], ms.int32))
    assert capfd.readouterr().out == "before\nafter\n"
    with pytest.raises((IndexError, ValueError, RuntimeError)):
        net(x, Tensor([7], ms.int32))
    assert capfd.readouterr().out == "before\n"
