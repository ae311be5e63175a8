"""`torchspore replay`: a step that the recorder kept runs again, from its own inputs, Parameters and random numbers."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

from torchspore.blackbox import record_reader

# A NaN that comes at step 12 of a seeded training: one row of the data has a number below -1.
PROGRAM = """
import sys, numpy as np, mindspore as ms
from mindspore import nn, ops
ms.set_seed(1)
ms.set_context(mode=int(sys.argv[1]))
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden, self.dropout, self.out = nn.Dense(4, WIDTH), nn.Dropout(p=0.2), nn.Dense(WIDTH, 1)
    def construct(self, x):
        return self.out(self.dropout(ops.log(1 + ops.relu(self.hidden(x)) + x[:, 3:])))
net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.01)
loss = nn.WithLossCell(net, nn.MSELoss())
if sys.argv[2] == "cell":
    step = nn.TrainOneStepCell(loss, optimizer).set_train()
else:
    def forward(x, y): return loss(x, y)
    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value
rows = np.random.RandomState(0)
for number in range(1, 16):
    x, y = rows.rand(8, 4).astype(np.float32), rows.rand(8, 1).astype(np.float32)
    if number == 12 and sys.argv[3] == "nan": x[3, 3] = -9
    value = step(ms.Tensor(x), ms.Tensor(y))
    if number == 12 and sys.argv[3] == "stop": raise ValueError("stop")
print("end")
"""


def recorded(run: Callable[..., Run], tmp_path: Path, *words: str) -> tuple[Run, str]:
    """Runs the program with steps kept; gives what came of it, and what the record shows."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("WIDTH", "8"))
    rdr = {"MS_RDR_ENABLE": "1", "MS_RDR_REPLAY": "1", "MS_RDR_PATH": str(tmp_path / "rec"), "TORCHSPORE_NO_NATIVE": "1"}
    ran = run("run", "train.py", *words, extra=rdr)
    return ran, record_reader.describe(record_reader.records(str(tmp_path / "rec"))[-1])


def label(kind: str) -> str:
    return "TrainOneStepCell" if kind == "cell" else "the gradient of forward"


@pytest.mark.parametrize("mode, kind", [("0", "cell"), pytest.param("1", "function", marks=pytest.mark.slow)])
def test_the_first_nan_is_recorded_and_reproduced(mode: str, kind: str, run: Callable[..., Run], tmp_path: Path) -> None:
    ran, shown = recorded(run, tmp_path, mode, kind, "nan")
    assert (ran.code, ran.out) == (0, "end\n")
    assert shown.startswith(f"likely cause: not finite: {label(kind)} gave NaN or infinity at its call 12\n")
    assert f"first_not_finite: {label(kind)}, call 12" in shown and f"last_step: {label(kind)}, call 15" in shown
    replayed = run("replay", "rec", "train.py", mode, kind, "nan")
    assert replayed.code == 0, replayed.err
    lines = replayed.out.splitlines()
    assert lines[0] == f"replay: {label(kind)}, call 12 of the recorded run, from rec/rank_0/rdr"
    assert lines[-1] == "replay: the same bit for bit"
    result = next(line for line in lines if line.startswith("first not finite: "))
    assert "/Log-op" in result and "(log) at train.py:11; its inputs were finite: " in result


@pytest.mark.parametrize("mode, kind", [("1", "cell"), *(pytest.param(*both, marks=pytest.mark.slow) for both in [
    ("0", "cell"), ("1", "function"), ("0", "function")])])
def test_the_step_before_an_error_has_the_same_bits(mode: str, kind: str, run: Callable[..., Run], tmp_path: Path) -> None:
    ran, shown = recorded(run, tmp_path, mode, kind, "stop")
    assert ran.code == 1
    assert shown.startswith("likely cause: exception: ValueError: stop at train.py:29\n")
    replayed = run("replay", "rec", "train.py", mode, kind, "stop")          # the random numbers of dropout come again too
    assert replayed.code == 0, replayed.out + replayed.err
    assert replayed.out.splitlines()[-1] == "replay: the same bit for bit"
    assert (kind == "cell") == ("Parameters after the step: 16 of 16 have the same bits" in replayed.out), replayed.out


@pytest.mark.slow
def test_another_program_is_reported(run: Callable[..., Run], tmp_path: Path) -> None:
    recorded(run, tmp_path, "1", "function", "stop")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.replace("WIDTH", "8").replace("ops.log(1 +", "ops.log(2 +"))
    other = run("replay", "rec", "train.py", "1", "function", "stop")
    assert (other.code, other.out.splitlines()[-1]) == (1, "replay: NOT the same")
    assert "OTHER BITS" in other.out
    program.write_text(PROGRAM.replace("WIDTH", "9"))
    other = run("replay", "rec", "train.py", "1", "function", "nan")
    assert other.code == 1
    assert "never called the gradient of forward with the recorded Parameters" in other.err
