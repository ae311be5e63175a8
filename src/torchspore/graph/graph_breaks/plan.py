"""What is known about a function's statements: which can be captured, and which must run in Python."""
from __future__ import annotations

import ast
from types import CodeType

from torchspore.graph.control_flow import syntax
from torchspore.graph.control_flow.source import Definition
from torchspore.graph.graph_breaks.shared_locals import mentions, shared

Position = tuple[int, int]
"""Line and column of a statement, which tell it from the others of its function."""

_OPAQUE = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete, ast.Raise,
    ast.Pass, ast.Break, ast.Continue,
)


class Plan:
    """The statements of one function: unknown, good (may be in one graph with its neighbours), alone, or a graph break."""

    def __init__(self, code: CodeType, definition: Definition) -> None:
        self.code, self.definition = code, definition
        self.good: set[Position] = set()
        self.alone: set[Position] = set()
        self.breaks: dict[Position, str] = {}
        self.version = 0
        self._declared = syntax.declared(ast.iter_child_nodes(definition), ast.Global) | syntax.declared(
            ast.iter_child_nodes(definition), ast.Nonlocal)
        self._shared = shared(definition, code)

    def is_break(self, statement: ast.stmt) -> bool:
        """Return whether a statement runs in Python, with its blocks, if it has some, in parts again."""
        if position_of(statement) in self.breaks or not can_be_captured(statement) or mentions(statement, self._shared):
            return True
        return bool(syntax.stored([statement]) & self._declared)

    def joins(self, statement: ast.stmt) -> bool:
        """Return whether a statement may be in one graph with its neighbours."""
        return position_of(statement) in self.good and position_of(statement) not in self.alone

    def set_captured(self, statements: tuple[Position, ...]) -> None:
        """Record that these statements became a graph."""
        if not self.good.issuperset(statements):
            self.good.update(statements)
            self.version += 1

    def refused(self, statements: tuple[Position, ...], reason: str) -> None:
        """Record that these statements cannot be one graph: several are tried separately, a single one becomes a graph break."""
        if len(statements) == 1:
            self.breaks[statements[0]] = reason
        else:
            self.alone.update(statements)
        self.version += 1


def position_of(statement: ast.stmt) -> Position:
    """Return the position of a statement."""
    return statement.lineno, statement.col_offset


def can_be_captured(statement: ast.stmt) -> bool:
    """Return whether a statement could be part of a graph by its form: it does not leave its block, but by a return at its very end."""
    return not isinstance(statement, _OPAQUE) and (isinstance(statement, ast.Return) or not syntax.leaves(statement))
