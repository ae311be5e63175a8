"""`torchspore check`: what programs use and torchspore lacks, without running them and without torch."""
from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.processes import Run

from torchspore.cli import check
from torchspore.cli.program_analysis import calls
from torchspore.cli.program_analysis.uses import Use, uses
from torchspore.public_names import listing, numpy_removals, older_calls


@pytest.fixture(autouse=True)
def offers() -> Iterator[None]:
    """A small front end: what is offered is known, whatever the real one offers today."""
    small = {
        "mindspore": frozenset({"Tensor", "nn", "ops", "context", "set_context"}),
        "mindspore.context": frozenset({"set_context", "get_context", "set_auto_parallel_context"}),
        "mindspore.nn": frozenset({"Conv2d", "Dense"}),
        "mindspore.ops": frozenset({"Add", "relu"}),
    }
    classes = {"TrainOneStepWithLossScaleCell": frozenset({"network"}), "Optimizer": frozenset({"learning_rate"})}
    with listing.of(listing.FrontEnd(public=small, classes=classes)):
        yield


def names_and_lines(text: str) -> list[tuple[str, int]]:
    return [(use.name, use.line) for use in uses(ast.parse(text))]


def test_uses_of_each_form_of_import() -> None:
    text = """
import mindspore
import mindspore.nn as nn
import mindspore as ms, os
from mindspore import Tensor, context as c
from mindspore.ops import operations as P
from .mindspore import x
mindspore.ops.relu(1)
nn.Conv2d(1)
ms.Tensor.shape
c.set_context(mode=0)
P.Add()(os.path)
"""
    assert names_and_lines(text) == [
        ("mindspore", 2),
        ("mindspore.nn", 3),
        ("mindspore.Tensor", 5),
        ("mindspore.context", 5),
        ("mindspore.ops.operations", 6),
        ("mindspore.ops.relu", 8),
        ("mindspore.nn.Conv2d", 9),
        ("mindspore.Tensor.shape", 10),
        ("mindspore.context.set_context", 11),
        ("mode", 11),
        ("mindspore.ops.operations.Add", 12),
    ]


def test_options_of_setters_and_getters() -> None:
    text = "from mindspore import context\ncontext.set_auto_parallel_context(device_num=2)\ncontext.get_context('mode')\n"
    assert [use for use in uses(ast.parse(text)) if use.function] == [
        Use("device_num", 2, "set_auto_parallel_context"),
        Use("mode", 3, "get_context"),
    ]


def test_what_a_program_is_ready_to_miss_is_omitted() -> None:
    text = """
try:
    from mindspore.nn import Conv7d
except ImportError:
    from mindspore.nn import Conv2d
try:
    from mindspore.nn import Conv8d
except OSError:
    pass
from mindspore.nn import _private
"""
    assert names_and_lines(text) == [("mindspore.nn.Conv2d", 5), ("mindspore.nn.Conv8d", 7), ("mindspore.nn._private", 10)]


def test_complete_report(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.py").write_text(
        "from mindspore import nn, context\nnn.Conv3d(1)\ncontext.set_context(device_targt='CPU', mode=0)\n"
    )
    (tmp_path / "folder" / "a.py").write_text("import mindspore as ms\nms.nn.Conv2d(1)\n")
    (tmp_path / "folder" / "old.py").write_text("print 'hello'\n")
    assert check.run(["folder"]) == 1
    assert capsys.readouterr().out == (
        "folder/b.py:2: mindspore.nn.Conv3d is not in torchspore yet; MindSpore 2.10 has it. "
        "The nearest name here is mindspore.nn.Conv2d.\n"
        "folder/b.py:3: set_context(device_targt=…): no such option. The nearest is device_target.\n"
        "folder/old.py:1: not Python 3: Missing parentheses in call to 'print'. Did you mean print(...)?\n"
        "\nmissing, by the number of files that use it\n"
        "     1 device_targt\n     1 mindspore.nn.Conv3d\n     1 not Python 3\n"
        "\n3 missing in 2 of 3 files\n"
    )
    assert check.run(["folder/a.py"]) == 0
    assert capsys.readouterr().out == "nothing is missing in 1 file\n"


INSIDE = """
from mindspore.ops import *
from mindspore.train._utils import _cell_graph_executor, never_was
from mindspore import nn
class Step(nn.TrainOneStepWithLossScaleCell):
    def construct(self, x):
        self.mine = 1
        return self.hyper_map(self.mine), self.network
class Own(Step):
    def construct(self, x):
        return self.mine, self.hyper_map
class Descent(nn.Optimizer):
    def construct(self, g):
        return self.optim_filter, self.learning_rate
GreaterEqual()(relu(2), mine(3))
"""


