"""A graph as it was at one moment: plain data that later passes do not change, to be written as text, as a drawing and as a page."""
from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.frames import with_slashes
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.save_graphs import ir_types


@dataclass(frozen=True)
class Reference:
    """Stands for the value of another node among the arguments of one."""

    name: str


@dataclass(frozen=True)
class Inner:
    """Stands for a graph among the arguments of a node, a branch or the body of a loop."""

    name: str


@dataclass(frozen=True)
class Input:
    """One input of a graph; `parameter` is the name of the Parameter that it is, if it is one."""

    name: str
    shown: str
    kind: ir_types.Value
    parameter: str | None = None


@dataclass
class Call:
    """One operator of a graph."""

    name: str
    target: str
    """`aten.addmm`, or the name of a Python function of ours, `branch`."""
    called: str
    """The operator of mindspore that ran it; empty where none did."""
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    reads: tuple[str, ...]
    kind: ir_types.Value
    scope: str
    stack: tuple[str, ...] = ()
    """The user's lines that led there, outermost first."""
    columns: tuple[int, int] | None = None
    """Where in the last of them the call stands."""
    is_backward: bool = False
    created_by: str = ""
    """The step that put it in; empty where the trace did."""
    fused: tuple[str, ...] = ()
    """The operators that a generated kernel computes, in their order."""
    number: int = 0

    @property
    def line(self) -> str:
        """Return the user's line of the node, empty if it is unknown."""
        return self.stack[-1] if self.stack else ""

    @property
    def unnumbered(self) -> str:
        """`Default/fc-Dense/MatMul`, and `Gradients/Default/fc-Dense/Grad_MatMul/mm` for what belongs to its gradient."""
        operator_name = self.target.rpartition(".")[2]
        if self.is_backward:
            return f"Gradients/{self.scope}/{'Grad_' + self.called + '/' if self.called else ''}{operator_name}"
        return f"{self.scope}/{self.called or operator_name}"

    @property
    def full_name(self) -> str:
        """The same with the number that tells it from others of the name: `Default/fc-Dense/MatMul-op0`."""
        return f"{self.unnumbered}-op{self.number}"


@dataclass
class Snapshot:
    """A graph and, under `inner`, the graphs of its branches and loops."""

    name: str
    inputs: list[Input]
    calls: list[Call]
    outputs: tuple[Any, ...]
    inner: list[Snapshot] = field(default_factory=list)

    def contents(self) -> Any:
        """Return the contents that distinguish one stage from another: equal contents are the same graph."""
        rows = [(c.name, c.target, c.arguments, sorted(c.keywords.items()), c.kind) for c in self.calls]
        return ([(i.name, i.kind) for i in self.inputs], repr(rows), self.outputs, [graph.contents() for graph in self.inner])

    def every(self) -> Iterable[Snapshot]:
        """This graph and all inside of it."""
        yield self
        for graph in self.inner:
            yield from graph.every()


