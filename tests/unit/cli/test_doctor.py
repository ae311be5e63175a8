"""`torchspore env`, `torchspore doctor` and the report of a run: what they say, and that they notice what is wrong."""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest
from support import wrong_kernels
from support.processes import Run

from torchspore.cli import doctor, env

TRAINING = """
import mindspore as ms, numpy as np
from mindspore import nn, Tensor
ms.set_context(mode={mode}, device_id=3)
net = nn.Dense(4, 2)
{loop}
print([float(value) for value in losses])
{end}
"""
CELL = """
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
step.set_train()
losses = [step(Tensor(np.ones((8, 4), np.float32)), Tensor(np.ones((8, 2), np.float32))).asnumpy() for _ in range(5)]
"""
HAND = """
optimizer = nn.Adam(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
losses = []
for _ in range(5):
    loss, found = gradient(Tensor(np.ones((8, 4), np.float32)))
    optimizer(found)
    losses.append(loss.asnumpy())
"""


def test_facts_to_paste(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_TEST_TOKEN", "do not tell")
    monkeypatch.setenv("MS_DEV_THING", "tell\x1b[2J")
    assert env.run(["--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["versions"]["acts as MindSpore"] == "2.10.0" and record["versions"]["Python is"] == sys.executable
    assert record["environment"]["MS_DEV_THING"] == "tell\x1b[2J" and "MS_TEST_TOKEN" not in record["environment"]
    assert env.run([]) == 0
    output = capsys.readouterr().out
    assert "\x1b" not in output and "do not tell" not in output and re.search(r"torch +\d", output)


def test_a_right_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("✓ CPU") and line.endswith("the result is correct") for line in lines) == 5
    assert lines[-1] == "No problems found."


def test_an_error_has_a_cross_and_one_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))     # Inductor's first use would create its folder below TMPDIR
    monkeypatch.setenv("TMPDIR", "/proc/nowhere")
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    with wrong_kernels.Wrong("convolution"):
        assert doctor.run([]) == 1
    lines = capsys.readouterr().out.splitlines()
    crosses = [index for index, line in enumerate(lines) if line.startswith("✗")]
    assert [lines[cross].partition(":")[0] for cross in crosses] == [f"✗ CPU ({__import__('os').cpu_count()} cores)", "✗ C++ compiler",
                                                                    "✗ folder for temporary files"]
    assert "a convolution is" in lines[crosses[0]] and all(lines[cross + 1].startswith("    to fix it: ") for cross in crosses)
    with wrong_kernels.Wrong("convolution"):
        ms.run_check()
    assert "MindSpore running check failed.\na convolution is" in capsys.readouterr().out


@pytest.mark.parametrize(("mode", "loop", "end", "code"), [
    (0, CELL, "", 0), (1, HAND, "raise ValueError('<b>wrong</b>')", 1),
], ids=["graph", "pynative"])
def test_the_report_of_a_run(run: Callable[..., Run], tmp_path: Path, mode: int, loop: str, end: str, code: int) -> None:
    (tmp_path / "train.py").write_text(TRAINING.format(mode=mode, loop=loop, end=end))
    result = run("run", "--report", "out/report", "train.py", "a b")
    assert result.code == code and "torchspore: the report is out/report/report.html" in result.err
    text = (tmp_path / "out" / "report" / "report.html").read_text()
    data: dict[str, Any] = json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))  # type: ignore[union-attr]
    assert [value for _, value in data["losses"]] == pytest.approx(json.loads(result.out.splitlines()[0]))
    assert data["about"] == "torchspore run --report out/report train.py 'a b'" and data["code"] == code and data["peak"] > 50 << 20
    row = {"option": "device_id", "value": "3", "source": "train.py:4", "outcome": "no effect here: the CPU has no index"}
    assert row in data["options"]
    assert ("<b>wrong</b>" in data["error"]) == bool(code) and "<b>" not in text


def test_a_folder_that_cannot_be_created(run: Callable[..., Run]) -> None:
    result = run("run", "--report", "/proc/no", "-c", "print('ran')")
    assert result.code == 2 and result.out == "" and "the folder can't be created" in result.err
