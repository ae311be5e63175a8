"""The source of a function that runs in parts: graph breaks are unchanged, the statements between them become separate functions."""
from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from torchspore.graph.control_flow import syntax
from torchspore.graph.control_flow.syntax import later, located, name
from torchspore.graph.graph_breaks.plan import Plan, Position, position_of

HELPER = "_cf_parts"
OUTCOME = "_cf_outcome"
"""The local name of what came of a piece that may fail and be caught."""
_BINDING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Expr)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Piece:
    """Statements that are to become one graph, as a function of the names that they read."""

    statements: tuple[Position, ...]
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    definition: ast.FunctionDef
    first: int
    last: int                       # lines


class Splitter:
    """Writes the split form of one function and collects its pieces."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        function = plan.definition
        assert isinstance(function, ast.FunctionDef)
        arguments = function.args
        every = (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
        self._arguments = [a.arg for a in every if a is not None]
        declared = syntax.declared(function.body, ast.Global) | syntax.declared(function.body, ast.Nonlocal)
        self._locals = (set(self._arguments) | syntax.stored(function.body)) - declared
        self.pieces: list[Piece] = []
        self._is_guarded = False
        """True if the block that is written is in the body of a `try` or a `with`."""

    def function(self) -> ast.FunctionDef:
        """The split form."""
        original = self.plan.definition
        assert isinstance(original, ast.FunctionDef)
        definition = copy.deepcopy(original)
        definition.decorator_list = []
        definition.body = self._block(original.body, set(self._arguments), False)
        if moved := self._locals - set(self._arguments) - syntax.stored(definition.body):
            # Only pieces bind them now; the rest of the function would read a variable of the module with that name.
            definition.body.insert(0, ast.If(ast.Constant(False), [syntax.assign(text, ast.Constant(None)) for text in sorted(moved)], []))
        definition.body = located(definition.body, original.body[0])
        return ast.fix_missing_locations(definition)

    def _block(self, statements: Sequence[ast.stmt], definite: set[str], in_loop: bool) -> list[ast.stmt]:
        """The split form of a block; `definite` are the names that surely have a value at its beginning."""
        definite, out, run = set(definite), [], []
        for statement in statements:
            if not self.plan.is_break(statement) and self.plan.joins(statement):
                run.append(statement)
                continue
            out += self._piece(run, definite, in_loop)
            run = []
            if self.plan.is_break(statement):
                out.append(self._break(statement, definite, in_loop))
                definite |= _surely_stored([statement])
            else:
                out += self._piece([statement], definite, in_loop)
        return out + self._piece(run, definite, in_loop)

    def _piece(self, run: list[ast.stmt], definite: set[str], in_loop: bool) -> list[ast.stmt]:
        """Return the call of a piece with these statements; add the names that it surely assigns to `definite`."""
        if not run:
            return []
        stored, surely = syntax.stored(run) & self._locals, _surely_stored(run)
        argument_names = sorted(stored & (self._read_outside(run) | (syntax.read(run) if in_loop else set())))
        is_return = isinstance(run[-1], ast.Return)
        # If an error may be caught, the function continues with the values from before it: no name is certain then, and all are passed.
        is_caught = self._is_guarded and bool(argument_names) and not _stores_last(run)
        gives = argument_names if is_caught or not is_return else []
        result_names = (_read_first(run) | (set(gives) - (set() if is_caught else surely))) & self._locals
        takes = [a for a in self._arguments if a in result_names] + sorted(result_names - set(self._arguments))
        if self._arguments and _names_super(run) and self._arguments[0] not in takes:
            takes.insert(0, self._arguments[0])
        unsure = set(takes) - definite
        open_ = set(gives) - definite - surely
        number = len(self.pieces)
        self.pieces.append(Piece(
            tuple(position_of(s) for s in run), tuple(takes), tuple(gives), self._definition(number, run, takes, gives, unsure, open_),
            run[0].lineno, run[-1].end_lineno or run[-1].lineno,
        ))
        arguments = ast.Tuple([_value_of(n, n in unsure) for n in takes], ast.Load())
        if is_caught:
            call = _caught_call(number, arguments, gives, set(gives) - definite, is_return)
        else:
            call = _call(number, arguments, gives, is_return) + _without_value(open_)
        definite |= surely
        return located(call, run[0])

    def _definition(
        self, number: int, run: list[ast.stmt], takes: list[str], gives: list[str], unsure: set[str], open_: set[str],
    ) -> ast.FunctionDef:
        """The piece as a function; it may be given no value for the names `unsure`, and may have none for `open_` at its end."""
        body = [*_without_value(unsure), *(copy.deepcopy(s) for s in run)]
        last = body[-1]
        values = [_value_of(n, n in open_) for n in gives]
        if isinstance(last, ast.Return):
            body[-1] = ast.copy_location(ast.Return(ast.Tuple([last.value or ast.Constant(None), *values], ast.Load())), last)
        else:
            body.append(ast.copy_location(ast.Return(ast.Tuple(values, ast.Load())), last))
        function = ast.FunctionDef(
            name=f"_cf_piece_{number}_{self.plan.code.co_name.strip('<>')}",
            args=ast.arguments([], [ast.arg(n) for n in takes], None, [], [], None, []), body=body,
            decorator_list=[], returns=None, type_comment=None,
        )
        function.type_params = []  # type: ignore[attr-defined]
        located([function], run[0])
        return ast.fix_missing_locations(ast.copy_location(function, run[0]))

    def _break(self, statement: ast.stmt, definite: set[str], in_loop: bool) -> ast.stmt:
        """Return the statement unchanged except that its calls go through `_cf_parts.call` and its blocks run in parts."""
        copied = copy.copy(statement)
        inside = in_loop or isinstance(statement, (ast.For, ast.While))
        bound = definite | (_targets(statement) & self._locals)
        for field in ast.iter_fields(statement):
            key, value = field
            if key in _BLOCKS and isinstance(value, list) and not isinstance(statement, _DEFINITIONS):
                around = self._is_guarded
                self._is_guarded = around or (key == "body" and isinstance(statement, (ast.Try, ast.With)))
                setattr(copied, key, self._block(value, bound, inside))
                self._is_guarded = around
            elif key == "handlers":
                copied.handlers = [self._handler(h, bound, inside) for h in value]  # type: ignore[attr-defined]
            elif isinstance(statement, (*_DEFINITIONS, ast.Match)):
                continue
            elif isinstance(value, ast.AST):
                setattr(copied, key, _Calls().visit(copy.deepcopy(value)))
            elif isinstance(value, list):
                setattr(copied, key, [_Calls().visit(copy.deepcopy(v)) if isinstance(v, ast.AST) else v for v in value])
        return copied

    def _handler(self, handler: ast.ExceptHandler, definite: set[str], in_loop: bool) -> ast.ExceptHandler:
        copied = copy.copy(handler)
        copied.body = self._block(handler.body, definite | ({handler.name} if handler.name else set()), in_loop)
        return copied

    def _read_outside(self, run: list[ast.stmt]) -> set[str]:
        """The names that the function reads in other statements than these."""
        run_ids = {id(s) for s in run}
        names: set[str] = set()

        def walk(statements: Sequence[ast.stmt]) -> None:
            for statement in statements:
                if id(statement) in run_ids:
                    continue
                if any(id(part) in run_ids for part in ast.walk(statement)):
                    for child in ast.iter_child_nodes(statement):
                        walk([child])  # type: ignore[list-item]
                else:
                    names.update(syntax.read([statement]))

        walk(self.plan.definition.body)  # type: ignore[arg-type]
        return names


class _Calls(ast.NodeTransformer):
    """Lets calls of the program's functions run in parts too."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        helper = ast.Call(ast.Attribute(name(HELPER), "call", ast.Load()), [node.func], [])
        return ast.copy_location(ast.Call(ast.copy_location(helper, node), node.args, node.keywords), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def _call(number: int, arguments: ast.expr, gives: list[str], is_return: bool) -> list[ast.stmt]:
    """The call of a piece."""
    call = _helper("run", ast.Constant(number), arguments)
    if is_return:
        return [ast.Return(ast.Subscript(call, ast.Constant(0), ast.Load()))]
    return [ast.Assign([_tuple(gives, ast.Store())], call) if gives else ast.Expr(call)]


def _caught_call(number: int, arguments: ast.expr, gives: list[str], open_: set[str], is_return: bool) -> list[ast.stmt]:
    """Return the call of a piece that returns what it has stored even if it fails or returns: that follows later."""
    names = ast.Tuple([ast.Constant(n) for n in gives], ast.Load())
    end = ast.Call(ast.Attribute(name(OUTCOME), "end", ast.Load()), [], [])
    return [
        ast.Assign([_tuple([*gives, OUTCOME], ast.Store())], _helper("attempt", ast.Constant(number), arguments, names)),
        *_without_value(open_),
        ast.Return(end) if is_return else ast.Expr(end),
    ]


def _helper(method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(name(HELPER), method, ast.Load()), list(arguments), [])


def _value_of(text: str, is_unsure: bool) -> ast.expr:
    """Return the value of a local name, or a marker if it may have none."""
    return ast.Call(ast.Attribute(name(HELPER), "value", ast.Load()), [later(name(text))], []) if is_unsure else name(text)


def _without_value(unsure: set[str]) -> list[ast.stmt]:
    """Return statements that delete the names whose value is the marker for "none", so that Python raises where they are read."""
    return [
        ast.If(
            ast.Compare(name(text), [ast.Is()], [ast.Attribute(name(HELPER), "unbound", ast.Load())]),
            [ast.Delete([ast.Name(text, ast.Del())])], [],
        ) for text in sorted(unsure)
    ]


def _tuple(values: Sequence[str], context: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(v, context) for v in values], context)


