"""Parameters, constants and primitives that the constructor of a Cell creates; calls of primitives become expressions."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port import rules
from torchspore.port.kinds import TENSOR
from torchspore.port.source import Source

REMOVED = "\0"
"""The text of a statement that the port omits, until `without_removed`."""


class ClassFacts:
    """The facts of one class of the file; those of its bases in the file are included."""

    def __init__(self, source: Source, node: ast.ClassDef, bases: list[ClassFacts]) -> None:
        self.source, self.node = source, node
        self.parameters: set[str] = {name for base in bases for name in base.parameters}
        self.inlined: dict[str, tuple[str, ast.Call]] = {name: value for base in bases for name, value in base.inlined.items()}
        self.removed: set[str] = set()
        """The attributes whose assignment in this class is omitted."""
        self.init = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
        self.assigned: dict[str, int] = {}
        for target, value, _ in self._assignments():
            self.assigned[target] = self.assigned.get(target, 0) + 1
            if isinstance(value, ast.Call) and source.mindspore_name(value.func) == "Parameter":
                self.parameters.add(target)
        self._find_primitives()

    def _assignments(self) -> list[tuple[str, ast.expr, bool]]:
        """Return (attribute, value, whether it is a statement of the constructor itself) of all assignments to self."""
        direct = set(map(id, self.init.body)) if self.init is not None else set()
        result = []
        for statement in ast.walk(self.node):
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    result += [(name, value, id(statement) in direct) for name, value in pairs(target, statement.value)]
        return result

    def _find_primitives(self) -> None:
        local = _local_names(self.init) if self.init is not None else set()
        for name, value, _ in self._assignments():
            if self.assigned[name] > 1 or not isinstance(value, ast.Call):
                continue
            primitive = self.source.mindspore_name(value.func)
            if primitive is None or not any(rule.inputs is not None for rule in rules.find(primitive)):
                continue
            used = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
            if used & local or not self._is_only_called(name):
                continue
            self.inlined[name] = (primitive, value)
            self.removed.add(name)

    def _is_only_called(self, name: str) -> bool:
        """Return whether the class does nothing with this attribute but call it as `self.name(...)`, and assign it."""
        calls = {id(node.func) for node in ast.walk(self.source.tree) if isinstance(node, ast.Call)}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                is_of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
                if is_of_self and id(node) not in calls and self._is_in_class(node):
                    return False
        return True

    def _is_in_class(self, node: ast.AST) -> bool:
        return any(part is node for part in ast.walk(self.node))

    def write_assignment(self, rewriter: Any, node: ast.Assign) -> str | None:
        """Return the torch form of an assignment to attributes in the constructor; None for one that stays as it is."""
        if rewriter.function_name != "__init__" or len(node.targets) != 1:
            return None
        items = pairs(node.targets[0], node.value)
        if not items:
            return None
        kinds = [self._sort(rewriter, name, value) for name, value in items]
        if not any(kinds):
            return None
        plain = [item for item, kind in zip(items, kinds) if not kind]
        statements = []
        if plain:
            names, values = ", ".join(f"self.{name}" for name, _ in plain), ", ".join(rewriter.text(value) for _, value in plain)
            statements.append(f"{names} = {values}")
        for (name, value), kind in zip(items, kinds):
            if kind == "buffer":
                statements.append(f'self.register_buffer("{name}", {rewriter.text(value)}, persistent=False)')
        indent = self.source.indent(node) or ""
        return f"\n{indent}".join(statements) if statements else REMOVED

    def _sort(self, rewriter: Any, name: str, value: ast.expr) -> str:
        if name in self.removed:
            return "primitive"
        is_tensor = rewriter.scope.kind(value) == TENSOR and isinstance(value, ast.Call)
        if is_tensor and self.source.mindspore_name(value.func) != "Parameter" and self.assigned.get(name) == 1:  # type: ignore[attr-defined]
            return "buffer"
        return ""


def pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return the attributes of self that an assignment sets, with their values; none if a target is something else."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        items = [pairs(each, part) for each, part in zip(target.elts, value.elts)]
        return [item for part in items for item in part] if all(items) else []
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return [(target.attr, value)]
    return []


def _local_names(function: ast.FunctionDef) -> set[str]:
    names = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    return names | {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def without_removed(text: str) -> str:
    """Remove the lines of omitted statements; a block that would be empty has `pass`."""
    lines: list[str] = []
    all_lines = text.split("\n")
    for index, line in enumerate(all_lines):
        if REMOVED not in line:
            lines.append(line)
            continue
        rest = line.replace(REMOVED, "").rstrip()
        indent = len(line) - len(line.lstrip(" \t"))
        following = next((other for other in all_lines[index + 1:] if other.strip()), "")
        before = next((other for other in reversed(lines) if other.strip()), "")
        is_alone = before.rstrip().endswith(":") and (not following or len(following) - len(following.lstrip(" \t")) < indent)
        if rest.strip().startswith("#"):
            lines.append(rest)
        if is_alone:
            lines.append(line[:indent] + "pass")
        elif rest.strip(" ;\t") and not rest.strip().startswith("#"):
            lines.append(rest)
    return "\n".join(lines)
