"""Records the signatures and defaults of the public callables of real MindSpore's main modules: signatures.json.

    tools/record.py signatures --python .oracle/bin/python             writes tests/parity/records/signatures.json
    tools/record.py signatures --python .oracle/bin/python --check     compares with it and writes nothing
"""
from __future__ import annotations

import argparse
import importlib
import warnings

from parity import signatures
from walk_names import public_names

from recorders import oracle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--check", action="store_true", help="compare and write nothing")


def record_inside(arguments: argparse.Namespace) -> int:
    """Read all signatures, write them unless `--check` is set, and return 1 if the record differs."""
    warnings.simplefilter("ignore")
    version = oracle.mindspore().__version__
    by_module = {}
    for name in signatures.MODULES:
        module = importlib.import_module(name)
        by_module[name] = signatures.of_module(module, public_names(module, "mindspore"))
    if not arguments.check:
        signatures.write(signatures.RECORD, version, by_module)
    is_equal = by_module == signatures.read()
    print(f"signatures: {sum(map(len, by_module.values()))} callables" + ("" if is_equal else "; the record differs"))
    return 0 if is_equal else 1
