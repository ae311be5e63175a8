"""The stubs, seen through a type checker, and whether what is generated is fresh."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import generate
import pytest

STUBS = Path(__file__).resolve().parents[3] / "mindspore-stubs" / "mindspore-stubs"
USER = """\
import mindspore as ms
import mindspore.nn as nn
from mindspore import context, Tensor
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", save_graphs=True, jit_config={"jit_level": "O1"})
context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, device_num=8)
depth: int = ms.get_context("max_call_depth")
ms.set_context(mod=0)
ms.set_context(mode="graph")
ms.set_context(device_target="TPU")
ms.set_context(jit_config={"jit_level": "O9"})
size: str = ms.get_context("max_device_memory")
ms.get_context("modee")
"""


def test_a_type_checker_flags_wrong_keys_and_values(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    shutil.copytree(STUBS, tmp_path / "stubs" / "mindspore")
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", os.devnull, "user.py"]
    environment = {**os.environ, "MYPYPATH": str(tmp_path / "stubs")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    errors = [line for line in ran.stdout.splitlines() if ": error: " in line]
    assert [(line.split(":")[1], line.rpartition("[")[2]) for line in errors] == [
        ("7", "call-arg]"), ("8", "arg-type]"), ("9", "arg-type]"), ("10", "typeddict-item]"), ("11", "assignment]"),
        ("12", "call-overload]"),
    ], ran.stdout + ran.stderr
    assert 'did you mean "mode"' in errors[0]


def test_the_wheel_of_the_stubs_covers_every_module_that_programs_import() -> None:
    stubs = set((STUBS.parent / "modules.txt").read_text(encoding="utf-8").splitlines())
    assert stubs >= {
        "nn/__init__.pyi", "dataset/__init__.pyi", "dataset/vision/__init__.pyi", "ops/operations/__init__.pyi", "train/__init__.pyi",
        "common/initializer/__init__.pyi", "mint/nn/functional.pyi", "nn/layer/basic.pyi",
    }
    assert "context.pyi" not in stubs                                # it has a stub with types


def test_generated_files_are_fresh() -> None:
    for subject in generate.SUBJECTS.keys() - {"offered"}:              # takes a minute: `make check` compares it
        stale = generate.stale_files(subject)
        assert not stale, f"{', '.join(path.name for path in stale)}: run tools/generate.py {subject}"
