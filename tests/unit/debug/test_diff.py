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

from torchspore.cli import diff
from torchspore.cli.dump_comparison import dump_pairs, dumps

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


def dumped(folder: Path, mode: int = ms.PYNATIVE_MODE, slip: float = 0.0, rate: float = 0.001) -> Path:
    """Two steps; in the second one a product has a slip."""
    ms.set_context(mode=mode)
    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), rate, 0.9))
    ms.set_context(enable_dump=True, save_dump_path=str(folder))
    for noise in (0.0, slip):
        net.slip = noise
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
    assert f"first difference: iteration 1, {name}\n  at {__file__}:{SLIP}\n" in text
    assert "6 of 6 elements differ" in text and "6 NaN" in text
    assert "input 0: equal in every bit" in text and "its inputs agree: this operator itself returns a different result." in text
    code, text = compared(good, bad, "--json", "--all")
    record = json.loads(text)
    assert code == 1 and record["first_departing"]["operator"] == name and record["first_departing"]["line"] == f"{__file__}:{SLIP}"
    assert record["departs"] == len(record["departing"]) > 5 and record["first_departing"]["results"][0]["second"]["nan"] == 6
    assert record["first_departing"]["inputs"][0]["state"] == "equal"
    near = dumped(tmp_path / "near", slip=1e-4)
    assert compared(good, near)[0] == 0 and compared(good, near, "--rtol", "1e-6")[0] == 1
    step_folder = tmp_path / "bad" / "rank_0" / "Net" / "0" / "0"
    assert compared(good / "rank_0" / "Net" / "0" / "0", step_folder)[0] == 0


def test_a_real_dump_of_mindspore_lines_up(tmp_path: Path, compared: Diff) -> None:
    with zipfile.ZipFile(Path(__file__).with_name("mindspore_2_10_dump.zip")) as archive:
        archive.extractall(tmp_path / "theirs")
    ours = dumped(tmp_path / "ours", rate=0.1)
    code, text = compared(ours, tmp_path / "theirs", "--rtol", "1e-6", "--json")
    record = json.loads(text)
    assert code == 0 and record["departs"] == 0 and record["equal"] >= 6, text
    assert compared(dumped(tmp_path / "slower", rate=0.09), tmp_path / "theirs")[0] == 1
    results = {entry.name: other for _, entry, other, _ in dump_pairs.pairs(dumps.read(ours), dumps.read(tmp_path / "theirs"))}
    dense = results["Default_network-WithLossCell__backbone-Net_fc-Dense_Dense-op0"]
    mean = results["Default_network-WithLossCell__loss_fn-MSELoss_Mean-op0"]
    assert mean.full_name == "Default/network-WithLossCell/_loss_fn-MSELoss/ReduceMean-op0"
    layer = "Default/network-WithLossCell/_backbone-Net/fc-Dense/"
    gradient = results["Gradients_Default_network-WithLossCell__backbone-Net_fc-Dense_Grad_Dense_DenseGrad-op0"]
    assert all(f"Gradients/{layer}Grad_{name}-op0" in gradient.full_name for name in ("MatMul/MatMul", "BiasAdd/BiasAddGrad"))
    updates = results["Default_optimizer-Momentum_Momentum-op0"]
    assert updates.full_name == "Default/optimizer-Momentum/ApplyMomentum-op0, Default/optimizer-Momentum/ApplyMomentum-op1"
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
        code, content = compared(good, bad)
        assert code == 1 and str(file) in content and text in content, name
    shutil.copytree(good, tmp_path / "others")
    folder = tmp_path / "others" / "rank_0" / "Net" / "0" / "1"
    for file in folder.glob("ReLU.*output*"):
        file.unlink()
    (file,) = folder.glob("Mul.*_backbone-Net_Mul-op0.*output.0*")
    os.rename(file, folder / "kept")
    os.mkfifo(file)
    code, content = compared(good, tmp_path / "others", "--json", "--all")
    assert code == 1 and f"{file}: is no plain file" in content
    os.unlink(file)
    os.rename(folder / "kept", file)
    os.rename(file, folder / "Exp.\x1b[31mred.0.0.12.output.0.DefaultFormat.Float32.npy")
    assert "\\x1b[31mred" in (content := compared(good, tmp_path / "others")[1]) and "\x1b" not in content
    os.rename(folder / "Exp.\x1b[31mred.0.0.12.output.0.DefaultFormat.Float32.npy", file)
    (folder / "more.npy").write_bytes(b"x")
    code, content = compared(good, tmp_path / "others")
    assert code == 1 and "_backbone-Net/relu-ReLU/ReLU-op0 1 of 2 files are missing" in content
    assert f"{folder / 'more.npy'}: has no name of a dump's file" in content
    (folder / "operators.csv").write_bytes(b"\xff\xfe\x00,\n" * 3 + b"half a li")
    assert compared(good, tmp_path / "others")[0] == 1
    (folder / "statistic.csv").write_bytes(b"x" * 2_000_000)
    assert "a line has more than 65536 characters" in compared(good, tmp_path / "others")[1]
    assert not hit.exists()


