"""Dumps, seen from outside: the files that each switch makes, in both modes, and what is left where a disk or a program ends."""
from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import processes

from torchspore.context.public import scope
from torchspore.engine.devices import device
from torchspore.engine.execution import current_operator
from torchspore.observe.debug import dump, dump_files, dump_settings
from torchspore.observe.debug.dump_settings import Settings


@pytest.fixture(autouse=True)
def off_afterwards() -> Iterator[None]:
    yield
    for cell in list(dump._marked_cells):
        dump.mark(cell, False)
    dump._marked_operators.clear()
    dump._settings.clear()
    dump._apply()
    ms.set_context(mode=ms.PYNATIVE_MODE, enable_dump=False, save_dump_path=".")
    assert current_operator.followers == 0 and torch._C._len_torch_dispatch_stack() == 0


def begin(settings: Settings) -> None:
    dump._settings["environment"] = settings
    dump._apply()


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.relu = nn.Dense(4, 3, weight_init="ones", bias_init="zeros"), nn.ReLU()

    def construct(self, x: Any) -> Any:
        return self.relu(self.fc(x)) * 2


def train(mode: int, steps: int = 2) -> list[float]:
    ms.set_context(mode=mode)
    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    x, y = Tensor(np.arange(8, dtype=np.float32).reshape(2, 4)), Tensor(np.ones((2, 3), np.float32))
    return [float(step(x, y)) for _ in range(steps)]


def files(root: Path) -> dict[str, Path]:
    """The npy files of a dump, by iteration and name without the time."""
    return {re.sub(r"\.\d+\.(input|output)", r".\1", f"{path.parent.name}/{path.name}"): path for path in root.rglob("*.npy")}


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def values(root: Path, name: str) -> Any:
    (result,) = [path for key, path in files(root).items() if re.search(name, key)]
    return np.load(result)


MODES = {"pynative": ms.PYNATIVE_MODE, "graph": ms.GRAPH_MODE}


def test_enable_dump_writes_what_operators_take_and_give_alike_in_both_modes(tmp_path: Path) -> None:
    before = train(ms.GRAPH_MODE)
    results = {}
    for name, mode in MODES.items():
        ms.set_context(enable_dump=True, save_dump_path=str(tmp_path / name))
        losses = train(mode)
        ms.set_context(enable_dump=False)
        assert losses == pytest.approx(before, rel=1e-6)
        assert train(mode) == pytest.approx(before, rel=1e-6)             # off again: nothing more is written
        results[name] = files(tmp_path / name)
    assert results["pynative"].keys() == results["graph"].keys() and len(results["graph"]) > 60
    for name in MODES:
        folder = tmp_path / name / "rank_0" / "Net" / "0"
        assert sorted(path.name for path in folder.iterdir()) == ["0", "1"]
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        dense = x.sum(1, keepdims=True).repeat(3, 1)
        assert np.array_equal(values(folder / "0", r"^0/Dense\..*output\.0\.DefaultFormat\.Float32\.npy"), dense)
        assert np.array_equal(values(folder / "0", r"^0/ReLU\..*input\.0"), dense)
        assert np.array_equal(values(folder / "0", r"^0/Mul\.Default_network-WithLossCell__backbone-Net_Mul-op0\..*output"), dense * 2)
        gradient = 2 * (2 * dense - 1) / 6 * 2
        name = r"^0/ReLUGrad\.Gradients_Default_network-WithLossCell__backbone-Net_relu-ReLU_Grad.*output"
        assert np.allclose(values(folder / "0", name), gradient)
        rows = (table(folder / "1" / "operators.csv"))
        assert [int(row["Order"]) for row in rows] == list(range(len(rows)))
        line = next(row["Line"] for row in rows if row["Op Type"] == "ReLU")
        assert line.startswith(__file__) and "relu(self.fc(x))" in Path(__file__).read_text().splitlines()[int(line.rpartition(":")[2]) - 1]
        (row,) = [row for row in table(folder / "0" / "statistic.csv")
                  if row["Op Type"] == "Dense" and row["IO"] == "output"]
        assert (float(row["Max Value"]), float(row["Min Value"]), row["Shape"], row["Data Type"]) == (22.0, 6.0, "(2, 3)", "Float32")
        assert float(row["L2Norm Value"]) == pytest.approx(np.sqrt((dense**2).sum()))


