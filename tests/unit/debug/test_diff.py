"""`torchspore diff`: the first operator that departs is named, in dumps of torchspore and of MindSpore; hostile files do nothing."""
from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.base import dumps
from torchspore.cli import diff

Diff = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def off_afterwards() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, enable_dump=False, save_dump_path=".")


@pytest.fixture
def compared(capsys: pytest.CaptureFixture[str]) -> Diff:
    def run(*words: Any) -> tuple[int, str]:
        code = diff.run([str(word) for word in words])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return run


class Net(nn.Cell):
    def __init__(self, slip: float = 0.0) -> None:
        super().__init__()
        self.fc, self.relu, self.slip, self.steps = nn.Dense(4, 3, weight_init="ones", bias_init="zeros"), nn.ReLU(), slip, 0

    def construct(self, x: Any) -> Any:
        x = self.relu(self.fc(x))
        return x * (2 + self.slip)


SLIP = next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "2 + self.slip" in line)


def dumped(folder: Path, mode: int = ms.PYNATIVE_MODE, slip: float = 0.0) -> Path:
    """Two steps; in the second one a product has a slip."""
    ms.set_context(mode=mode)
    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.001, 0.9))
    ms.set_context(enable_dump=True, save_dump_path=str(folder))
    for own in (0.0, slip):
        net.slip = own
        step(Tensor(np.arange(8, dtype=np.float32).reshape(2, 4)), Tensor(np.ones((2, 3), np.float32)))
    ms.set_context(enable_dump=False)
    return folder


def test_the_first_operator_that_departs_is_named_with_its_line_and_inputs(tmp_path: Path, compared: Diff) -> None:
    good = dumped(tmp_path / "good")
    code, text = compared(good, dumped(tmp_path / "graph", ms.GRAPH_MODE))
    assert code == 0, text
    bad = dumped(tmp_path / "bad", ms.GRAPH_MODE, slip=float("nan"))
    code, text = compared(good, bad)
    assert code == 1
    name = "Default/network-WithLossCell/_backbone-Net/Mul-op0"
    assert f"first to depart: iteration 1, {name}\n  at {__file__}:{SLIP}\n" in text
    assert "6 of 6 elements depart" in text and "6 NaN" in text
    assert "input 0: equal in every bit" in text and "its inputs agree: this operator itself gives another result." in text
    code, text = compared(good, bad, "--json", "--all")
    told = json.loads(text)
    assert code == 1 and told["first_departing"]["operator"] == name and told["first_departing"]["line"] == f"{__file__}:{SLIP}"
    assert told["departs"] == len(told["departing"]) > 5 and told["first_departing"]["results"][0]["second"]["nan"] == 6
    assert told["first_departing"]["inputs"][0]["state"] == "equal"
    near = dumped(tmp_path / "near", slip=1e-4)
    assert compared(good, near)[0] == 0 and compared(good, near, "--rtol", "1e-6")[0] == 1
    one_step = tmp_path / "bad" / "rank_0" / "Net" / "0" / "0"
    assert compared(good / "rank_0" / "Net" / "0" / "0", one_step)[0] == 0


def test_a_real_dump_of_mindspore_lines_up(tmp_path: Path, compared: Diff) -> None:
    with zipfile.ZipFile(Path(__file__).with_name("mindspore_2_10_dump.zip")) as held:
        held.extractall(tmp_path / "theirs")
    ours = dumped(tmp_path / "ours")
    code, text = compared(ours, tmp_path / "theirs", "--rtol", "1e-6", "--json")
    told = json.loads(text)
    assert code == 0 and told["departs"] == 0 and told["equal"] >= 6
    found = {one.name: other for _, one, other, _ in dumps.pairs(dumps.read(ours), dumps.read(tmp_path / "theirs"))}
    dense = found["Default_network-WithLossCell__backbone-Net_fc-Dense_Dense-op0"]
    mean = found["Default_network-WithLossCell__loss_fn-MSELoss_Mean-op0"]
    assert mean.full_name == "Default/network-WithLossCell/_loss_fn-MSELoss/ReduceMean-op0"
    assert dense.full_name == "Default/network-WithLossCell/_backbone-Net/fc-Dense/BiasAdd-op0"


