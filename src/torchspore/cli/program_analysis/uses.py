"""Collect the names and context options of MindSpore that a program uses by parsing it, without running it."""
from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from torchspore.public_names import homes, listing, lookup

SETTERS = {
    "set_context": "context",
    "set_auto_parallel_context": "auto_parallel",
    "set_ps_context": "ps",
    "set_offload_context": "offload",
}
GETTERS = {"get_context": "context", "get_auto_parallel_context": "auto_parallel", "get_ps_context": "ps"}
HOMES = ("mindspore", "mindspore.context")
_CAUGHT = ("ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException")


@dataclass(frozen=True)
class Use:
    """One use: the dotted name or the option's key, the line, and (for an option) the function that it was passed to."""

    name: str
    line: int
    function: str | None = None


def uses(tree: ast.Module) -> list[Use]:
    """Return the MindSpore names and options that a parsed program uses, each at its first line, ordered by line.

    Names imported inside a `try` that handles a missing name are left out. A name comes from `from ... import *` if the program binds it
    nowhere and MindSpore's module has it. An attribute of `self` counts as used from the MindSpore base class if the program's
    classes do not define it.
    """
    finder = _UseCollector(tree)
    finder.visit(tree)
    first: dict[tuple[str | None, str], Use] = {}
    for use in sorted(finder.uses, key=lambda use: use.line):
        first.setdefault((use.function, use.name), use)
    return list(first.values())


class _UseCollector(ast.NodeVisitor):
    """Collects the uses; knows the meaning of each imported name."""

    def __init__(self, tree: ast.Module) -> None:
        self.uses: list[Use] = []
        self.bound: dict[str, str] = {}
        self.guarded = False
        self.stars: list[str] = []
        self.classes: dict[str, tuple[str | None, frozenset[str]]] = {}
        self.bound_names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self.bound_names |= {node.name for node in ast.walk(tree) if isinstance(node, definitions)}
        self.bound_names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.bound_names |= {
            name.asname or name.name.partition(".")[0]
            for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for name in node.names
        }

    def add(self, path: str, line: int) -> None:
        if not self.guarded and not path.rpartition(".")[2].startswith("__"):
            self.uses.append(Use(path, line))

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if is_mindspore(name.name):
                self.add(name.name, node.lineno)
                self.bound[name.asname or "mindspore"] = name.name if name.asname else "mindspore"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or not is_mindspore(node.module):
            return
        for name in node.names:
            path = node.module if name.name == "*" else f"{node.module}.{name.name}"
            self.add(path, node.lineno)
            if name.name == "*":
                self.stars.append(node.module)
            else:
                self.bound[name.asname or name.name] = path

    def visit_Try(self, node: ast.Try) -> None:
        outer, self.guarded = self.guarded, self.guarded or any(_catches_import(handler) for handler in node.handlers)
        for statement in node.body:
            self.visit(statement)
        self.guarded = outer
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self.path_of(node)
        if path:
            self.add(path, node.lineno)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and (path := self.by_star(node.id)):
            self.add(path, node.lineno)

    def by_star(self, name: str) -> str | None:
        """Return the path of a name that the file does not bind and a star import provides."""
        if name in self.bound_names or name in vars(builtins) or name.startswith("_"):
            return None
        for module in self.stars:
            if any(name in names.get(home, ()) for names in (listing.mindspore(), listing.offered())
                   for home in (module, *homes.homes_of_module(module))):
                return f"{module}.{name}"
        return None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.generic_visit(node)
        base, defined = None, frozenset(_defined_attributes(node))
        for parent in node.bases:
            if isinstance(parent, ast.Name) and parent.id in self.classes:
                above, more = self.classes[parent.id]
                base, defined = base or above, defined | more
            else:
                base = base or self.path_of(parent)
        self.classes[node.name] = (base, defined)
        if base is None:
            return
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and part.attr not in defined and _is_self(part.value):
                path = f"{base}.{part.attr}"
                if lookup.lacks_attribute(path):
                    self.add(path, part.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        path = self.path_of(node.func) or ""
        module, _, function = path.rpartition(".")
        if module in HOMES:
            self.uses += [Use(key, line, function) for key, line in _keys(node, function)]

    def path_of(self, node: ast.expr) -> str | None:
        """Return the dotted path of an expression such as `nn.Conv2d` that begins with an imported name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.bound:
            return ".".join([self.bound[node.id], *reversed(parts)])
        if isinstance(node, ast.Name) and (path := self.by_star(node.id)):
            return ".".join([path, *reversed(parts)])
        return None


def _defined_attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield the attributes that a class defines: its methods and names, and assignments to `self` in its methods."""
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) and _is_self(part.value):
            yield part.attr
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id


def _is_self(node: ast.expr) -> bool:
    """Return whether an expression is `self` or `super()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id == "self"


def is_mindspore(module: str) -> bool:
    """Return whether the dotted `module` is mindspore or below it."""
    return module.split(".")[0] == "mindspore"


def _keys(node: ast.Call, function: str) -> Iterator[tuple[str, int]]:
    """Yield the option keys that a call of a setter or getter of the context names."""
    if function in SETTERS:
        for keyword in node.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value.lineno
    if function in GETTERS and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        yield node.args[0].value, node.lineno


def _catches_import(handler: ast.ExceptHandler) -> bool:
    """Return whether the handler catches the error of a missing name."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(node, ast.Name) and node.id in _CAUGHT for node in caught)