CONFIG = {
    "common_dump_settings": {
        "op_debug_mode": 0, "dump_mode": 1, "net_name": "ResNet50", "iteration": "0|2-3", "saved_data": "full", "input_output": 2,
        "kernels": ["dense", "Default/network-WithLossCell/_backbone-Net/Mul-op0", "MatMul-op7", "name-regex(Gradients/.+/ReLUGrad-op\\d)"],
        "support_device": [0, 1], "statistic_category": ["max", "nan count", "md5"], "kernals": [],
    },
    "e2e_dump_settings": {"enable": True, "trans_flag": False, "sample_mode": 1, "sample_num": 2},
}
PROGRAM = """
import mindspore as ms, numpy as np
from mindspore import Tensor, nn
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.relu = nn.Dense(4, 3, weight_init="ones", bias_init="zeros"), nn.ReLU()
    def construct(self, x):
        return self.relu(self.fc(x)) * 2
net = Net()
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
for _ in range(5):
    step(Tensor(np.arange(8, dtype=np.float32).reshape(2, 4)), Tensor(np.ones((2, 3), np.float32)))
"""


def test_the_file_of_settings_says_which_operators_iterations_and_figures(tmp_path: Path) -> None:
    CONFIG["common_dump_settings"]["path"] = str(tmp_path / "dump")  # type: ignore[index]
    (tmp_path / "dump.json").write_text(json.dumps(CONFIG))
    (tmp_path / "program.py").write_text(PROGRAM)
    extra = {"MINDSPORE_DUMP_CONFIG": str(tmp_path / "dump.json")}
    ran = processes.torchspore("explain", "program.py", cwd=tmp_path, extra=extra)
    assert ran.code == 0, ran.err
    assert "common_dump_settings.kernals is not a member of dump settings and is not used; common_dump_settings.kernels is one." in ran.err
    assert "dump: no operator that ran matches 'MatMul-op7' of kernels" in ran.err
    assert "graphs run at O0" in ran.out and "trans_flag: tensors have the layout that the program gives them" in ran.out
    folder = tmp_path / "dump" / "rank_0" / "ResNet50" / "0"
    assert sorted(path.name for path in folder.iterdir()) == ["0", "2", "3"]
    names = sorted(re.sub(r"\..*", "", name.partition("/")[2]) for name in files(folder / "2"))
    assert names == ["Dense", "DenseGrad", "DenseGrad", "Mul", "ReLUGrad"]
    assert all("output" in name and np.load(path).shape == (2,) for name, path in files(folder).items())
    rows = list(csv.reader((folder / "0" / "statistic.csv").read_text().splitlines()))
    assert rows[0][-3:] == ["Max Value", "NaN Count", "MD5"] and all(len(row[-1]) == 32 for row in rows[1:])
    second_run = processes.torchspore("run", "program.py", cwd=tmp_path, extra=extra)           # a second process takes a folder of its own
    others = [path.name for path in folder.parent.parent.iterdir() if path.name != "ResNet50"]
    assert second_run.code == 0 and len(others) == 1 and re.fullmatch(r"ResNet50\.\d+", others[0])


