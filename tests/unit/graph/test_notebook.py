"""Code typed at a prompt or in a notebook cell becomes graphs; a function that is defined anew is captured again."""
from __future__ import annotations

import linecache
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest

from torchspore.graph import dispatch

CELLS = 0


def typed(source: str, scope: dict[str, Any]) -> None:
    """Runs a notebook cell: its source is only in linecache, as IPython keeps it."""
    global CELLS
    CELLS += 1
    name = f"<ipython-input-{CELLS}-0123456789ab>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), scope)


@pytest.fixture(autouse=True)
def pynative_after():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


HEAD = """
import mindspore as ms
from mindspore import nn, ops, Tensor
ms.set_context(mode=ms.GRAPH_MODE)
"""
NET = """
def helper(x):
    return x * 2

class Net(nn.Cell):
    def construct(self, x):
        y = helper(x)
        if y.sum() > 10:
            y = y - 1
        return y
net = Net()
"""


def test_a_helper_that_is_defined_anew_is_recaptured() -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    typed(HEAD, scope)
    typed(NET, scope)
    for value, expected in ((1.0, 2.0), (30.0, 59.0)):
        typed(f"out = float(net(Tensor([{value}])).asnumpy()[0])", scope)
        assert scope["out"] == expected
    assert len(dispatch.graphs(scope["net"])) == 1, "a branch on a Tensor, in one graph"
    typed("def helper(x):\n    return x * 3\n", scope)
    typed("out = float(net(Tensor([1.0])).asnumpy()[0])", scope)
    assert scope["out"] == 3.0
    assert len(dispatch.graphs(scope["net"])) == 2


def test_a_print_in_a_cell_splits_it(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    typed(HEAD, scope)
    typed(NET.replace("        return y\n", "        print('seen')\n        return y * 2\n"), scope)
    for _ in range(3):
        typed("out = float(net(Tensor([1.0])).asnumpy()[0])", scope)
        assert scope["out"] == 4.0
    assert capsys.readouterr().out == "seen\n" * 3


def test_code_at_pythons_prompt_runs(tmp_path: Path) -> None:
    lines = (HEAD + NET).replace("\n\n", "\n").replace("net = Net()", "\nnet = Net()").replace("def helper", "\ndef helper").replace(
        "class Net", "\nclass Net")
    ended = subprocess.run(
        [sys.executable, "-q", "-i", "-c", "import torchspore; torchspore.install()"], cwd=tmp_path, text=True, capture_output=True,
        input=lines + "\nprint(net(Tensor([30.0])))\n", timeout=120,
    )
    assert "[59.]" in ended.stdout, ended.stderr


def test_the_extension_answers_import_mindspore(tmp_path: Path) -> None:
    code = "import torchspore; torchspore.load_ipython_extension(None); import mindspore; print(mindspore.__name__)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, timeout=120)
    assert ended.stdout.strip().endswith("mindspore"), ended.stderr
