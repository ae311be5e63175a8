"""Reads the signatures of every MindSpore release whose wheel PyPI has, as text. No code of a wheel is imported or executed.

    tools/record.py release_signatures --folder FOLDER                      downloads each release once, and writes FOLDER/RELEASE.json
    tools/record.py release_signatures --folder FOLDER --site DIR RELEASE   reads an installed copy instead of a wheel

`record.py older_calls` derives the table of older spellings from these files.
"""
from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FIRST = "0.1.0 0.2.0 0.3.1 0.7.0 1.0.0 1.1.1 1.2.1 1.3.0 1.5.2 1.6.2 1.7.0 1.8.1 1.9.0 1.10.0".split()
WHEELS = {
    **dict.fromkeys(_FIRST, ("mindspore-gpu", "37", "manylinux1_x86_64")),
    "2.0.0": ("mindspore", "39", "win_amd64"),
    "2.5.0.dev20250202": ("mindspore-dev", "310", "win_amd64"),
    "2.6.0.dev20250323": ("mindspore-dev", "311", "win_amd64"),
    **dict.fromkeys(("2.7.0", "2.7.1", "2.7.2", "2.8.0", "2.9.0", "2.10.0"), ("mindspore", "310", "win_amd64")),
}
"""Release -> the package, the version of Python and the platform of the smallest wheel. PyPI has no wheel of 2.1 to 2.4."""

PACKAGES = (
    "mindspore", "mindspore.amp", "mindspore.common.initializer", "mindspore.common.parameter", "mindspore.common.api",
    "mindspore.communication", "mindspore.communication.management", "mindspore.context", "mindspore.dataset", "mindspore.dataset.audio",
    "mindspore.dataset.text", "mindspore.dataset.transforms", "mindspore.dataset.transforms.c_transforms",
    "mindspore.dataset.transforms.py_transforms", "mindspore.dataset.transforms.vision.c_transforms",
    "mindspore.dataset.transforms.vision.py_transforms", "mindspore.dataset.vision", "mindspore.dataset.vision.c_transforms",
    "mindspore.dataset.vision.py_transforms", "mindspore.mindrecord", "mindspore.mint", "mindspore.mint.nn",
    "mindspore.mint.nn.functional", "mindspore.mint.linalg", "mindspore.mint.special", "mindspore.mint.optim", "mindspore.nn",
    "mindspore.nn.probability.bijector", "mindspore.nn.probability.distribution", "mindspore.numpy", "mindspore.ops",
    "mindspore.ops.composite", "mindspore.ops.functional", "mindspore.ops.operations", "mindspore.parallel", "mindspore.profiler",
    "mindspore.scipy.linalg", "mindspore.scipy.sparse.linalg", "mindspore.train", "mindspore.train.callback",
    "mindspore.train.serialization", "mindspore.train.model", "mindspore.train.loss_scale_manager", "mindspore.train.summary",
    "mindspore.ops.function", "mindspore.hal", "mindspore.runtime", "mindspore.experimental.optim",
    "mindspore.experimental.optim.lr_scheduler", "mindspore.train.amp",
)
Definition = tuple[str, ast.AST]


class Release:
    """The Python files of one release, as text, and the names that each of its modules would have after an import."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources
        self._spaces: dict[str, dict[str, Definition]] = {}

    def names(self, module: str) -> dict[str, Definition]:
        """Return the definitions behind the names of `module`: (defining module, function or class)."""
        if module in self._spaces:
            return self._spaces[module]
        names = self._spaces[module] = {}
        source = self._sources.get(module)
        if source is None:
            return names
        for node in _statements(_parsed(source)):
            self._add(module, node, names)
        return names

    def exported(self, module: str) -> dict[str, Definition]:
        """Return the names that `from module import *` binds."""
        names, listed = self.names(module), self._all(module, set())
        return {name: value for name, value in names.items() if (name in listed if listed else not name.startswith("_"))}

    def _add(self, module: str, node: ast.AST, names: dict[str, Definition]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = (module, node)
        elif isinstance(node, ast.ImportFrom):
            source = self._absolute(module, node)
            for alias in node.names:
                if alias.name == "*":
                    names.update(self.exported(source))
                elif alias.name in self.names(source):
                    names[alias.asname or alias.name] = self.names(source)[alias.name]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
            names.update({target.id: names[node.value.id] for target in node.targets if isinstance(target, ast.Name)})

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        keep = len(parts) - node.level + (f"{module}.__init__" in self._sources)
        return ".".join([*parts[:keep], *([node.module] if node.module else [])])

    def _all(self, module: str, seen: set[str]) -> set[str]:
        """Return the names in `__all__`, which may add those of other modules."""
        if module in seen or module not in self._sources:
            return set()
        seen.add(module)
        listed: set[str] = set()
        modules = {}
        for node in _statements(_parsed(self._sources[module])):
            if isinstance(node, ast.ImportFrom):
                source = self._absolute(module, node)
                modules.update({alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names})
            target, value = _of_all(node)
            if not target:
                continue
            for part in ast.walk(value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    listed.add(part.value)
                elif isinstance(part, ast.Attribute) and part.attr == "__all__" and isinstance(part.value, ast.Name):
                    listed |= self._all(modules.get(part.value.id, ""), seen)
        return listed

    def methods(self, module: str, node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
        """Return the methods of a class, with those of its bases."""
        methods: dict[str, ast.FunctionDef] = {}
        for base in reversed(node.bases):
            definition = self.names(module).get(base.id) if isinstance(base, ast.Name) else None
            if definition and isinstance(definition[1], ast.ClassDef) and definition[1] is not node:
                methods.update(self.methods(definition[0], definition[1]))
        methods.update({part.name: part for part in node.body if isinstance(part, ast.FunctionDef)})
        return methods

    def signatures(self) -> dict[str, list[list[str | None]]]:
        """Return the parameters of all public functions, constructors and methods: [kind, name, default]."""
        table: dict[str, list[list[str | None]]] = {}
        for package in PACKAGES:
            if package not in self._sources:
                continue
            for name, (module, node) in self.names(package).items():
                if name.startswith("_"):
                    continue
                path = f"{package}.{name}"
                if isinstance(node, ast.FunctionDef):
                    table[path] = parameters(node)
                elif isinstance(node, ast.ClassDef):
                    for method_name, method in self.methods(module, node).items():
                        if method_name == "__init__":
                            table[path] = parameters(method)[1:]
                        elif not method_name.startswith("_"):
                            is_static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in method.decorator_list)
                            table[f"{path}.{method_name}"] = parameters(method)[0 if is_static else 1:]
        table.update(overloads(self._sources.get("mindspore.common._tensor_docs", "")))
        return table


_HEADER = re.compile(r'(?:attach_docstr\("(\w+)", r"""\w+|\.\. method:: Tensor\.(\w+))(\([^\n]*\))\s*(?:->|\n)')