WRONG = [
    ({"iteration": "3-1"}, "iteration='3-1': expected 'all', or numbers and spans such as '0|5-8|100-120'"),
    ({"saved_data": "all"}, "saved_data='all': expected one of \"tensor\", \"statistic\", \"full\""),
    ({"dump_mode": True}, "dump_mode=True: expected one of 0, 1, 2"),
    ({"path": "here"}, "path='here': expected an absolute path.\n\nhint: write "),
    ({"path": ""}, "path='': expected the absolute path of a folder.\n\nhint: write one, or set MS_DIAGNOSTIC_DATA_PATH"),
    ({"kernels": ["name-regex(a(b)"], "dump_mode": 1}, "expected a regular expression (missing ), unterminated subpattern at position 1)"),
    ({"dump_mode": 1}, "kernels=[]: expected at least one operator, as dump_mode is 1"),
    ({"statistic_category": ["maxx"]}, "statistic_category='maxx': expected some of max, min"),
    ({"support_device": ["0"]}, "support_device=['0']: expected a list of whole numbers"),
    ({"overflow_number": -1}, "overflow_number=-1: expected a whole number from 0 on"),
    ({"net_name": 3}, "net_name=3: expected a text"),
]


@pytest.mark.parametrize("options, text", WRONG, ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_wrong_members_are_named(options: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MS_DIAGNOSTIC_DATA_PATH", raising=False)
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"common_dump_settings": {"path": "/tmp/x", **options}}))
    with pytest.raises(ValueError) as error:
        dump_settings.read(str(file), lambda _: None)
    assert str(error.value).startswith(f"{file}: ") and text in str(error.value)


@pytest.mark.parametrize("text, message", [
    ("{", "expected JSON"), ("[]", "expected one JSON object, got a list"), ("{}", "expected a section common_dump_settings"),
    ("[" * 100000, "expected JSON"), ('{"a": {"b": 1, "b": 2}}', "expected JSON (the member 'b' appears twice in one object)"),
    ('{"common_dump_settings": 3}', "common_dump_settings: expected an object, got a int"),
])
def test_files_that_are_no_settings_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        dump_settings.read(str(tmp_path / "dump.json"), lambda _: None)


def test_the_older_folder_and_set_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_DIAGNOSTIC_DATA_PATH", str(tmp_path))
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": {"dump_mode": 2}}))
    settings = dump_settings.read(str(tmp_path / "dump.json"), lambda _: None)
    assert settings.path == str(tmp_path / "debug_dump") and settings.marked
    for name, mode in MODES.items():
        net = Net()
        ms.set_dump(net.fc)
        ms.set_dump(ops.ReLU())
        begin(Settings(str(tmp_path / name), marked=True))
        ms.set_context(mode=mode)
        ms.grad(net)(Tensor(np.ones((2, 4), np.float32)))
        ms.set_dump(ops.ReLU(), False)
        net(Tensor(np.ones((2, 4), np.float32)))
        dump.flush()
        calls = [key.partition("/")[2].partition(".")[0] for key in files(tmp_path / name) if ".output.0" in key]
        assert sorted(calls) == ["Dense", "Dense", "DenseGrad", "ReLU", "ReLUGrad"]
    for wrong in (3, net.construct):
        with pytest.raises(ValueError, match="expected a Cell or a Primitive"):
            ms.set_dump(wrong)
    with pytest.raises(ValueError, match="expected True or False"):
        ms.set_dump(net, 1)


def test_set_dump_sets_flags_and_attributes() -> None:
    net = nn.SequentialCell(nn.ReLU(), nn.Flatten())
    net[1].operator = ops.ReLU()
    for enabled, text in ((True, "true"), (False, "false")):
        ms.set_dump(net, enabled)
        assert [cell.get_flags()["dump"] for _, cell in net.cells_and_names()] == [enabled] * 3
        assert net[1].operator.attrs["dump"] == text
    operator = ops.Add()
    ms.set_dump(operator)
    assert operator.attrs["dump"] == "true"
    ms.set_dump(operator, False)


def test_a_process_of_several_has_its_folder_and_support_device_names_those_that_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin(Settings(str(tmp_path)))
    monkeypatch.setenv("RANK_ID", "3")             # what `init` tells comes after the dump has begun
    nn.ReLU()(Tensor([1.0]))
    dump.flush()
    assert [path.name for path in tmp_path.iterdir()] == ["rank_3"]
    x = Tensor([1.0])
    with device.on(device.Machine(count=lambda target: 4, resolve=lambda target: torch.device("cpu"), has_queue=lambda target: False)):
        with scope(device_target="GPU"):               # without a device_id the process's place says which device is its own
            for devices in ((1,), (3,)):
                begin(Settings(str(tmp_path / str(devices[0])), devices=devices))
                nn.ReLU()(x)
                dump.flush()
                assert (tmp_path / str(devices[0])).exists() is (devices == (3,))


