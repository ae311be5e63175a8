"""What a profiler writes: MindSpore's files with its columns, and where a step's time goes, in both modes."""
from __future__ import annotations

import builtins
import csv
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.profiler import (
    AicoreMetrics,
    DynamicProfilerMonitor,
    Profiler,
    ProfilerAction,
    ProfilerLevel,
    _ExperimentalConfig,
    mstx,
    profile,
    schedule,
    tensorboard_trace_handler,
)

from torchspore.engine.tensors import tensor as engine
from torchspore.engine.torch_internals import torch_private
from torchspore.observe.profiling import instrumentation

DETAIL = ["op_side", "op_type", "op_name", "full_op_name", "op_occurrences", "op_total_time(ms)", "op_avg_time(ms)", "total_proportion",
          "subgraph", "pid"]
TYPES = ["op_type", "type_occurrences", "execution_frequency(per-step)", "total_compute_time", "avg_time(ms)", "percent"]
STEPS = ["step_num", "start_point", "end_point", "total", "fp_point", "bp_point", "iteration_interval", "fp_and_bp", "tail"]


class Net(nn.Cell):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.relu = nn.Dense(8, 4), nn.ReLU()

    def construct(self, x: Any) -> Any:
        return self.relu(self.fc(x))


def slow_rows() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for _ in range(3):
        time.sleep(0.05)
        yield np.ones((16, 8), np.float32), np.zeros(16, np.int32)


def trained(folder: Path, **arguments: Any) -> Profiler:
    """A profile of three steps whose data are slow."""
    net = Net()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    watched = Profiler(output_path=str(folder), start_profile=False, **arguments)
    watched.start()
    model.train(1, ds.GeneratorDataset(slow_rows, ["x", "y"], shuffle=False), dataset_sink_mode=False)
    watched.analyse()
    return watched


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def head(path: Path) -> list[str]:
    return path.read_text().splitlines()[0].split(",")


def test_the_files_of_a_training(mode: int, tmp_path: Path) -> None:
    plain = nn.Cell.__call__
    trained(tmp_path, profile_memory=True, data_process=True, aic_metrics=AicoreMetrics.ArithmeticUtilization)
    assert nn.Cell.__call__ is plain and engine.active == 0                     # nothing stays behind
    (trace_folder,) = tmp_path.glob("*_ascend_ms")
    framework, output, older = trace_folder / "FRAMEWORK", trace_folder / "ASCEND_PROFILER_OUTPUT", tmp_path / "profiler"
    assert head(framework / "cpu_op_detail_info_0.csv") == DETAIL and head(framework / "cpu_op_type_info_0.csv") == TYPES
    results = {row["full_op_name"]: row for row in rows(framework / "cpu_op_detail_info_0.csv")}
    dense = [row for name, row in results.items() if "_backbone-Net/fc-Dense/" in name and row["subgraph"] == "Default"]
    assert dense and all(row["op_occurrences"] == "3" for row in dense)
    assert any(name.startswith("Gradients/Default/network-WithLossCell/_backbone-Net/fc-Dense/Grad_") for name in results)
    assert sum(float(row["total_proportion"]) for row in results.values()) == pytest.approx(1, abs=1e-3)
    # The products: (16,8)x(8,4) forward, and one of the same size for the weights' gradient (the data's is not asked for).
    counted = {row["Phase"]: int(row["FLOPs"]) for row in rows(output / "flops.csv")}
    assert counted == {"forward": 3 * 2 * 16 * 8 * 4, "backward": 3 * 2 * 16 * 8 * 4}
    assert any(row["mac_ratio"] for row in rows(output / "aicore_metrics.csv"))
    split = rows(older / "step_trace_split_0.csv")
    assert [row["step_num"] for row in split] == ["1", "2", "3"]
    for row in split:
        parts = [float(row[f"{phase}(ms)"]) for phase in ("data", "forward", "backward", "sync", "update", "other")]
        assert sum(parts) == pytest.approx(float(row["total(ms)"]), rel=1e-3)
        assert all(part > 0 for part in (parts[0], parts[1], parts[2], parts[4])) and parts[3] == 0
    assert float(split[0]["data(ms)"]) > 40                                     # the first row takes 50 ms, nothing runs beside it
    ticks = rows(older / "step_trace_raw_0_detail_time.csv")
    assert head(older / "step_trace_raw_0_detail_time.csv") == STEPS and ticks[-1]["step_num"] == "-"
    for row in ticks[:-1]:
        assert int(row["iteration_interval"]) + int(row["fp_and_bp"]) + int(row["tail"]) == pytest.approx(int(row["total"]), abs=3)
    assert len(rows(older / "aicpu_intermediate_0.csv")) >= 3
    assert head(output / "memory_record.csv")[:3] == ["Component", "Timestamp(us)", "Total Allocated(MB)"]
    trace = json.loads((output / "trace_view.json").read_text())
    kinds = {event["ph"] for event in trace}
    assert kinds == {"M", "X", "C"} and all(isinstance(event["ts"], str) for event in trace if event["ph"] == "X")
    assert "mac_ratio" in json.loads((trace_folder / "profiler_metadata.json").read_text())["aic_metrics"]


