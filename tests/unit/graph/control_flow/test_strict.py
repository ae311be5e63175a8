"""What STRICT and COMPATIBLE refuse, in the words a user meets; LAX runs it all."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import JitConfig, Tensor, nn, ops

import torchspore
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.errors import CompileError

X = Tensor(np.array([1.0, 2.0, 3.0], np.float32))
HOST = "compute with the Tensor itself, by operators of mindspore.ops, or leave jit_syntax_level at LAX."
JOIN = "return the same structure, shape and dtype from both branches, for example with .astype or ops.where."


@pytest.fixture(autouse=True)
def restores_lax() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


def at(level: str, function: Callable[[Any], Any]) -> Any:
    ms.set_context(jit_syntax_level={"STRICT": 0, "COMPATIBLE": 1, "LAX": 2}[level])
    return ms.jit(lambda x: function(x))(X)


def host_read(x):
    return x * float(x.asnumpy().sum())  # HERE


def lists(x):
    return x * x.tolist()[0]  # HERE


def prints(x):
    print(x, end="")  # HERE
    return x


def prints_shape(x):
    print("shape", x.shape)
    return x


def tries(x):
    try:  # HERE
        return x + 1
    except ValueError:
        return x


def imports(x):
    import math  # HERE
    return x * math.pi


def makes_set(x):
    return x * len({1, 2})  # HERE


def formats(x):
    return x, f"{x.shape}"  # HERE


def shapes_differ(x):
    if x.sum() > 0:  # HERE
        return x
    return x[:2]


def dtypes_differ(x):
    if x.sum() > 0:  # HERE
        y = x
    else:
        y = x.astype(ms.int32)
    return y


def kinds_differ(x):
    if x.sum() > 0:  # HERE
        y = (x, x)
    else:
        y = x
    return y


def undefined(x):
    if x.sum() > 0:  # HERE
        y = x * 2
    return y


def list_grows(x):
    results = []
    while x.sum() > 1:  # HERE
        results.append(x)
        x = x / 2
    return results


REFUSED = {
    host_read: (AttributeError, f"reads the values of a Tensor on the host, which jit_syntax_level STRICT does not allow.\n\nhint: {HOST}"),
    lists: (AttributeError, f"reads the values of a Tensor on the host, which jit_syntax_level STRICT does not allow.\n\nhint: {HOST}"),
    prints: (RuntimeError, "calls print, which jit_syntax_level STRICT does not allow.\n\nhint: print values alone, without `end`, "
             "`sep` or `file`, or print the results of the call."),
    tries: (RuntimeError, "has `try`, which jit_syntax_level STRICT does not allow.\n\nhint: test with `if` what could go wrong, or leave "
            "jit_syntax_level at LAX."),
    imports: (RuntimeError, "has `import`, which jit_syntax_level STRICT does not allow.\n\nhint: import at the top of the file, or leave "
              "jit_syntax_level at LAX."),
    makes_set: (RuntimeError, "has a set, which jit_syntax_level STRICT does not allow.\n\nhint: write a tuple or a list, or leave "
                "jit_syntax_level at LAX."),
    shapes_differ: (
        TypeError, "returns two kinds of result, depending on a Tensor, which jit_syntax_level STRICT does not allow:\n"
        "  one way:   a Tensor of shape (3,) and dtype Float32\n  the other: a Tensor of shape (2,) and dtype Float32"
        f"\n\nhint: {JOIN}",
    ),
    dtypes_differ: (
        TypeError, "gives y two kinds of value, depending on a Tensor, which jit_syntax_level STRICT does not allow:\n"
        "  one way:   a Tensor of shape (3,) and dtype Float32\n  the other: a Tensor of shape (3,) and dtype Int32"
        f"\n\nhint: {JOIN}",
    ),
    kinds_differ: (
        TypeError, "gives y two kinds of value, depending on a Tensor, which jit_syntax_level STRICT does not allow:\n"
        "  one way:   a tuple of 2: a Tensor of shape (3,) and dtype Float32, a Tensor of shape (3,) and dtype Float32\n"
        f"  the other: a Tensor of shape (3,) and dtype Float32\n\nhint: {JOIN}",
    ),
    undefined: (
        UnboundLocalError, "reads 'y', which only one branch of an `if` on a Tensor assigns, which jit_syntax_level STRICT does "
        "not allow.\n\nhint: assign a value to the name before it.",
    ),
    list_grows: (
        TypeError, "gives what is in the list two kinds of value in a loop that a Tensor ends, which jit_syntax_level STRICT does not "
        "allow:\n  before a round: []\n  after it:       a list of 1: a Tensor of shape (3,) and dtype Float32\n\n"
        f"hint: {JOIN}",
    ),
}


def line_of(function: Callable[[Any], Any]) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i in range(function.__code__.co_firstlineno, len(lines) + 1) if "# HERE" in lines[i - 1])


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_strict_refuses_and_says_what_to_write(function: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, text = REFUSED[function]
    monkeypatch.setenv("MS_OM_PATH", str(tmp_path))
    with pytest.raises(kind) as caught:
        at("STRICT", function)
    assert isinstance(caught.value, CompileError) and isinstance(caught.value, RuntimeError)
    where, message = str(caught.value).split(": ", 1)
    assert where == f"{__file__}:{line_of(function)}"
    before, saved, hint = re.sub(r"^\S+ ", "", message).partition(f"The graph up to there: {tmp_path}/rank_0/om/analyze_fail.ir\n\n")
    assert before + hint == text and saved
    assert str(caught.value).count("\n") < 20


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_lax_runs_it(function: Callable[[Any], Any]) -> None:
    expected, result = function(X), at("LAX", function)
    assert repr(result) == repr(expected)


@pytest.mark.parametrize("function", [tries, imports, makes_set, formats], ids=lambda f: f.__name__)
def test_compatible_takes_what_stays_in_python(function: Callable[[Any], Any]) -> None:
    assert repr(at("COMPATIBLE", function)) == repr(function(X))


def test_strict_takes_texts_of_known_values() -> None:
    assert at("STRICT", formats)[1] == "(3,)"                     # MindSpore 2.10 too


def further_elements(x):
    a, b = x, x + 1, x + 2
    (c, d), e = [x, x, x], "abc"
    first, second = ms.ops.stack([x, 2 * x, 3 * x])
    for left, _ in [(x, x, x)]:
        a = a + left
    return a + b + c + d + first + second, e


@pytest.mark.parametrize("level", ["STRICT", "LAX"])
def test_elements_without_a_name_are_ignored_in_graphs(level: str) -> None:
    """MindSpore 2.10's Graph mode gives the same; its PyNative mode raises as Python does."""
    total, text = at(level, further_elements)
    assert np.allclose(total.asnumpy(), 8 * X.asnumpy() + 1) and text == "abc"
    with pytest.raises(ValueError, match="too many values to unpack"):
        further_elements(X)


