"""Parameters, constants and primitives that the constructor of a Cell creates; calls of primitives become expressions."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchspore.port import rules
from torchspore.port.analysis.kinds import TENSOR
from torchspore.port.analysis.source import Source
from torchspore.port.analysis.spans import is_self_attribute

REMOVED = "\0"
"""The text of a statement that the port omits, until `without_removed`."""


class ClassFacts:
    """The facts of one class of the file; those of its bases in the file are included."""

    def __init__(self, source: Source, node: ast.ClassDef, bases: list[ClassFacts], family: list[ast.ClassDef]) -> None:
        self.source, self.node, self.family = source, node, family
        self.texts = _names_in_texts(source)
        """The names of attributes that the file reads by `getattr` or `hasattr`."""
        self.is_optimizer: bool = any(base.is_optimizer for base in bases) or any(
            source.mindspore_name(base) in rules.OPTIMIZER for base in node.bases)
        self.parameters: set[str] = {name for base in bases for name in base.parameters}
        self.inlined: dict[str, tuple[str, ast.Call]] = {name: value for base in bases for name, value in base.inlined.items()}
        self.layers: set[str] = {name for base in bases for name in base.layers}
        """The layers of MindSpore that the class derives from."""
        self.layers |= {name for base in node.bases if (name := source.mindspore_name(base) or "") in rules.WITH_SAME_ARGUMENTS}
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        self.has_bprop: bool = "bprop" in methods or any(base.has_bprop for base in bases)
        """True if the class defines the gradient of its `construct`."""
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
            if self.assigned[name] > 1 or not isinstance(value, ast.Call) or name in self.texts:       # hasattr(self, "name")
                continue
            primitive = self.source.mindspore_name(value.func)
            if primitive is None or not any(rule.inputs is not None for rule in rules.find(primitive)):
                continue
            ignored = {name for rule in rules.find(primitive) for name in rule.without_effect}
            words = [*value.args, *(keyword.value for keyword in value.keywords if keyword.arg not in ignored)]
            used = {part.id for word in words for part in ast.walk(word) if isinstance(part, ast.Name)}
            if used & local or not self._is_only_called(name):
                continue
            self.inlined[name] = (primitive, value)
            self.removed.add(name)

    def _is_only_called(self, name: str) -> bool:
        """Return whether the class and its relatives do nothing with this attribute but call it as `self.name(...)`, and assign it once."""
        parts = [part for relative in self.family for part in ast.walk(relative)]
        calls = {id(part.func) for part in parts if isinstance(part, ast.Call)}
        uses = [part for part in parts if isinstance(part, ast.Attribute) and part.attr == name]
        if any(is_self_attribute(use) and isinstance(use.ctx, ast.Load) and id(use) not in calls for use in uses):
            return False
        stored = [part for part in self.source.nodes if isinstance(part, ast.Attribute) and part.attr == name]
        if any(isinstance(part.ctx, ast.Store) and not is_self_attribute(part) for part in stored):
            return False
        methods = [item.name for relative in self.family for item in relative.body if isinstance(item, ast.FunctionDef)]
        return sum(isinstance(use.ctx, ast.Store) for use in uses) == 1 and name not in methods

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
        return f"\n{indent}".join(statements) if statements else self.nothing(node)

    def nothing(self, node: ast.stmt) -> str:
        """Return the text instead of a statement that the port omits: `pass` where the line or its block would be empty."""
        rest = self.source.text[self.source.span(node)[1]:].split("\n", 1)[0]
        if self.source.indent(node) is None or rest.lstrip().startswith(";"):
            return "pass"
        block = next(block for block in self._blocks() if node in block)
        is_empty = all(statement is node or (isinstance(statement, ast.Assign) and self._is_removed(statement)) for statement in block)
        return "pass" if is_empty and block[-1] is node else REMOVED

    def _is_removed(self, node: ast.Assign) -> bool:
        items = pairs(node.targets[0], node.value) if len(node.targets) == 1 else []
        return bool(items) and all(name in self.removed for name, _ in items)

    def _blocks(self) -> Iterator[list[ast.stmt]]:
        for part in ast.walk(self.node):
            for field in ("body", "orelse", "finalbody"):
                if isinstance(block := getattr(part, field, None), list):
                    yield block

    def _sort(self, rewriter: Any, name: str, value: ast.expr) -> str:
        if name in self.removed:
            return "primitive"
        if not isinstance(value, ast.Call) or rewriter.scope.kind(value) != TENSOR or self.is_optimizer:
            return ""
        is_parameter = (self.source.mindspore_name(value.func) or "") in ("Parameter", "ParameterTuple")
        return "buffer" if not is_parameter and self.assigned.get(name) == 1 else ""


def _names_in_texts(source: Source) -> set[str]:
    """Return the texts that may be names of attributes: those in `getattr(self, "name")`; all of the file if another name is computed."""
    calls = [part for part in source.nodes if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    names = [call.args[1] for call in calls if call.func.id in ("getattr", "hasattr", "setattr", "delattr") and len(call.args) > 1]  # type: ignore[attr-defined]
    reads_dict = any(isinstance(part, ast.Attribute) and part.attr in ("__dict__", "__getattribute__") for part in source.nodes)
    reads_dict = reads_dict or any(call.func.id == "vars" for call in calls)  # type: ignore[attr-defined]
    parts = names
    if reads_dict or any(not isinstance(name, ast.Constant) for name in names):
        parts = [part for part in source.nodes if isinstance(part, ast.Constant)]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


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
    """Remove the lines of omitted statements; their comments stay."""
    lines: list[str] = []
    for line in text.split("\n"):
        rest = line.replace(REMOVED, "").rstrip() if REMOVED in line else line
        if rest is line or rest.strip():
            lines.append(rest)
    return "\n".join(lines)
