"""Converts expressions: and, or, not, conditional expressions, chained comparisons, calls, super(), values of several names."""
from __future__ import annotations

import ast
from collections.abc import Callable

from torchspore.graph.control_flow import syntax

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in",
}


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function; `first` is its first parameter, which `super()` means."""

    def __init__(self, first: str | None, nested: Callable[[ast.FunctionDef], ast.AST]) -> None:
        self._first, self._nested = first, nested

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._nested(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        if not syntax.can_convert(node.body):
            return node
        parameters = node.args.posonlyargs + node.args.args
        inner = Expressions(parameters[0].arg if parameters else None, self._nested)
        node.args.defaults = [self.visit(value) for value in node.args.defaults]
        node.args.kw_defaults = [value and self.visit(value) for value in node.args.kw_defaults]
        node.body = inner.visit(node.body)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        loose = not any(syntax.binds(value) for value in node.values[1:])
        self.generic_visit(node)
        if not loose:
            return node
        first, *others = node.values
        return self._at(node, syntax.helper("and_" if isinstance(node.op, ast.And) else "or_", first, *map(syntax.later, others)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._at(node, syntax.helper("not_", node.operand)) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        loose = not syntax.binds(node.body) and not syntax.binds(node.orelse)
        self.generic_visit(node)
        return self._at(node, syntax.helper("pick", node.test, syntax.later(node.body), syntax.later(node.orelse))) if loose else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        loose = len(node.ops) > 1 and not any(syntax.binds(value) for value in node.comparators[1:])
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            test = syntax.helper("contains", node.left, node.comparators[0])
            return self._at(node, test if isinstance(node.ops[0], ast.In) else syntax.helper("not_", test))
        if not loose:
            return node
        signs = ast.Tuple([ast.Constant(_SIGNS[type(op)]) for op in node.ops], ast.Load())
        return self._at(node, syntax.helper("chain", signs, node.left, *map(syntax.later, node.comparators)))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        pattern = syntax.target_pattern(node.targets[0]) if len(node.targets) == 1 else None
        is_written_out = pattern is not None and isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(pattern)
        if pattern is not None and not (is_written_out and not any(pattern)):
            unpacked = syntax.helper("unpack", node.value, ast.Constant(pattern))  # type: ignore[arg-type]
            node.value = self._at(node.value, unpacked)  # type: ignore[assignment]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if syntax.is_helper(node):
            return self.generic_visit(node)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        self.generic_visit(node)
        if is_super:
            if not node.args and self._first is not None:
                node.args = [self._at(node, syntax.name("__class__")), self._at(node, syntax.name(self._first))]  # type: ignore[list-item]
            return node
        node.func = self._at(node.func, syntax.helper("call", node.func))  # type: ignore[assignment]
        return node

    @staticmethod
    def _at(old: ast.AST, new: ast.AST) -> ast.AST:
        syntax.located([new], old)  # type: ignore[list-item]
        return new
