"""Without the package of an optional extra, its feature names the extra to install; everything else works."""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.dataset import text, vision
from support import processes
from support.manifest import read_project

from torchspore.cli import doctor


def save_encrypted(folder: Path) -> Any:
    return ms.save_checkpoint(nn.Dense(3, 2), str(folder / "net.ckpt"), enc_key=b"0" * 16, enc_mode="AES-GCM")


def export(folder: Path) -> Any:
    return ms.export(nn.Dense(3, 2), Tensor(np.ones((1, 3), np.float32)), file_name=str(folder / "net"), file_format="ONNX")


def cut_pieces(folder: Path) -> Any:
    return text.SentencePieceTokenizer(str(folder / "m.model"), text.SPieceTokenizerOutType.STRING)


def learn_pieces(folder: Path) -> Any:
    lines = ds.NumpySlicesDataset(["a line"], ["text"])
    return text.SentencePieceVocab.from_dataset(lines, ["text"], 50, 0.9995, ds.SentencePieceModel.BPE, {})


def read_video(folder: Path) -> Any:
    return vision.read_video(str(folder / "v.avi"))


def read_timestamps(folder: Path) -> Any:
    return vision.read_video_timestamps(str(folder / "v.avi"))


FEATURES: dict[str, list[tuple[str, Callable[[Path], Any]]]] = {
    "encryption": [("cryptography", save_encrypted)], "export": [("onnx", export), ("onnxscript", export)],
    "text": [("sentencepiece", cut_pieces), ("sentencepiece", learn_pieces)], "video": [("av", read_video), ("av", read_timestamps)],
}


@pytest.mark.parametrize(("extra", "package", "feature"), [(extra, *case) for extra, cases in FEATURES.items() for case in cases])
def test_an_absent_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, extra: str, package: str, feature: Callable[[Path], Any],
) -> None:
    for name in ("v.avi", "m.model"):
        (tmp_path / name).write_bytes(b"")
    if extra == "export":                                  # the first absent package is named, whether the other is there or not
        for other in ("onnx", "onnxscript"):
            monkeypatch.setitem(sys.modules, other, type(sys)(other))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as caught:
        feature(tmp_path)
    assert f"the library {package}" in str(caught.value)
    assert str(caught.value).endswith(f'\n\nhint: write pip install "torchspore[{extra}]".')


def test_event_files_that_are_not_written_are_reported_with_the_extra(run: Callable[..., processes.Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys\nsys.modules['tensorboardX'] = None\nimport mindspore as ms\n"
        "with ms.SummaryRecord('summaries') as record:\n    record.add_value('scalar', 'loss', ms.Tensor(1.0))\n    record.record(1)\n")
    ended = run("explain", "train.py")
    assert ended.code == 0, ended.err
    assert "tensorboardX is not installed" in ended.out and "(pip install 'torchspore[summary]')" in ended.out


def test_doctor_names_the_extra_of_each_absent_package(monkeypatch: pytest.MonkeyPatch) -> None:
    optional = set(read_project()["optional-dependencies"]) - {"dev", "tools"}
    assert {command.partition("[")[2].rstrip("]'") for _, command in doctor.EXTRAS.values()} == optional
    for package in doctor.EXTRAS:
        monkeypatch.setitem(sys.modules, package, None)
    absent = {finding.description: finding for finding in doctor.findings() if finding.mark == doctor.ABSENT}
    for package in doctor.EXTRAS:
        assert absent[package].result.startswith("not installed; ")
        assert absent[package].repair.startswith("pip install 'torchspore[") and absent[package].repair.endswith("]'")
