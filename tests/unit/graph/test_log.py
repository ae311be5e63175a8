"""What graph mode says on stderr while it works."""
from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from running import Run

from torchspore.engine.graph.report import log

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


def test_a_long_wait_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with log.waiting("train.py:3: Net is being compiled", patience=0.01):
        time.sleep(0.2)
    assert capsys.readouterr().err == "torchspore: train.py:3: Net is being compiled\n"


def test_a_short_wait_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    with log.waiting("train.py:3: Net is being compiled", patience=0.05):
        pass
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_glog_keeps_it_back(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOG_v", "3")
    with log.waiting("train.py:3: Net is being compiled", patience=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_program_names_the_call_that_takes_long(run: Callable[..., Run]) -> None:
    found = run("run", "-c", SLOW, extra={"TORCHSPORE_PATIENCE": "2"})
    lines = [line for line in found.err.splitlines() if "is being compiled" in line]
    assert len(lines) == 1 and ": Slow is being compiled at O0" in lines[0], found.err
