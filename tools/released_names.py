"""Whether a release of MindSpore had a name, read off the Python files of its wheel without running any of them."""
from __future__ import annotations

import ast
import functools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path


class Release:
    """The Python files of one wheel, or of an installed package's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            self._files = {str(file.relative_to(path.parent)): file for file in path.rglob("*.py")}
            self.version = (path / "version.py").read_text().split("'")[1] if (path / "version.py").exists() else path.name
        else:
            self._archive = zipfile.ZipFile(path)
            self._files = {name: None for name in self._archive.namelist() if name.endswith(".py")}
            self.version = re.split(r"-", path.name)[1]

    def has(self, name: str) -> bool:
        """Whether the dotted `name` can be imported, or reached by attributes from its longest part that is a module."""
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            if self._file(".".join(parts[:cut])) is not None:
                return cut == len(parts) or self._reaches(".".join(parts[:cut]), parts[cut:], frozenset())
        return False

    def _file(self, module: str) -> str | None:
        path = module.replace(".", "/")
        return next((file for file in (f"{path}/__init__.py", f"{path}.py") if file in self._files), None)

    def _reaches(self, module: str, names: list[str], seen: frozenset[tuple[str, str]]) -> bool:
        """Whether `module` has the first of `names`, and that the ones after it."""
        if not names:
            return True
        if self._file(f"{module}.{names[0]}") is not None:
            return self._reaches(f"{module}.{names[0]}", names[1:], seen)
        if (module, names[0]) in seen or self._file(module) is None:
            return False
        seen |= {(module, names[0])}
        for kind, value in self._bound(module, names[0]):
            if kind == "class" and (len(names) == 1 or self._class_has(module, value, names[1], seen)):
                return True
            if kind == "import" and self._reaches(value[0], [*value[1], *names[1:]], seen):
                return True
            if kind == "value" and len(names) == 1:
                return True
        return any(self._exports(star, names[0]) and self._reaches(star, names, seen) for star in self._stars(module))

    def _exports(self, module: str, name: str) -> bool:
        """Whether `from module import *` takes `name`, if the module has it."""
        exported = self._listed(module) if self._file(module) is not None else None
        return name in exported if exported is not None else not name.startswith("_")

    @functools.cache  # noqa: B019 (a Release lives as long as the program)
    def _listed(self, module: str) -> frozenset[str] | None:
        """What stands in the `__all__` of a module, None where it has none."""
        file = self._file(module)
        assert file is not None
        found: set[str] | None = None
        for node in _statements(ast.parse(self._text(file))):
            if not any(isinstance(one, ast.Name) and one.id == "__all__" for one in ast.walk(node)):
                continue
            found = set() if found is None else found
            found.update(one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
            for one in ast.walk(node):
                if isinstance(one, ast.Attribute) and one.attr == "__all__":
                    found.update(self._listed_by(module, ast.unparse(one.value)))
        return None if found is None else frozenset(found)

    def _listed_by(self, module: str, called: str) -> frozenset[str]:
        """What stands in the `__all__` of the module that `module` calls `called`."""
        for kind, value in self._bound(module, called.split(".")[0]):
            other = ".".join([value[0], *value[1]]) if kind == "import" else ""
            if other and self._file(other) is not None:
                return self._listed(other) or frozenset()
        other = f"{module}.{called}"
        return (self._listed(other) or frozenset()) if self._file(other) is not None else frozenset()

    def _class_has(self, module: str, cls: ast.ClassDef, name: str, seen: frozenset[tuple[str, str]]) -> bool:
        for node in ast.walk(cls):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name and node is not cls:
                return True
            if isinstance(node, ast.Attribute) and node.attr == name and getattr(node.value, "id", "") in ("self", "cls", "obj"):
                return True
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                return True
        bases = [base.id for base in cls.bases if isinstance(base, ast.Name)]
        return any(self._reaches(module, [base, name], seen) for base in bases)

    def _bound(self, module: str, name: str) -> Iterator[tuple[str, object]]:
        yield from self._bindings(module)[0].get(name, ())

    def _stars(self, module: str) -> list[str]:
        return self._bindings(module)[1]

    @functools.cache  # noqa: B019 (a Release lives as long as the program)
    def _bindings(self, module: str) -> tuple[dict[str, list[tuple[str, object]]], list[str]]:
        """What the statements of a module bind, by name, and the modules whose names it takes all."""
        file = self._file(module)
        assert file is not None
        found: dict[str, list[tuple[str, object]]] = {}
        stars: list[str] = []
        package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
        for node in _statements(ast.parse(self._text(file))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(("class", node))
            elif isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(("value", None))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    target = alias.name if alias.asname else alias.name.split(".")[0]
                    found.setdefault(alias.asname or target, []).append(("import", (target, [])))
            elif isinstance(node, ast.ImportFrom):
                base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package if node.level else ""
                source = ".".join(filter(None, (base, node.module)))
                for alias in node.names:
                    if alias.name == "*":
                        stars.append(source)
                    else:
                        found.setdefault(alias.asname or alias.name, []).append(_imported(source, alias.name))
            else:
                for name in ast.walk(node):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        found.setdefault(name.id, []).append(("value", None))
        return found, stars

    def _text(self, file: str) -> str:
        path = self._files[file]
        return path.read_text(errors="replace") if path is not None else self._archive.read(file).decode(errors="replace")


def _imported(source: str, name: str) -> tuple[str, object]:
    """What an import binds: a name of a module of MindSpore's own Python files, or a value whose inside is not looked at."""
    own = source.split(".")[0] in ("mindspore", "_extends") and "_c_" not in source
    return ("import", (source, [name])) if own else ("value", None)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, those in branches and `try` too."""
    for node in getattr(tree, "body", ()):
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            for block in ("body", "orelse", "finalbody"):
                yield from _statements(ast.Module(getattr(node, block, []), []))
            for handler in getattr(node, "handlers", ()):
                yield from _statements(handler)
