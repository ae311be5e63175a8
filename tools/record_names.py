#!/usr/bin/env python3
"""Records which public names real MindSpore has, for `torchspore check` and for the text of "not in torchspore yet".

    .oracle/bin/python tools/record_names.py        writes src/torchspore/names/mindspore_2_10.txt

A line is a module and its public names: the module's attributes without a leading underscore that MindSpore itself made
(NumPy, os and the like, which its modules import for their own use, are left out) and its submodules.
"""
from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import sys
import types
import warnings
from pathlib import Path

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


def is_public(name: str) -> bool:
    """Whether no part of the dotted `name` begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def modules(package: types.ModuleType) -> list[types.ModuleType]:
    """`package` and every public module below it that can be imported here."""
    found = [package]
    for information in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        name = information.name
        if not is_public(name) or name.startswith(SKIPPED) or name.endswith("validators"):
            continue
        # A module may want a device, a library or a process of its own: then its names are unknown here.
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
            found.append(importlib.import_module(name))
    return found


def is_own(value: object) -> bool:
    """Whether MindSpore made `value`, or it is a plain value such as GRAPH_MODE."""
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0] == "mindspore"
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.split(".")[0] in ("mindspore", "builtins")


def public_names(module: types.ModuleType) -> list[str]:
    """The public names of `module`, sorted."""
    return sorted(name for name, value in vars(module).items() if is_public(name) and is_own(value))


def main() -> None:
    warnings.simplefilter("ignore")
    package = importlib.import_module("mindspore")
    version = package.__version__
    lines = [f"# Public names of MindSpore {version}, recorded by tools/record_names.py (Python {sys.version_info[0]}.{sys.version_info[1]})."]
    for module in sorted(modules(package), key=lambda module: module.__name__):
        if names := public_names(module):
            lines.append(f"{module.__name__}: {' '.join(names)}")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(lines) - 1} modules, {sum(line.count(' ') for line in lines[1:])} names")


if __name__ == "__main__":
    main()