def overloads(text: str) -> dict[str, list[list[str | None]]]:
    """Return the forms of Tensor methods that a release documents: they are written in C++ since 2.5 and have no Python signature."""
    table: dict[str, list[list[str | None]]] = {}
    for first, other, signature in _HEADER.findall(text):
        try:
            node = ast.parse(f"def f{signature.partition(' -> ')[0]}: pass").body[0]
        except SyntaxError:
            continue
        assert isinstance(node, ast.FunctionDef)
        name = first or other
        number = sum(path.partition("#")[0] == f"mindspore.Tensor.{name}" for path in table)
        table[f"mindspore.Tensor.{name}#{number}"] = parameters(node)
    return table


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run at import, also those in `if` and `try`."""
    for node in getattr(tree, "body", []):
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements(node)
            yield from (*getattr(node, "orelse", []), *getattr(node, "finalbody", []))
        else:
            yield node


def _of_all(node: ast.AST) -> tuple[bool, Any]:
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets), node.value
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id == "__all__", node.value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        owner = node.value.func.value
        return isinstance(owner, ast.Name) and owner.id == "__all__", node.value
    return False, None


_trees: dict[int, ast.Module] = {}


def _parsed(source: str) -> ast.Module:
    if id(source) not in _trees:
        try:
            _trees[id(source)] = ast.parse(source)
        except SyntaxError:
            _trees[id(source)] = ast.Module([], [])
    return _trees[id(source)]


def parameters(node: ast.FunctionDef) -> list[list[str | None]]:
    """Return [kind, name, default] for each parameter; kinds are `arg`, `*`, `key` and `**`."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    rows: list[list[str | None]] = [["arg", a.arg, None if d is None else ast.unparse(d)] for a, d in zip(positional, defaults)]
    if arguments.vararg:
        rows.append(["*", arguments.vararg.arg, None])
    rows += [["key", a.arg, None if d is None else ast.unparse(d)] for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        rows.append(["**", arguments.kwarg.arg, None])
    return rows


def _module_of(path: str) -> str | None:
    """Return the module of a file of a wheel, or None if it is not one of MindSpore's modules."""
    parts = Path(path).with_suffix("").parts
    if not path.endswith(".py") or parts[0] != "mindspore" or set(parts) & {"_akg", "akg", "lib", "include"}:
        return None
    return ".".join(parts)


def _sources(files: Iterator[tuple[str, bytes]]) -> dict[str, str]:
    sources = {}
    for path, content in files:
        module = _module_of(path)
        if module is not None:
            text = content.decode("utf-8", "replace")
            sources[module] = text
            if module.endswith(".__init__"):
                sources[module.removesuffix(".__init__")] = text
    return sources


def _from_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py"):
                yield name, archive.read(name)


def _from_site(site: Path) -> Iterator[tuple[str, bytes]]:
    for file in (site / "mindspore").rglob("*.py"):
        yield str(file.relative_to(site)), file.read_bytes()


def download(release: str, folder: Path) -> Path:
    """Download the wheel of a release with pip; return its path. Tries newer Pythons if the release has no wheel for the first one."""
    package, first, platform = WHEELS[release]
    for python in dict.fromkeys((first, "37", "38", "39", "310", "311")):
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", f"{package}=={release}", "--no-deps", "--python-version", python,
            "--platform", platform, "--only-binary=:all:", "--dest", str(folder),
        ]
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return next(folder.glob(f"{package.replace('-', '_')}-{release}-*.whl"))
    raise RuntimeError(f"{package}=={release}: pip can't download a wheel for {platform}.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--site", type=Path, help="a site-packages folder to read instead of a wheel")
    parser.add_argument("releases", nargs="*")


def record(arguments: argparse.Namespace) -> int:
    """Read the releases that the folder lacks."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for release in arguments.releases or list(WHEELS):
        file = arguments.folder / f"{release}.json"
        if file.exists():
            continue
        if arguments.site:
            table = Release(_sources(_from_site(arguments.site))).signatures()
        else:
            try:
                wheel = download(release, arguments.folder)
            except RuntimeError as error:
                print(error, flush=True)
                continue
            table = Release(_sources(_from_wheel(wheel))).signatures()
            wheel.unlink()
        file.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n")
        print(release, len(table), flush=True)
        _trees.clear()
    return 0