def _surely_stored(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that have a value once the statements have run."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, _BINDING):
            if not (isinstance(statement, ast.AnnAssign) and statement.value is None):
                names |= syntax.stored([statement])
        elif isinstance(statement, ast.If):
            names |= _surely_stored(statement.body) & _surely_stored(statement.orelse)
        elif isinstance(statement, ast.With):
            names |= _targets(statement) | _surely_stored(statement.body)
    return names


def _stores_last(run: list[ast.stmt]) -> bool:
    """Return whether all that could fail comes before anything is stored."""
    is_simple = len(run) == 1 and isinstance(run[0], (*_BINDING, ast.Return)) and len(syntax.stored(run)) <= 1
    return is_simple and not any(isinstance(part, ast.NamedExpr) for part in ast.walk(run[0]))


def _read_first(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that the statements may read before they store them."""
    names: set[str] = set()
    stored: set[str] = set()
    for statement in statements:
        names |= syntax.read([statement]) - stored
        stored |= _surely_stored([statement])
    return names


def _targets(statement: ast.stmt) -> set[str]:
    """The names that a loop or a `with` binds before its block runs."""
    if isinstance(statement, ast.For):
        return syntax.stored([statement.target])
    if isinstance(statement, ast.With):
        return syntax.stored([item.optional_vars for item in statement.items if item.optional_vars is not None])
    return set()


def _names_super(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "super" for statement in statements for part in ast.walk(statement))
