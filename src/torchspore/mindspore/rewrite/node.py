"""One statement of a network's `construct`."""
from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.rewrite.scoped_value import ScopedValue, ValueType, expression_of

if TYPE_CHECKING:
    from torchspore.mindspore.rewrite.symbol_tree import SymbolTree


class NodeType(enum.Enum):
    """The kind of a statement."""

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


def _values(call: str, name: str, items: Any) -> list[ScopedValue]:
    """Convert names or ScopedValues to ScopedValues. Raises TypeError unless they are in a list."""
    if not isinstance(items, (list, tuple)):
        raise TypeError(message(f"{call}({name}={short(items)})", f"a list of names or ScopedValues, got {type(items).__name__}"))
    values = []
    for item in items:
        if not isinstance(item, (str, ScopedValue)):
            raise TypeError(message(f"{call}({name}=[{short(item)}])", f"names or ScopedValues, got {type(item).__name__}"))
        values.append(ScopedValue.create_naming_value(item) if isinstance(item, str) else item)
    return values


@dataclass(frozen=True)
class Parts:
    """The parts of a node."""

    type: NodeType
    name: str
    targets: Any = ()
    args: Any = ()
    kwargs: Any = None
    instance: Any = None
    build: Callable[[Node], Any] | None = None


def new_node(*parts: Any, **named: Any) -> Node:
    """Create a node of these parts."""
    return Node(Parts(*parts, **named))