class Fails(nn.Cell):
    def construct(self, x: Any, labels: Any) -> Any:
        return ops.nll_loss(ops.log_softmax(x * 2), labels)


def test_ranks_in_one_process_dump_what_the_first_one_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.product, self.relu = ops.MatMul().shard(((1, 2), (2, 1))), ops.ReLU()
            self.w = ms.Parameter(Tensor(np.arange(16, dtype=np.float32).reshape(4, 4)), name="w")

        def construct(self, x: Any) -> Any:
            return self.relu(self.product(x, self.w))

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    ms.set_context(mode=ms.GRAPH_MODE, enable_dump=True, save_dump_path=str(tmp_path))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    try:
        net = Cut()
        out = ms.value_and_grad(net, None, net.trainable_params())(Tensor(x))[0].asnumpy()
    finally:
        ms.reset_auto_parallel_context()
        ms.set_context(enable_dump=False)
    expected = x @ np.arange(16, dtype=np.float32).reshape(4, 4)
    assert np.array_equal(out, expected)
    assert np.array_equal(values(tmp_path, r"/MatMul\..*input\.0"), x[:, :2])
    assert np.array_equal(values(tmp_path, r"/MatMul\..*output"), x[:, :2] @ np.arange(8, dtype=np.float32).reshape(2, 4))
    assert np.array_equal(values(tmp_path, r"/ReLU\..*input"), expected)
    rows = table(next(tmp_path.rglob("operators.csv")))
    assert [row["Op Type"] for row in rows][:2] == ["MatMul", "ReLU"] and "MatMulGrad" in {row["Op Type"] for row in rows}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_exception_dump_keeps_what_a_failing_operator_was_given(mode: int, tmp_path: Path) -> None:
    ms.set_context(mode=mode, save_dump_path=str(tmp_path), ascend_config={"exception_dump": "2"})
    try:
        labels = Tensor([1, 7], ms.int32)
        with pytest.raises((IndexError, ValueError, RuntimeError)):
            Fails()(Tensor(np.ones((2, 3), np.float32)), labels)
    finally:
        ms.set_context(ascend_config={"exception_dump": "0"})
    (folder,) = {path.parent for path in tmp_path.rglob("*.npy")}
    assert "exception_dump" in str(folder)
    assert any(np.array_equal(np.load(path), [1, 7]) for path in folder.glob("NLLLoss*.input.*.npy"))
    assert not list(folder.glob("*.output.*")) and not list(folder.glob("LogSoftmax*"))
    rows = (table(folder / "operators.csv"))
    assert rows[-1]["Note"].startswith("raises IndexError") and rows[-1]["Line"].startswith(__file__)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_operators_that_make_nan_or_infinity_are_dumped_alone(mode: int, tmp_path: Path) -> None:
    class Overflows(nn.Cell):
        def construct(self, x: Any) -> Any:
            y = ops.log(x + 1)
            return ops.sqrt(y - 1) + 1

    begin(Settings(str(tmp_path), everything=False, overflows=True, overflow_number=2))
    ms.set_context(mode=mode)
    for value in (9.0, 0.0, -1.0):
        Overflows()(Tensor([value, 5.0]))
    dump.flush()
    assert sorted({path.name.partition(".")[0] for path in tmp_path.rglob("*.npy")}) == ["Add", "Sqrt"]
    (row, _) = [row for path in tmp_path.rglob("operators.csv") for row in table(path)]
    assert (row["Op Type"], row["Note"]) == ("Sqrt", "makes NaN or infinity")


