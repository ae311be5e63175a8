"""Parsing of `construct` into nodes: nested expressions become separate statements, with names for intermediate results."""
from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchspore.base.text import message
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.rewrite.common.namespace import is_subtree
from torchspore.mindspore.rewrite.node import Node, NodeType, call_of, new_node
from torchspore.mindspore.rewrite.parsers.assign_parser import AssignParser
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
    """Return the definition of a function. Raises ValueError if its source is unavailable."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ValueError(message(f"SymbolTree.create of {function.__qualname__}", "a construct whose source is in a file")) from error
    definition = ast.parse(text).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise ValueError(message(f"SymbolTree.create of {function.__qualname__}", "a construct written with def"))
    return definition


class Parser:
    """Creates the nodes of one network's `construct`."""

    def __init__(self, tree: SymbolTree, network: Cell, scope: dict[str, Any]) -> None:
        self._tree, self._network, self._scope = tree, network, scope

    def inputs(self, definition: ast.FunctionDef) -> list[Node]:
        """Create a node for each parameter except self."""
        arguments = definition.args
        names = [parameter.arg for parameter in [*arguments.posonlyargs, *arguments.args][1:]]
        names += [parameter.arg for parameter in (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg) if parameter is not None]
        return [self._with_source(Node.create_input(name)) for name in names]

    def body(self, statements: list[ast.stmt]) -> list[Node]:
        """Create the nodes of a block of statements."""
        nodes: list[Node] = []
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue                                                     # a docstring
            self._statement(statement, nodes)
        return nodes

    def _with_source(self, node: Node) -> Node:
        node.belongs_to(self._tree, self._tree.unique_node_name(node.get_name()))
        return node

    def _statement(self, statement: ast.stmt, nodes: list[Node]) -> None:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            targets = _targets(statement.targets[0])
            if targets is not None:
                self._value(statement.value, targets, nodes)
                return
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            sum_expression = ast.BinOp(ast.Name(statement.target.id), statement.op, statement.value)
            self._value(sum_expression, [of_expression(statement.target)], nodes)
            return
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._value(statement.value, [], nodes)
            return
        if isinstance(statement, ast.Return):
            args = [] if statement.value is None else [self._leaf(statement.value, nodes)]
            node = new_node(NodeType.Output, "return", [], args, build=_return)
        elif isinstance(statement, ast.If):
            node = new_node(NodeType.ControlFlow, "if_node", [], [self._leaf(statement.test, nodes)], build=_if)
            node.bodies = [self.body(statement.body), self.body(statement.orelse)]
        elif isinstance(statement, ast.For):
            node = new_node(NodeType.ControlFlow, "for_node", [], [self._leaf(statement.iter, nodes)], build=_for(statement.target))
            node.bodies = [self.body(statement.body), self.body(statement.orelse)]
        elif isinstance(statement, (ast.While, ast.With, ast.Try)):
            node = new_node(NodeType.ControlFlow, f"{type(statement).__name__.lower()}_node", build=_unchanged(statement))
        else:
            node = new_node(NodeType.Python, type(statement).__name__, build=_unchanged(statement))
        nodes.append(self._with_source(node))

    def _leaf(self, value: ast.expr, nodes: list[Node]) -> ScopedValue:
        """Return a simple value, or the name of a new preceding statement."""
        if isinstance(value, _LEAVES) or not self._is_nested(value):
            return of_expression(value)
        name = ScopedValue.create_naming_value(self._tree.unique_name(f"{self._word(value)}_var", first_is_plain=True))
        self._value(value, [name], nodes)
        return name

    def _is_nested(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Compare):
            return len(value.ops) == 1
        if isinstance(value, (ast.Tuple, ast.List)):
            return not any(isinstance(element, ast.Starred) for element in value.elts)
        return isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp))

    def _word(self, value: ast.expr) -> str:
        if isinstance(value, (ast.BinOp, ast.UnaryOp)):
            return _OPERATORS[type(value.op)]
        if isinstance(value, ast.Call):
            return _last(value.func)
        return type(value).__name__.lower()

    def _value(self, value: ast.expr, targets: list[ScopedValue], nodes: list[Node]) -> None:
        """Append the statement `targets = value`, after the statements of its nested expressions."""
        if isinstance(value, ast.Call):
            node = self._call(value, targets, nodes)
        elif isinstance(value, ast.BinOp):
            sides = [self._leaf(value.left, nodes), self._leaf(value.right, nodes)]
            operator = value.op
            node = new_node(NodeType.MathOps, f"binop_{self._word(value)}", targets, sides, build=lambda node: ast.BinOp(
                expression_of(node.get_args()[0]), operator, expression_of(node.get_args()[1]),
            ))
        elif isinstance(value, ast.UnaryOp):
            sign = value.op
            node = new_node(NodeType.MathOps, f"unaryop_{self._word(value)}", targets, [self._leaf(value.operand, nodes)],
                        build=lambda node: ast.UnaryOp(sign, expression_of(node.get_args()[0])))
        elif isinstance(value, ast.Compare) and len(value.ops) == 1:
            sides, relation = [self._leaf(value.left, nodes), self._leaf(value.comparators[0], nodes)], value.ops[0]
            node = new_node(NodeType.MathOps, f"compare_{_OPERATORS[type(relation)]}", targets, sides, build=lambda node: ast.Compare(
                expression_of(node.get_args()[0]), [relation], [expression_of(node.get_args()[1])],
            ))
        elif isinstance(value, (ast.Tuple, ast.List)) and self._is_nested(value):
            kind = type(value)
            items = [self._leaf(element, nodes) for element in value.elts]
            node = new_node(NodeType.CallMethod, kind.__name__.lower(), targets, items,
                        build=lambda node: kind([expression_of(argument) for argument in node.get_args()], ast.Load()))
        else:
            node = new_node(NodeType.Python, type(value).__name__.lower(), targets, [], build=_unchanged(value))
        nodes.append(self._with_source(node))

    def _call(self, call: ast.Call, targets: list[ScopedValue], nodes: list[Node]) -> Node:
        args = [of_expression(argument) if isinstance(argument, ast.Starred) else self._leaf(argument, nodes) for argument in call.args]
        kwargs = {keyword.arg or f"**{index}": self._leaf(keyword.value, nodes) for index, keyword in enumerate(call.keywords)}
        function = call.func
        if isinstance(function, ast.Call):
            function = expression_of(self._leaf(function, nodes))
        elif isinstance(function, ast.Attribute) and self._is_nested(function.value):
            function = ast.Attribute(expression_of(self._leaf(function.value, nodes)), function.attr, ast.Load())
        instance = self._instance(function)
        return new_node(_kind(instance), _last(function), targets, args, kwargs, instance, call_of(function))

    def _instance(self, function: ast.expr) -> Any:
        """Return the Cell, primitive or function that an expression names, if it is known before execution."""
        text = ast.unparse(function)
        try:
            instance = eval(compile(ast.Expression(ast.parse(text, mode="eval").body), "<rewrite>", "eval"), {
                "__builtins__": {}, **self._scope, "self": self._network,
            }) if _is_dotted(function) else None
        except Exception:
            return None
        return instance if isinstance(instance, (Cell, Primitive)) or (callable(instance) and not hasattr(instance, "__self__")) else None