class Node:
    """A statement: its call or expression, its arguments and its results. `Node.create_call_cell` and similar methods create new ones."""

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

    # ---- construction

    @staticmethod
    def create_call_cell(
        cell: Any, targets: Any, args: Any = None, kwargs: Any = None, name: str = "", is_sub_net: bool = False,
    ) -> Node:
        """Creates `targets = self.name(*args, **kwargs)`, a call of a Cell or primitive that becomes an attribute of the network.

        With `is_sub_net`, `get_sub_tree` returns the Cell's statements. Raises TypeError for invalid arguments.
        """
        if not isinstance(cell, (Cell, Primitive)):
            raise TypeError(message(f"create_call_cell({short(cell)})", f"a Cell or a primitive, got {type(cell).__name__}"))
        if not isinstance(name, str) or not isinstance(is_sub_net, bool):
            raise TypeError(message(f"create_call_cell(name={short(name)}, is_sub_net={short(is_sub_net)})", "a str, and True or False"))
        kind = NodeType.CallPrimitive if isinstance(cell, Primitive) else NodeType.Tree if is_sub_net else NodeType.CallCell
        node = new_node(kind, name or type(cell).__name__, _values("create_call_cell", "targets", targets),
                    _values("create_call_cell", "args", args or []), _named("create_call_cell", kwargs), cell, _call_of_attribute)
        node.is_new = True
        return node

    @staticmethod
    def create_call_function(function: Any, targets: Any, args: Any = None, kwargs: Any = None) -> Node:
        """Creates `targets = function(*args, **kwargs)`. Raises TypeError for invalid arguments."""
        if not isinstance(function, (FunctionType, BuiltinFunctionType, type)):
            raise TypeError(message(f"create_call_function({short(function)})", f"a function, got {type(function).__name__}"))
        node = new_node(NodeType.CallFunction, function.__name__.strip("<>"), _values("create_call_function", "targets", targets),
                    _values("create_call_function", "args", args or []), _named("create_call_function", kwargs), function, _call_of_name)
        node.is_new = True
        return node

    @staticmethod
    def create_input(param_name: str, default: ScopedValue | None = None) -> Node:
        """Creates an input of the network, optionally with a default value."""
        target = ScopedValue.create_naming_value(param_name)
        return new_node(NodeType.Input, f"input_{param_name}", [target], [] if default is None else [default])

    # ---- properties

    def get_handler(self) -> Node:
        """Returns the internal node."""
        return self

    def get_name(self) -> str:
        """Returns the name, which is unique in the tree."""
        return self._name

    def get_node_type(self) -> NodeType:
        """Returns the kind of the statement."""
        return self._type

    def get_instance(self) -> Any:
        """Returns the Cell, primitive or function that is called; None for other statements."""
        return self._instance

    def get_instance_type(self) -> Any:
        """Returns the class of the called object, or the function; NoneType for other statements."""
        return self._instance if isinstance(self._instance, (FunctionType, BuiltinFunctionType, type)) else type(self._instance)

    def get_targets(self) -> list[ScopedValue]:
        """Returns the results, by name."""
        return self._targets

    def get_args(self) -> list[ScopedValue]:
        """Returns the positional arguments."""
        return self._args

    def get_kwargs(self) -> dict[str, ScopedValue]:
        """Returns the keyword arguments."""
        return self._kwargs

    def get_symbol_tree(self) -> SymbolTree | None:
        """Returns the tree that it belongs to; None before it is inserted."""
        return self._tree

    def get_sub_tree(self) -> SymbolTree:
        """Returns the statements of the Cell that it calls. Raises TypeError unless it calls a user-defined Cell."""
        if self._type is not NodeType.Tree:
            raise TypeError(message(f"get_sub_tree of {self._name!r}", f"a node of type Tree, got {self._type}"))
        if self._sub_tree is None:
            from torchspore.mindspore.rewrite.symbol_tree import SymbolTree

            self._sub_tree = SymbolTree.create(self._instance)
        return self._sub_tree

    def get_attribute(self, key: str) -> Any:
        """Returns the value of `set_attribute` under a name; None if there is none."""
        return self._attributes.get(key)

    def get_attributes(self) -> dict[str, Any]:
        """Returns all values of `set_attribute`."""
        return self._attributes

    def set_attribute(self, key: str, value: Any) -> None:
        """Stores a value with the node."""
        self._attributes[key] = value

    # ---- data flow

    def get_arg_providers(self) -> dict[int, tuple[Node, int]]:
        """Return, for the position of each argument, the node that produces it, and the index of its result."""
        providers = {}
        for index, value in enumerate([*self._args, *self._kwargs.values()]):
            giver = None if self._tree is None else self._tree.provider(self, value)
            if giver is not None:
                providers[index] = (giver, giver._targets.index(value))
        return providers

    def get_inputs(self) -> list[Node]:
        """Returns the nodes that produce its arguments."""
        return list(dict.fromkeys(node for node, _ in self.get_arg_providers().values()))

    def get_target_users(self, index: int = -1) -> Any:
        """Return the nodes that use each of its results, or the one at `index`, with the positions of their arguments."""
        users: dict[int, list[tuple[Node, int]]] = {index: [] for index in range(len(self._targets))}
        for node in self._tree.listed(self) if self._tree is not None else []:
            for argument, (giver, number) in node.get_arg_providers().items():
                if giver is self:
                    users[number].append((node, argument))
        return users if index == -1 else users[index]

    def get_users(self) -> list[Node]:
        """Returns the nodes that use its results."""
        return list(dict.fromkeys(node for users in self.get_target_users().values() for node, _ in users))

    def set_arg(self, index: int, arg: ScopedValue | str) -> None:
        """Replaces the argument at a position. Raises TypeError and ValueError for invalid arguments."""
        if not is_int(index):
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
        """Replaces an argument by a result of another node, by default its first. Raises TypeError and ValueError for invalid arguments."""
        if isinstance(src_node, str) and self._tree is not None:
            src_node = self._tree.find_node("set_arg_by_node", src_node)
        if not isinstance(src_node, Node):
            raise TypeError(message(f"set_arg_by_node({arg_idx}, {short(src_node)})", f"a Node, got {type(src_node).__name__}"))
        number = 0 if out_idx is None else out_idx
        if not is_int(number):
            raise TypeError(message(f"set_arg_by_node(out_idx={short(out_idx)})", f"an int, got {type(out_idx).__name__}"))
        if not 0 <= number < len(src_node._targets):
            count = len(src_node._targets)
            raise ValueError(message(f"set_arg_by_node(out_idx={number})", f"one of the {count} values of {src_node._name!r}"))
        self.set_arg(arg_idx, src_node._targets[number])

    # ---- source

    def statement(self) -> ast.stmt:
        """Return the source of the statement. Raises ValueError for an input, which has none."""
        if self._build is None:
            raise ValueError(message(f"Node.statement() of {self._name!r}", "a node other than an input"))
        built = self._build(self)
        if isinstance(built, ast.stmt):
            return ast.fix_missing_locations(built)
        if not self._targets:
            return ast.Expr(built)
        targets = [ast.parse(str(target), mode="eval").body for target in self._targets]
        return ast.parse(f"{', '.join(ast.unparse(target) for target in targets)} = {ast.unparse(built)}").body[0]

    def belongs_to(self, tree: SymbolTree | None, name: str) -> None:
        """Set the tree that the node belongs to, and its name there."""
        self._tree, self._name = tree, name


def _named(call: str, kwargs: Any) -> dict[str, ScopedValue]:
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(message(f"{call}(kwargs={short(kwargs)})", f"a dict, got {type(kwargs).__name__}"))
    return dict(zip(kwargs or {}, _values(call, "kwargs", list((kwargs or {}).values()))))


def call_of(function: ast.expr) -> Callable[[Node], ast.expr]:
    """Return a function that builds a call of an expression with the node's arguments."""
    def build(node: Node) -> ast.expr:
        keywords = [ast.keyword(None if name.startswith("**") else name, expression_of(value)) for name, value in node.get_kwargs().items()]
        return ast.Call(function, [expression_of(value) for value in node.get_args()], keywords)

    return build


def _call_of_attribute(node: Node) -> ast.expr:
    return call_of(ast.parse(f"self.{node.get_name()}", mode="eval").body)(node)


def _call_of_name(node: Node) -> ast.expr:
    return call_of(ast.Name(f"_rewritten_{node.get_name()}"))(node)


__all__ = ["Node", "NodeType", "Parts", "ValueType", "call_of", "new_node"]
