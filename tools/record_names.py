#!/usr/bin/env python3
"""Records which public names real MindSpore has, for `torchspore check` and for the text of "not in torchspore yet".

    .oracle/bin/python tools/record_names.py        writes src/torchspore/names/mindspore_2_10.txt

A line is a module and its public names: the module's attributes without a leading underscore that MindSpore itself made
(NumPy, os and the like, which its modules import for their own use, are left out) and its submodules.
"""
from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

from walk_names import listed, modules, public_names

TARGET = Path(__file__).resolve().parent.parent / "src" / "torchspore" / "names" / "mindspore_2_10.txt"
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


def is_wanted(name: str) -> bool:
    """Whether programs import the module `name`."""
    return not name.startswith(SKIPPED) and not name.endswith("validators")


def main() -> None:
    warnings.simplefilter("ignore")
    package = importlib.import_module("mindspore")
    assert not hasattr(package, "__torchspore__"), "this is torchspore; the names are real MindSpore's"
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    header = f"# Public names of MindSpore {package.__version__}, recorded by tools/record_names.py (Python {python})."
    named = [(module.__name__, public_names(module, "mindspore")) for module in modules(package, is_wanted, tolerant=True)]
    TARGET.write_text("\n".join([header, *listed(named)]) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(named)} modules, {sum(len(names) for _, names in named)} names")


if __name__ == "__main__":
    main()