def _is_dotted(expression: ast.expr) -> bool:
    """Return whether an expression is a name with attributes: `self.relu`, `ops.concat`; the check calls nothing."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name)


def _kind(instance: Any) -> NodeType:
    if isinstance(instance, Primitive):
        return NodeType.CallPrimitive
    if isinstance(instance, tuple(AssignParser.types_for_cell_container)):
        return NodeType.CellContainer
    if isinstance(instance, Cell):
        return NodeType.Tree if is_subtree(instance) else NodeType.CallCell
    return NodeType.CallFunction


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else "function"


def _targets(target: ast.expr) -> list[ScopedValue] | None:
    """Return the assigned names, None for targets other than names."""
    listed = target.elts if isinstance(target, ast.Tuple) else [target]
    return [of_expression(item) for item in listed] if all(isinstance(item, (ast.Name, ast.Attribute)) for item in listed) else None


def _return(node: Node) -> ast.stmt:
    return ast.Return(expression_of(node.get_args()[0]) if node.get_args() else None)


def _block(nodes: list[Node]) -> list[ast.stmt]:
    return [node.statement() for node in nodes]


def _if(node: Node) -> ast.stmt:
    return ast.If(expression_of(node.get_args()[0]), _block(node.bodies[0]) or [ast.Pass()], _block(node.bodies[1]))


def _for(target: ast.expr) -> Callable[[Node], ast.stmt]:
    return lambda node: ast.For(target, expression_of(node.get_args()[0]), _block(node.bodies[0]) or [ast.Pass()], _block(node.bodies[1]))


def _unchanged(source: Any) -> Callable[[Node], Any]:
    return lambda _: source
