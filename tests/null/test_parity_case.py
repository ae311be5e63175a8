"""The comparison of parity cases tells apart what differs."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from parity import case

BASE = np.array([1.0, 2.0], np.float32)


@pytest.mark.parametrize(
    ("expected", "result", "problem"),
    [
        (BASE, BASE + np.float32(1e-7), None),
        (BASE, np.array([1.0, 2.1], np.float32), "x: at (1,): float32(2.0) expected, float32(2.1) found"),
        (BASE, BASE.astype(np.float64), "x: float32[2] expected, float64[2] found"),
        (BASE, BASE[:1], "x: float32[2] expected, float32[1] found"),
        (np.array([1, 2]), np.array([1, 3]), "x: [1, 2] expected, [1, 3] found"),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), None),
        (np.array([np.nan, 1.0]), np.array([0.0, 1.0]), "x: at (0,): float64(nan) expected, float64(0.0) found"),
        (True, 1, "x: True expected, 1 found"),
        ([1, 2], (1, 2), None),
        ("a", "b", "x: 'a' expected, 'b' found"),
    ],
)
def test_differences(expected: object, result: object, problem: str | None) -> None:
    lines = case.differences({"x": expected}, {"x": result}, 1e-6, 0.0)
    assert lines == [] if problem is None else lines[0].startswith(problem)


def test_keys_that_one_side_lacks() -> None:
    assert case.differences({"a": 1}, {"b": 1}, 0, 0) == ["a: not answered", "b: not in the record (record it: tools/record.py parity)"]


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    answers = {"one[a/b]": {"x": BASE, "n": np.float64(2.5), "text": "é", "list": [1, None]}, "two": {}}
    case.write(path, answers, {"mindspore": "2.10.0"})
    back = case.read(path)
    assert set(back) == set(answers)
    assert not case.differences(back["one[a/b]"], answers["one[a/b]"], 0, 0)
    first = path.read_bytes()
    case.write(path, answers, {"mindspore": "2.10.0"})
    assert path.read_bytes() == first
