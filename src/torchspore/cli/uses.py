"""Which names and context options of MindSpore's a program uses, found by parsing it: nothing of it is run."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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

    Names that the program is ready to miss (imported inside a `try` that catches it) are left out, and so are names that
    begin with an underscore.
    """
    finder = _Finder()
    finder.visit(tree)
    first: dict[tuple[str | None, str], Use] = {}
    for use in sorted(finder.found, key=lambda use: use.line):
        first.setdefault((use.function, use.name), use)
    return list(first.values())


class _Finder(ast.NodeVisitor):
    """Collects the uses; knows what each imported name stands for."""

    def __init__(self) -> None:
        self.found: list[Use] = []
        self.bound: dict[str, str] = {}
        self.guarded = False

    def add(self, path: str, line: int) -> None:
        if not self.guarded and not any(part.startswith("_") for part in path.split(".")):
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
            if name.name != "*":
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
        return None


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
