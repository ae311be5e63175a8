"""`enable_profiling` and `profiling_options`, each seen in the files that it leaves."""
from __future__ import annotations

import csv
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from support.processes import Run

PROGRAM = """
import sys, json
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor
ms.set_context(mode=int(sys.argv[1]))
options = sys.argv[2] if sys.argv[2].startswith("{") else sys.argv[2]
asked = {"enable_profiling": sys.argv[3] == "on", "profiling_options": options}
for part in [asked] if sys.argv[1] == "0" else [{name: value} for name, value in asked.items()]:
    ms.set_context(**part)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(8, 8), nn.Dense(8, 4)
    def construct(self, x):
        return self.second(self.first(x))
net = Net()
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
step.set_train()
for _ in range(3):
    step(Tensor(np.ones((4, 8), np.float32)), Tensor(np.ones((4, 4), np.float32)))
print(ms.get_context("profiling_options") == options)
if len(sys.argv) > 4:
    ms.set_context(enable_profiling=False)
    import os
    print(sorted(os.listdir("out/profiler")))
"""


@pytest.mark.parametrize("mode", [0, 1], ids=["graph", "pynative"])
def test_all_parts(run: Callable[..., Run], tmp_path: Path, mode: int) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    options = json.dumps({"result_path": "out", "training_trace": "on", "task_trace": "on", "op_trace": "on", "aicpu": "on",
                          "fp_point": "network-WithLossCell/_backbone-Net/second-Dense", "bp_point": "MatMull", "aic_metrics": "Memory"})
    result = run("explain", "train.py", str(mode), options, "on")
    assert result.code == 0 and result.out.startswith("True\n"), result.err
    assert result.err.count("UserWarning") == 2
    assert "UserWarning: profiling_options: bp_point='MatMull' has no effect: no operator named 'MatMull' ran; the nearest" in result.err
    folder = tmp_path / "out" / "profiler"
    assert {path.name for path in folder.iterdir()} >= {
        "step_trace_raw_0_detail_time.csv", "step_trace_point_info_0.json", "output_op_compute_time_0.txt",
        "aicore_intermediate_0_type.csv",
        "aicore_intermediate_0_detail.csv", "timeline_display_0.json", "memory_usage_0.csv", "aicpu_intermediate_0.csv",
    }
    assert "main_mem_read_bw(GB/s)" in (folder / "aicore_intermediate_0_detail.csv").read_text()
    table = {line.split()[0]: line for line in result.out.splitlines() if line.strip()}
    assert "applied: training_trace, task_trace, op_trace, aicpu_trace: written to out/profiler" in table["enable_profiling"]
    assert "bytes of an operator's inputs" in result.out and "files go to out/profiler" in result.out
    assert "bp_point no effect here: no operator named 'MatMull' ran; the nearest names are " in table["profiling_options"]
    assert "fp_point no effect here: no operator named 'network-WithLossCell/_backbone-Net/second-Dense' ran" in table["profiling_options"]


@pytest.mark.parametrize("mode", [0, 1], ids=["graph", "pynative"])
def test_the_points_divide_a_step(run: Callable[..., Run], tmp_path: Path, mode: int) -> None:
    """The forward pass begins where the named operator does, and the gradient ends with the other one."""
    (tmp_path / "train.py").write_text(PROGRAM)
    first, last = ("Square", "MatMul") if mode else ("Square", "DenseGrad")
    options = json.dumps({"output": "out", "training_trace": "on", "task_trace": "on", "fp_point": first, "bp_point": last})
    result = run("run", "train.py", str(mode), options, "on", "and off")
    assert result.code == 0, result.err
    assert "step_trace_raw_0_detail_time.csv" in result.out                     # written when it is switched off
    folder = tmp_path / "out" / "profiler"
    assert not (folder / "aicpu_intermediate_0.csv").exists()
    assert json.loads((folder / "step_trace_point_info_0.json").read_text()) == {"fp_start": first, "bp_end": last}
    rows = list(csv.DictReader((folder / "step_trace_raw_0_detail_time.csv").read_text().splitlines()))
    assert [row["step_num"] for row in rows] == ["1", "2", "3", "-"]
    ran = [(event["args"]["op_type"], Decimal(event["ts"]), Decimal(event["dur"]))
           for event in json.loads((folder / "timeline_display_0.json").read_text()) if event.get("args", {}).get("type") == "HostCpuOps"]
    for row in rows[:-1]:
        start, end = (Decimal(row[name]) / 100 for name in ("start_point", "end_point"))             # ticks of 10 ns, in microseconds
        inside = [event for event in ran if start <= event[1] < end]
        assert abs(Decimal(row["fp_point"]) / 100 - min(at for kind, at, _ in inside if kind == first)) <= Decimal("0.01")
        assert abs(Decimal(row["bp_point"]) / 100 - max(at + span for kind, at, span in inside if kind == last)) <= Decimal("0.01")


def test_off_asks_for_the_times_of_steps_alone(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    result = run("explain", "train.py", "1", "op_trace:task_trace", "off")
    assert result.code == 0 and "only training_trace is collected" in result.out
    points = json.loads((tmp_path / "data" / "profiler" / "step_trace_point_info_0.json").read_text())
    assert "first-Dense" in points["fp_start"] and points["bp_end"].startswith("Gradients/Default/")
    assert {path.name for path in (tmp_path / "data" / "profiler").iterdir()} == {
        "step_trace_raw_0_detail_time.csv", "step_trace_point_info_0.json", "step_trace_split_0.csv",
    }


def test_a_variable_asks_for_a_profile(run: Callable[..., Run], tmp_path: Path) -> None:
    program = "from mindspore import ops, EnvProfiler; ops.exp(ops.ones((3,))); print(EnvProfiler.__name__)"
    options = '{"start": true, "output_path": "seen", "activities": ["CPU"], "profile_memry": true, "aic_metrics": "x"}'
    result = run("run", "-c", program, extra={"MS_PROFILER_OPTIONS": options})
    assert result.code == 0 and result.out == "EnvProfiler\n"
    assert "there is no 'profile_memry'; it is ignored. Did you mean profile_memory?" in result.err and "aic_metrics='x'" in result.err
    (table,) = tmp_path.glob("seen/*_ascend_ms/FRAMEWORK/cpu_op_type_info_0.csv")
    assert "Exp,1," in table.read_text()
    result = run("run", "-c", "import mindspore; print('ran')", extra={"MS_PROFILER_OPTIONS": "[" * 9000})
    assert (result.code, result.out) == (0, "ran\n") and "nothing is profiled" in result.err


@pytest.mark.parametrize(("option", "hint"), [
    ('{"training_trce": "on"}', "there is no 'training_trce' in it; did you mean 'training_trace'"),
    ("traning_trace", "write profiling_options='training_trace'"),
    ('{"output": ', "the text is not JSON"),
    ('{"aicpu": "on", "aicpu_trace": "off"}', "aicpu and aicpu_trace are two names of one member; write it once"),
    ('{"ai_core_metrics": "Memry"}', """hint: write profiling_options='{"ai_core_metrics": "Memory"}'."""),
])
def test_an_unknown_option_is_reported_with_the_nearest(option: str, hint: str) -> None:
    import mindspore as ms

    with pytest.raises(ValueError, match="expected ") as error:
        ms.set_context(profiling_options=option)
    assert hint in str(error.value)