def test_a_loop_by_hand_has_steps_too(mode: int, tmp_path: Path) -> None:
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
    x = Tensor(np.ones((4, 8), np.float32))
    with profile(record_shapes=True, on_trace_ready=tensorboard_trace_handler(str(tmp_path), "hand", async_mode=False)):
        for _ in range(4):
            _, result = gradient(x)
            optimizer(result)
    split = rows(tmp_path / "profiler" / "step_trace_split_0.csv")
    assert len(split) == 4 and all(float(row["backward(ms)"]) > 0 < float(row["update(ms)"]) for row in split)


def test_a_schedule_with_a_warm_up(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    assert [plan(step).name for step in range(5)] == ["NONE", "WARM_UP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    assert plan(2) is ProfilerAction.RECORD
    x = Tensor(np.ones((3,), np.float32))
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me")) as watched:
        for _ in range(6):
            ops.exp(x)
            watched.step()
    (trace_folder,) = tmp_path.glob("me_*")
    (result,) = rows(trace_folder / "FRAMEWORK" / "cpu_op_type_info_0.csv")
    assert (result["op_type"], result["type_occurrences"]) == ("Exp", "2")


def test_a_folder_that_cannot_be_written_ends_no_training(capsys: pytest.CaptureFixture[str]) -> None:
    with profile(on_trace_ready=tensorboard_trace_handler("/proc/no")):
        ops.exp(ops.ones((2,)))
    assert "the profile can't be written to /proc/no" in capsys.readouterr().err


@pytest.mark.parametrize("options", ["sync", "async"])
def test_a_full_disk_ends_no_training(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace = os.replace

    def full(source: str, target: Path) -> None:
        if Path(target).name != "trace_view.json":
            raise OSError(28, "No space left on device")
        replace(source, target)

    watched = Profiler(output_path=str(tmp_path / "profile"))
    ops.exp(ops.ones((2,)))
    monkeypatch.setattr(os, "replace", full)
    watched.analyse(mode=options)
    for thread in [entry for entry in threading.enumerate() if entry.name == "torchspore-profile"]:
        thread.join()
    output = capsys.readouterr().err
    assert output.count(f"the profile can't be written to {tmp_path / 'profile'} (No space left on device)") == 1
    assert [json.loads(path.read_text()) for path in tmp_path.rglob("trace_view.json")]


@pytest.mark.skipif(not torch_private.TELLS_PYTHON, reason="torch 2.11 notes no calls of Python")
def test_the_users_lines_appear_next_to_operators(tmp_path: Path) -> None:
    with profile(with_stack=True, on_trace_ready=tensorboard_trace_handler(str(tmp_path))):
        ops.exp(ops.ones((2,)))
    (file,) = tmp_path.rglob("trace_view.json")
    (result,) = [event["args"] for event in json.loads(file.read_text()) if event["name"].endswith("Exp-op0")]
    assert "test_profiler.py(" in result["Call stack"].splitlines()[-1]


def test_what_is_chosen_is_written(tmp_path: Path) -> None:
    watched = Profiler(output_path=str(tmp_path), optypes_not_deal="Exp", is_show_op_path=False, timeline_limit=1,
                       experimental_config=_ExperimentalConfig(ProfilerLevel.Level1, mstx=True, mstx_domain_exclude=["b"],
                                                               data_simplification=False))
    mstx.mark("one", domain="a")
    mstx.mark("two", domain="b")
    ops.exp(ops.ones((2, 2)))
    ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))
    watched.stop()
    watched.analyse(pretty=True, mode="sync")
    (trace_folder,) = tmp_path.glob("*_ascend_ms")
    kinds = [row["op_type"] for row in rows(trace_folder / "FRAMEWORK" / "cpu_op_type_info_0.csv")]
    assert "MatMul" in kinds and "Exp" not in kinds
    names = {event["name"] for event in json.loads((trace_folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())}
    assert "a: one" in names and "b: two" not in names
    assert (trace_folder / "PROF_torch" / "trace.json").exists()
    assert (trace_folder / "ASCEND_PROFILER_OUTPUT" / "communication.csv").exists()
    assert all("/" not in row["full_op_name"] for row in rows(tmp_path / "profiler" / "aicore_intermediate_0_detail.csv"))
    Profiler.offline_analyse(str(trace_folder))
    assert "trace_view.html" in {path.name for path in trace_folder.rglob("*.html")}
    with pytest.raises(ValueError, match=r"offline_analyse.*trace_view\.json"):
        Profiler.offline_analyse(str(tmp_path / "nowhere"))


def test_one_profiler_at_a_time(tmp_path: Path) -> None:
    watched = Profiler(output_path=str(tmp_path))
    try:
        with pytest.raises(RuntimeError, match="one at a time"):
            Profiler()
    finally:
        watched.stop()


def test_a_full_watch_ends_by_itself() -> None:
    from torchspore.observe.profiling import session

    calls: list[bool] = []
    recorder, net = session.ProfilerSession(most=5, full=lambda: calls.append(True)), Net()
    recorder.start()
    for _ in range(4):
        net(ops.ones((2, 8)))
    assert calls == [True] and recorder.is_full and nn.Cell.__call__.__name__ == "__call__" and not hasattr(nn.Cell.__call__, "__wrapped__")
    recorder.stop()
    assert "ended automatically" in recorder.read().notes[-1]


def test_nothing_is_there_while_nobody_watches() -> None:
    points = instrumentation.Points(lambda: None)
    before = {name: vars(nn.Cell)[name] for name in ("__call__",)}
    points.begin()
    assert vars(nn.Cell)["__call__"] is not before["__call__"] and engine.active == 1
    points.end()
    assert vars(nn.Cell)["__call__"] is before["__call__"] and engine.active == 0


def test_steps_that_a_file_names_are_profiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration, output = tmp_path / "cfg", tmp_path / "out"
    monitor = DynamicProfilerMonitor(str(configuration), str(output), poll_interval=0)
    file = configuration / "profiler_config.json"
    assert json.loads(file.read_text()) == {"start_step": -1, "stop_step": -1}
    x = ops.ones((2, 2))
    for step in range(1, 9):
        if step == 2:
            settings = {"start_step": 3, "stop_step": 4, "profiler_level": "Level0", "activities": ["CPU"], "aic_metrics": 1}
            file.write_text(json.dumps(settings))
        if step == 6:
            file.write_text("[" * 100_000)                                     # damaged: told, and the loop goes on
        monitor.step_begin()
        ops.exp(x)
        monitor.step_end()
    (trace_folder,) = output.glob("*_ascend_ms")
    (result,) = rows(trace_folder / "FRAMEWORK" / "cpu_op_type_info_0.csv")
    assert (result["op_type"], result["type_occurrences"]) == ("Exp", "2")
    file.write_text(json.dumps({"start_step": 9, "stop_step": 9}))
    with profile():                        # the program's own one watches already
        monitor.step()
    monitor.end()
    DynamicProfilerMonitor("/proc/no")
    text = capsys.readouterr().err
    assert "steps 9 to 9 are not profiled" in text and "/proc/no/profiler_config.json can't be created" in text
    with pytest.raises(TypeError, match="cfg_path"):
        DynamicProfilerMonitor()


@pytest.mark.filterwarnings("ignore:.*with_stack. torch 2.11")
def test_a_graph_is_compiled_while_stacks_are_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched = Profiler(output_path=str(tmp_path), with_stack=True)
    assert float(ms.jit(lambda x: (x * x).sum())(Tensor([1.0, 2.0]))) == 5
    print("the program still prints")
    assert builtins.print.__module__ == "builtins" and not hasattr(builtins.print, "__wrapped__")
    watched.analyse()
    assert "the program still prints" in capsys.readouterr().out and list(tmp_path.rglob("trace_view.json"))
