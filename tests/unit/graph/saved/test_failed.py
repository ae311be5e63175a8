"""`analyze_fail.ir`: written on a failed compile, whatever `save_graphs` is, with the place marked and its path in the error."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.errors import CompileError

X = Tensor(np.ones((2, 4), np.float32))
MARK = "#------------------------> 0\n"


class Looks(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x):
        y = ops.relu(self.fc(x))
        return ops.exp(y * float(y.asnumpy()[0, 0]))  # line: looks


class Tries(nn.Cell):
    def construct(self, x):
        y = x * 2
        try:  # line: tries
            y = ops.exp(y)
        finally:
            pass
        return y


def line(name: str) -> str:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"{__file__}:{next(n for n, text in enumerate(lines, 1) if text.endswith(f'# line: {name}'))}"


@pytest.fixture(autouse=True)
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MS_OM_PATH", str(tmp_path))
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


def failed(call: Callable[..., Any], folder: Path) -> str:
    """The file that a failing call leaves; the error names it."""
    with pytest.raises(CompileError) as caught:
        call(X)
    path = folder / "rank_0" / "om" / "analyze_fail.ir"
    assert f"\n\nThe graph up to there: {path}\n\n" in str(caught.value)
    return path.read_text(encoding="utf-8")


def test_the_trace_up_to_where_it_ended(tmp_path: Path) -> None:
    text = failed(Looks(), tmp_path)
    assert text.count(MARK) == 1 and text.startswith("# IR entry: @Looks\n")
    before, after = text.split(MARK)
    assert "= aten.relu(%1) {instance name: ReLU}" in before and "aten.exp" not in text
    assert after.startswith('  %3(refused) = Refused("reads the values of a Tensor on the host")\n')
    assert f"# In file {line('looks')}/        return ops.exp(y * float(y.asnumpy()[0, 0]))  # line: looks/\n}}\n" in after
    assert "%para1_x: <Tensor[Float32], (2, 4)>" in before and "ref_key=fc.weight" in before
    assert "# Fullname with scope: (Default/fc-Dense/Dense-op1)" in before


def test_a_statement_that_strict_refuses_is_marked_at_its_line(tmp_path: Path) -> None:
    text = failed(Tries(), tmp_path)
    before, after = text.split(MARK)
    assert "= aten.mul(" in before and "= aten.exp(" in after
    assert f"# In file {line('tries')}/        try:  # line: tries/" in after


def test_arguments_that_are_refused_leave_an_empty_graph(tmp_path: Path) -> None:
    @ms.jit
    def takes(x, table):
        return x * len(table)

    text = failed(lambda x: takes(x, np.ones(3)), tmp_path)
    assert re.search(r"subgraph @\w+\(\) \{\n#-+> 0\n  %0\(refused\) = Refused\(\"receives an argument of type ndarray\"\)", text)


def test_two_sides_are_reported(tmp_path: Path) -> None:
    def sides(x):
        if x.sum() > 0:
            return x
        return x[:1]

    text = failed(ms.jit(sides), tmp_path)
    assert "#   one way:   a Tensor of shape (2, 4) and dtype Float32\n" in text and MARK in text


def test_the_current_directory_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MS_OM_PATH")
    monkeypatch.chdir(tmp_path)
    assert MARK in failed(Looks(), tmp_path)


def test_nothing_is_reported_where_it_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MS_OM_PATH", str(tmp_path / "file"))
    with pytest.raises(CompileError) as caught:
        Looks()(X)
    assert "The graph up to there" not in str(caught.value)


def test_lax_fails_nothing_and_writes_nothing(tmp_path: Path) -> None:
    ms.set_context(jit_syntax_level=ms.LAX)
    Looks()(X)
    assert not (tmp_path / "rank_0").exists()


def test_no_state_remains_after_the_second_trace(tmp_path: Path) -> None:
    net = Looks()
    before = net.fc.weight.asnumpy().copy()
    for _ in range(2):
        failed(net, tmp_path)
    assert np.array_equal(net.fc.weight.asnumpy(), before)
