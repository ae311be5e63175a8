"""Converts the statements of a function: `if`, `while` and `for` become calls of helpers with their parts as nested functions.

A part writes the function's names by `nonlocal`, so that control flow on Python values runs as written. An `if` that control leaves (by
return, break, continue) also contains the rest of its block as a function; the body of a loop returns how it ended.
"""
from __future__ import annotations

import ast

from torchspore.graph.control_flow import syntax
from torchspore.graph.control_flow.expression_conversion import Expressions

_RETURN = 2


class Function:
    """The conversion of one function."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self._node = node
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
        self._parameters = [argument.arg for argument in every]
        self._globals = syntax.declared(node.body, ast.Global)
        self._outer = syntax.declared(node.body, ast.Nonlocal)
        self._expressions = Expressions(self._parameters[0] if self._parameters else None, converted)
        inner = [part for part in syntax.nodes_in_scope(node.body) if isinstance(part, (ast.FunctionDef, ast.Lambda, ast.ClassDef))]
        self._outer_reads = syntax.read(inner) | self._outer          # what other functions may read counts at any time
        self._loops: list[bool] = []            # for each loop around, whether it has a return inside
        self._count = 0

    def run(self) -> ast.FunctionDef:
        """The converted function."""
        node = self._node
        local_names = sorted(syntax.stored(node.body) - set(self._parameters) - self._globals - self._outer)
        head: list[ast.stmt] = []
        if self._globals:
            head.append(ast.Global(sorted(self._globals)))
        if self._outer:
            head.append(ast.Nonlocal(sorted(self._outer)))
        if local_names:  # names that only functions inside assign are this function's all the same
            head.append(ast.If(ast.Constant(False), [ast.Assign([ast.Name(n, ast.Store()) for n in local_names], ast.Constant(None))], []))
        body = self._block(node.body, [ast.Return(ast.Constant(None))], set())
        node.body = syntax.located(head, node) + syntax.located(body, node)
        return node

    # ---- blocks

    def _block(
        self, nodes: list[ast.stmt], tail: list[ast.stmt], after: set[str], later: frozenset[str] = frozenset(),
    ) -> list[ast.stmt]:
        """Return `nodes` followed by `tail`, which leaves the block for paths that fall through; `after` are the names read later.

        `later` are the names that the functions called by `tail` assign: code that includes `tail` assigns them too.
        """
        done: list[ast.stmt] = []
        waiting = list(nodes)
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                return done + syntax.located(self._statement(node, after), node)
            if isinstance(node, ast.If) and syntax.leaves(node):
                return done + syntax.located(self._leaving(node, waiting, tail, after, later), node)
            live = after | syntax.read(waiting) | self._outer_reads
            if isinstance(node, (ast.While, ast.For)):
                statements, following = self._loop(node, live)
                waiting[:0] = following
            else:
                statements = self._statement(node, live)
            done += syntax.located(statements, node)
        return done + tail

    def _plain(self, nodes: list[ast.stmt], after: set[str]) -> list[ast.stmt]:
        """`nodes` inside a `try`, `with` or `match`: an `if` that control leaves stays Python's."""
        done: list[ast.stmt] = []
        waiting = list(nodes)
        while waiting:
            node = waiting.pop(0)
            live = after | syntax.read(waiting) | self._outer_reads
            if isinstance(node, (ast.While, ast.For)):
                statements, following = self._loop(node, live)
                waiting[:0] = following
            elif isinstance(node, ast.If) and syntax.leaves(node):
                test = syntax.helper("truth", self._value(node.test))
                statements = [ast.If(test, self._plain(node.body, live), self._plain(node.orelse, live))]
            else:
                statements = self._statement(node, live)
            done += syntax.located(statements, node)
        return done

    def _inner(self, title: str, nodes: list[ast.stmt], body: list[ast.stmt], *parameters: str) -> ast.FunctionDef:
        return syntax.function(title, parameters, body, syntax.stored(nodes), self._globals)

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _value(self, node: ast.expr) -> ast.expr:
        return self._expressions.visit(node)

    # ---- if

    def _if(self, node: ast.If, live: set[str]) -> list[ast.stmt]:
        n = self._number()
        state_names = syntax.stored([*node.body, *node.orelse]) & live
        return [
            self._inner(f"_cf_then{n}", node.body, self._block(node.body, [], live)),
            self._inner(f"_cf_else{n}", node.orelse, self._block(node.orelse, [], live)),
            ast.Expr(syntax.helper(
                "if_", self._value(node.test), syntax.name(f"_cf_then{n}"), syntax.name(f"_cf_else{n}"), syntax.strings(state_names),
            )),
        ]

    def _leaving(
        self, node: ast.If, rest: list[ast.stmt], tail: list[ast.stmt], after: set[str], later: frozenset[str],
    ) -> list[ast.stmt]:
        """Convert an `if` that control leaves: it includes the rest of the block and the functions that `tail` calls."""
        n = self._number()
        following = rest or tail
        falls: list[ast.stmt] = [ast.Return(ast.Call(syntax.name(f"_cf_rest{n}"), [], []))] if following else []
        live = after | syntax.read(rest) | self._outer_reads
        every = later | syntax.stored(rest)
        state_names = (syntax.stored([*node.body, *node.orelse]) | every) & (after | self._outer_reads)
        statements: list[ast.stmt] = [self._inner(f"_cf_rest{n}", rest, self._block(rest, tail, after, later))] if following else []
        statements.append(self._inner(f"_cf_then{n}", node.body, self._block(node.body, falls, live, every)))
        statements.append(self._inner(f"_cf_else{n}", node.orelse, self._block(node.orelse, falls, live, every)))
        statements.append(ast.Return(syntax.helper(
            "if_", self._value(node.test), syntax.name(f"_cf_then{n}"), syntax.name(f"_cf_else{n}"), syntax.strings(state_names),
        )))
        return statements

    # ---- loops

    def _loop(self, node: ast.While | ast.For, live: set[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The loop, and statements to follow it that are still to be converted."""
        n = self._number()
        inside = live | syntax.read([node]) | self._outer_reads
        returns = any(syntax.has_return(part) for part in node.body)
        self._loops.append(returns)
        body = self._inner(f"_cf_body{n}", node.body, self._block(node.body, [self._leave(False)], inside))
        self._loops.pop()
        state_strings = syntax.strings(syntax.stored([node]) & inside | ({"_exit"} if returns or node.orelse else set()))
        if isinstance(node, ast.While):
            statements: list[ast.stmt] = [
                self._inner(f"_cf_test{n}", [ast.Expr(node.test)], [ast.Return(self._value(node.test))]),
                body,
                syntax.assign(
                    f"_cf_exit{n}", syntax.helper("while_", syntax.name(f"_cf_test{n}"), syntax.name(f"_cf_body{n}"), state_strings)
                ),
            ]
        else:
            target = ast.Assign([node.target], syntax.name("_cf_item"))
            item = self._inner(f"_cf_next{n}", [target], [self._expressions.visit(target)], "_cf_item")
            statements = [item, body, syntax.assign(f"_cf_exit{n}", syntax.helper(
                "for_", self._value(node.iter), syntax.name(f"_cf_next{n}"), syntax.name(f"_cf_body{n}"), state_strings,
            ))]
        exit_name = syntax.name(f"_cf_exit{n}")
        following: list[ast.stmt] = []
        if returns:
            value = ast.Subscript(exit_name, ast.Constant(1), ast.Load())
            following.append(ast.If(syntax.helper("returned", exit_name), [ast.Return(value)], []))
        if node.orelse:
            following.append(ast.If(syntax.helper("ended", exit_name), node.orelse, []))
        return statements, syntax.located(following, node)

    def _leave(self, is_break: bool) -> ast.Return:
        return syntax.leave(int(is_break) if self._loops[-1] else not is_break)

    # ---- everything else

    def _statement(self, node: ast.stmt, live: set[str]) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            return self._if(node, live)
        if isinstance(node, ast.Return):
            value = self._value(node.value) if node.value is not None else None
            return [syntax.leave(_RETURN, value) if self._loops else ast.Return(value)]
        if isinstance(node, (ast.Break, ast.Continue)):
            return [self._leave(isinstance(node, ast.Break))]
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return []
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            return [ast.Assign([node.target], self._value(node.value))] if node.value is not None else []
        if isinstance(node, ast.Assert):
            message_node = (
                syntax.later(self._value(node.msg)) if node.msg is not None and not syntax.binds(node.msg) else ast.Constant(None)
            )
            return [ast.Assert(syntax.helper("holds", self._value(node.test), message_node), node.msg)]
        if isinstance(node, (ast.Try, ast.With, ast.Match)) or type(node).__name__ == "TryStar":
            return [self._compound(node, live | syntax.read([node]))]
        converted = self._expressions.visit(node)
        return converted if isinstance(converted, list) else [converted]

    def _compound(self, node: ast.AST, live: set[str]) -> ast.stmt:
        """A statement with blocks that stays Python's: the blocks are converted, and the expressions."""
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self._plain(value, live))
            elif isinstance(value, list):
                for position, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        value[position] = self._value(item)
                    elif isinstance(item, (ast.ExceptHandler, ast.withitem, ast.match_case)):
                        self._compound(item, live)
            elif isinstance(value, ast.expr):
                setattr(node, field, self._value(value))
        return node  # type: ignore[return-value]


def converted(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return the function `node` with its control flow as calls of helpers; unchanged if it cannot be converted."""
    return Function(node).run() if syntax.can_convert(node) else node
