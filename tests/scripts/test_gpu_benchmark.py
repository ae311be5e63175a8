"""benchmarks/gpu.py itself, on the CPU with small nets: what it measures is not looked at, that it measures all of it is."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import environment

ROOT = Path(__file__).parents[2]


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/gpu.py", "--device", "CPU", "--tiny", "--rounds", "1", "--seconds", "0.01", *words]
    return subprocess.run(command, cwd=ROOT, env=environment({"OMP_NUM_THREADS": "1"}), capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_all_nets_in_both_modes() -> None:
    ended = ran("--nets", "gpt2,gpt2-infer,resnet50-infer,bert,bert-infer")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("CPU, torch ") and lines[0].endswith("TFLOP/s at most")
    heads = [line for line in lines if line.startswith("###")]
    names = [head.split()[1].rstrip(":") for head in heads]
    assert names == ["resnet50", "gpt2", "gpt2", "bert", "bert"]
    assert all(float(head.split()[-2]) > 0 for head in heads)                    # operations are counted
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ") and "contender" not in line]
    assert [row[0] for row in rows] == ["torch eager", "PyNative", "Graph O0"] * 5
    assert all(float(row[1]) > 0 and row[4].endswith("%") for row in rows)
    assert {row[6].split()[0] for row in rows if row[0] != "torch eager"} <= {"within", "beyond"}


def test_what_is_refused() -> None:
    ended = ran("--nets", "resnet51")
    assert ended.returncode == 1 and ended.stderr.strip() == (
        "--nets resnet51: expected some of resnet50, resnet50-infer, gpt2, gpt2-infer, bert, bert-infer")
