"""Normalization of half precision on the stand-in that executes late, beside the CPU."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "half_precision.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")
TOLERANCE = {"Float16": 0.02, "BFloat16": 0.12, "Float32": 1e-4}
"""The CPU keeps means and deviations in half precision, an accelerator in float32."""


def run(device: str, mode: int) -> dict[str, Any]:
    ended = processes.python(PROGRAM, device, str(mode), cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)})
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", [1, pytest.param(0, marks=pytest.mark.slow)], ids=["pynative", "graph"])
def test_normalization(mode: int) -> None:
    late, host = run("GPU", mode), run("CPU", 1)
    assert late["faults"] == [] and list(late["rows"]) == list(host["rows"])
    for name, row in late["rows"].items():
        for (dtype, values), (expected_dtype, expected) in zip(row, host["rows"][name], strict=True):
            assert dtype == expected_dtype, name
            tolerance = TOLERANCE[name.rpartition(" ")[2]]
            np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()), err_msg=name)