def test_a_file_that_is_not_a_dump_is_reported(tmp_path: Path, compared: Diff) -> None:
    good = dumped(tmp_path / "good")
    (tmp_path / "empty").mkdir()
    for wrong, text in ((tmp_path / "none", "expected a folder with a dump"), (tmp_path / "empty", "holds no dump")):
        code, content = compared(good, wrong)
        assert code == 2 and text in content and str(wrong) in content
    shutil.copytree(good / "rank_0" / "Net", good / "rank_0" / "Net.17")
    code, content = compared(good, good)
    assert code == 2 and "holds several dumps" in content and "Net.17; name one of them" in content
    shutil.copytree(good / "rank_0" / "Net" / "0" / "0", tmp_path / "later" / "0" / "7")
    code, content = compared(good / "rank_0" / "Net", tmp_path / "later")
    assert code == 2 and "no operator of" in content


def test_statistics_alone_are_compared(tmp_path: Path, compared: Diff) -> None:
    dumped(tmp_path / "a"), dumped(tmp_path / "b", slip=0.5)
    for file in [*tmp_path.rglob("*.npy"), *tmp_path.rglob("operators.csv")]:
        file.unlink()
    assert compared(tmp_path / "a", tmp_path / "a")[0] == 0
    code, text = compared(tmp_path / "a", tmp_path / "b")
    assert code == 1 and "_backbone-Net_Mul-op0" in text and "differs: statistics: " in text


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
    (operator,) = [entry for listed in dumps.read(tmp_path).iterations.values() for entry in listed if entry.kind == "Assign"]
    read = {key: dumps.array(path).tolist() for key, path in operator.files.items()}
    assert read["output", 0] == [2.0] * 3 and [0.0] * 3 in read.values()


def write_dump(folder: Path, operators: list[tuple[str, str, dict[str, list[float]]]], as_statistics: bool = False) -> Path:
    """A dump of operators (kind, name, values by `input.0` and the like) as MindSpore writes it."""
    folder_of_step = folder / "rank_0" / "Net" / "0" / "0"
    folder_of_step.mkdir(parents=True)
    lines = ["Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value,L2Norm Value"]
    for number, (kind, name, tensors) in enumerate(operators):
        for key, values in tensors.items():
            array, (side, slot) = np.array(values, np.float32), key.split(".")
            if as_statistics:
                figures = [float(array.max()), float(array.min()), float(array.mean()), float(np.sqrt((array**2).sum()))]
                about = [kind, name, number, 0, number, side, slot, array.nbytes, "float32", f"({len(values)})"]
                lines.append(",".join(map(str, [*about, *figures])))
            else:
                np.save(folder_of_step / f"{kind}.{name}.{number}.0.{number}.{key}.DefaultFormat.Float32.npy", array)
    if as_statistics:
        (folder_of_step / "statistic.csv").write_text("\n".join(lines) + "\n")
    return folder


def norms(statistic: float, result: float, later: float) -> list[tuple[str, str, dict[str, list[float]]]]:
    """A batch norm with a second output, which an operator of the backward pass reads."""
    return [
        ("BatchNorm", "Default_bn-BatchNorm2d_BatchNorm-op0",
         {"input.0": [1.0, 2.0], "output.0": [result, 1.0], "output.1": [statistic, 2.0]}),
        ("BatchNormGrad", "Gradients_Default_bn-BatchNorm2d_Grad_BatchNorm_BatchNormGrad-op0",
         {"input.0": [statistic, 2.0], "output.0": [later, 1.0]}),
    ]


