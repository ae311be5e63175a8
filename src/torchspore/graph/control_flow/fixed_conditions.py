"""Conditions that a comment fixes: `if x > 0:  # @jit.cond: True` takes its branch in a graph, whatever the condition is."""
from __future__ import annotations

import ast

from torchspore.graph.capture.condition_comments import COMMENT


def mark(tree: ast.AST, lines: list[str]) -> None:
    """Store in each `if` of `tree` the value that a comment fixes, at its end or alone on the line before.

    `lines` is the text of the tree.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.If):
            continue
        before = lines[node.lineno - 2].strip() if node.lineno > 1 else ""
        match = COMMENT.search(lines[(node.test.end_lineno or node.lineno) - 1]) or COMMENT.match(before)
        if match is not None:
            node.fixed_value = match[1] == "True"  # type: ignore[attr-defined]


class FixedConditions(ast.NodeTransformer):
    """Replaces each marked `if` by the branch that is taken."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Return the statements of the branch, or the node itself without a mark."""
        self.generic_visit(node)
        fixed_value = getattr(node, "fixed_value", None)
        if fixed_value is None:
            return node
        return (node.body if fixed_value else node.orelse) or [ast.copy_location(ast.Pass(), node)]
