"""What the stand-in accelerator detects: each program with a fault is reported, and the correct one beside it is not."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[Any]]:
    """Give of each program what was reported with its fault, and without."""
    program = Path(__file__).with_name("programs") / "faults.py"
    ended = processes.python(program, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}, timeout=600)
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(("name", "second"), [("operands", "cpu"), ("operands_of_two_accelerators", "spore:1")])
def test_operands_on_different_devices(name: str, second: str, outcomes: dict[str, list[Any]]) -> None:
    text = f"Expected all tensors to be on the same device, but found at least two devices, spore:0 and {second}!"
    assert outcomes[name] == [text, ""]


@pytest.mark.parametrize(("name", "counts"), [
    ("synchronization", {"to_host": 1, "waits": 1}), ("shape_that_depends_on_values", {"waits": 1}),
    ("values_that_a_mask_writes", {"waits": 1}),
    ("host_copy", {"to_host": 1, "waits": 1}), ("transfer", {"to_device": 1}),
])
def test_what_a_training_step_does_apart_from_computing(name: str, counts: dict[str, int], outcomes: dict[str, list[Any]]) -> None:
    assert outcomes[name] == [counts, {}]


def test_calls_of_torch_that_wait(outcomes: dict[str, list[Any]]) -> None:
    waiting, others = outcomes["hidden_waits"]
    assert sorted(waiting) == sorted((
        "index", "index_put", "unique", "repeat_interleave", "one_hot", "allclose", "inv", "eigh", "svd", "multinomial", "histc",
        "length of a slice", "in", "format",
    ))
    assert others == {}


@pytest.mark.parametrize(("name", "sentence"), [
    ("early_read", "on stream 1 uses what aten.mul.out at "),
    ("early_read_behind_an_event", "and does not wait for it"),
    ("early_write", "on stream 0 overwrites what aten.add.out at "),
    ("pinned_memory_is_overwritten", "pinned memory of the host was overwritten before its copy to the device was complete"),
    ("memory_of_another_stream", "record_stream was not called"), ("result_of_another_stream", "record_stream was not called"),
    ("memory_in_programs_of_mindspore", "record_stream was not called"),
    ("gradients_on_their_stream", "and does not wait for it"),
])
def test_streams_that_do_not_wait(name: str, sentence: str, outcomes: dict[str, list[Any]]) -> None:
    faults, none = outcomes[name]
    assert none == []
    assert sentence in faults[0]


def test_a_fault_names_the_lines(outcomes: dict[str, list[Any]]) -> None:
    text = outcomes["early_read"][0][0]
    assert "/src/torchspore/" in text and "/programs/faults.py:" in text


def test_a_copy_to_the_host_has_no_values_before_it_is_complete(outcomes: dict[str, list[Any]]) -> None:
    assert outcomes["host_reads_too_early"] == [-4.0, 8.0]
