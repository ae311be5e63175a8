"""Records what the programs of tests/scripts/programs/zoo print in real MindSpore 2.10, in PYNATIVE_MODE on the CPU.

usage: PYTHON_OF_MINDSPORE tools/record_programs.py [NAME …]

The file NAME.expected beside NAME.py holds the output; its first line says the version and the command. Run it alone on the machine:
MindSpore's wall time grows many times beside another busy process. Modules of 1.x that 2.10 has dropped are put in place first.
"""
from __future__ import annotations

import importlib
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "scripts" / "programs" / "zoo"
DROPPED = {
    "mindspore.dataset.transforms.c_transforms": "mindspore.dataset.transforms",
    "mindspore.dataset.transforms.py_transforms": "mindspore.dataset.transforms",
    "mindspore.dataset.vision.c_transforms": "mindspore.dataset.vision",
    "mindspore.dataset.vision.py_transforms": "mindspore.dataset.vision",
}
"""Modules of 1.x that 2.10 lacks, and where their names are in 2.10."""


def run_here(program: str) -> None:
    """Runs one program in this process, after the dropped modules are in place."""
    for old, new in DROPPED.items():
        sys.modules.setdefault(old, importlib.import_module(new))
        parent, _, name = old.rpartition(".")
        setattr(importlib.import_module(parent), name, sys.modules[old])
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")


def record(program: Path) -> None:
    """Writes the file of expected output. Raises CalledProcessError where the program fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", __file__, "--run", str(program)]
        environment = {**os.environ, "GLOG_v": "3"}
        ended = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    import mindspore
    import numpy

    head = f"# MindSpore {mindspore.__version__}, NumPy {numpy.__version__}: python tools/record_programs.py {program.stem}\n"
    program.with_suffix(".expected").write_text(head + ended.stdout, encoding="utf-8")
    print(f"{program.stem}: {len(ended.stdout.splitlines())} lines")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_here(sys.argv[2])
    else:
        for name in sys.argv[1:] or sorted(path.stem for path in PROGRAMS.glob("*.py")):
            record(PROGRAMS / f"{name}.py")
