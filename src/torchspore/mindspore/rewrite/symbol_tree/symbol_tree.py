"""A network's `construct` as a list of statements that can be removed, inserted and converted back to a network."""
from __future__ import annotations

import ast
import inspect
import itertools
import linecache
from collections.abc import Iterator
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.rewrite.node import Node, NodeType, new_node
from torchspore.mindspore.rewrite.parser import Parser, source_of
from torchspore.mindspore.rewrite.parsers.class_def_parser import entry_function
from torchspore.mindspore.rewrite.scoped_value import ScopedValue

_numbers = itertools.count()


class Position:
    """A position before or after a node, for `insert`."""

    def __init__(self, tree: SymbolTree, node: Node, is_before: bool) -> None:
        self.tree, self.node, self.is_before = tree, node, is_before


class SymbolTree:
    """The statements of a network, created by `SymbolTree.create(network)`.

    The network of `get_network` has the Parameters and Cells of the original one. Functions that it calls stay unchanged.
    """

    def __init__(self, handler: Cell) -> None:
        if not isinstance(handler, Cell):
            raise TypeError(message(f"SymbolTree({short(handler)})", f"a Cell, got {type(handler).__name__}"))
        self._network, self._class = handler, type(handler)
        self._names: set[str] = set()
        self._variables: set[str] = set()
        self._entry = entry_function(self._class)
        construct = getattr(self._class, self._entry)
        self._definition = source_of(construct)
        self._variables.update(node.id for node in ast.walk(self._definition) if isinstance(node, ast.Name))
        self._variables.update(node.arg for node in ast.walk(self._definition) if isinstance(node, ast.arg))
        construct = inspect.unwrap(construct)
        self._scope = {**construct.__globals__, **inspect.getclosurevars(construct).nonlocals}
        parser = Parser(self, handler, self._scope)
        self._inputs = parser.inputs(self._definition)
        self._nodes = [*self._inputs, *parser.body(self._definition.body)]

    @classmethod
    def create(cls, network: Cell) -> SymbolTree:
        """Returns the tree of a network. Raises TypeError unless it is a Cell, ValueError for one without source."""
        if not isinstance(network, Cell):
            raise TypeError(message(f"SymbolTree.create({short(network)})", f"a Cell, got {type(network).__name__}"))
        return cls(network)

    def get_handler(self) -> SymbolTree:
        """Returns the internal tree."""
        return self

    def get_origin_network(self) -> Cell:
        """Returns the network of the tree."""
        return self._network

    # ---- names

    def unique_name(self, name: str = "output", first_is_plain: bool = True) -> str:
        """Return an unused variable name with this prefix, with a number if necessary."""
        if not isinstance(name, str):
            raise TypeError(message(f"unique_name({short(name)})", f"a str, got {type(name).__name__}"))
        candidate = name
        if not first_is_plain or name in self._variables:
            candidate = next(f"{name}_{number}" for number in itertools.count(1) if f"{name}_{number}" not in self._variables)
        self._variables.add(candidate)
        return candidate

    def unique_node_name(self, name: str) -> str:
        """Return and reserve a unique node name with this prefix."""
        candidate = name
        if name in self._names:
            candidate = next(f"{name}_{number}" for number in itertools.count(1) if f"{name}_{number}" not in self._names)
        self._names.add(candidate)
        return candidate

    # ---- nodes

    def nodes(self, all_nodes: bool = False) -> Iterator[Node]:
        """Iterates over the nodes in order; with `all_nodes` also those in branches, loops, containers and user-defined Cells."""
        if not isinstance(all_nodes, bool):
            raise TypeError(message(f"nodes(all_nodes={short(all_nodes)})", f"True or False, got {type(all_nodes).__name__}"))
        yield from self._nodes
        if all_nodes:
            for node in list(self._nodes):
                yield from self._nested_nodes(node)

    def all_nodes(self, subtree_nodes: bool = True) -> Iterator[Node]:
        """Return the nodes, including those in branches and loops; with `subtree_nodes` also those of user-defined Cells."""
        if not isinstance(subtree_nodes, bool):
            subject = f"all_nodes(subtree_nodes={short(subtree_nodes)})"
            raise TypeError(message(subject, f"True or False, got {type(subtree_nodes).__name__}"))
        for node in self.nodes(True):
            if subtree_nodes or node.get_symbol_tree() is self:
                yield node

    def _nested_nodes(self, node: Node) -> Iterator[Node]:
        for inner in [child for body in node.bodies for child in body]:
            yield inner
            yield from self._nested_nodes(inner)
        if node.get_node_type() is NodeType.Tree:
            yield from node.get_sub_tree().nodes(True)
        elif node.get_node_type() is NodeType.CellContainer:
            for cell in node.get_instance().cells():
                yield new_node(NodeType.CallCell, type(cell).__name__, node.get_targets(), node.get_args(), None, cell)

    def get_inputs(self) -> list[Node]:
        """Returns the nodes of the network's inputs."""
        return list(self._inputs)

    def get_node(self, node_name: str) -> Node | None:
        """Returns the node of a name; None if there is none."""
        if not isinstance(node_name, str):
            raise TypeError(message(f"get_node({short(node_name)})", f"a str, got {type(node_name).__name__}"))
        return next((node for block in self._blocks() for node in block if node.get_name() == node_name), None)

    def _blocks(self, nodes: list[Node] | None = None) -> Iterator[list[Node]]:
        block = self._nodes if nodes is None else nodes
        yield block
        for node in block:
            for body in node.bodies:
                yield from self._blocks(body)

    def find_node(self, call: str, node: Any) -> Node:
        """Return a node of this tree, by itself or by name. Raises TypeError for anything else, RuntimeError for a node of another tree."""
        if not isinstance(node, (Node, str)):
            raise TypeError(message(f"{call}({short(node)})", f"a Node or its name, got {type(node).__name__}"))
        resolved = self.get_node(node) if isinstance(node, str) else node if node.get_symbol_tree() is self else None
        if resolved is None:
            shown = node if isinstance(node, str) else node.get_name()
            raise RuntimeError(message(f"{call}({shown!r})", "a node of this tree"))
        return resolved

    def listed(self, node: Node) -> list[Node]:
        """Return the nodes of the block that contains a node."""
        return next((block for block in self._blocks() if node in block), [])

    def provider(self, node: Node, value: ScopedValue) -> Node | None:
        """Return the last node before `node`, in its block, that produces `value`."""
        giver = None
        for other in self.listed(node):
            if other is node:
                return giver
            if value in other.get_targets():
                giver = other
        return None

    # ---- changes

    def before(self, node: Node | str) -> Position:
        """Returns the position before a node."""
        return Position(self, self.find_node("before", node), True)

    def after(self, node: Node | str) -> Position:
        """Returns the position after a node."""
        return Position(self, self.find_node("after", node), False)

    def insert(self, position: Position, node: Node) -> Node:
        """Inserts a node at a position; returns it. Raises TypeError and ValueError for invalid arguments."""
        if not isinstance(position, Position):
            raise TypeError(message(f"insert({short(position)}, ...)", "the result of before or after"))
        if not isinstance(node, Node):
            raise TypeError(message(f"insert(..., {short(node)})", f"a Node, got {type(node).__name__}"))
        if position.tree is not self:
            raise ValueError(message("insert at a position of another tree", "before or after of this one"))
        block = self.listed(position.node)
        block.insert(block.index(position.node) + (not position.is_before), node)
        name = node.get_name()
        if node.is_new and isinstance(node.get_instance(), (Cell, Primitive)):
            while hasattr(self._network, name) and name not in self._names:
                self._names.add(name)
        node.belongs_to(self, self.unique_node_name(name))
        self._variables.update(str(target) for target in node.get_targets())
        return node

    def erase(self, node: Node | str) -> Node:
        """Removes a node; returns it. Raises RuntimeError for a node of another tree."""
        erased = self.find_node("erase", node)
        self.listed(erased).remove(erased)
        erased.belongs_to(None, erased.get_name())
        return erased

    def replace(self, old_node: Node, new_nodes: list[Node]) -> Node:
        """Replaces a node by others; returns the first. Raises TypeError and ValueError for invalid arguments."""
        if not isinstance(old_node, Node):
            raise TypeError(message(f"replace({short(old_node)}, ...)", f"a Node, got {type(old_node).__name__}"))
        if not isinstance(new_nodes, list) or not new_nodes or not all(isinstance(new_node, Node) for new_node in new_nodes):
            raise TypeError(message(f"replace(..., {short(new_nodes)})", "a list of Nodes"))
        old, last = self.find_node("replace", old_node), None
        for node in new_nodes:
            last = self.insert(self.after(last or old), node)
        self.erase(old)
        return new_nodes[0]

    def set_output(self, index: int, return_value: str) -> Node:
        """Replaces a value that the network returns, by position; returns the node of the return statement."""
        output = next(node for node in reversed(self._nodes) if node.get_node_type() is NodeType.Output)
        giver = output.get_arg_providers().get(0)
        is_tuple = giver is not None and giver[0].get_node_type() is NodeType.CallMethod
        (giver[0] if giver is not None and is_tuple else output).set_arg(index, return_value)
        return output

    # ---- source and network

    def _changed(self) -> ast.FunctionDef:
        definition = ast.parse(ast.unparse(self._definition)).body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.decorator_list = []
        definition.body = [node.statement() for node in self._nodes if node.get_node_type() is not NodeType.Input] or [ast.Pass()]
        return definition

    def _trees(self) -> list[Node]:
        return [node for block in self._blocks() for node in block if node.get_node_type() is NodeType.Tree and node._sub_tree is not None]

    def get_code(self) -> str:
        """Returns the current source of the network, after the source of its Cells whose trees were created."""
        parts = [node.get_sub_tree().get_code() for node in self._trees()]
        body = "\n".join(f"    {line}" for line in ast.unparse(ast.fix_missing_locations(self._changed())).splitlines())
        return "\n\n\n".join([*parts, f"class {self._class.__name__}Opt({self._class.__name__}):\n\n{body}"])

    def get_network(self) -> Cell:
        """Returns a network of the current statements, with the Parameters and Cells of the original one and the inserted ones."""
        name = f"{self._class.__name__}Opt"
        text = ast.unparse(ast.fix_missing_locations(self._changed()))
        file = f"<rewritten {name} {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)           # so that tracebacks and Graph mode can read it
        scope = dict(self._scope)
        namespace: dict[str, Any] = {}
        nodes = [node for block in self._blocks() for node in block]
        for node in nodes:
            if node.is_new and node.get_node_type() is NodeType.CallFunction:
                scope[f"_rewritten_{node.get_name()}"] = node.get_instance()
        exec(compile(text, file, "exec"), scope, namespace)
        new_class = type(name, (self._class,), {self._entry: namespace[self._definition.name], "__module__": self._class.__module__})
        network = new_class.__new__(new_class)
        network.__setstate__(dict(self._network.__getstate__()))
        for key in ("_params", "_cells"):
            network.__dict__[key] = type(network.__dict__[key])(network.__dict__[key])
        network.__dict__["cls_name"] = name
        for node in nodes:
            if node.is_new and isinstance(node.get_instance(), (Cell, Primitive)):
                setattr(network, node.get_name(), node.get_instance())
        for node in self._trees():
            network._cells[node.get_name()] = node.get_sub_tree().get_network()
        return network

    def print_node_tabulate(self, all_nodes: bool = False) -> None:
        """Prints a table of the nodes: type, name, source, data flow."""
        rows = [("node type", "name", "codes", "arg providers", "target users")]
        for node in self.nodes(all_nodes):
            source = "" if node.get_node_type() is NodeType.Input or node._build is None else ast.unparse(node.statement()).splitlines()[0]
            inputs, users = ([other.get_name() for other in others] for others in (node.get_inputs(), node.get_users()))
            rows.append((str(node.get_node_type()), node.get_name(), source, ", ".join(inputs), ", ".join(users)))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