def test_damaged_missing_and_hostile_files_are_named_and_nothing_in_them_runs(tmp_path: Path, compared: Diff) -> None:
    good = dumped(tmp_path / "good")
    hit = tmp_path / "hit"

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(hit),)

    def pickled() -> bytes:
        out = io.BytesIO()
        np.save(out, np.array([Evil()], dtype=object), allow_pickle=True)
        return out.getvalue()

    def header(text: str) -> bytes:
        head = text.encode().ljust(117) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head

    cases = {
        "truncated": (lambda data: data[:-4], "is damaged: (2, 3) of float32 needs 24 bytes, it has 20"),
        "empty": (lambda _: b"", "is damaged"),
        "pickle": (lambda _: pickled(), "holds object, expected numbers"),
        "huge": (lambda _: header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999), }"), "is damaged"),
        "negative": (lambda _: header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "is damaged"),
        "half": (lambda _: header("{'descr': [" + "('a', [" * 10 + "], 'fortran_order': False, 'shape': (1,), }"), "is damaged"),
        "none": (lambda _: header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 30}, 0), }}"), "can't be read"),
        "truth": (lambda _: header("{'descr': '<f4', 'fortran_order': False, 'shape': (True,), }") + b"a" * 4, "can't be read"),
        "code": (lambda _: header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').mkdir({str(hit)!r}),), }}"),
                 "is damaged"),
        "text": (lambda _: header("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }") + b"a" * 16, "holds <U4, expected numbers"),
    }
    for name, (damage, text) in cases.items():
        bad = tmp_path / name
        shutil.copytree(good, bad)
        (file,) = (bad / "rank_0" / "Net" / "0" / "1").glob("Mul.*_backbone-Net_Mul-op0.*output.0*")
        data = damage(file.read_bytes())
        file.unlink()
        file.write_bytes(data)
        code, told = compared(good, bad)
        assert code == 1 and str(file) in told and text in told, name
    shutil.copytree(good, tmp_path / "others")
    folder = tmp_path / "others" / "rank_0" / "Net" / "0" / "1"
    for file in folder.glob("ReLU.*output*"):
        file.unlink()
    (file,) = folder.glob("Mul.*_backbone-Net_Mul-op0.*output.0*")
    os.rename(file, folder / "kept")
    os.mkfifo(file)
    code, told = compared(good, tmp_path / "others", "--json", "--all")
    assert code == 1 and f"{file}: is no plain file" in told
    os.unlink(file)
    os.rename(folder / "kept", file)
    os.rename(file, folder / "Exp.\x1b[31mred.0.0.12.output.0.DefaultFormat.Float32.npy")
    assert "\\x1b[31mred" in (told := compared(good, tmp_path / "others")[1]) and "\x1b" not in told
    os.rename(folder / "Exp.\x1b[31mred.0.0.12.output.0.DefaultFormat.Float32.npy", file)
    (folder / "more.npy").write_bytes(b"x")
    code, told = compared(good, tmp_path / "others")
    assert code == 1 and "_backbone-Net/relu-ReLU/ReLU-op0 1 of 2 files are missing" in told
    assert f"{folder / 'more.npy'}: has no name of a dump's file" in told
    (folder / "operators.csv").write_bytes(b"\xff\xfe\x00,\n" * 3 + b"half a li")
    assert compared(good, tmp_path / "others")[0] == 1
    (folder / "statistic.csv").write_bytes(b"x" * 2_000_000)
    assert "a line has more than 65536 characters" in compared(good, tmp_path / "others")[1]
    assert not hit.exists()


def test_what_is_no_dump_is_said(tmp_path: Path, compared: Diff) -> None:
    good = dumped(tmp_path / "good")
    (tmp_path / "empty").mkdir()
    for wrong, text in ((tmp_path / "none", "expected a folder with a dump"), (tmp_path / "empty", "holds no dump")):
        code, told = compared(good, wrong)
        assert code == 2 and text in told and str(wrong) in told
    shutil.copytree(good / "rank_0" / "Net", good / "rank_0" / "Net.17")
    code, told = compared(good, good)
    assert code == 2 and "holds several dumps" in told and "Net.17; name one of them" in told
    shutil.copytree(good / "rank_0" / "Net" / "0" / "0", tmp_path / "later" / "0" / "7")
    code, told = compared(good / "rank_0" / "Net", tmp_path / "later")
    assert code == 2 and "no operator of" in told


def test_statistics_alone_are_compared(tmp_path: Path, compared: Diff) -> None:
    dumped(tmp_path / "a"), dumped(tmp_path / "b", slip=0.5)
    for file in [*tmp_path.rglob("*.npy"), *tmp_path.rglob("operators.csv")]:
        file.unlink()
    assert compared(tmp_path / "a", tmp_path / "a")[0] == 0
    code, told = compared(tmp_path / "a", tmp_path / "b")
    assert code == 1 and "_backbone-Net_Mul-op0" in told and "departs: statistics: " in told


def test_the_flags_and_the_names_of_operators_in_place(tmp_path: Path) -> None:
    """A kernel that writes over its input leaves the input's values in the dump as they were."""
    x = Tensor(np.ones(3, np.float32))
    ms.set_context(enable_dump=True, save_dump_path=str(tmp_path))

    class Assigns(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor(np.zeros(3, np.float32)), name="weight")

        def construct(self, x: Any) -> Any:
            ops.assign(self.weight, x + 1)
            return self.weight * 2

    Assigns()(x)
    ms.set_context(enable_dump=False)
    (operator,) = [one for listed in dumps.read(tmp_path).iterations.values() for one in listed if one.kind == "Assign"]
    read = {key: dumps.array(path).tolist() for key, path in operator.files.items()}
    assert read["output", 0] == [2.0] * 3 and [0.0] * 3 in read.values()
