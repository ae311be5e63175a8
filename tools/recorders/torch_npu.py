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


def signatures_of(source: str) -> dict[str, Any]:
    """Return the signatures of the functions and methods of a file: [name, kind, has a default] for each parameter."""
    signatures: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            signatures[node.name] = parameters_of(node)
        elif isinstance(node, ast.ClassDef):
            methods = {inner.name: parameters_of(inner)[1:] for inner in node.body if isinstance(inner, ast.FunctionDef)}
            settable = sorted({
                inner.comparators[0].value for inner in ast.walk(node)
                if isinstance(inner, ast.Compare) and isinstance(inner.left, ast.Name) and inner.left.id == "name"
                and isinstance(inner.comparators[0], ast.Constant)
            })
            signatures[node.name] = {"methods": methods, "attributes": settable}
    return signatures


def parameters_of(function: ast.FunctionDef) -> list[list[Any]]:
    """Return [name, kind, has a default] for each parameter."""
    signature = function.args
    plain = [*signature.posonlyargs, *signature.args]
    late = len(plain) - len(signature.defaults)
    rows: list[list[Any]] = [[argument.arg, "plain", position >= late] for position, argument in enumerate(plain)]
    rows += [[signature.vararg.arg, "star", True]] if signature.vararg else []
    keywords = zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
    rows += [[argument.arg, "keyword", default is not None] for argument, default in keywords]
    return rows + ([[signature.kwarg.arg, "stars", True]] if signature.kwarg else [])


def classes_of_instances(source: str) -> dict[str, str]:
    """Return the class of each instance that a module assigns at its top: name -> class."""
    classes = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            classes[node.targets[0].id] = ast.unparse(node.value.func).rpartition(".")[2]
    return classes


def names_in_all(source: str) -> list[str]:
    """Return the names in `__all__`."""
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
    """Return the version of a wheel, and its names with their signatures."""
    signatures: dict[str, Any] = {}
    for name in FILES:
        signatures.update(signatures_of(wheel.read(f"{NPU}{name}.py").decode()))
    head = wheel.read(f"{NPU}__init__.py").decode()
    names = names_in_all(head)
    objects = {name: signatures[cls] for name, cls in classes_of_instances(head).items() if name in names and cls in signatures}
    air = signatures_of(wheel.read(f"{TORCHAIR}npu_fx_compiler.py").decode())
    config = signatures_of(wheel.read(f"{TORCHAIR}configs/compiler_config.py").decode())
    version = wheel.filename.rpartition("/")[2].split("-")[1] if wheel.filename else ""
    return version, {
        "npu": {name: objects.get(name, signatures.get(name)) for name in names},
        "torchair": {"get_npu_backend": air["get_npu_backend"], "CompilerConfig": config["CompilerConfig"]},
    }
