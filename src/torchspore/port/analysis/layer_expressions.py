"""Finds expressions that are layers of MindSpore, as far as the source shows it."""
from __future__ import annotations

import ast

from torchspore.port.analysis.class_facts import pairs
from torchspore.port.analysis.source import Source
from torchspore.port.analysis.spans import is_self_attribute

LAYER, OTHER, UNKNOWN = "layer", "other", "unknown"
_WALKS = frozenset("cells cells_and_names name_cells _cells".split())


def owner(source: Source, node: ast.expr) -> str:
    """Return whether an expression is a layer of MindSpore, something else, or unknown."""
    if isinstance(node, ast.Name):
        return OTHER if node.id == "self" else _owner_of_name(source, node.id)
    if isinstance(node, ast.Call):
        name = source.mindspore_name(node.func)
        if name is None:
            return OTHER if isinstance(node.func, ast.Name) else UNKNOWN
        return LAYER if name.startswith("nn.") else UNKNOWN
    if is_self_attribute(node):
        owners = {owner(source, value) for value in _assigned(source, node.attr)}       # type: ignore[attr-defined]
        return owners.pop() if len(owners) == 1 else UNKNOWN
    return UNKNOWN


def _assigned(source: Source, attribute: str) -> list[ast.expr]:
    """Return the values that the file assigns to an attribute of self."""
    assignments = [node for node in source.nodes if isinstance(node, ast.Assign)]
    items = [item for node in assignments for target in node.targets for item in pairs(target, node.value)]
    return [value for name, value in items if name == attribute]


def _owner_of_name(source: Source, name: str) -> str:
    """A name of a loop over cells, or of which `isinstance` is asked, is a layer."""
    for node in source.nodes:
        if isinstance(node, (ast.For, ast.comprehension)):
            targets = {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
            if name in targets and any(isinstance(part, ast.Attribute) and part.attr in _WALKS for part in ast.walk(node.iter)):
                return LAYER
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
            classes = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            is_asked = isinstance(node.args[0], ast.Name) and node.args[0].id == name
            if is_asked and all((source.mindspore_name(cls) or "").startswith("nn.") for cls in classes):
                return LAYER
    return OTHER if _is_object_of_file(source, name) else UNKNOWN


def _is_object_of_file(source: Source, name: str) -> bool:
    """Return whether a name is assigned objects of classes of the file only, none of which derives from a layer."""
    values = [node.value for node in source.nodes if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name) and target.id == name]
    classes = {node.name: node for node in source.nodes if isinstance(node, ast.ClassDef)}
    called = [value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else "" for value in values]
    bases = [source.mindspore_name(base) or "" for each in called if each in classes for base in classes[each].bases]
    return bool(called) and all(each in classes for each in called) and all(base in ("", "nn.Cell", "Cell") for base in bases)


def class_of(source: Source, node: ast.Attribute) -> str:
    """Return the class of the layer whose attribute a node is, such as "nn.Dense"; "" if the source does not show it."""
    layer = node.value
    if is_self_attribute(layer):
        names = {source.mindspore_name(value.func) if isinstance(value, ast.Call) else None for value in _assigned(source, layer.attr)}  # type: ignore[attr-defined]
        return (names.pop() or "") if len(names) == 1 else ""
    if not isinstance(layer, ast.Name):
        return ""
    classes = ""
    for part in source.nodes:                       # the innermost `if isinstance(layer, nn.Dense)` is the last
        if isinstance(part, ast.If) and any(node is inner for statement in part.body for inner in ast.walk(statement)):
            classes = _asked_class(source, part.test, layer.id) or classes
    return classes


def _asked_class(source: Source, test: ast.expr, name: str) -> str:
    """Return the class in `isinstance(name, nn.Dense)`, also as a part of an `and`."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "isinstance" and len(part.args) == 2:
            if isinstance(part.args[0], ast.Name) and part.args[0].id == name:
                return source.mindspore_name(part.args[1]) or ""
    return ""
