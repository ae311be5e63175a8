"""The generated page of control flow says what is so."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.slow
def test_the_table_of_control_flow_is_up_to_date() -> None:
    ended = subprocess.run([sys.executable, "tools/control_table.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
