#!/usr/bin/env python3
"""Records the signature and defaults of every public callable of real MindSpore's main modules.

    .oracle/bin/python tools/record_signatures.py             writes tests/parity/records/signatures.json
    .oracle/bin/python tools/record_signatures.py --check     compares with it and writes nothing
"""
from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from parity import signatures  # noqa: E402
from walk_names import public_names  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    root = importlib.import_module("mindspore")
    assert not hasattr(root, "__torchspore__"), "this is torchspore; records come from real MindSpore"
    found = {}
    for name in signatures.MODULES:
        module = importlib.import_module(name)
        found[name] = signatures.of_module(module, public_names(module, "mindspore"))
    if not arguments.check:
        signatures.write(signatures.RECORD, root.__version__, found)
    same = found == signatures.read()
    print(f"signatures: {sum(len(names) for names in found.values())} callables" + ("" if same else "; the record differs"))
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
