"""`torchspore plan`: errors of its options, its JSON, and the comparison of memory switches."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes import Run

from torchspore.cli import plan

ERRORS = {
    "--devices 5000": ("--devices 5000: expected a number from 1 to 4096", "--devices 8"),
    "--html none/plan.html": ("--html none/plan.html: expected a file in an existing folder", "--html plan.html"),
    "--latency fast": ("--latency fast: expected a number above 0", "--latency 50"),
    "--wide 3": ("--wide: no such option", "the program's own options after its name"),
    "--devces 3": ("--devces: no such option", "--devices"),
    "--machine h1": (
        "--machine h1: expected h100, a100, ascend910, measured (after torchspore calibrate), or a JSON file", "--machine h100",
    ),
}


@pytest.mark.parametrize("words", ERRORS)
def test_an_option_is_refused(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHSPORE_PLAN", raising=False)
    assert plan.run([*words.split(), "x.py"]) == 2
    problem, hint = ERRORS[words]
    assert capsys.readouterr().err == f"torchspore plan {problem}.\n\nhint: write {hint}.\n"


PROGRAM = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops

class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm((64,)), nn.SequentialCell(nn.Dense(64, 256), nn.GELU(), nn.Dense(256, 64))

    def construct(self, x):
        return x + self.inner(self.norm(x))

print("the program prints this")
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
net = nn.SequentialCell([Block() for _ in range(4)])
optimizer = nn.Adam(net.trainable_params(), 1e-3)
if "function" in sys.argv:
    gradient = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x, y):
        loss, gradients = gradient(x, y)
        return ops.depend(loss, optimizer(gradients))
else:
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
x = ms.Tensor(np.ones((4096, 64), np.float32))
step(x, x)
"""


def plan_of(run: Callable[..., Run], *options: str) -> dict[str, Any]:
    result = run("plan", "--devices", "4", "--json", *options)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "the program prints this"
    return json.loads(lines[-1])


@pytest.mark.parametrize("words", [(), ("function",)])
def test_recomputed_blocks_take_less_memory_and_more_time(words: tuple[str, ...], run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    plain, recomputed = plan_of(run, "train.py", *words), plan_of(run, "--recompute-blocks", "train.py", *words)
    assert plain["devices"] == 4 and plain["fits"] and plain["received_bytes"] == recomputed["received_bytes"]
    assert recomputed["memory_bytes"]["activations"] < 0.7 * plain["memory_bytes"]["activations"]
    assert recomputed["computing_seconds"] > plain["computing_seconds"]
    # four blocks, and not the layers inside them
    assert plain["memory_bytes"]["total"] == sum(size for kind, size in plain["memory_bytes"].items() if kind != "total")


def test_alternatives_are_compared(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    result = run("plan", "--devices", "4", "--capacity", "0.012", "--alternatives", "train.py")
    assert result.code == 0, result.err
    lines = result.out.partition("other memory switches")[2].splitlines()[1:]
    assert len(lines) == 7 and "switches" in lines[0]
    rows = {line[3:].partition("   ")[0].strip(): line for line in lines[1:]}
    assert "(too much)" in rows["as the program says"]
    (fastest,) = [line for line in lines if line.startswith("*")]
    assert "recompute() of repeated blocks" in fastest and "(too much)" not in fastest


def test_a_program_that_fails_is_not_compared(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import mindspore\n1 / 0\n")
    result = run("plan", "--devices", "4", "--alternatives", "train.py")
    assert result.code == 1 and "ZeroDivisionError" in result.err and "other memory switches" not in result.out
