"""Counts the parity cases and the public programs that use each public name: tests/parity/records/reached.json.

    tools/record.py name_uses                                                counts the cases (ten minutes)
    tools/record.py name_uses --programs ../shared/spec/programs.json        counts the programs

A case counts for a name that it reads from one of MindSpore's modules while it runs. If a file reads a name once, when it is imported,
the cases whose label has that name count, or one case. All cases pass (`make test`), so the result of each equals MindSpore's.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from recorders import oracle

RECORD = oracle.RECORDS / "reached.json"

names_read: set[str] = set()


def watch(module: ModuleType, prefix: str) -> None:
    """Add each public name to `names_read` that a file under tests/parity reads from the module from now on."""
    base = type(module)

    class Watched(base):  # type: ignore[valid-type, misc]
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if not name.startswith("_") and "/parity/" in sys._getframe(1).f_code.co_filename and not isinstance(value, ModuleType):
                names_read.add(f"{prefix}.{name}")
            return value

    module.__class__ = Watched


def used_by_cases() -> collections.Counter[str]:
    """Count the cases that use each name."""
    from parity import case as parity

    uses: collections.Counter[str] = collections.Counter()
    for path in sorted(parity.CASES.glob("*.py")):
        names_read.clear()
        cases = parity.load(path)
        at_import, words = set(names_read), [set(re.findall(r"\w+", case.name)) for case in cases]
        for name in at_import:
            uses[name] += max(1, sum(name.rpartition(".")[2] in label for label in words))
        for case in cases:
            names_read.clear()
            if run_alone(case):
                uses.update(names_read - at_import)
            else:
                print(f"{path.stem}: {case.name} failed here and counts for nothing", flush=True)
        print(f"{path.stem}: {len(cases)} cases", flush=True)
    return uses


def run_alone(case: Any) -> bool:
    """Run a case in an empty folder and return whether it succeeds: a few need fixtures of the test's process."""
    from parity import case as parity

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = os.getcwd()
        os.chdir(folder)
        try:
            parity.run(case)
        except Exception:
            return False
        finally:
            os.chdir(before)
    return True


def used_by_programs(paths: list[Path]) -> collections.Counter[str]:
    """Count the programs in these files that use each name."""
    uses: collections.Counter[str] = collections.Counter()
    for path in paths:
        listed = json.loads(path.read_text())
        for programs in listed["programs"].values():
            for program in programs:
                uses.update(listed["names"][number] for number in program)
    return uses


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--programs", nargs="*", type=Path, help="count the programs in these lists; the counts of cases stay")


def record(arguments: argparse.Namespace) -> int:
    """Write the record: {"cases": {name: count}, "programs": {name: count}}."""
    import torchspore
    from torchspore.public_names import listing

    torchspore.install()
    counts = json.loads(RECORD.read_text()) if RECORD.exists() else {"cases": {}, "programs": {}}
    if arguments.programs:
        counts["programs"] = used_by_programs(arguments.programs)
    else:
        for name in sorted(listing.offered()):
            watch(importlib.import_module(name), name)
        counts["cases"] = used_by_cases()
    RECORD.write_text(json.dumps({part: dict(sorted(counts[part].items())) for part in ("cases", "programs")}, indent=0) + "\n")
    print(f"wrote {RECORD.relative_to(oracle.ROOT)}: {len(counts['cases'])} names in cases, {len(counts['programs'])} in programs")
    return 0
