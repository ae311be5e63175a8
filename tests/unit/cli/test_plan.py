"""`torchspore plan`: errors of its options, its JSON, and the comparison of other choices."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.processes import Run

from torchspore.cli import plan, plan_alternatives

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


@pytest.mark.slow
def test_alternatives_are_compared(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    result = run("plan", "--devices", "4", "--capacity", "0.012", "--alternatives", "train.py")
    assert result.code == 0, result.err
    lines = result.out.partition("other choices")[2].splitlines()[1:]
    assert len(lines) == 9 and "choices" in lines[0]
    rows = {line[3:].partition("   ")[0].strip(): line for line in lines[1:]}
    assert "(too much)" in rows["as the program says"]
    (fastest,) = [line for line in lines if line.startswith("*")]
    assert "recompute() of repeated blocks" in fastest and "(too much)" not in fastest


def fake_plan(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return a plan for a program with 4 stages and 2 micro batches: one stage, or two with one micro batch, do not fit."""
    options = dict(zip(words, [*words[1:], ""]))
    stages, micro_batches = int(options.get("--stages", 4)), int(options.get("--micro-batches", 2))
    level = any(name.endswith("OPTIMIZER_LEVEL") for name in environment)
    seconds = stages + 1 / micro_batches + ("--recompute-blocks" in words) + 0.5 * level
    memory = 1000 // stages // micro_batches
    return {"stages": stages, "micro_batches": micro_batches, "step_seconds": seconds, "exchange_seconds": 0.1, "received_bytes": 100,
            "memory_bytes": {"total": memory}, "fits": memory < 260}


def test_choices_are_combined(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[Sequence[str]] = []

    def run_plan(words: Sequence[str], env: Mapping[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(words[words.index("--json") + 1:])
        return subprocess.CompletedProcess(words, 0, f"output\n{json.dumps(fake_plan(words, env))}\nthe end\n", "")

    monkeypatch.setattr(plan_alternatives.subprocess, "run", run_plan)
    assert plan_alternatives.compare(["--devices", "4"], ["train.py"]) == 0
    assert all(words[:2] == ["--devices", "4"] and words[-1] == "train.py" for words in calls)
    lines = capsys.readouterr().out.splitlines()[3:]
    names = [line[3:].partition("   ")[0].strip() for line in lines]
    assert names[0] == "as the program says" and len(names) == 11
    assert names[6:] == ["1 stage", "2 stages", "2 stages, 1 micro batch", "2 stages, 4 micro batches", "2 stages, 8 micro batches"]
    assert [name for name, line in zip(names, lines) if line.startswith("*")] == ["2 stages, 8 micro batches"]
    assert ["(too much)" in line for line in lines[6:]] == [True, False, True, False, False]


def test_a_program_that_fails_is_not_compared(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import mindspore\n1 / 0\n")
    result = run("plan", "--devices", "4", "--alternatives", "train.py")
    assert result.code == 1 and "ZeroDivisionError" in result.err and "other choices" not in result.out


def test_micro_batches_take_less_memory(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    plain, split = plan_of(run, "train.py"), plan_of(run, "--micro-batches", "4", "train.py")
    assert (plain["micro_batches"], split["micro_batches"]) == (1, 4)
    assert split["memory_bytes"]["activations"] < 0.5 * plain["memory_bytes"]["activations"]
    assert split["received_bytes"] == pytest.approx(plain["received_bytes"], rel=0.01)
    result = run("plan", "--devices", "4", "--micro-batches", "4", "train.py", "function")
    assert result.code == 1 and "torchspore plan --micro-batches 4: expected a program with a Cell that splits the batch" in result.err


def test_a_step_that_calls_another_attribute_is_refused(run: Callable[..., Run], tmp_path: Path) -> None:
    program = PROGRAM.replace("step = nn.TrainOneStepCell(", "step = Step(").replace("net = nn.Seq", """
import weakref

class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.other = network

    def construct(self, x, y):
        return self.optimizer(ops.GradOperation(get_by_list=True)(self.other, self.weights)(x, y))

class Dead:
    pass

dead = Dead()
proxy = weakref.proxy(dead)
del dead
net = nn.Seq""", 1)
    (tmp_path / "train.py").write_text(program)
    result = run("plan", "--devices", "4", "--micro-batches", "4", "train.py")
    assert result.code == 1, result.out
    assert "torchspore plan --micro-batches 4: expected a training step that calls its attribute `network`" in result.err
    assert "FutureWarning" not in result.err


def test_the_reason_of_a_failure_is_not_its_hint() -> None:
    text = "Traceback:\n  File\nStrategyRefused: no number.\n\nhint: write another.\n"
    assert plan_alternatives._reason(text) == "StrategyRefused: no number."
    assert plan_alternatives._reason("") == "?"


PIPELINE = """
import numpy as np
import mindspore as ms
from mindspore import nn

class Block(nn.Cell):
    def __init__(self, stage):
        super().__init__()
        self.dense, self.pipeline_stage = nn.Dense(64, 64), stage

    def construct(self, x):
        return self.dense(x)

print("the program prints this")
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=4)
net = nn.SequentialCell([Block(stage) for stage in range(4)])
parts = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
step = nn.TrainOneStepCell(parts, nn.Momentum(net.trainable_params(), 0.1, 0.9))
x = ms.Tensor(np.ones((256, 64), np.float32))
step(x, x)
"""


def test_fewer_stages_hold_more_and_wait_less(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PIPELINE)
    plans = [plan_of(run, "train.py"), *(plan_of(run, "--stages", count, "train.py") for count in ("2", "1"))]
    assert [(plan["stages"], plan["micro_batches"]) for plan in plans] == [(4, 2), (2, 2), (1, 2)]
    parameters = [plan["memory_bytes"]["parameters"] for plan in plans]
    assert parameters[0] < parameters[1] < parameters[2]
    assert all(plan["exchange_seconds"] > 0 for plan in plans)
    result = run("plan", "--devices", "4", "--stages", "8", "train.py")
    assert result.code == 1 and "--stages 8: expected a number that divides the 4 devices and the program's pipeline_stages" in result.err


@pytest.mark.slow
def test_stages_and_micro_batches_are_compared(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PIPELINE)
    result = run("plan", "--devices", "4", "--alternatives", "train.py")
    assert result.code == 0, result.err
    lines = result.out.partition("other choices")[2].splitlines()[2:]
    names = [line[3:].partition("   ")[0].strip() for line in lines]
    assert [name.split(", ")[-1] for name in names[6:]] == [
        "1 stage", "2 stages", "1 micro batch", "4 micro batches", "8 micro batches",
    ]
    assert "1 stage, " in names[8] and not any("fails" in line for line in lines)
