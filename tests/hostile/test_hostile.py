"""Every public function, class and method with hostile arguments: no crash, no hang, only the promised errors, each naming the call."""
from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support import processes

WORKER = Path(__file__).parent / "worker.py"
STUCK = 90
"""Seconds without a sign of life after which a worker counts as hanging; it takes its own time for each call."""


def lines_of(first: int, step: int, tries: int, folder: Path) -> list[dict[str, Any]]:
    """What one worker says."""
    command = [sys.executable, "-X", "faulthandler", str(WORKER), *map(str, (first, step, tries))]
    environment = processes.environment({"OMP_NUM_THREADS": "1"})
    with open(folder / f"stderr{first}", "w") as err:
        worker = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=err, text=True)
    assert worker.stdout is not None
    lines: list[dict[str, Any]] = []
    watch = threading.Timer(STUCK, worker.kill)
    watch.start()
    for line in worker.stdout:
        watch.cancel()
        watch = threading.Timer(STUCK, worker.kill)
        watch.start()
        lines.append(json.loads(line))
    watch.cancel()
    worker.stdout.close()
    lines.append({"code": worker.wait()})
    return lines


def tried(first: int, step: int, tries: int, folder: Path) -> list[dict[str, Any]]:
    """What the workers say that together try FIRST, FIRST + STEP, ...: after one that died, the next begins behind the call that did it."""
    problems: list[dict[str, Any]] = []
    while True:
        lines = lines_of(first, step, tries, folder)
        problems += lines
        begun = [line for line in lines if "begin" in line]
        if any("end" in line for line in lines):
            return problems
        assert begun, (folder / f"stderr{first}").read_text()[-3000:]
        code = lines[-1]["code"]
        problems.append({"path": begun[-1]["begin"], "wrong": "hangs" if code == -9 else "crash", "said": f"the process ended with {code}"})
        first = begun[-1]["number"] + step


def report(problems: list[dict[str, Any]]) -> list[str]:
    """The findings, one a line; prints what was tried."""
    wrong = [f"{line['wrong']}: {line['path']}: {line['said']}" for line in problems if "wrong" in line]
    over = [line["path"] for line in problems if "passed_over" in line]
    names = sum("begin" in line for line in problems)
    print(f"{names} names tried, {len(wrong)} findings; no object to call: {', '.join(over) or 'none'}")
    print("\n".join(wrong))
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_public_name(part: int, tmp_path: Path) -> None:
    problems = tried(part, 4, 40, tmp_path)
    assert not report(problems)
    assert sum("begin" in line for line in problems) > 400


@pytest.mark.slow
@pytest.mark.sample
def test_a_sample_of_the_names(tmp_path: Path) -> None:
    problems = tried(3, 60, 12, tmp_path)
    assert not report(problems)
    assert sum("begin" in line for line in problems) > 25
