"""Suites of this repository on the stand-in accelerator, each part in a process of its own: a crash costs one part.

`-m slow` runs all of it: the parity records in both modes, the front end's tests, and those of data, checkpoints, training and
semi_auto_parallel. A sixth of the records, and the streams of the data pipeline, of offloading and of `hal`, run where the stand-in
executes late.
"""
from __future__ import annotations

import ast
from pathlib import Path

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
UNIT = TESTS / "unit"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


def run(*words: str, parity: str = "", is_late: bool = False, timeout: float = 1500) -> dict[str, int]:
    """Run pytest on the stand-in, and return its counts."""
    command = "-m", "pytest", "-q", "-n", "0", "-p", "stand_in", "-p", "no:cacheprovider", "--tb=short", *words
    extra = {"OMP_NUM_THREADS": "1", **({"PARITY": parity} if parity else {}), **({"STAND_IN_LATE": "1"} if is_late else {})}
    ended = processes.python(*command, cwd=TESTS.parent, extra=extra, timeout=timeout)
    assert ended.code == 0, f"{ended.code}\n{ended.out[-4000:]}\n{ended.err[-2000:]}"
    line = next(line for line in ended.out.splitlines() if line.startswith("stand-in: "))
    return ast.literal_eval(line.partition(": ")[2])  # type: ignore[no-any-return]


def parts(files: list[str], count: int) -> list[list[str]]:
    """Return files in several lists, so that each has small and large ones."""
    return [files[number::count] for number in range(count)]


RECORDS = parts(sorted(path.stem for path in (TESTS / "parity" / "cases").glob("*.py")), 24)
FRONT = parts(sorted(str(path) for path in (UNIT / "front").rglob("test_*.py")), 16)
OTHERS = {
    "data": ["dataset/test_batch_arrays.py", "dataset/test_graphs.py", "dataset/test_dataloader.py", "dataset/test_threads.py"],
    "checkpoints": ["train/test_checkpoint_files.py", "train/test_init_step.py"],
    "training": ["train/test_loops.py", "train/test_progress.py"],
    "offload of Cells": ["engine/test_cell_offload.py"],
    "semi_auto_parallel": ["shard/test_nets.py", "shard/test_numbers.py"],
}
LATE = ["train/test_loops.py", "dataset/test_batch_arrays.py", "dataset/test_dataloader.py", "engine/test_cell_offload.py"]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_parity_records(number: int) -> None:
    """Both modes of every case of the files: `PARITY` leaves none of them to the slow tests."""
    run("tests/parity/test_cases.py", parity=",".join(RECORDS[number]))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, len(RECORDS), 6))
def test_parity_records_of_what_executes_late(number: int) -> None:
    run("tests/parity/test_cases.py", parity=",".join(RECORDS[number]), is_late=True)


@pytest.mark.sample
@pytest.mark.slow
def test_a_sample_of_the_parity_records() -> None:
    counts = run("tests/parity/test_cases.py", parity="ops_elementwise,np_elementwise,tensor_methods,limits", timeout=300)
    assert counts["operators"] > 2000 and counts["to_device"] > 500


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(FRONT)))
def test_the_front_end(number: int) -> None:
    run(*FRONT[number])


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_suites(name: str) -> None:
    run("-m", "not slow", *(str(UNIT / file) for file in OTHERS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("file", LATE)
def test_streams_of_what_executes_late(file: str) -> None:
    run("-m", "not slow", str(UNIT / file), is_late=True)
