"""Which names and context options of MindSpore's a program uses, found by parsing it: nothing of it is run."""
from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from torchspore.names import homes, listing, lookup

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
    """One use: the dotted name or the option's key, the line, and (for an option) the function it was given to."""

    name: str
    line: int
    function: str | None = None


def uses(tree: ast.Module) -> list[Use]:
    """The MindSpore names and options that a parsed program uses, each at its first line, in the order of the lines.

    Names that the program is ready to miss (imported inside a `try` that catches it) are left out. A name that comes by
    `from … import *` is one that the program binds nowhere and that MindSpore has there; an attribute of `self` counts as used of
    the MindSpore class from which the program's class is derived where the program's classes do not give it themselves.
    """
    finder = _Finder(tree)
    finder.visit(tree)
    first: dict[tuple[str | None, str], Use] = {}
    for use in sorted(finder.found, key=lambda use: use.line):
        first.setdefault((use.function, use.name), use)
    return list(first.values())


class _Finder(ast.NodeVisitor):
    """Collects the uses; knows what each imported name stands for."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Use] = []
        self.bound: dict[str, str] = {}
        self.guarded = False
        self.stars: list[str] = []
        self.classes: dict[str, tuple[str | None, frozenset[str]]] = {}
        self.own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        self.own |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
        self.own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.own |= {
            name.asname or name.name.partition(".")[0]
            for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for name in node.names
        }

    def add(self, path: str, line: int) -> None:
        if not self.guarded and not path.rpartition(".")[2].startswith("__"):
            self.found.append(Use(path, line))

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
        before, self.guarded = self.guarded, self.guarded or any(_catches_import(handler) for handler in node.handlers)
        for statement in node.body:
            self.visit(statement)
        self.guarded = before
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
        """Where a name that is bound nowhere in the file comes from, by a star import."""
        if name in self.own or name in vars(builtins) or name.startswith("_"):
            return None
        for module in self.stars:
            if any(name in names.get(home, ()) for names in (listing.mindspore(), listing.offered())
                   for home in (module, *homes.homes_of_module(module))):
                return f"{module}.{name}"
        return None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.generic_visit(node)
        base, given = None, frozenset(_given(node))
        for parent in node.bases:
            if isinstance(parent, ast.Name) and parent.id in self.classes:
                above, more = self.classes[parent.id]
                base, given = base or above, given | more
            else:
                base = base or self.path_of(parent)
        self.classes[node.name] = (base, given)
        if base is None:
            return
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and part.attr not in given and _is_self(part.value):
                path = f"{base}.{part.attr}"
                if lookup.lacks_attribute(path):
                    self.add(path, part.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        path = self.path_of(node.func) or ""
        module, _, function = path.rpartition(".")
        if module in HOMES:
            self.found += [Use(key, line, function) for key, line in _keys(node, function)]

    def path_of(self, node: ast.expr) -> str | None:
        """The dotted path that an expression such as `nn.Conv2d` stands for, where it begins with an imported name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.bound:
            return ".".join([self.bound[node.id], *reversed(parts)])
        if isinstance(node, ast.Name) and (path := self.by_star(node.id)):
            return ".".join([path, *reversed(parts)])
        return None


def _given(node: ast.ClassDef) -> Iterator[str]:
    """The attributes that a class gives itself: its methods and names, and what its methods write to `self`."""
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) and _is_self(part.value):
            yield part.attr
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id


def _is_self(node: ast.expr) -> bool:
    """Whether an expression is `self` or `super()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id == "self"


def is_mindspore(module: str) -> bool:
    """Whether the dotted `module` is mindspore or below it."""
    return module.split(".")[0] == "mindspore"


def _keys(node: ast.Call, function: str) -> Iterator[tuple[str, int]]:
    """The option keys that a call of a setter or getter of the context names."""
    if function in SETTERS:
        for keyword in node.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value.lineno
    if function in GETTERS and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        yield node.args[0].value, node.lineno


def _catches_import(handler: ast.ExceptHandler) -> bool:
    """Whether the handler catches what a missing name raises."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in _CAUGHT for one in caught)
