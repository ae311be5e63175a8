"""The source of `construct` as nodes: what is nested becomes statements of its own, with names for what is between."""
from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchspore.base.text import message
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.container import SequentialCell
from torchspore.mindspore.ops.primitive import Primitive
from torchspore.mindspore.rewrite.node import Node, NodeType, call_of, new_node
from torchspore.mindspore.rewrite.scoped_value import ScopedValue, expression_of, of_expression

if TYPE_CHECKING:
    from torchspore.mindspore.rewrite.symbol_tree import SymbolTree

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mult", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.MatMult: "matmult", ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.USub: "usub", ast.UAdd: "uadd", ast.Invert: "invert", ast.Not: "not", ast.Eq: "eq", ast.NotEq: "noteq", ast.Lt: "lt",
    ast.LtE: "lte", ast.Gt: "gt", ast.GtE: "gte", ast.Is: "is", ast.IsNot: "isnot", ast.In: "in", ast.NotIn: "notin",
}
_LEAVES = (ast.Name, ast.Constant, ast.Attribute)


def source_of(function: Any) -> ast.FunctionDef:
    """The definition of a function. Raises ValueError where its source is not to be had."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ValueError(message(f"SymbolTree.create of {function.__qualname__}", "a construct whose source is in a file")) from error
    found = ast.parse(text).body[0]
    if not isinstance(found, ast.FunctionDef):
        raise ValueError(message(f"SymbolTree.create of {function.__qualname__}", "a construct written with def"))
    return found


class Parser:
    """Makes the nodes of one network's `construct`."""

    def __init__(self, tree: SymbolTree, network: Cell, scope: dict[str, Any]) -> None:
        self._tree, self._network, self._scope = tree, network, scope

    def inputs(self, definition: ast.FunctionDef) -> list[Node]:
        """A node for each parameter but self."""
        arguments = definition.args
        names = [one.arg for one in [*arguments.posonlyargs, *arguments.args][1:]]
        names += [one.arg for one in (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg) if one is not None]
        return [self._kept(Node.create_input(name)) for name in names]

    def body(self, statements: list[ast.stmt]) -> list[Node]:
        """The nodes of a block of statements."""
        found: list[Node] = []
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue                                                     # a docstring
            self._statement(statement, found)
        return found

    def _kept(self, node: Node) -> Node:
        node.belongs_to(self._tree, self._tree.unique_node_name(node.get_name()))
        return node

    def _statement(self, statement: ast.stmt, found: list[Node]) -> None:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            targets = _targets(statement.targets[0])
            if targets is not None:
                self._value(statement.value, targets, found)
                return
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            whole = ast.BinOp(ast.Name(statement.target.id), statement.op, statement.value)
            self._value(whole, [of_expression(statement.target)], found)
            return
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._value(statement.value, [], found)
            return
        if isinstance(statement, ast.Return):
            args = [] if statement.value is None else [self._leaf(statement.value, found)]
            made = new_node(NodeType.Output, "return", [], args, build=_return)
        elif isinstance(statement, ast.If):
            made = new_node(NodeType.ControlFlow, "if_node", [], [self._leaf(statement.test, found)], build=_if)
            made.bodies = [self.body(statement.body), self.body(statement.orelse)]
        elif isinstance(statement, ast.For):
            made = new_node(NodeType.ControlFlow, "for_node", [], [self._leaf(statement.iter, found)], build=_for(statement.target))
            made.bodies = [self.body(statement.body), self.body(statement.orelse)]
        elif isinstance(statement, (ast.While, ast.With, ast.Try)):
            made = new_node(NodeType.ControlFlow, f"{type(statement).__name__.lower()}_node", build=_as_it_is(statement))
        else:
            made = new_node(NodeType.Python, type(statement).__name__, build=_as_it_is(statement))
        found.append(self._kept(made))

    def _leaf(self, value: ast.expr, found: list[Node]) -> ScopedValue:
        """A value that stands for itself, or the name of a statement that is put before."""
        if isinstance(value, _LEAVES) or not self._is_apart(value):
            return of_expression(value)
        name = ScopedValue.create_naming_value(self._tree.unique_name(f"{self._word(value)}_var", first_is_plain=True))
        self._value(value, [name], found)
        return name

    def _is_apart(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Compare):
            return len(value.ops) == 1
        if isinstance(value, (ast.Tuple, ast.List)):
            return not any(isinstance(one, ast.Starred) for one in value.elts)
        return isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp))

    def _word(self, value: ast.expr) -> str:
        if isinstance(value, (ast.BinOp, ast.UnaryOp)):
            return _OPERATORS[type(value.op)]
        if isinstance(value, ast.Call):
            return _last(value.func)
        return type(value).__name__.lower()

    def _value(self, value: ast.expr, targets: list[ScopedValue], found: list[Node]) -> None:
        """Appends the statement `targets = value`, after those of what is nested in it."""
        if isinstance(value, ast.Call):
            made = self._call(value, targets, found)
        elif isinstance(value, ast.BinOp):
            sides = [self._leaf(value.left, found), self._leaf(value.right, found)]
            operator = value.op
            made = new_node(NodeType.MathOps, f"binop_{self._word(value)}", targets, sides, build=lambda node: ast.BinOp(
                expression_of(node.get_args()[0]), operator, expression_of(node.get_args()[1]),
            ))
        elif isinstance(value, ast.UnaryOp):
            sign = value.op
            made = new_node(NodeType.MathOps, f"unaryop_{self._word(value)}", targets, [self._leaf(value.operand, found)],
                        build=lambda node: ast.UnaryOp(sign, expression_of(node.get_args()[0])))
        elif isinstance(value, ast.Compare) and len(value.ops) == 1:
            sides, relation = [self._leaf(value.left, found), self._leaf(value.comparators[0], found)], value.ops[0]
            made = new_node(NodeType.MathOps, f"compare_{_OPERATORS[type(relation)]}", targets, sides, build=lambda node: ast.Compare(
                expression_of(node.get_args()[0]), [relation], [expression_of(node.get_args()[1])],
            ))
        elif isinstance(value, (ast.Tuple, ast.List)) and self._is_apart(value):
            kind = type(value)
            items = [self._leaf(one, found) for one in value.elts]
            made = new_node(NodeType.CallMethod, kind.__name__.lower(), targets, items,
                        build=lambda node: kind([expression_of(one) for one in node.get_args()], ast.Load()))
        else:
            made = new_node(NodeType.Python, type(value).__name__.lower(), targets, [], build=_as_it_is(value))
        found.append(self._kept(made))

    def _call(self, call: ast.Call, targets: list[ScopedValue], found: list[Node]) -> Node:
        args = [of_expression(one) if isinstance(one, ast.Starred) else self._leaf(one, found) for one in call.args]
        kwargs = {keyword.arg or f"**{place}": self._leaf(keyword.value, found) for place, keyword in enumerate(call.keywords)}
        function = call.func
        if isinstance(function, ast.Call):
            function = expression_of(self._leaf(function, found))
        elif isinstance(function, ast.Attribute) and self._is_apart(function.value):
            function = ast.Attribute(expression_of(self._leaf(function.value, found)), function.attr, ast.Load())
        instance = self._instance(function)
        return new_node(_kind(instance), _last(function), targets, args, kwargs, instance, call_of(function))

    def _instance(self, function: ast.expr) -> Any:
        """The Cell, primitive or function that an expression names, as far as that is known before it runs."""
        text = ast.unparse(function)
        try:
            found = eval(compile(ast.Expression(ast.parse(text, mode="eval").body), "<rewrite>", "eval"), {
                "__builtins__": {}, **self._scope, "self": self._network,
            }) if _is_dotted(function) else None
        except Exception:
            return None
        return found if isinstance(found, (Cell, Primitive)) or (callable(found) and not hasattr(found, "__self__")) else None