class Inputs:
    """Describes the inputs of a capture by their names in the program."""

    def __init__(self, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._lifted = lifted
        self._names: dict[int, str] = {}
        for name, value in _bound(function, args, kwargs):
            self._learn(name, value)

    def _learn(self, name: str, value: Any) -> None:
        self._names.setdefault(id(value), name)
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                self._learn(f"{name}{index}", item)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._learn(f"{name}_{key}", item)

    def of(self, index: int, node: Node) -> Input:
        """Return the input at an index."""
        item = self._lifted[index] if index < len(self._lifted) else None
        parameter = item.name if item is not None and type(item).__dict__.get("__parameter__") else None
        shown = parameter or self._names.get(id(item)) or node.name
        return Input(node.name, "".join(c if c.isalnum() or c in "._" else "_" for c in shown), ir_types.of_node(node), parameter)


def _bound(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the arguments of a call by the names of the function's parameters (of a Cell its construct's); those of `*args` are numbered.
    """
    owner = getattr(function, "__self__", None)
    function = getattr(owner, "construct", function)
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return [(f"x{index}", value) for index, value in enumerate(args)]
    return list(bound.items())


class Taker:
    """Takes snapshots of the graphs of a compilation; a node has the same number in all, and its source even if a pass lost it."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: Counter[str] = Counter()
        self._seen: dict[tuple[str, str], str] = {}

    def snapshot(
        self, module: torch.fx.GraphModule, name: str, inputs: Inputs | None, step: str, until: str | None = None, outer: str = "",
    ) -> Snapshot:
        """The graph as it is now. With `until` only what stands before the node of that name, as the trace was then.

        `outer` begins the names of graphs inside: graphs of different branches would have the same ones without.
        """
        nodes = list(module.graph.nodes)
        if until is not None:
            index = next(index for index, node in enumerate(nodes) if node.name == until)
            return self._taken(nodes[:index], name, inputs, step, _read_after(nodes, index), outer)
        output = nodes[-1].args[0] if nodes and nodes[-1].op == "output" else ()
        return self._taken(nodes, name, inputs, step, output if isinstance(output, (list, tuple)) else (output,), outer)

    def _taken(self, nodes: list[Node], name: str, inputs: Inputs | None, step: str, results: Iterable[Any], outer: str) -> Snapshot:
        found: list[Input] = []
        calls: list[Call] = []
        inner: list[Snapshot] = []
        for node in nodes:
            if node.op == "placeholder":
                index = len(found)
                found.append(inputs.of(index, node) if inputs is not None else Input(node.name, node.name, ir_types.of_node(node)))
            elif node.op in ("call_function", "get_attr"):
                calls.append(self._call(node, name, outer, step, inner))
        return Snapshot(name, found, calls, tuple(self._argument(item, "", "", []) for item in results), inner)

    def _call(self, node: Node, graph: str, outer: str, step: str, inner: list[Snapshot]) -> Call:
        key = (graph, node.name)
        before = self._seen.setdefault(key, "" if node_metadata.SCOPE in node.meta else step)
        origin = node if node_metadata.SCOPE in node.meta else _nearest(node)
        meta = origin.meta if origin is not None else {}
        hint = outer + node.name
        call = Call(
            node.name, _target(node), meta.get(node_metadata.CALLED, "") if origin is node else "",
            tuple(self._argument(a, hint, step, inner) for a in node.args),
            {key: self._argument(value, hint, step, inner) for key, value in node.kwargs.items()},
            tuple(n.name for n in node.all_input_nodes), ir_types.of_node(node), meta.get(node_metadata.SCOPE, "Default"),
            _program_lines(meta.get("stack", ())) if origin is node else (), meta.get("columns") if origin is node else None,
            bool(meta.get(node_metadata.GRADIENT) or node.meta.get(node_metadata.BACKWARD)), before,
            tuple(_name(target).rpartition(".")[2] for target in node.meta.get(node_metadata.FUSED, ())),
        )
        if key not in self._numbers:
            self._numbers[key] = self._counts[call.unnumbered]
            self._counts[call.unnumbered] += 1
        call.number = self._numbers[key]
        return call

    def _argument(self, value: Any, of: str, step: str, inner: list[Snapshot]) -> Any:
        """A node, graph or constant among arguments as plain data."""
        if isinstance(value, Node):
            return Reference(value.name)
        if isinstance(value, torch.fx.GraphModule):
            name = f"{of}_{_LETTERS[len(inner) % len(_LETTERS)]}"
            graph = self.snapshot(value, name, None, step, outer=f"{name}_")
            inner.append(graph)
            return Inner(graph.name)
        if isinstance(value, (list, tuple)):
            items = [self._argument(item, of, step, inner) for item in value]
            return items if isinstance(value, list) else tuple(items)
        return value if value is None or isinstance(value, (bool, int, float, complex, str)) else ir_types.constant(value)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _program_lines(stack: Iterable[str]) -> tuple[str, ...]:
    """Return the lines without those of the program that runs the script (pytest, a notebook): outermost ones in installed packages."""
    lines = tuple(stack)
    programs = (not line.startswith("<string>") and "/site-packages/" not in with_slashes(line) for line in lines)
    first = next((index for index, is_programs in enumerate(programs) if is_programs), 0)
    return lines[first:]


def _nearest(node: Node) -> Node | None:
    """Return the node next to which a pass put a new node: the nearest before it that it reads, or the first that reads it."""
    around = [*node.all_input_nodes, *node.users]
    for _ in range(4):
        for other in around:
            if node_metadata.SCOPE in other.meta:
                return other
        around = [further for other in around for further in (*other.all_input_nodes, *other.users)][:64]
    return None


def _read_after(nodes: list[Node], index: int) -> list[Node]:
    """Return the values that are computed before the node at `index` and read from it on."""
    before = {node for node in nodes[:index] if node.op != "placeholder"}
    found: dict[Node, None] = {}
    for node in nodes[index:]:
        for other in node.all_input_nodes:
            if other in before:
                found[other] = None
    return list(found)


def _target(node: Node) -> str:
    if node.op == "get_attr":
        return "constant"
    name = _name(node.target)
    return "kernel" if node_metadata.FUSED in node.meta and not name.startswith("GraphKernel") else name


def _name(target: Any) -> str:
    """`aten.add` for an operator whatever its overload, for a Python function its name."""
    if is_operator(target):
        name = target.name().replace("::", ".")
        return name if target.namespace != "aten" or "." not in name[5:] else name.rsplit(".", 1)[0]
    return getattr(target, "__name__", type(target).__name__)
