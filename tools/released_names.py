"""Looks up names in a release of MindSpore: it reads the Python files of the wheel and runs none of them."""
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

    def has_name(self, name: str) -> bool:
        """Return whether the dotted `name` can be imported, or reached by attributes from its longest part that is a module."""
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            if self._file_of(".".join(parts[:cut])) is not None:
                return cut == len(parts) or self._has_path(".".join(parts[:cut]), parts[cut:], frozenset())
        return False

    def _file_of(self, module: str) -> str | None:
        path = module.replace(".", "/")
        return next((file for file in (f"{path}/__init__.py", f"{path}.py") if file in self._files), None)

    def _has_path(self, module: str, names: list[str], seen: frozenset[tuple[str, str]]) -> bool:
        """Return whether `module` has the first of `names`, and that object has the remaining ones, each an attribute of the previous."""
        if not names:
            return True
        if self._file_of(f"{module}.{names[0]}") is not None:
            return self._has_path(f"{module}.{names[0]}", names[1:], seen)
        if (module, names[0]) in seen or self._file_of(module) is None:
            return False
        seen |= {(module, names[0])}
        for kind, value in self._bindings_of(module, names[0]):
            if kind == "class" and (len(names) == 1 or self._class_has_attribute(module, value, names[1], seen)):
                return True
            if kind == "import" and self._has_path(value[0], [*value[1], *names[1:]], seen):
                return True
            if kind == "value" and len(names) == 1:
                return True
        return any(self._exports(star, names[0]) and self._has_path(star, names, seen) for star in self._star_imports(module))

    def _exports(self, module: str, name: str) -> bool:
        """Return whether `from module import *` imports `name`, if the module has it."""
        exported = self._names_in_all(module) if self._file_of(module) is not None else None
        return name in exported if exported is not None else not name.startswith("_")

    @functools.cache  # noqa: B019 (a Release lives as long as the program)
    def _names_in_all(self, module: str) -> frozenset[str] | None:
        """Return the names in the `__all__` of a module, or None if the module has no `__all__`."""
        file = self._file_of(module)
        assert file is not None
        exported: set[str] | None = None
        for node in _statements(ast.parse(self._text(file))):
            if not any(isinstance(child, ast.Name) and child.id == "__all__" for child in ast.walk(node)):
                continue
            exported = set() if exported is None else exported
            exported.update(child.value for child in ast.walk(node) if isinstance(child, ast.Constant) and isinstance(child.value, str))
            for child in ast.walk(node):
                if isinstance(child, ast.Attribute) and child.attr == "__all__":
                    exported.update(self._names_in_all_of(module, ast.unparse(child.value)))
        return None if exported is None else frozenset(exported)

    def _names_in_all_of(self, module: str, expression: str) -> frozenset[str]:
        """Return the names in the `__all__` of the module to which `expression` refers inside of `module`."""
        for kind, value in self._bindings_of(module, expression.split(".")[0]):
            other = ".".join([value[0], *value[1]]) if kind == "import" else ""
            if other and self._file_of(other) is not None:
                return self._names_in_all(other) or frozenset()
        other = f"{module}.{expression}"
        return (self._names_in_all(other) or frozenset()) if self._file_of(other) is not None else frozenset()

    def _class_has_attribute(self, module: str, cls: ast.ClassDef, name: str, seen: frozenset[tuple[str, str]]) -> bool:
        for node in ast.walk(cls):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name and node is not cls:
                return True
            if isinstance(node, ast.Attribute) and node.attr == name and getattr(node.value, "id", "") in ("self", "cls", "obj"):
                return True
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                return True
        bases = [base.id for base in cls.bases if isinstance(base, ast.Name)]
        return any(self._has_path(module, [base, name], seen) for base in bases)

    def _bindings_of(self, module: str, name: str) -> Iterator[tuple[str, object]]:
        yield from self._bindings(module)[0].get(name, ())

    def _star_imports(self, module: str) -> list[str]:
        return self._bindings(module)[1]

    @functools.cache  # noqa: B019 (a Release lives as long as the program)
    def _bindings(self, module: str) -> tuple[dict[str, list[tuple[str, object]]], list[str]]:
        """Return the (kind, value) of each binding of a module by its name, and the modules of its `import *`."""
        file = self._file_of(module)
        assert file is not None
        bindings: dict[str, list[tuple[str, object]]] = {}
        stars: list[str] = []
        package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
        for node in _statements(ast.parse(self._text(file))):
            if isinstance(node, ast.ClassDef):
                bindings.setdefault(node.name, []).append(("class", node))
            elif isinstance(node, ast.FunctionDef):
                bindings.setdefault(node.name, []).append(("value", None))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    target = alias.name if alias.asname else alias.name.split(".")[0]
                    bindings.setdefault(alias.asname or target, []).append(("import", (target, [])))
            elif isinstance(node, ast.ImportFrom):
                base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package if node.level else ""
                source = ".".join(filter(None, (base, node.module)))
                for alias in node.names:
                    if alias.name == "*":
                        stars.append(source)
                    else:
                        bindings.setdefault(alias.asname or alias.name, []).append(_binding_of_import(source, alias.name))
            else:
                for name in ast.walk(node):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        bindings.setdefault(name.id, []).append(("value", None))
        return bindings, stars

    def _text(self, file: str) -> str:
        path = self._files[file]
        return path.read_text(errors="replace") if path is not None else self._archive.read(file).decode(errors="replace")


def _binding_of_import(source: str, name: str) -> tuple[str, object]:
    """Return the binding of an import: a name of one of MindSpore's Python modules, or a value whose attributes are not searched."""
    is_python_module = source.split(".")[0] in ("mindspore", "_extends") and "_c_" not in source
    return ("import", (source, [name])) if is_python_module else ("value", None)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, including those in branches and `try`."""
    for node in getattr(tree, "body", ()):
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            for block in ("body", "orelse", "finalbody"):
                yield from _statements(ast.Module(getattr(node, block, []), []))
            for handler in getattr(node, "handlers", ()):
                yield from _statements(handler)