def _is_dotted(expression: ast.expr) -> bool:
    """Whether an expression is a name with attributes: `self.relu`, `ops.concat`; nothing is called to look at it."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name)


def _kind(instance: Any) -> NodeType:
    if isinstance(instance, Primitive):
        return NodeType.CallPrimitive
    if isinstance(instance, SequentialCell):
        return NodeType.CellContainer
    if isinstance(instance, Cell):
        return NodeType.CallCell if type(instance).__module__.startswith(("torchspore.", "mindspore.")) else NodeType.Tree
    return NodeType.CallFunction


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else "function"


def _targets(target: ast.expr) -> list[ScopedValue] | None:
    """The names that are assigned, None for what is more than names."""
    listed = target.elts if isinstance(target, ast.Tuple) else [target]
    return [of_expression(one) for one in listed] if all(isinstance(one, (ast.Name, ast.Attribute)) for one in listed) else None


def _return(node: Node) -> ast.stmt:
    return ast.Return(expression_of(node.get_args()[0]) if node.get_args() else None)


def _block(nodes: list[Node]) -> list[ast.stmt]:
    return [node.statement() for node in nodes]


def _if(node: Node) -> ast.stmt:
    return ast.If(expression_of(node.get_args()[0]), _block(node.bodies[0]) or [ast.Pass()], _block(node.bodies[1]))


def _for(target: ast.expr) -> Callable[[Node], ast.stmt]:
    return lambda node: ast.For(target, expression_of(node.get_args()[0]), _block(node.bodies[0]) or [ast.Pass()], _block(node.bodies[1]))


def _as_it_is(source: Any) -> Callable[[Node], Any]:
    return lambda _: source