def test_stars_attributes_of_bases_and_private_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.py"):
        Path(name).write_text(INSIDE if name == "a.py" else "from mindspore.ops import GreaterEqual\n")
    assert check.run(["."]) == 1
    base = "mindspore.nn.TrainOneStepWithLossScaleCell"
    out = capsys.readouterr().out
    lines = out.splitlines()
    for line in (
        "a.py:3: mindspore.train._utils._cell_graph_executor is not in torchspore yet; MindSpore 2.10 has it.",
        "a.py:3: mindspore.train._utils.never_was is not in torchspore; it is a private name, and MindSpore 2.10 is not known to have it.",
        f"a.py:8: {base}.hyper_map is not in torchspore yet; MindSpore 2.10 has it.",
        "a.py:14: mindspore.nn.Optimizer.optim_filter is not in torchspore yet; MindSpore 2.10 has it.",
        "a.py:15: mindspore.ops.GreaterEqual is not in torchspore yet; MindSpore 2.10 has it.",
        "b.py:1: mindspore.ops.GreaterEqual is not in torchspore yet; MindSpore 2.10 has it.",
    ):
        assert line in lines, out
    assert lines[lines.index("missing, by the number of files that use it") + 1] == "     2 mindspore.ops.GreaterEqual"
    assert not any("mine" in line or ".learning_rate" in line or ".network" in line for line in lines)
    assert check.run(["--json", "b.py"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["files"] == 1 and record["ranked"] == [{"name": "mindspore.ops.GreaterEqual", "files": 1}]
    (entry,) = record["missing"]
    assert (entry["file"], entry["cell"], entry["line"], entry["name"]) == ("b.py", None, 1, "mindspore.ops.GreaterEqual")


ERRORS = {
    "nothing": ([], "torchspore check: expected PATH.\n\nhint: write `torchspore check .`.\n"),
    "no such path": (
        ["nowhere"],
        "torchspore check nowhere: no such file or folder (looked in {folder}).\n\nhint: write the path of a Python file or of a folder.\n",
    ),
}


@pytest.mark.parametrize(("words", "text"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(words: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check.run(words) == 2
    assert capsys.readouterr().err == text.format(folder=tmp_path)


def test_needs_no_torch(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch was imported')\n")
    (tmp_path / "program.py").write_text("import mindspore as ms\nms.set_context(mode=0)\n")
    assert run("check", "program.py", extra={"PYTHONPATH": str(tmp_path)}).err == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_what_is_no_program_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A FIFO would be waited for without end; what nests too deep for Python is named, and the other files are read."""
    os.mkfifo(tmp_path / "a.py")
    (tmp_path / "deep.py").write_text("x = " + " + ".join(["1"] * 20_000))
    (tmp_path / "z.py").write_text("import mindspore as ms\nms.Nothing()\n")
    (tmp_path / "loop.py").symlink_to("loop.py")
    assert check.run([str(tmp_path)]) == check.MISSING
    shown = capsys.readouterr().out
    assert "deep.py:1: can't be read: it is nested too deeply" in shown and "z.py:2: mindspore.Nothing" in shown
    assert check.run([str(tmp_path / "a.py")]) == check.USAGE_ERROR
    assert "not a regular file" in capsys.readouterr().err


OLDER = """
import numpy as np
from mindspore import Tensor, ops, nn
from mindspore.ops import operations as P
from mindspore.ops import functional as F
x = Tensor(np.ones((2, 4)))
ops.dot(x1=x, x2=x)
F.logsumexp(x, axis=1)
ops.split(x, 1, 2)
x.split(axis=1, output_num=2)
y = np.ones(3)
y.clip(xmin=1, xmax=5)
ops.dropout(x, p=0.5, seed0=1)
ops.add(x=x, y=x)
np.product(np.Inf)
from numpy import float_
ops.dot(x, x)
x.split(2, axis=1)
"""


def test_calls_of_older_releases_are_named_with_their_lines() -> None:
    results = [(use.line, text) for use, text in calls.older_call_problems(ast.parse(OLDER))]
    install = 'or install NumPy 1.26: pip install "numpy==1.26.4"'
    assert results == [
        (7, "dot(...): x1= is input= today, x2= is other= today; the older name, of MindSpore 1.2.1 to 1.10, is accepted here."),
        (8, "logsumexp(...): axis= is dim= today; the older name, of MindSpore 2.0 to 2.5, is accepted here."),
        (9, "split(...): positional argument 2 was axis in MindSpore 1.8.1 to 1.10 and is split_size_or_sections today; "
            "it is read as today's."),
        (10, "Tensor.split(output_num=...): the form of MindSpore 1.8.1 to 1.10, is accepted here."),
        (12, "Tensor.clip(...): xmin= is min= today, xmax= is max= today; the older name, of MindSpore 1.3 to 1.10, is accepted here."),
        (13, "dropout(seed0=...): an argument of MindSpore 1.9 to 1.10; write seed=."),
        (14, "add(...): x= is input= today, y= is other= today; the older name is that of MindSpore 1.8.1 to 1.10."),
        (15, f"np.product was removed in NumPy 2; write np.prod, {install}"),
        (15, f"np.Inf was removed in NumPy 2; write np.inf, {install}"),
        (16, f"np.float_ was removed in NumPy 2; write np.float64, {install}"),
    ]


def test_accepted_calls_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "older.py"
    file.write_text("from mindspore import ops\nops.relu\nops.dot(x1=1, x2=2)\n")
    with listing.of(listing.FrontEnd(public={"mindspore": frozenset({"ops"}), "mindspore.ops": frozenset({"relu", "dot"})})):
        assert check.run([str(file)]) == 0
    out = capsys.readouterr().out
    assert f"{file}:3: dot(...): x1= is input= today" in out
    assert "1 call with arguments of older releases; torchspore runs it as the line says" in out


def test_names_that_numpy_removed_are_named_by_their_errors() -> None:
    for name, today in numpy_removals.REMOVED.items():
        try:
            getattr(np, name)
        except AttributeError as error:
            assert numpy_removals.hint(error) == f"write {today}, or install NumPy 1.26: {numpy_removals.COMMAND}"
    assert numpy_removals.hint(AttributeError("module 'numpy' has no attribute 'int'.")) == "write int instead of np.int"
    assert numpy_removals.hint(AttributeError("module 'numpy' has no attribute 'nothing'")) is None
    assert numpy_removals.hint(ValueError("np.Inf")) is None


INFERRED = """from mindspore import Tensor, nn, ops
x = Tensor([[1.0, 2.0]])
ops.relu(x).split(1, 2)
(x + 1).split(1, 2)
x.transpose(0, 1).split(1, 2)
ops.Abs()(x).split(1, 2)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu, self.norm = nn.ReLU(), 1
        self.relu = nn.ReLU()
    def construct(self, y, text: str):
        z = self.relu(y)
        y.split(1, 2); z.split(1, 2); text.split(1, 2)
        self.norm.split(1, 2)
        y = text
        y.split(1, 2)
def helper(y, x, value: Tensor):
    y.split(1, 2); x.split(1, 2)
    value.split(1, 2)
x.asnumpy().split(1, 2)
x.split(1, 2)
"""


def test_check_follows_tensors_through_operators_layers_and_arguments() -> None:
    problems = calls.older_call_problems(ast.parse(INFERRED))
    assert [(use.line, use.name) for use, _ in problems] == [
        (line, "mindspore.Tensor.split") for line in (3, 4, 5, 6, 14, 14, 20, 22)
    ]


EVALUATED = """from mindspore import Tensor, ops
x = Tensor([[1.0, 2.0]])
for text in ("x.split(1, 2)", "ops.add(x=x, y=x)", "a sentence (of words)", "x.split(2, axis=1)",
             "ops.split(x, 1, 2)"):
    eval(text)
"""


def test_check_reads_the_texts_that_a_program_evaluates() -> None:
    problems = calls.older_call_problems(ast.parse(EVALUATED))
    assert [(use.line, use.name) for use, _ in problems] == [(3, "mindspore.Tensor.split"), (3, "ops.add"), (4, "ops.split")]
    assert not list(calls.older_call_problems(ast.parse(EVALUATED.replace("eval", "print"))))


def test_keywords_of_unwrapped_functions_are_explained_by_their_errors() -> None:
    def failure(text: str) -> BaseException:
        try:
            exec(text, {})
        except TypeError as error:
            return error
        raise AssertionError(text)

    ours = "def add(input, other): pass\nadd.__module__ = 'torchspore.mindspore.ops.elementwise.arithmetic'\n"
    assert older_calls.hint(failure(ours + "add(x=1, y=2)")) == "x= is the name of MindSpore 1.8.1 to 1.10; write input=, or no name"
    assert older_calls.hint(failure(ours + "add(nothing=1)")) is None
    assert older_calls.hint(failure("def add(input, other): pass\nadd(x=1, y=2)")) is None          # the program's function
    assert older_calls.hint(TypeError("add() got an unexpected keyword argument 'x'")) is None
