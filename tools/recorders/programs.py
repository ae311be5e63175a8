"""Records the output of the programs in tests/scripts/programs/zoo from real MindSpore 2.10, in PYNATIVE_MODE on the CPU.

    tools/record.py programs --python .oracle/bin/python [NAME ...]

NAME.expected next to NAME.py contains the output; its first line has the versions and the command. Modules of 1.x that 2.10 lacks are added
before a program runs.
"""
from __future__ import annotations

import argparse
import importlib
import runpy
import sys
import tempfile

from recorders import oracle

PROGRAMS = oracle.ROOT / "tests" / "scripts" / "programs" / "zoo"
DROPPED = {
    "mindspore.dataset.transforms.c_transforms": "mindspore.dataset.transforms",
    "mindspore.dataset.transforms.py_transforms": "mindspore.dataset.transforms",
    "mindspore.dataset.vision.c_transforms": "mindspore.dataset.vision",
    "mindspore.dataset.vision.py_transforms": "mindspore.dataset.vision",
}
"""Modules of 1.x that 2.10 lacks -> the modules that have their names in 2.10."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("names", nargs="*", help="programs without `.py`; all by default")


def record(arguments: argparse.Namespace) -> int:
    """Run each program in a process of MindSpore's Python and write its output. Raises CalledProcessError if a program fails."""
    code = "import mindspore, numpy; print(mindspore.__version__, numpy.__version__)"
    mindspore, numpy = oracle.output_of(arguments, ["-W", "ignore", "-c", code]).split()
    for name in arguments.names or sorted(path.stem for path in PROGRAMS.glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:
            output = oracle.output_of(arguments, ["-W", "ignore", str(oracle.COMMAND), "programs", "--inside", name], cwd=folder)
        head = f"# MindSpore {mindspore}, NumPy {numpy}: tools/record.py programs {name}\n"
        (PROGRAMS / f"{name}.expected").write_text(head + output, encoding="utf-8")
        print(f"{name}: {len(output.splitlines())} lines")
    return 0


def record_inside(arguments: argparse.Namespace) -> int:
    """Run one program in this process, after the missing modules have been added."""
    program = str(PROGRAMS / f"{arguments.names[0]}.py")
    for old, new in DROPPED.items():
        sys.modules.setdefault(old, importlib.import_module(new))
        parent, _, name = old.rpartition(".")
        setattr(importlib.import_module(parent), name, sys.modules[old])
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")
    return 0
