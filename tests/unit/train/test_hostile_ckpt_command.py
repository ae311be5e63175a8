"""`torchspore ckpt` with files that are damaged or made to do harm: exit code 2, a message, no file, and nothing in them runs."""
from __future__ import annotations

import io
import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest
import torch
from mindspore import nn
from safetensors.torch import save

from torchspore.cli import ckpt
from torchspore.errors import OutOfMemory
from torchspore.export import safetensors_files


class Runs:
    """Creates a file where it is read as a pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def torch_bytes(value: Any, is_new: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=is_new)
    return buffer.getvalue()


STATE = {"fc.weight": torch.ones(3, 2), "fc.bias": torch.ones(3)}


def head(text: bytes, content: bytes = bytes(4)) -> bytes:
    return len(text).to_bytes(8, "little") + text + content


def tensor(name: str, shape: str) -> bytes:
    return f'"{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[0,4]}}'.encode()


CONTENTS = {
    "empty.pth": b"", "empty.ckpt": b"", "empty.safetensors": b"", "noise.pth": b"\xff" * 300, "noise.ckpt": b"\xff" * 300,
    "text.pth": b"weights\n" * 9, "cut.pth": torch_bytes(STATE)[:-60], "old_cut.pth": torch_bytes(STATE, False)[:-20],
    "cut.safetensors": save(STATE)[:-1], "other.safetensors": torch_bytes(STATE), "other.pth": save(STATE), "other.ckpt": save(STATE),
    "length.safetensors": (1 << 62).to_bytes(8, "little") + b"{}", "nan.safetensors": head(b"{" + tensor("a", "[NaN]") + b"}"),
    "length.pth": b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little") + b"a.", "deep.pth": b"\x80\x02" + b"]" * 9999 + b"a" * 9998 + b".",
    "repeated.pth": torch_bytes({"fc.weight": torch.ones(1).expand(1 << 42)}),
    "shared.pth": torch_bytes({f"{n}.weight": torch.ones(1).expand(1 << 24) for n in range(9)}),
    "none.pth": torch_bytes({"a": None}), "numbers.pth": torch_bytes({1: torch.ones(1)}), "list.pth": torch_bytes([torch.ones(1)]),
    "module.pth": torch_bytes(torch.nn.Linear(2, 2)), "meta.pth": torch_bytes({"a": torch.ones(3, device="meta")}),
    "sparse.pth": torch_bytes({"a": torch.eye(3).to_sparse()}), "twice.safetensors": head(b"[" + tensor("a", "[1]") + b"]"),
}


def actions(name: str) -> list[list[str]]:
    """Return the commands that read a file."""
    is_torch = name.endswith(".pth")
    conversion = ["from-torch", name, "out.ckpt"] if is_torch else ["to-torch", name, "out.pth", "--keep-names"]
    return [["show", name], ["diff", name, name], conversion, *([] if is_torch else [["convert", name, "out.dcp"]])]


def assert_refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = set(folder.iterdir())
    assert ckpt.run(words) == 2, words
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("torchspore ckpt: ") and len(shown.err) < 2000
    assert set(folder.iterdir()) == before
    return shown.err


@pytest.mark.parametrize("name", CONTENTS)
def test_files_that_are_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(CONTENTS[name])
    for words in actions(name):
        if words[0] == "to-torch" and name == "empty.ckpt":
            continue
        if name == "empty.ckpt":                             # MindSpore's file of no parameters
            assert ckpt.run(words) == 0
            capsys.readouterr()
        else:
            assert name in assert_refused(words, tmp_path, capsys)


@pytest.mark.parametrize("form", ["alone", "in a state_dict", "of an old file"])
@pytest.mark.parametrize("ending", ["pth", "bin", "ckpt", "safetensors"])
def test_nothing_in_a_file_runs(
    form: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    value = Runs(tmp_path / "has_run")
    contents = {
        "alone": pickle.dumps(value), "in a state_dict": torch_bytes({"fc.weight": value}), "of an old file": torch_bytes(value, False),
    }
    Path(f"file.{ending}").write_bytes(contents[form])
    for words in actions(f"file.{ending}"):
        if ending == "bin":
            words = [word.replace("to-torch", "from-torch").replace("out.pth", "out.ckpt") for word in words if words[0] != "convert"] or [
                "show", "file.bin"]
        assert_refused(words, tmp_path, capsys)
    assert not (tmp_path / "has_run").exists()


def test_names_are_shown_in_a_form_that_is_safe_for_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ms.save_checkpoint(nn.Dense(2, 3), "net.ckpt")
    torch.save({"../../up": torch.ones(1), "a\x1b[31m": torch.ones(1)}, "names.pth")
    for words in (["show", "names.pth"], ["from-torch", "names.pth", "out.ckpt", "--map", "x=y", "--like", "net.ckpt"],
                  ["from-torch", "names.pth", "out.ckpt", "--keep-names"], ["convert", "out.ckpt", "out.dcp"], ["show", "out.dcp"]):
        ckpt.run(words)
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err, words
    assert {path.name for path in tmp_path.iterdir()} == {"net.ckpt", "names.pth", "out.ckpt", "out.dcp"}
    assert not (tmp_path.parent.parent / "up").exists()


@pytest.mark.parametrize("words", [
    ["to-torch", "net.ckpt", "folder.pth"], ["to-torch", "net.ckpt", "pipe.pth"], ["convert", "net.ckpt", "pipe.safetensors"],
    ["convert", "net.ckpt", "plain.dcp"], ["show", "pipe.pth"], ["show", "folder.pth"], ["from-torch", "pipe.pth", "out.ckpt"],
    ["from-torch", "state.pth", "out.ckpt", "--like", "pipe.pth"], ["convert", "net.ckpt", "ranks", "--strategy", "pipe.pth"]])
def test_folders_and_pipes(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ms.save_checkpoint(nn.Dense(2, 3), "net.ckpt")
    torch.save(STATE, "state.pth")
    Path("folder.pth").mkdir()
    Path("plain.dcp").write_text("text")
    os.mkfifo("pipe.pth")
    os.mkfifo("pipe.safetensors")
    assert ".tmp" not in assert_refused(words, tmp_path, capsys)


def test_a_conversion_without_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(STATE, "state.pth")

    def fail(*_: Any) -> None:
        raise OutOfMemory("no memory")

    monkeypatch.setattr(safetensors_files, "read_torch", fail)
    assert "no memory" in assert_refused(["from-torch", "state.pth", "out.ckpt"], tmp_path, capsys)


def test_tensors_without_elements(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.safetensors").write_bytes(save({"a": torch.zeros(0, 3), "b": torch.ones(2)}))
    for source, output in (("empty.safetensors", "out.dcp"), ("out.dcp", "out.ckpt"), ("out.ckpt", "last.safetensors")):
        assert ckpt.run(["convert", source, output]) == 0
    capsys.readouterr()
    assert ckpt.run(["show", "last.safetensors", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["shape"]) for row in shown["parameters"]] == [("a", [0, 3]), ("b", [2])]


def test_changed_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ms.save_checkpoint(nn.Dense(2, 3), "net.ckpt")
    chance = random.Random(0)
    sources = {
        "a.pth": torch_bytes(STATE), "b.pth": torch_bytes(STATE, False), "c.safetensors": save(STATE),
        "d.ckpt": Path("net.ckpt").read_bytes()[:-17],
    }
    for name, content in sources.items():
        for _ in range(40):
            changed = bytearray(content)
            for _ in range(chance.randrange(1, 8)):
                changed[chance.randrange(min(len(changed), 900))] = chance.randrange(256)
            Path(name).write_bytes(changed)
            for words in actions(name)[2:3]:
                code = ckpt.run(words)
                assert code == 0 or (code == 2 and not Path(words[2]).exists()), (words, bytes(changed))
                Path(words[2]).unlink(missing_ok=True)
    assert "Traceback" not in capsys.readouterr().err
