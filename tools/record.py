#!/usr/bin/env python3
"""Records facts that tests and pages compare with: answers of real MindSpore, names, signatures, numbers of uses.

    tools/record.py parity --python .oracle/bin/python nn_conv       MindSpore's answers to the cases in a file
    tools/record.py SUBJECT --help                                   the arguments of a subject, and the files that it writes

A subject is a module in tools/recorders. Run a recorder alone: MindSpore's thread pool becomes very slow next to other work.
"""
from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from recorders import oracle  # noqa: E402  (the path is set just above)

SUBJECTS = ("communication", "context", "name_uses", "names", "older_calls", "older_programs", "parallel", "parity", "private_names",
            "programs", "promotion", "release_signatures", "searches", "signatures", "strategies", "torch_npu")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subject", metavar="SUBJECT", choices=SUBJECTS, help=", ".join(SUBJECTS))
    subject = parser.parse_args(words[:1]).subject
    # Only this module is imported: MindSpore's Python lacks torch, and the other Python lacks MindSpore.
    module = importlib.import_module(f"recorders.{subject}")
    options = argparse.ArgumentParser(prog=f"record.py {subject}", description=module.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    if hasattr(module, "record_inside"):
        oracle.add_python(options)
    module.add_arguments(options)
    arguments = options.parse_args(words[1:])
    arguments.subject = subject
    if getattr(arguments, "inside", False):
        return int(module.record_inside(arguments))
    if hasattr(module, "record"):
        return int(module.record(arguments))
    return oracle.run_inside(arguments, [word for word in words[1:] if word != "--inside"]).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
