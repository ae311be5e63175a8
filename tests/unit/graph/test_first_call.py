"""How many rooms of graph mode a first call goes through, and how often it turns back to one: what a reader has to follow."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "first_call.py"


def test_a_first_call_seldom_turns_back() -> None:
    told = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=True).stdout
    found = re.match(r"(\d+) rooms, (\d+) returns\n", told)
    assert found is not None, told
    assert int(found[1]) <= 14 and int(found[2]) <= 42, told
