"""One statement of a network's `construct`."""
from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.primitive import Primitive
from torchspore.mindspore.rewrite.scoped_value import ScopedValue, ValueType, expression_of

if TYPE_CHECKING:
    from torchspore.mindspore.rewrite.symbol_tree import SymbolTree


class NodeType(enum.Enum):
    """What a statement does."""

    Unknown = 0
    CallCell = 1
    CallPrimitive = 2
    CallFunction = 3
    CallMethod = 4
    CallModule = 5
    Python = 6
    Input = 7
    Output = 8
    Tree = 9
    CellContainer = 10
    MathOps = 11
    ControlFlow = 12


def _values(call: str, name: str, given: Any) -> list[ScopedValue]:
    """Names or ScopedValues as ScopedValues. Raises TypeError for what is no list of such."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(message(f"{call}({name}={short(given)})", f"a list of names or ScopedValues, got {type(given).__name__}"))
    found = []
    for one in given:
        if not isinstance(one, (str, ScopedValue)):
            raise TypeError(message(f"{call}({name}=[{short(one)}])", f"names or ScopedValues, got {type(one).__name__}"))
        found.append(ScopedValue.create_naming_value(one) if isinstance(one, str) else one)
    return found


@dataclass(frozen=True)
class Parts:
    """What a node is made of."""

    type: NodeType
    name: str
    targets: Any = ()
    args: Any = ()
    kwargs: Any = None
    instance: Any = None
    build: Callable[[Node], Any] | None = None


def new_node(*parts: Any, **named: Any) -> Node:
    """A node of these parts."""
    return Node(Parts(*parts, **named))


class Node:
    """A statement: what it calls or computes, what it takes and what it gives. `Node.create_call_cell` and its like make new ones."""

    def __init__(self, node: Parts) -> None:
        if not isinstance(node, Parts):
            raise TypeError(message(f"Node({short(node)})", "Node.create_call_cell(...), or another that creates one"))
        self._type, self._name, self._targets = node.type, node.name, list(node.targets)
        self._args, self._kwargs = list(node.args), dict(node.kwargs or {})
        self._instance, self._build = node.instance, node.build
        self._tree: SymbolTree | None = None
        self._sub_tree: SymbolTree | None = None
        self.bodies: list[list[Node]] = []
        self.is_new = False
        self._attributes: dict[str, Any] = {}

    # ---- new ones

    @staticmethod
    def create_call_cell(
        cell: Any, targets: Any, args: Any = None, kwargs: Any = None, name: str = "", is_sub_net: bool = False,
    ) -> Node:
        """`targets = self.name(*args, **kwargs)`, a call of a Cell or primitive that becomes an attribute of the network.

        With `is_sub_net` the Cell's own statements can be reached by `get_sub_tree`. Raises TypeError for what does not fit.
        """
        if not isinstance(cell, (Cell, Primitive)):
            raise TypeError(message(f"create_call_cell({short(cell)})", f"a Cell or a primitive, got {type(cell).__name__}"))
        if not isinstance(name, str) or not isinstance(is_sub_net, bool):
            raise TypeError(message(f"create_call_cell(name={short(name)}, is_sub_net={short(is_sub_net)})", "a str, and True or False"))
        kind = NodeType.CallPrimitive if isinstance(cell, Primitive) else NodeType.Tree if is_sub_net else NodeType.CallCell
        made = new_node(kind, name or type(cell).__name__, _values("create_call_cell", "targets", targets),
                    _values("create_call_cell", "args", args or []), _named("create_call_cell", kwargs), cell, _call_of_attribute)
        made.is_new = True
        return made

    @staticmethod
    def create_call_function(function: Any, targets: Any, args: Any = None, kwargs: Any = None) -> Node:
        """`targets = function(*args, **kwargs)`. Raises TypeError for what does not fit."""
        if not isinstance(function, (FunctionType, BuiltinFunctionType, type)):
            raise TypeError(message(f"create_call_function({short(function)})", f"a function, got {type(function).__name__}"))
        made = new_node(NodeType.CallFunction, function.__name__.strip("<>"), _values("create_call_function", "targets", targets),
                    _values("create_call_function", "args", args or []), _named("create_call_function", kwargs), function, _call_of_name)
        made.is_new = True
        return made

    @staticmethod
    def create_input(param_name: str, default: ScopedValue | None = None) -> Node:
        """An input of the network, with a value of its own where one is given."""
        target = ScopedValue.create_naming_value(param_name)
        return new_node(NodeType.Input, f"input_{param_name}", [target], [] if default is None else [default])

    # ---- what it is

    def get_handler(self) -> Node:
        """The node itself."""
        return self

    def get_name(self) -> str:
        """The name, which no other node of the tree has."""
        return self._name

    def get_node_type(self) -> NodeType:
        """What the statement does."""
        return self._type

    def get_instance(self) -> Any:
        """The Cell, primitive or function that is called; None for other statements."""
        return self._instance

    def get_instance_type(self) -> Any:
        """The class of what is called, or the function; NoneType for other statements."""
        return self._instance if isinstance(self._instance, (FunctionType, BuiltinFunctionType, type)) else type(self._instance)

    def get_targets(self) -> list[ScopedValue]:
        """What it gives, by name."""
        return self._targets

    def get_args(self) -> list[ScopedValue]:
        """What it takes by place."""
        return self._args

    def get_kwargs(self) -> dict[str, ScopedValue]:
        """What it takes by name."""
        return self._kwargs

    def get_symbol_tree(self) -> SymbolTree | None:
        """The tree that it belongs to; None before it is inserted."""
        return self._tree

    def get_sub_tree(self) -> SymbolTree:
        """The statements of the Cell that it calls. Raises TypeError where it calls no Cell of the program's own."""
        if self._type is not NodeType.Tree:
            raise TypeError(message(f"get_sub_tree of {self._name!r}", f"a node of type Tree, got {self._type}"))
        if self._sub_tree is None:
            from torchspore.mindspore.rewrite.symbol_tree import SymbolTree

            self._sub_tree = SymbolTree.create(self._instance)
        return self._sub_tree

    def get_attribute(self, key: str) -> Any:
        """What `set_attribute` kept under a name; None where it kept nothing."""
        return self._attributes.get(key)

    def get_attributes(self) -> dict[str, Any]:
        """All that `set_attribute` kept."""
        return self._attributes

    def set_attribute(self, key: str, value: Any) -> None:
        """Keeps something with the node."""
        self._attributes[key] = value

    # ---- where its values come from and go to

    def get_arg_providers(self) -> dict[int, tuple[Node, int]]:
        """For the place of each argument the node that gives it, and which of its values that is."""
        found = {}
        for place, value in enumerate([*self._args, *self._kwargs.values()]):
            giver = None if self._tree is None else self._tree.provider(self, value)
            if giver is not None:
                found[place] = (giver, giver._targets.index(value))
        return found

    def get_inputs(self) -> list[Node]:
        """The nodes that give what it takes."""
        return list(dict.fromkeys(node for node, _ in self.get_arg_providers().values()))

    def get_target_users(self, index: int = -1) -> Any:
        """Of each of its values, or the one at `index`, the nodes that take it, with the places of their arguments."""
        users: dict[int, list[tuple[Node, int]]] = {place: [] for place in range(len(self._targets))}
        for node in self._tree.listed(self) if self._tree is not None else []:
            for place, (giver, number) in node.get_arg_providers().items():
                if giver is self:
                    users[number].append((node, place))
        return users if index == -1 else users[index]

    def get_users(self) -> list[Node]:
        """The nodes that take what it gives."""
        return list(dict.fromkeys(node for found in self.get_target_users().values() for node, _ in found))

    def set_arg(self, index: int, arg: ScopedValue | str) -> None:
        """Lets it take something else at a place. Raises TypeError and ValueError for what does not fit."""
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(message(f"set_arg({short(index)}, ...)", f"an int, got {type(index).__name__}"))
        count = len(self._args) + len(self._kwargs)
        if not 0 <= index < count:
            raise ValueError(message(f"set_arg({index}, ...)", f"an int from 0 to {count - 1}"))
        (value,) = _values("set_arg", "arg", [arg])
        if index < len(self._args):
            self._args[index] = value
        else:
            self._kwargs[list(self._kwargs)[index - len(self._args)]] = value

    def set_arg_by_node(self, arg_idx: int, src_node: Node | str, out_idx: int | None = None) -> None:
        """Lets it take a value of another node, by default its first. Raises TypeError and ValueError for what does not fit."""
        if isinstance(src_node, str) and self._tree is not None:
            src_node = self._tree.found("set_arg_by_node", src_node)
        if not isinstance(src_node, Node):
            raise TypeError(message(f"set_arg_by_node({arg_idx}, {short(src_node)})", f"a Node, got {type(src_node).__name__}"))
        number = 0 if out_idx is None else out_idx
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(message(f"set_arg_by_node(out_idx={short(out_idx)})", f"an int, got {type(out_idx).__name__}"))
        if not 0 <= number < len(src_node._targets):
            count = len(src_node._targets)
            raise ValueError(message(f"set_arg_by_node(out_idx={number})", f"one of the {count} values of {src_node._name!r}"))
        self.set_arg(arg_idx, src_node._targets[number])

    # ---- as source

    def statement(self) -> ast.stmt:
        """The statement as it stands in the source. Raises ValueError for an input, which has none."""
        if self._build is None:
            raise ValueError(message(f"Node.statement() of {self._name!r}", "a node that is no input"))
        made = self._build(self)
        if isinstance(made, ast.stmt):
            return ast.fix_missing_locations(made)
        if not self._targets:
            return ast.Expr(made)
        targets = [ast.parse(str(one), mode="eval").body for one in self._targets]
        return ast.parse(f"{', '.join(ast.unparse(one) for one in targets)} = {ast.unparse(made)}").body[0]

    def belongs_to(self, tree: SymbolTree | None, name: str) -> None:
        """Is told of the tree that it now belongs to, and of its name there."""
        self._tree, self._name = tree, name


def _named(call: str, given: Any) -> dict[str, ScopedValue]:
    if given is not None and not isinstance(given, dict):
        raise TypeError(message(f"{call}(kwargs={short(given)})", f"a dict, got {type(given).__name__}"))
    return dict(zip(given or {}, _values(call, "kwargs", list((given or {}).values()))))


def call_of(function: ast.expr) -> Callable[[Node], ast.expr]:
    """What builds a call of an expression with the node's arguments."""
    def build(node: Node) -> ast.expr:
        keywords = [ast.keyword(None if name.startswith("**") else name, expression_of(value)) for name, value in node.get_kwargs().items()]
        return ast.Call(function, [expression_of(one) for one in node.get_args()], keywords)

    return build


def _call_of_attribute(node: Node) -> ast.expr:
    return call_of(ast.parse(f"self.{node.get_name()}", mode="eval").body)(node)


def _call_of_name(node: Node) -> ast.expr:
    return call_of(ast.Name(f"_rewritten_{node.get_name()}"))(node)


__all__ = ["Node", "NodeType", "Parts", "ValueType", "call_of", "new_node"]
