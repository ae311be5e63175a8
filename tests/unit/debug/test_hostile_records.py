"""Records that are damaged or made to do harm: named, bounded, and nothing in them runs."""
from __future__ import annotations

import json
import os
import pickle
import resource
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from torchspore.blackbox.record_reader import NoRecord, records
from torchspore.cli import rdr, replay

STAMP = "20260101000000"


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/torchspore_was_here",)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A record with a cause and nothing else."""
    recorder_folder = tmp_path / "rank_0" / "rdr"
    recorder_folder.mkdir(parents=True)
    put(recorder_folder, "TORCHSPORE.cause", "json", json.dumps({"kind": "exception", "text": "boom", "line": "a.py:3", "operator": "Log"}))
    return recorder_folder


def put(folder: Path, name: str, ending: str, contents: str | bytes) -> Path:
    path = folder / f"{name}.{STAMP}.{ending}"
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return path


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert rdr.run(["show", str(folder)]) == 0
    return capsys.readouterr().out


def test_what_is_damaged_is_named_and_the_rest_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "TORCHSPORE.versions", "json", "[" * 100000)
    put(folder, "RUNTIME_FRAMEWORK.operators", "txt", b"1 0.0 1.0 7 aten::log \x1b[2J\xff (Float32[2])\n")
    os.mkfifo(folder / f"RUNTIME_FRAMEWORK.tensors.{STAMP}.txt")
    (folder / f"TORCHSPORE.context.{STAMP}.txt").symlink_to("/etc/passwd")
    put(folder, "TORCHSPORE.python_stacks", "txt", pickle.dumps(Evil()))
    with (folder / f"RUNTIME_FRAMEWORK.allocations.{STAMP}.txt").open("wb") as file:
        file.truncate(1 << 40)
    text = shown(folder.parent.parent, capsys)
    assert text.startswith("likely cause: exception: boom at a.py:3 [operator Log]\n")
    assert "aten::log \\x1b[2J\ufffd" in text and "\x1b" not in text
    for part in ("versions.20260101000000.json is not a JSON object", "tensors.20260101000000.txt can't be read (not a regular file)",
                 "context.20260101000000.txt can't be read", "allocations.20260101000000.txt has more than 8 MB"):
        assert part in text, text
    assert "root:" not in text and not os.path.exists("/tmp/torchspore_was_here")


@pytest.mark.parametrize("value", [
    {"kind": [[[]]], "text": {"a": 1}, "command": {"x": 1}, "traceback": 7}, {"kind": "x" * 100000, "command": [None, ["y"], "z" * 100000]},
    {"text": 1e400, "line": -1, "incomplete": "yes", "operator": "\x1b]0;t\x07"}, {"traceback": "a\n" * 100000},
])
def test_odd_values_are_shown_or_omitted(value: object, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "TORCHSPORE.cause", "json", json.dumps(value))
    put(folder, "TORCHSPORE.versions", "json", '{"versions": {"a": [[]], "\\u001b": 3}}')
    put(folder, "TORCHSPORE.context", "txt", "x" * 1000000)
    text = shown(folder, capsys)
    assert text.startswith("likely cause: ") and "\x1b" not in text and len(text) < 10000


def test_a_record_that_was_being_written_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "TORCHSPORE.cause", "json", "")
    text = shown(folder, capsys)
    assert text.startswith("likely cause: unknown")
    assert "is empty: the record was being written when its writer ended" in text


def test_a_folder_without_records_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rdr.run(["show", str(tmp_path)]) == 1
    assert "found none" in capsys.readouterr().err
    assert rdr.run(["show", "--record", "x", str(tmp_path)]) == 2
    with pytest.raises(NoRecord, match="expected a directory"):
        records(str(tmp_path / "nowhere"))


def step(**changes: object) -> str:
    cell_record = {
        "version": 1, "label": "Net", "number": 3, "parameters": [["w", [2], "torch.float32"]], "numbers": [],
        "given": {"args": ["list", [["tensor", "in.0"]]], "kwargs": ["dict", {}]}, "random": {},
    }
    return json.dumps({**cell_record, **changes})


TENSORS = {"in.0": np.ones(2, np.float32), "before.0": np.ones(2, np.float32)}


@pytest.mark.parametrize("content", [
    "", "[]", "{}", "[" * 100000, step(version=99), step(given={"args": ["list", [["tensor", "in.9"]]], "kwargs": ["dict", {}]}),
    step(given={"args": ["eval", "1"], "kwargs": ["dict", {}]}), step(parameters=[["w", [3], "torch.float32"]]), step(parameters=7),
    step(label=None, number="x"), step(given=None),
])
def test_a_damaged_step_is_refused_before_the_program_runs(content: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "REPLAY.last_step", "json", content)
    save_file(TENSORS, str(folder / f"REPLAY.last_step.{STAMP}.safetensors"))
    assert replay.run([str(folder), "/nowhere.py"]) == 2
    assert f"REPLAY.last_step.{STAMP}.json" in capsys.readouterr().err


@pytest.mark.parametrize("raw", [b"", pickle.dumps(Evil()), (1 << 62).to_bytes(8, "little") + b"{}", b"\x08" + bytes(7) + b"{\"a\":1} "])
def test_damaged_tensors_of_a_step_are_refused(raw: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "REPLAY.last_step", "json", step())
    put(folder, "REPLAY.last_step", "safetensors", raw)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert replay.run([str(folder), "/nowhere.py"]) == 2
    assert "the step's tensors can't be read" in capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert not os.path.exists("/tmp/torchspore_was_here")


def test_the_program_is_the_one_that_the_user_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "TORCHSPORE.cause", "json", json.dumps({"kind": "exception", "text": "x", "program": ["evil.py", "a b"]}))
    put(folder, "REPLAY.last_step", "json", step())
    save_file(TENSORS, str(folder / f"REPLAY.last_step.{STAMP}.safetensors"))
    assert replay.run([str(folder)]) == 2
    assert f"hint: write `torchspore replay {folder} evil.py 'a b'`." in capsys.readouterr().err
    assert replay.run(["--step", "last_evaluation", str(folder), "train.py"]) == 2
    assert f"the record {STAMP} has no step last_evaluation; rdr.replay (MS_RDR_REPLAY=1) keeps them" in capsys.readouterr().err
