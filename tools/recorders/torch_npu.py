"""Records names and signatures of torch_npu's public functions from the Python files in its wheels, which are not imported.

    for version in 2.11.0.post3 2.12.0.post3 2.13.0 2.14.0; do pip download torch_npu==$version --no-deps --dest /tmp/npu; done
    tools/record.py torch_npu /tmp/npu/torch_npu-*.whl      writes tests/unit/npu/torch_npu.json

One version for each supported version of torch is recorded: torch_npu requires the torch with the same number.
"""
from __future__ import annotations

import argparse
import ast
import json
import zipfile
from typing import Any

from recorders import oracle

OUT = oracle.ROOT / "tests" / "unit" / "npu" / "torch_npu.json"
NPU = "torch_npu/npu/"
FILES = ("__init__", "npu_config", "utils", "memory", "random", "streams", "graphs", "_memory_viz")
TORCHAIR = "torch_npu/dynamo/torchair/"


def functions(source: str) -> dict[str, Any]:
    """Signatures of the functions of a file, as [name, kind, has a default] a parameter, and of the methods of its classes."""
    found: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef):
            own = {inner.name: parameters(inner)[1:] for inner in node.body if isinstance(inner, ast.FunctionDef)}
            settable = sorted({
                inner.comparators[0].value for inner in ast.walk(node)
                if isinstance(inner, ast.Compare) and isinstance(inner.left, ast.Name) and inner.left.id == "name"
                and isinstance(inner.comparators[0], ast.Constant)
            })
            found[node.name] = {"methods": own, "attributes": settable}
    return found


def parameters(function: ast.FunctionDef) -> list[list[Any]]:
    """A row a parameter."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    late = len(plain) - len(given.defaults)
    rows: list[list[Any]] = [[one.arg, "plain", place >= late] for place, one in enumerate(plain)]
    rows += [[given.vararg.arg, "star", True]] if given.vararg else []
    rows += [[one.arg, "keyword", default is not None] for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return rows + ([[given.kwarg.arg, "stars", True]] if given.kwarg else [])


def assigned(source: str) -> dict[str, str]:
    """What a module makes of classes at its top: name -> class."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.unparse(node.value.func).rpartition(".")[2]
    return found


def public(source: str) -> list[str]:
    """What `__all__` lists."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise SystemExit("torch_npu/npu/__init__.py has no __all__: is this the wheel of torch_npu?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("wheels", nargs="+")


def record(arguments: argparse.Namespace) -> int:
    """Write the record: version -> names with their signatures."""
    records = [read_wheel(zipfile.ZipFile(wheel)) for wheel in sorted(arguments.wheels)]
    OUT.write_text(json.dumps(dict(records), indent=0, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def read_wheel(wheel: zipfile.ZipFile) -> tuple[str, dict[str, Any]]:
    """The version of a wheel, and its names with their signatures."""
    found: dict[str, Any] = {}
    for name in FILES:
        found.update(functions(wheel.read(f"{NPU}{name}.py").decode()))
    head = wheel.read(f"{NPU}__init__.py").decode()
    names = public(head)
    objects = {name: found[made] for name, made in assigned(head).items() if name in names and made in found}
    air = functions(wheel.read(f"{TORCHAIR}npu_fx_compiler.py").decode())
    config = functions(wheel.read(f"{TORCHAIR}configs/compiler_config.py").decode())
    version = wheel.filename.rpartition("/")[2].split("-")[1] if wheel.filename else ""
    return version, {
        "npu": {name: objects.get(name, found.get(name)) for name in names},
        "torchair": {"get_npu_backend": air["get_npu_backend"], "CompilerConfig": config["CompilerConfig"]},
    }