@pytest.mark.parametrize("as_statistics", [False, True])
def test_an_output_that_no_result_hangs_on_blames_nobody(tmp_path: Path, compared: Diff, as_statistics: bool) -> None:
    good = write_dump(tmp_path / "good", norms(5.0, 1.0, 3.0), as_statistics)
    code, text = compared(good, write_dump(tmp_path / "other", norms(9.0, 1.0, 3.0), as_statistics))
    assert code == 0, text
    code, text = compared(good, write_dump(tmp_path / "read", norms(9.0, 1.0, 4.0), as_statistics))
    assert code == 1 and "first difference: iteration 0, Default_bn-BatchNorm2d_BatchNorm-op0" in text
    code, text = compared(good, write_dump(tmp_path / "wrong", norms(9.0, 7.0, 3.0), as_statistics))
    assert code == 1 and "first difference: iteration 0, Default_bn-BatchNorm2d_BatchNorm-op0" in text
    assert "output 1: unused: " in text


def test_statistics_are_compared_with_tensors(tmp_path: Path, compared: Diff) -> None:
    tensors, statistics = write_dump(tmp_path / "tensors", norms(5.0, 1.0, 3.0)), write_dump(tmp_path / "table", norms(5.0, 1.0, 3.0), True)
    wrong = write_dump(tmp_path / "wrong", norms(5.0, 2.0, 3.0), True)
    for pair in ((tensors, statistics), (statistics, tensors)):
        code, text = compared(*pair)
        assert code == 0 and "2 operators of 1 iterations (0) compared" in text
    for pair in ((tensors, wrong), (wrong, tensors)):
        code, text = compared(*pair)
        assert code == 1 and "output 0: differs: statistics: Max Value " in text


def test_a_bias_inside_of_a_convolution_is_attributed_to_the_operator_after_it(tmp_path: Path, compared: Diff) -> None:
    name = "Default_conv-Conv2d_"
    ours = write_dump(tmp_path / "ours", [("Conv2D", f"{name}Conv2D-op0", {"output.0": [3.0, 4.0]})])
    theirs = [("Conv2D", f"{name}Conv2D-op0", {"output.0": [1.0, 2.0]}), ("BiasAdd", f"{name}BiasAdd-op0", {"output.0": [3.0, 4.0]})]
    for pair in ((ours, write_dump(tmp_path / "theirs", theirs)), (tmp_path / "theirs", ours)):
        assert compared(*pair)[0] == 0
    theirs[1][2]["output.0"][0] = 8.0
    code, text = compared(ours, write_dump(tmp_path / "wrong", theirs))
    assert code == 1 and f"{name}Conv2D-op0 and {name}BiasAdd-op0, the last of their scope" in text


def test_gradients_and_updates_are_compared_by_layer(tmp_path: Path, compared: Diff) -> None:
    layer = "Gradients_Default_fc-Dense_Grad_"
    dense = [("DenseGrad", f"{layer}Dense_DenseGrad-op0", {"output.0": [1.0, 2.0], "output.1": [3.0, 4.0], "output.2": [5.0]})]
    dense += [("Adam", "Default_optimizer-Adam_Adam-op0", {"output.0": [6.0, 7.0], "output.1": [8.0, 9.0], "output.2": [1.0]})]

    def split(weight: float, update: float) -> list[tuple[str, str, dict[str, list[float]]]]:
        return [
            ("BiasAddGrad", f"{layer}BiasAdd_BiasAddGrad-op0", {"output.0": [5.0]}),
            ("MatMul", f"{layer}MatMul_MatMul-op0", {"output.0": [3.0, weight]}),
            ("MatMul", f"{layer}MatMul_MatMul-op1", {"output.0": [1.0, 2.0]}),
            ("Adam", "Default_optimizer-Adam_Adam-op0", {"input.0": [8.0, 9.0], "output.0": [0.0, 0.0]}),
            ("Adam", "Default_optimizer-Adam_Adam-op1", {"input.0": [6.0, update], "output.0": [0.0, 0.0]}),
        ]

    ours, theirs = write_dump(tmp_path / "ours", dense), write_dump(tmp_path / "theirs", split(4.0, 7.0))
    assert compared(ours, theirs)[0] == compared(theirs, ours)[0] == 0
    code, text = compared(ours, write_dump(tmp_path / "weight", split(4.5, 7.0)))
    assert code == 1 and f"{layer}Dense_DenseGrad-op0 and {layer}BiasAdd_BiasAddGrad-op0, " in text and "4.0 and 4.5" in text
    code, text = compared(ours, write_dump(tmp_path / "update", split(4.0, 7.5)))
    assert code == 1 and "Default_optimizer-Adam_Adam-op1, the operators of one layer" in text and "7.0 and 7.5" in text
