"""The quick-start program and its digits."""
from __future__ import annotations

import math
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run, environment

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
FILES = {
    "train/train-images-idx3-ubyte": (1442, 28, 28),
    "train/train-labels-idx1-ubyte": (1442,),
    "test/t10k-images-idx3-ubyte": (355, 28, 28),
    "test/t10k-labels-idx1-ubyte": (355,),
}


@pytest.mark.parametrize(("name", "shape"), FILES.items())
def test_digits_are_idx_files(name: str, shape: tuple[int, ...]) -> None:
    data = (QUICKSTART / "data" / name).read_bytes()
    rank = len(shape)
    assert struct.unpack(f">HBB{rank}I", data[: 4 + 4 * rank]) == (0, 8, rank, *shape)
    assert len(data) == 4 + 4 * rank + math.prod(shape)


def test_digits_are_what_the_stored_script_creates(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    command = [sys.executable, str(ROOT / "tools" / "make_digits.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env=environment())
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (QUICKSTART / "data" / name).read_bytes()


def test_the_program_does_not_mention_torchspore() -> None:
    text = (QUICKSTART / "train.py").read_text(encoding="utf-8")
    assert "torch" not in text


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize("mode", ["PYNATIVE", "GRAPH"])
def test_it_trains(mode: str, warm: Callable[..., Run], tmp_path: Path) -> None:
    ended = warm("run", "--explain", QUICKSTART / "train.py", "--mode", mode, "--epochs", "8", cwd=tmp_path)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == f"training LeNet-5 in {mode}_MODE: 8 epochs of 46 steps"
    assert [line.split(":")[0] for line in lines[1:9]] == [f"epoch {epoch:2d} of 8" for epoch in range(1, 9)]
    (accuracy,) = re.findall(r"^accuracy on the held-back digits: (\d+\.\d\d) %$", ended.out, re.M)
    assert float(accuracy) >= 95
    assert (tmp_path / "output" / "lenet.ckpt").stat().st_size > 200_000
    assert re.search(r"^option +value +from +outcome$", ended.out, re.M)
    assert re.search(r"^mode +" + ("0" if mode == "GRAPH" else "1") + " ", ended.out, re.M)
    if mode == "GRAPH":
        shown = re.search(r"^\$ torchspore explain .*\n(.*\n.*)\n```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
        assert shown is not None
        printed = [" ".join(line.replace(f"{ROOT}/", "").split()) for line in lines]
        assert all(" ".join(line.split()) in printed for line in shown[1].splitlines()), "README.md shows another table than explain prints"
