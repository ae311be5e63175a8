"""A call of a layer, an operator or a method, as rules see it."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis.kinds import PYTHON
from torchspore.port.rules.rule import Bound, NoRule, fill, literal, mentioned

HELPER = "helper__"
"""How names of helpers begin until the file is composed."""


class Call:
    """A call, as rules see it."""

    def __init__(self, rewriter: Any, node: ast.AST, bound: Bound) -> None:
        self.rewriter, self.node, self.bound = rewriter, node, bound
        self.read: set[str] = set()
        """The arguments that the rule has asked for."""

    def has(self, name: str) -> bool:
        """Return whether the call sets an argument to another value than the default."""
        self.read.add(name)
        return not self.bound.is_default(name)

    def value(self, name: str) -> Any:
        """Return the literal value of an argument or of its default; ANY for another expression."""
        self.read.add(name)
        return literal(self.bound.nodes.get(name, self.bound.defaults.get(name)))

    def argument(self, name: str) -> ast.expr | None:
        """Return the node of an argument that the call has."""
        self.read.add(name)
        return self.bound.nodes.get(name)

    def text(self, name: str, level: str = "") -> str:
        """Return the torch text of an argument, or of its default."""
        self.read.add(name)
        node = self.bound.nodes.get(name)
        if node is None:
            return ast.unparse(self.bound.defaults[name])
        return str(self.rewriter.text(node, level))

    def texts(self, name: str) -> str:
        """Return the torch text of the arguments of a `*name`."""
        self.read.add(name)
        return ", ".join(self.rewriter.text(node) for node in self.bound.several[name])

    def items(self, name: str) -> list[ast.expr]:
        """Return the nodes of the arguments of a `*name`."""
        self.read.add(name)
        return self.bound.several[name]

    def kind(self, name: str) -> str:
        """Return what an argument is."""
        node = self.bound.nodes.get(name)
        return PYTHON if node is None else str(self.rewriter.scope.kind(node))

    def kind_of(self, node: ast.expr) -> str:
        """Return what an expression is."""
        return str(self.rewriter.scope.kind(node))

    def fill(self, template: str) -> str:
        """Fill a template with the arguments."""
        def write(name: str, level: str, are_several: bool) -> str:
            return self.texts(name) if are_several else self.text(name, level)

        self.read |= mentioned(template)
        return fill(template, write, self.bound.is_default, self.helper)

    def helper(self, name: str) -> str:
        """Note that the output calls a helper function."""
        return str(self.rewriter.helper(name))

    def note(self, text: str) -> None:
        """Add a comment to the statement."""
        self.rewriter.note(text)

    def note_once(self, text: str) -> None:
        """Add a comment that the file has once."""
        if text not in self.rewriter.noted_in_file:
            self.rewriter.noted_in_file.add(text)
            self.rewriter.note(text)

    def refuse(self, text: str) -> NoRule:
        """Return the error of a call that can't be ported."""
        return NoRule(text)


class PlainNames:
    """While it lasts, nodes that are not of the file are plain names."""

    def __init__(self, rewriter: Any) -> None:
        self.rewriter, self.plain = rewriter, set[int]()
        self._render = rewriter.render
        rewriter.render = self.render

    def render(self, node: ast.AST) -> str:
        """Return a name's text, or the torch form of a node of the file."""
        return node.id if id(node) in self.plain and isinstance(node, ast.Name) else str(self._render(node))

    def end(self) -> None:
        """Write nodes as before."""
        self.rewriter.render = self._render
