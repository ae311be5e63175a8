"""`debug_level`: DEBUG keeps in graphs and refusals where their operators come from, RELEASE does not."""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import torchspore
from torchspore.cli import explain
from torchspore.context import effects

X = Tensor(np.ones((2, 4), np.float32))


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def activate(self, x):
        return ops.gelu(x)  # line: gelu

    def construct(self, x):
        y = self.activate(self.dense(x))  # line: call
        return x + y  # line: add


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.CellList([Block(), Block()])

    def construct(self, x):
        for block in self.blocks:
            x = block(x)  # line: block
        return x.sum()


class Looks(nn.Cell):
    def construct(self, x):
        return x * self.value(x)  # line: outer

    def value(self, x):
        return float(x.asnumpy()[0, 0])  # line: inner


def line(name: str) -> str:
    with open(__file__, encoding="utf-8") as source:
        number = next(number for number, text in enumerate(source, 1) if text.rstrip().endswith(f"# line: {name}"))
    return f"{__file__}:{number}"


@pytest.fixture
def debug() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE, debug_level=ms.DEBUG)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, debug_level=ms.RELEASE)


def step() -> Any:
    net = Net()
    train_step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    train_step(X)
    return torchspore.graphs(train_step)[0]


def test_each_operator_shows_its_line_and_its_cell(debug: None) -> None:
    text = str(step()).splitlines()
    gelus = [entry.partition("  #")[2].strip() for entry in text if "aten.gelu.default" in entry]
    assert gelus == [f"{line('gelu')} in Default/network-Net/blocks-CellList/{n}-Block" for n in (0, 1)]
    product = next(entry for entry in text if "aten.linear" in entry)
    assert product.endswith(f"# {line('call')} in Default/network-Net/blocks-CellList/0-Block/dense-Dense")
    assert all("  #" in entry for entry in text if "aten." in entry)


def test_a_backward_operator_has_the_line_of_its_forward_one(debug: None) -> None:
    text = str(step()).splitlines()
    gelus = [entry.partition("  #")[2].strip() for entry in text if "aten.gelu_backward" in entry]
    assert gelus == [f"backward of {line('gelu')} in Default/network-Net/blocks-CellList/{n}-Block" for n in (1, 0)]
    assert any(entry.endswith("0-Block/dense-Dense") and "backward of" in entry for entry in text if "aten.mm" in entry)


def test_the_nodes_keep_the_calls_that_led_there(debug: None) -> None:
    results = [node for node in step().module.graph.nodes if str(node.target) == "aten.gelu.default"]
    assert results[0].meta["stack"][-3:] == [line("block"), line("call"), line("gelu")]
    assert results[0].meta["line"] == line("gelu")


def test_release_keeps_nothing(debug: None) -> None:
    ms.set_context(debug_level=ms.RELEASE)
    graph = step()
    assert "  #" not in str(graph)
    assert not any({"line", "stack", "scope"} & set(node.meta) for node in graph.module.graph.nodes)


def test_a_change_recaptures(debug: None) -> None:
    net = Net()
    net(X)
    ms.set_context(debug_level=ms.RELEASE)
    net(X)
    assert ["  #" in str(graph) for graph in torchspore.graphs(net)].count(True) == 1
    assert len(torchspore.graphs(net)) == 2


def test_a_refusal_tells_the_calls_that_led_there(debug: None) -> None:
    Looks()(X)
    messages = [note for note in effects.notes()["calls that run in parts"] if note.startswith(line("inner"))]
    assert any(f", called from {line('outer')}, " in note for note in messages)
    ms.set_context(debug_level=ms.RELEASE)
    Looks()(X)
    assert any("called from" not in note for note in effects.notes()["calls that run in parts"] if note.startswith(line("inner")))


def test_explain_lists_what_is_saved(debug: None) -> None:
    step()
    outcome = [row[3] for row in explain.rows() if row[0] == "debug_level"]
    assert outcome == ["applied: DEBUG: graphs and refusals keep the user's lines, the calls that led there and the Cells"]
    ms.set_context(mode=ms.PYNATIVE_MODE, debug_level=ms.RELEASE)
    ms.set_context(debug_level=ms.DEBUG)
    assert re.match("no effect here", next(row[3] for row in explain.rows() if row[0] == "debug_level"))


def test_saved_graphs_show_the_calls_in_debug_alone(debug: None, tmp_path: Path) -> None:
    def saved(level: int) -> tuple[str, str]:
        folder = tmp_path / str(level)
        ms.set_context(debug_level=level, save_graphs=2, save_graphs_path=str(folder))
        try:
            Outer()(Tensor([1.0]))
        finally:
            ms.set_context(save_graphs=0, save_graphs_path=".")
        outcome = next(row[3] for row in explain.rows() if row[0] == "debug_level")
        return next(path.read_text() for path in sorted(folder.rglob("*.ir"))), outcome

    class Inner(nn.Cell):
        def construct(self, x):
            return ops.exp(x)

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x)

    (release, outcome), (debug, debug_outcome) = saved(ms.RELEASE), saved(ms.DEBUG)
    for text in (release, debug):
        assert "return ops.exp(x)" in text and "Default/inner-Inner/Exp-op0" in text
    assert "return self.inner(x)" in debug and "return self.inner(x)" not in release
    assert outcome.startswith("applied: RELEASE: graphs keep the user's innermost line and the Cells, because another switch shows them")
    assert debug_outcome == "applied: DEBUG: graphs and refusals keep the user's lines, the calls that led there and the Cells"
