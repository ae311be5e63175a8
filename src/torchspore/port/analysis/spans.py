"""Parts of a node in the order of the text, and parentheses."""
from __future__ import annotations

import ast

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.JoinedStr)


def bound_in(node: ast.AST) -> set[str]:
    """Return the names that a function, a lambda or a comprehension binds, without those of functions inside it."""
    names = set[str]()
    body = node.generators if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) else getattr(node, "body", [])
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        names |= {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    waiting: list[ast.AST] = list(body) if isinstance(body, list) else [body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(part.name)
        elif not isinstance(part, ast.Lambda):
            waiting.extend(ast.iter_child_nodes(part))
    return names


def is_self_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that have a text of their own, in the order of the text."""
    parts: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.expr, ast.stmt)):
            parts.append(child)
        elif not isinstance(child, (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)):
            parts.extend(children(child))
    return sorted(parts, key=lambda part: (part.lineno, part.col_offset))  # type: ignore[attr-defined]


def level_in(parent: ast.AST | None, part: ast.AST) -> str:
    """Return how tightly a part is bound in its parent: "." before a dot, an index or a call, "+" as an operand, "" elsewhere."""
    if isinstance(parent, (ast.Attribute, ast.Subscript)) and part is parent.value:
        return "."
    if isinstance(parent, ast.Call) and part is parent.func:
        return "."
    return "+" if isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Starred)) else ""


def needs_parentheses(text: str, level: str) -> bool:
    """Return whether an expression needs parentheses before a dot ("."), or as an operand ("+")."""
    try:
        node = ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError:
        return True
    if isinstance(node, ATOMS) or (isinstance(node, ast.Tuple) and text.startswith("(")):
        return False
    if isinstance(node, ast.Constant):
        return (level == "." and isinstance(node.value, (int, float))) or "\n" in text
    if text.startswith("(") and isinstance(node, ast.GeneratorExp):
        return False
    return not _is_in_parentheses(text)


def _is_in_parentheses(text: str) -> bool:
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return index == len(text) - 1
    return False
