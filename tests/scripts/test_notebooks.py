"""Notebooks as programs: `torchspore run` and `check` read them, and a notebook explains itself."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

import torchspore

RunFixture = Callable[..., Run]


def notebook(path: Path, *cells: str) -> Path:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "metadata": {}, "outputs": []} for cell in cells]
    path.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Title"]}, *code]}), encoding="utf-8")
    return path


NET = """%matplotlib inline
import mindspore as ms
from mindspore import nn, ops
ms.set_context(mode=ms.GRAPH_MODE)
class Net(nn.Cell):
    def construct(self, x):
        if x.sum() > 3:
            return x * 2
        return x
"""


def test_cells_run_in_order_and_as_graphs(run: RunFixture, tmp_path: Path) -> None:
    timed = "%%time\nnet = Net()\ntext = '''\n%not a magic\n'''"
    notebook(tmp_path / "nb.ipynb", NET, "", timed, "%time out = net(ms.Tensor([2.0, 3.0]))\nout.asnumpy().tolist()")
    assert run("run", "nb.ipynb") == Run(0, "[4.0, 6.0]\n", "")


def test_an_error_names_the_cell_and_its_line(run: RunFixture, tmp_path: Path) -> None:
    notebook(tmp_path / "nb.ipynb", NET, "x = 1\nops.matmul(ms.Tensor([[1.0]]), ms.Tensor([[1.0], [2.0]]))")
    ended = run("run", "nb.ipynb")
    assert ended.code == 1 and ended.err.splitlines()[:3] == [
        "Traceback (most recent call last):", '  File "nb.ipynb, cell 2", line 2, in <module>',
        "    ops.matmul(ms.Tensor([[1.0]]), ms.Tensor([[1.0], [2.0]]))",
    ]
    assert "nb.ipynb, cell 2:2: matmul(" in ended.err


def test_what_goes_to_a_shell_is_refused_before_anything_runs(run: RunFixture, tmp_path: Path) -> None:
    notebook(tmp_path / "nb.ipynb", "print('ran')", "x = 1\n!pip install mindspore", "%%bash\nls")
    assert run("run", "nb.ipynb") == Run(2, "", (
        "nb.ipynb, cell 2, line 2: !pip belongs to the notebook; torchspore runs only Python (1 more below it).\n\n"
        "hint: remove that line, and do its work before the run.\n"
    ))


def test_what_is_no_notebook_is_refused(run: RunFixture, tmp_path: Path) -> None:
    (tmp_path / "nb.ipynb").write_text("[1]")
    assert run("run", "nb.ipynb") == Run(2, "", "torchspore run nb.ipynb: not a notebook: it has no cells.\n")


def test_check_reads_the_cells_of_a_notebook(run: RunFixture, tmp_path: Path) -> None:
    notebook(tmp_path / "nb.ipynb", "!pip install mindspore\nfrom mindspore import nn", "x = 1\nnn.OptTFTWrapper(1)")
    ended = run("check", "nb.ipynb")
    assert ended.code == 1 and ended.out.startswith("nb.ipynb, cell 2, line 2: mindspore.nn.OptTFTWrapper is not in torchspore yet")


def test_explain_takes_the_device(run: RunFixture, tmp_path: Path) -> None:
    text = "import mindspore as ms\nms.set_context(device_target='Ascend')\nprint(ms.get_context('device_target'))\n"
    (tmp_path / "train.py").write_text(text)
    ended = run("explain", "--device", "CPU", "train.py")
    assert ended.code == 0 and ended.out.startswith("CPU\n"), ended
    assert "TORCHSPORE_DEVICE" in ended.out


class Shell:
    """What of IPython's shell an extension uses."""

    def __init__(self) -> None:
        self.magics: dict[tuple[str, str], Callable[..., object]] = {}
        self.cells: list[str] = []

    def register_magic_function(self, function: Callable[..., object], magic_kind: str = "line", magic_name: str | None = None) -> None:
        self.magics[magic_kind, magic_name or function.__name__] = function

    def run_cell(self, text: str) -> None:
        self.cells.append(text)


def test_a_notebook_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    torchspore.load_ipython_extension(shell)
    (magic,) = shell.magics.values()
    assert list(shell.magics) == [("line_cell", "explain")]
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE)
    magic("", "x = 1")
    assert shell.cells == ["x = 1"]
    assert "operators run as Python reaches them" in capsys.readouterr().out
    magic("")
    assert len(shell.cells) == 1 and "mode" in capsys.readouterr().out
