"""How many packages a first call in Graph mode enters, how often it returns to one, and how many files a gradient enters."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "first_call.py"


def test_calls_enter_few_packages_and_files() -> None:
    output = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=True).stdout
    graph = re.search(r"^(\d+) packages, (\d+) returns$", output, re.MULTILINE)
    gradient = re.search(r"^value_and_grad: (\d+) files$", output, re.MULTILINE)
    assert graph is not None and gradient is not None, output
    assert int(graph[1]) <= 14 and int(graph[2]) <= 32, output
    assert int(gradient[1]) <= 18, output
