"""Finds expressions that are layers of MindSpore, as far as the source shows it."""
from __future__ import annotations

import ast

from torchspore.port.source import Source
from torchspore.port.spans import is_self_attribute

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
    return [
        node.value for node in ast.walk(source.tree) if isinstance(node, ast.Assign)
        for target in node.targets if is_self_attribute(target) and target.attr == attribute         # type: ignore[attr-defined]
    ]


def _owner_of_name(source: Source, name: str) -> str:
    """A name of a loop over cells, or of which `isinstance` is asked, is a layer."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            targets = {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
            if name in targets and any(isinstance(part, ast.Attribute) and part.attr in _WALKS for part in ast.walk(node.iter)):
                return LAYER
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
            classes = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            is_asked = isinstance(node.args[0], ast.Name) and node.args[0].id == name
            if is_asked and all((source.mindspore_name(cls) or "").startswith("nn.") for cls in classes):
                return LAYER
    return UNKNOWN
