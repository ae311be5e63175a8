"""Records the public names of real MindSpore, for `torchspore check` and for errors about missing names: mindspore_2_10.txt.

    tools/record.py names --python .oracle/bin/python        writes src/torchspore/public_names/mindspore_2_10.txt

A line is a module, its attributes without a leading underscore that MindSpore defines, and its submodules. Modules that it imports, such
as os and NumPy, are omitted.
"""
from __future__ import annotations

import argparse
import sys
import warnings

from walk_names import lines_of, modules, public_names

from recorders import oracle

TARGET = oracle.ROOT / "src" / "torchspore" / "names" / "mindspore_2_10.txt"
# Parts that no program imports: generated bodies, argument checks, the profiler's and the rewriter's insides.
SKIPPED = (
    "mindspore.ops.bprop_mindir",
    "mindspore.ops_generate",
    "mindspore.ops.auto_generate",
    "mindspore.ops.tensor_method",
    "mindspore.include",
    "mindspore.profiler.",
    "mindspore.rewrite.",
    "mindspore.mindrecord.",
)


def is_for_programs(name: str) -> bool:
    """Return whether programs import the module `name`."""
    return not name.startswith(SKIPPED) and not name.endswith("validators")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: this subject has no arguments."""


def record_inside(arguments: argparse.Namespace) -> int:
    """Write the list."""
    warnings.simplefilter("ignore")
    package = oracle.mindspore()
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    header = f"# Public names of MindSpore {package.__version__}, recorded by `tools/record.py names` (Python {python})."
    named = [(module.__name__, public_names(module, "mindspore")) for module in modules(package, is_for_programs, tolerant=True)]
    TARGET.write_text("\n".join([header, *lines_of(named)]) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(named)} modules, {sum(len(names) for _, names in named)} names")
    return 0
