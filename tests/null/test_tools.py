"""The commands of tools/ that are made of several subjects."""
from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
import record
from recorders import oracle

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_each_recorder_is_a_subject() -> None:
    modules = {path.stem for path in (TOOLS / "recorders").glob("*.py")} - {"__init__", "oracle"}
    assert set(record.SUBJECTS) == modules
    for name in modules:
        source = (TOOLS / "recorders" / f"{name}.py").read_text(encoding="utf-8")
        assert "def add_arguments(" in source and ("def record(" in source or "def record_inside(" in source), name


def test_an_unknown_subject_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        record.main(["nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def test_a_missing_python_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"none/python does not exist: --python expects the Python that has mindspore 2\.10"):
        record.main(["parity", "--python", str(tmp_path / "none" / "python"), "amp"])


def test_a_record_of_torchspore_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("mindspore")
    package.__torchspore__ = True  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mindspore", package)
    with pytest.raises(SystemExit, match="this is torchspore: records come from real MindSpore"):
        oracle.mindspore()


def test_the_answer_of_a_process_that_dies_is_none() -> None:
    assert oracle.answer_of_fork(lambda: {"a": 1}) == {"a": 1}
    assert oracle.answer_of_fork(lambda: __import__("os")._exit(3)) is None