def test_who_hands_in_too_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dump_files.WAITING, "0.05")
    go_on, done = threading.Event(), []

    def folder() -> str:                               # it is asked for when the first record is written
        go_on.wait(20)
        return "rank_0"

    writer = dump_files.Writer(Settings(str(tmp_path)), folder, print)

    def produce() -> None:
        for number in range(8):
            value = dump_files.DumpedValue("output", 0, np.zeros(5000, np.float32), "Float32")
            writer.put(dump_files.Record(current_operator.Position("Add", "Default", number, 0, ""), number, [value]))
            done.append(number)

    thread = threading.Thread(target=produce)
    thread.start()
    time.sleep(0.3)
    assert len(done) == 2 and writer._bytes < 0.05 * 2**20
    go_on.set()
    thread.join(20)
    writer.close()
    assert len(files(tmp_path)) == 8


def test_a_full_disk_is_reported_once_and_the_training_goes_on(
        tmp_path: Path, user_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    begin(Settings(str(tmp_path), statistics=True))
    save, room = np.save, [20]

    def full(*arguments: Any, **keywords: Any) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        save(*arguments, **keywords)

    monkeypatch.setattr(np, "save", full)
    assert len(train(ms.PYNATIVE_MODE)) == 2
    dump.flush()
    monkeypatch.undo()
    assert len(user_texts) == 1 and "No space left on device" in user_texts[0] and str(tmp_path) in user_texts[0]
    assert len(files(tmp_path)) == 20 and all(np.load(path) is not None for path in files(tmp_path).values())
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_folder_that_cannot_be_created_is_reported_and_the_training_goes_on(tmp_path: Path, user_texts: list[str]) -> None:
    (tmp_path / "file").write_text("")
    begin(Settings(str(tmp_path / "file" / "dump")))
    assert len(train(ms.GRAPH_MODE)) == 2
    dump.flush()
    assert len(user_texts) == 1 and "can't be written (Not a directory)" in user_texts[0]


def test_another_thread_switches_off_and_on_again(tmp_path: Path) -> None:
    def in_a_thread(expected: bool) -> None:
        thread = threading.Thread(target=lambda: ms.set_context(enable_dump=expected, save_dump_path=str(tmp_path)))
        thread.start()
        thread.join()

    ms.set_context(enable_dump=True, save_dump_path=str(tmp_path))
    ops.exp(Tensor([1.0]))
    in_a_thread(False)
    before = len(files(tmp_path))
    ops.exp(Tensor([1.0]))
    assert len(files(tmp_path)) == before > 0
    for _ in range(4):                     # each has a folder of its own, in one second too
        ms.set_context(enable_dump=True)
        ops.exp(Tensor([1.0]))
        ms.set_context(enable_dump=False)
    assert len(list(tmp_path.glob("rank_0/*"))) == 5
    ops.exp(Tensor([1.0]))
    assert torch._C._len_torch_dispatch_stack() == 0


def test_what_cannot_be_written_stops_no_program(tmp_path: Path, user_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dump_files.WAITING, "0.001")
    monkeypatch.setattr(np, "save", lambda *_, **__: [][0])
    begin(Settings(str(tmp_path)))
    assert len(train(ms.PYNATIVE_MODE)) == 2
    dump.flush()
    assert len(user_texts) == 1 and "IndexError" in user_texts[0]


def test_kill_leaves_only_complete_files(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace("range(5)", "range(100000)"))
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": {"path": str(tmp_path / "dump"), "saved_data": "full"}}))
    process = subprocess.Popen(
        [sys.executable, "-m", "torchspore", "run", "program.py"], cwd=tmp_path,
        env=processes.environment({"MINDSPORE_DUMP_CONFIG": str(tmp_path / "dump.json")}), stdout=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while len(files(tmp_path)) < 200 and time.monotonic() < limit:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    result = files(tmp_path)
    assert len(result) >= 200
    for path in result.values():
        np.load(path)
    ran = processes.torchspore("diff", tmp_path / "dump", tmp_path / "dump", cwd=tmp_path)
    assert ran.code == 0, ran.out + ran.err


def test_long_names_are_stored_in_a_table_and_bfloat16_is_written_as_float32(tmp_path: Path) -> None:
    writer = dump_files.Writer(Settings(str(tmp_path)), lambda: "rank_0", print)
    position = current_operator.Position("Add", "Default/" + "layer/" * 60, 0, 0, "")
    writer.put(dump_files.Record(position, 0, [dump._copy_value("output", 0, torch.ones(2, dtype=torch.bfloat16))]))
    writer.close()
    (path,) = tmp_path.rglob("*.npy")
    assert len(path.name) == 28 and np.load(path).dtype == np.float32
    ((short, name),) = csv.reader((path.parent / "mapping.csv").read_text().splitlines())
    assert short == path.name and name.startswith("Add.Default_layer_") and name.endswith("output.0.DefaultFormat.BFloat16.npy")


def test_forward_derivatives_are_the_same_under_a_dump(tmp_path: Path) -> None:
    def square(x: Any) -> Any:
        return (x * x * Tensor([1.0, 2.0])).sum(0)

    x = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))
    plain = [ms.jvp(square, x, x)[1].asnumpy(), ms.jacfwd(square)(x).asnumpy(), ms.vmap(square)(x.reshape(1, 2, 2)).asnumpy()]
    ms.set_context(enable_dump=True, save_dump_path=str(tmp_path))
    dumped = [ms.jvp(square, x, x)[1].asnumpy(), ms.jacfwd(square)(x).asnumpy(), ms.vmap(square)(x.reshape(1, 2, 2)).asnumpy()]
    ms.set_context(enable_dump=False)
    for one, other in zip(plain, dumped):
        np.testing.assert_array_equal(one, other)
    assert len(files(tmp_path)) > 10