@pytest.mark.parametrize("level", [0, 1])
def test_prints_known_values_at_each_call(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    ms.set_context(jit_syntax_level=level)
    call = ms.jit(prints_shape)
    call(X), call(X)
    assert capsys.readouterr().out == "shape (3,)\n" * 2
    assert len(torchspore.graphs(call)) == 1


def test_fullgraph_is_strict_for_one_function() -> None:
    with pytest.raises(CompileError):
        ms.jit(host_read, fullgraph=True)(X)
    assert ms.jit(host_read)(X).asnumpy().tolist() == [6.0, 12.0, 18.0]


class Reads(nn.Cell):
    def construct(self, x):
        return x * float(x.asnumpy().sum())


def test_a_cells_own_level_wins() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Reads()
    net.set_jit_config(JitConfig(jit_syntax_level="STRICT"))
    with pytest.raises(CompileError, match="Reads reads the values of a Tensor"):
        net(X)
    ms.set_context(jit_syntax_level=ms.STRICT)
    other = Reads()
    other.set_jit_config(JitConfig(jit_syntax_level="LAX"))
    assert other(X).asnumpy().tolist() == [6.0, 12.0, 18.0]
    with pytest.raises(CompileError):
        Reads()(X)


def test_strict_lets_the_programs_errors_through() -> None:
    def wrong(x):
        return ops.matmul(x, ops.ones((5, 5)))

    with pytest.raises(ValueError) as caught:
        at("STRICT", wrong)
    assert not isinstance(caught.value, CompileError)


def test_it_is_reported() -> None:
    at("STRICT", lambda x: x * 2)
    assert str(effects.outcome_of(OPTIONS["jit_syntax_level"], 0)).startswith("applied: STRICT: a call is one graph")


def test_strict_takes_numbers_and_tensors_that_a_call_writes() -> None:
    class Counts(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count, self.total = 0, Tensor(0.0)

        def construct(self, x):
            self.count = self.count + 1
            self.total = self.total + x
            return x * self.count

    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    net = Counts()
    results = [net(Tensor(2.0)) for _ in range(5)]
    assert [float(result) for result in results] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert (net.count, float(net.total)) == (5, 10.0) and [graph.runs for graph in torchspore.graphs(net)] == [5]


def test_strict_gives_tuples_for_dicts() -> None:
    """Measured on 2.10, also for the gradient of a dict."""
    class Named(nn.Cell):
        def construct(self, x):
            return 1, {"b": x, "a": (x, {"c": 2})}

    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    first, (second, (third, inner)) = Named()(X)
    assert (first, inner) == (1, (2,)) and second.asnumpy().tolist() == third.asnumpy().tolist() == [1, 2, 3]
    gradient = ops.GradOperation()(lambda named: named["a"] * named["b"])
    assert isinstance(ms.jit(lambda named: gradient(named))(ms.mutable({"a": X, "b": X})), tuple)
    ms.set_context(jit_syntax_level=ms.LAX)
    assert isinstance(Named()(X)[1], dict)
