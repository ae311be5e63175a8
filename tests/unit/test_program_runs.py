"""benchmarks/program_runs.py: runs of programs in fresh processes, and their table."""
from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("TORCHSPORE_WAIT", "1")                 # turns.py sets it if it is absent
    return importlib.import_module("program_runs")


def test_a_run_has_seconds_memory_and_output(runs: ModuleType) -> None:
    script = "import os, sys; print(os.listdir(), os.environ['WORD'], 'TORCHSPORE_WAIT' in os.environ); print('end', file=sys.stderr)"
    run = runs.run([sys.executable, "-c", script], {"WORD": "word"}, "a program")
    assert 0 < run.seconds < 60 and run.mebibytes > 1
    assert sorted(run.output.split("\n")) == ["", "[] word False", "end"]


def test_a_failed_run_names_the_error(runs: ModuleType) -> None:
    with pytest.raises(RuntimeError, match=r"^a program: exit code 1: ValueError: wrong$"):
        runs.run([sys.executable, "-c", "raise ValueError('wrong')"], {}, "a program")


def test_a_long_run_is_stopped(runs: ModuleType) -> None:
    assert runs.run([sys.executable, "-c", "import time; time.sleep(600)"], {}, "a program", longest=1).seconds == float("inf")


@pytest.mark.parametrize(("output", "expected"), [
    ("a\nRuntimeError: wrong\n\n----\n- C++\n", "RuntimeError: wrong"), ("a\nlast\n", "last"),
    ("[ERROR] MD(1,2): x\nRuntimeError: Refer to 'Dataset Pipeline Error Message'.\n---\n[ERROR] Invalid file\n", "[ERROR] Invalid file"),
    ("", "no output"),
    ("mindspore.errors.NameError: x", "mindspore.errors.NameError: x"),
])
def test_the_last_error_of_an_output(runs: ModuleType, output: str, expected: str) -> None:
    assert runs.last_error(output) == expected


def test_a_table_has_failures_and_stopped_runs(runs: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = {"base": iter([2.0, 4.0]), "ours": iter([1.0, 3.0]), "stopped": iter([float("inf")])}

    limits = []

    def fail(limit: float | None) -> object:
        limits.append(limit)
        raise RuntimeError("reason")

    starts = {name: lambda limit, times=times: runs.Run(next(times), 10.0) for name, times in seconds.items()}
    measured, failures = runs.measure({**starts, "failing": fail}, 2, ("stopped", "failing"), "base")
    assert failures == {"failing": "reason"} and limits == [6.0]
    runs.print_table("title", measured, failures, "base")
    assert capsys.readouterr().out == """
### title

| contender | s | ratio to base (median, min .. max of 2) | peak of the memory, MiB |
|---|---:|---|---:|
| base | 3.00 | 1.00 (1.00 .. 1.00) | 10 |
| ours | 2.00 | 0.62 (0.50 .. 0.75) | 10 |
| stopped | stopped after 6 | | |
| failing | fails | | |
"""


def test_a_contender_that_must_run_may_not_fail(runs: ModuleType) -> None:
    def fail(limit: float | None) -> object:
        assert limit is None
        raise RuntimeError("reason")

    with pytest.raises(RuntimeError, match=r"^reason$"):
        runs.measure({"ours": fail}, 1, (), "ours")
