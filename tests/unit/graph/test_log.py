"""What graph mode says on stderr while it works."""
from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from support.processes import Run

from torchspore.base import progress

SLOW = """
import time
import mindspore as ms
from mindspore import nn, ops

class Slow(nn.Cell):
    def construct(self, x):
        for _ in range(6000):
            x = ops.sin(x)
        return x

ms.set_context(mode=ms.GRAPH_MODE)
net, x = Slow(), ops.ones((2,))
net(x)
print("first")
net(x)
"""


def test_a_long_wait_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.waiting("train.py:3: Net", "is being compiled", patience=0.01):
        time.sleep(0.2)
    assert capsys.readouterr().err == "torchspore: train.py:3: Net is being compiled\n"


def test_a_short_wait_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.waiting("train.py:3: Net", "is being compiled", patience=0.05):
        pass
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_glog_keeps_it_back(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOG_v", "3")
    with progress.waiting("train.py:3: Net", "is being compiled", patience=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_longer_waits_name_the_activity(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS", (0.1, 0.2, 0.3))
    with progress.waiting("train.py:3: Net", "is being compiled", patience=0.01):
        time.sleep(0.15)
        progress.note("compiles kernel 2 of 9.")
        time.sleep(0.5)
    progress.note("nothing that anybody waits for")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "torchspore: train.py:3: Net is being compiled", "torchspore: train.py:3: Net, after 0 s: is being compiled",
        "torchspore: train.py:3: Net, after 0 s: compiles kernel 2 of 9.",
    ]
    assert len(lines) in (4, 5)                          # at 0.3 and 0.61 seconds


HALF = """
import time
import mindspore as ms
from mindspore import nn, ops

class Slow(nn.Cell):
    def construct(self, x, y):
        return ops.matmul(x.astype(ms.float16), y.astype(ms.float16)) + 1

ms.set_context(mode=ms.GRAPH_MODE)
Slow()(ops.ones((2, 3)), ops.ones((3, 2)))
"""


def test_the_first_run_says_that_half_precision_is_slow(run: Callable[..., Run]) -> None:
    output = run("run", "-c", f"import torchspore.engine.formulas.half_precision as h; h.is_fast = lambda dtype: False\n{HALF}",
               extra={"TORCHSPORE_PATIENCE": "0"}).err
    assert " operators runs for the first time; 4 results are float16, which is slow on this CPU." in output
    assert "Slow is being compiled at O0" in output


@pytest.mark.slow
def test_a_program_names_the_call_that_takes_long(run: Callable[..., Run]) -> None:
    result = run("run", "-c", SLOW, extra={"TORCHSPORE_PATIENCE": "2"})
    lines = [line for line in result.err.splitlines() if "is being compiled" in line]
    assert len(lines) == 1 and ": Slow is being compiled at O0" in lines[0], result.err