@pytest.mark.parametrize(("kernel", "ran"), [
    ("MatMul", {"Dense", "DenseGrad"}),
    ("MatMul-op", {"Dense", "DenseGrad"}),
    ("MatMul-op0", {"Dense", "DenseGrad"}),
    ("MatMul-op3", set()),
    ("Default/network-Net/fc-Dense/MatMul-op0", {"Dense"}),
    ("Default/network-Net/fc-Dense/BiasAdd-op0", {"Dense"}),
    ("Default/network-Net/fc-Dense/MatMul-op1", set()),
    ("Default/network-Net/other-Dense/MatMul-op0", set()),
    ("Gradients/Default/network-Net/fc-Dense/Grad_MatMul/MatMul-op1", {"DenseGrad"}),
    ("Gradients/Default/network-Net/fc-Dense/Grad_BiasAdd/BiasAddGrad-op0", {"DenseGrad"}),
    ("Conv2D", {"Conv2D", "Conv2DGrad"}),
    ("Conv2DBackpropFilter", {"Conv2DGrad"}),
    ("ApplyMomentum", {"Momentum"}),
    ("ReluGrad", {"ReLUGrad"}),
    ("ReduceMean-op0", {"Mean", "MeanGrad"}),
    ("MaxPool", {"Pooling", "PoolingGrad"}),
    ("SparseSoftmaxCrossEntropyWithLogits", {"CrossEntropy", "CrossEntropyGrad"}),
])
def test_kernels_take_names_of_mindspores_graphs(kernel: str, ran: set[str]) -> None:
    operators = {
        "Dense": "fc-Dense", "Conv2D": "conv-Conv2d", "ReLU": "relu-ReLU", "Mean": "loss-Loss", "Pooling": "pool-MaxPool2d",
        "CrossEntropy": "loss-Loss",
    }
    names = {kind: f"Default/network-Net/{layer}/{kind}-op0" for kind, layer in operators.items()}
    names |= {f"{kind}Grad": f"Gradients/Default/network-Net/{layer}/Grad_{kind}/{kind}Grad-op0" for kind, layer in operators.items()}
    names["Momentum"] = "Default/optimizer-Momentum/Momentum-op0"
    assert {kind for kind, name in names.items() if dump_settings.matches(kernel, name, kind)} == ran
