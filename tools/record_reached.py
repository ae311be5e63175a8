#!/usr/bin/env python3
"""Counts for each public name in how many parity cases it is used, and how many public programs use it.

    .venv/bin/python tools/record_reached.py [--programs ../shared/spec/programs.json …]

writes tests/parity/records/reached.json: {"cases": {name: count}, "programs": {name: count}}. A case counts for a name that it looks up
in one of MindSpore's modules while it runs. A file that looks a name up once, when it is imported, counts with the cases whose label is
that name, or else with one. All cases pass (`make test`), so that each is a result equal to real MindSpore's. Takes ten minutes.
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

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")]
RECORD = ROOT / "tests/parity/records/reached.json"

looked_up: set[str] = set()


def watch(module: ModuleType, prefix: str) -> None:
    """From now on notes each public name that a file under tests/parity reads off the module."""
    base = type(module)

    class Watched(base):  # type: ignore[valid-type, misc]
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if not name.startswith("_") and "/parity/" in sys._getframe(1).f_code.co_filename and not isinstance(value, ModuleType):
                looked_up.add(f"{prefix}.{name}")
            return value

    module.__class__ = Watched


def used_by_cases() -> collections.Counter[str]:
    """How many cases use each name."""
    from parity import case as parity

    found: collections.Counter[str] = collections.Counter()
    for path in sorted(parity.CASES.glob("*.py")):
        looked_up.clear()
        cases = parity.load(path)
        at_import, words = set(looked_up), [set(re.findall(r"\w+", one.name)) for one in cases]
        for name in at_import:
            found[name] += max(1, sum(name.rpartition(".")[2] in label for label in words))
        for one in cases:
            looked_up.clear()
            if run_alone(one):
                found.update(looked_up - at_import)
            else:
                print(f"{path.stem}: {one.name} failed here and counts for nothing", flush=True)
        print(f"{path.stem}: {len(cases)} cases", flush=True)
    return found


def run_alone(one: Any) -> bool:
    """Runs a case in a folder of its own. Whether it came to its end: a few need what only the test's process has."""
    from parity import case as parity

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = os.getcwd()
        os.chdir(folder)
        try:
            parity.run(one)
        except Exception:
            return False
        finally:
            os.chdir(before)
    return True


def used_by_programs(paths: list[Path]) -> collections.Counter[str]:
    """How many of the programs listed in these files use each name."""
    found: collections.Counter[str] = collections.Counter()
    for path in paths:
        listed = json.loads(path.read_text())
        for programs in listed["programs"].values():
            for program in programs:
                found.update(listed["names"][number] for number in program)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", nargs="*", type=Path, help="count these lists of programs and keep the count of cases")
    arguments = parser.parse_args()
    import torchspore
    from torchspore.names import listing

    torchspore.install()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"cases": {}, "programs": {}}
    if arguments.programs:
        record["programs"] = used_by_programs(arguments.programs)
    else:
        for name in sorted(listing.offered()):
            watch(importlib.import_module(name), name)
        record["cases"] = used_by_cases()
    RECORD.write_text(json.dumps({part: dict(sorted(record[part].items())) for part in ("cases", "programs")}, indent=0) + "\n")
    print(f"wrote {RECORD.relative_to(ROOT)}: {len(record['cases'])} names in cases, {len(record['programs'])} in programs")


if __name__ == "__main__":
    main()
