"""The kept scripts of the parameter server: Wide&Deep beside one process, and processes killed at random moments."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc")
ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, seconds: float) -> str:
    """Run a script of this project; return what it prints."""
    ended = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


@pytest.mark.parametrize("rows", [40_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_wide_and_deep_equals_one_process(rows: int) -> None:
    text = run("benchmarks/wide_deep_servers.py", "--rows", str(rows), "--steps", "4", seconds=900)
    assert "equal in all bits" in text and text.count("peak memory of") == 6


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--recovery",)])
def test_random_kills(words: tuple[str, ...]) -> None:
    text = run("tools/server_kills.py", "--kills", "3", *words, seconds=1500)
    assert text.count("3 kills, 0 failures") == (2 if words else 3)
