"""Describes the operators of split graphs as MindSpore's executor does: for each graph the name, inputs and attributes of each operator.

A call of an operator is one entry, even if it runs several kernels. Exchanges have the names of MindSpore's operators: a gather along
another axis than the first is AllGather, Split and Concat, as it runs; the extraction of a device's part is a StridedSlice, for a constant
a _GetTensorSlice. The arguments of the call form a tuple, and TupleGetItem reads it.
"""
from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes, strategy_marker
from torchspore.distributed.shard.operator_inputs import described_inputs, external_inputs
from torchspore.engine.split_layouts.device_layout import from_matrix
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.specialization.open_arguments import IS_EXAMPLE

_EXCHANGES = {
    collective_nodes.all_reduce: "AllReduce", collective_nodes.rotated: "AlltoAllV", collective_nodes.passed: "Send",
    collective_nodes.all_to_all: "AlltoAll",
}
_ALIASES = frozenset({"clone", "detach", "alias", "lift_fresh_copy", "mirror", "mirrored"})
"""Operators whose result is their first input; MindSpore's graphs have none for them."""
_SUFFIX = "Grad"


@dataclass(eq=False)
class Entry:
    """An operator of the description; its inputs are entries, texts and numbers."""

    operator: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    is_open: bool = False
    """True if it computes with Tensors of open lengths."""

    def __post_init__(self) -> None:
        self.is_open = self.is_open or any(isinstance(item, Entry) and item.is_open for item in self.inputs)

    def __str__(self) -> str:
        return self.name


def operators_by_graph(graphs: Iterable[Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return for each split graph, `@graph_0` and on, its operators by name (`MatMul-0`): `inputs`, and `attrs`.

    The attributes are the user's `line` and, for a primitive with a strategy, its attributes. An operator follows those of its inputs, and
    the operators of the forward pass come first.
    """
    described: dict[str, dict[str, dict[str, Any]]] = {}
    for graph in graphs:
        if graph.split is not None:
            described[f"@graph_{len(described)}"] = _Description(graph.split).operators()
    return described


def summed_parameters(split: Any) -> list[Any]:
    """Return the Parameters of a split graph whose gradients are sums over several devices."""
    if not _has_gradients(split):
        return []
    holders = [node for node in split.local.module.graph.nodes if node.op == "placeholder"]
    layouts = split.sharded_capture.parameters
    return [
        item for node, item in zip(holders, split.lifted)
        if _is_trained(node, item) and _parts(layouts.get(str(getattr(item, "name", "")))) < split.local.mesh.count
    ]


def _has_gradients(split: Any) -> bool:
    return any(node.meta.get(node_metadata.GRADIENT) for node in split.local.module.graph.nodes)


def stored_axes(mesh: Any, layout: Any) -> tuple[int, ...]:
    """Return the axes of the grid that split the recorded layout of a Parameter."""
    return tuple(sorted(from_matrix(mesh, layout[0], layout[1]).axes))


def _parts(layout: Any) -> int:
    """Return into how many parts a recorded layout of a Parameter splits it; 1 without a layout."""
    from torchspore.distributed.shard.strategy_validation import TensorLayout

    return 1 if layout is None else prod(TensorLayout(layout[0], layout[1]).cuts())


class _Description:
    """The description of one split graph for one device."""

    def __init__(self, split: Any) -> None:
        self._split, self._mesh = split, split.local.mesh
        self._nodes: list[Node] = list(split.local.module.graph.nodes)
        self._values: dict[Node, Any] = {}
        self._groups: dict[Any, Entry] = {}
        self._forward: list[Entry] = []
        self._others: list[Entry] = []
        self._positions = sorted(split.sharded_capture.arguments.values())
        self._batch = Entry("MakeTuple", [f"inputs{at}" for at in self._positions])
        self._has_gradients = _has_gradients(split)

    def operators(self) -> dict[str, dict[str, Any]]:
        """Return the inputs and attributes of each operator by its name."""
        holders = [node for node in self._nodes if node.op == "placeholder"]
        for node, item in zip(holders, self._split.lifted):
            self._values[node] = self._input(node, item)
        for node in self._nodes:
            if node.op == "get_attr":
                self._values[node] = _shown_constant(node.meta.get("val"))
            elif node.op == "call_function":
                self._values[node] = self._operator(node)
        outputs: Any = self._nodes[-1].args[0]
        results = [self._values.get(item, item) for item in outputs if isinstance(item, Node)][:1]
        self._others.append(Entry("Return", results))
        ordered = list(_in_order([*self._forward, *self._others]))
        counts: Counter[str] = Counter()
        for entry in ordered:
            entry.name = f"{entry.operator}-{counts[entry.operator]}"
            counts[entry.operator] += 1
        return {
            entry.name: {
                "inputs": [_shown(item) for item in entry.inputs],
                "attrs": {key: str(value) if isinstance(value, list) else value for key, value in entry.attributes.items()},
            } for entry in ordered
        }

    def _input(self, node: Node, item: Any) -> Any:
        """Describe an input of the graph: a Parameter, an argument of the call, or a constant."""
        name = getattr(item, "name", None)
        if name is None:
            at = self._split.sharded_capture.arguments.get(id(item))
            if at is None:
                return _shown_constant(node.meta.get("val"))
            return Entry("TupleGetItem", [self._batch, self._positions.index(at)], is_open=bool(item.__dict__.get(IS_EXAMPLE)))
        cuts = _parts(self._split.sharded_capture.parameters.get(str(name)))
        is_summed = self._has_gradients and self._mesh.count > cuts and _is_trained(node, item)
        return Entry("_MirrorOperator", [str(name)], {"dev_num": self._mesh.count // cuts}) if is_summed else str(name)

    def _operator(self, node: Node) -> Any:
        function_name = str(getattr(node.target, "_opname", "") or getattr(node.target, "__name__", ""))
        if node.target is operator.getitem:
            return self._item(node)
        if (function_name in _ALIASES and not node.meta.get(node_metadata.CALLED)) or node.target in strategy_marker.MARKS:
            return self._value(node.args[0])
        exchange = self._exchange(node)
        if exchange is not None:
            return self._keep(node, exchange)
        is_gradient = bool(node.meta.get(node_metadata.GRADIENT))
        primitive = node.meta.get(node_metadata.PRIMITIVE)
        called = primitive[1] if primitive else node.meta.get(node_metadata.CALLED)
        key = (primitive[0] if primitive else node.meta.get(node_metadata.CALL), called, is_gradient) if called else node
        entry = self._groups.get(key)
        if entry is None:
            members = [node] if key is node else [other for other in self._nodes if self._key_of(other) == key]
            entry = self._groups[key] = self._entry(called or function_name, members, is_gradient)
            self._keep(node, entry)
        return entry

    def _key_of(self, node: Node) -> Any:
        if node.op != "call_function" or node.target in _EXCHANGE_FUNCTIONS:
            return None
        primitive = node.meta.get(node_metadata.PRIMITIVE)
        called = primitive[1] if primitive else node.meta.get(node_metadata.CALLED)
        number = primitive[0] if primitive else node.meta.get(node_metadata.CALL)
        return (number, called, bool(node.meta.get(node_metadata.GRADIENT)))

    def _entry(self, name: str, members: list[Node], is_gradient: bool) -> Entry:
        """Describe the call of an operator that these nodes compute."""
        first = members[0]
        primitive = None if is_gradient else first.meta.get(node_metadata.PRIMITIVE)
        line = (first.meta.get(node_metadata.STACK) or ("",))[-1]
        attributes = {"line": str(line), **(primitive[2] if primitive else {})}
        entry = Entry(name + _SUFFIX if is_gradient and first.meta.get(node_metadata.CALLED) else name, [], attributes)
        for node in members:
            self._values[node] = entry           # an exchange inside of the call has the call as its input
        if primitive:
            entry.inputs = described_inputs(primitive[3], [self._value(node) for node in external_inputs(members)], Entry)
            entry.inputs.extend(attributes[flag] for flag in _TRANSPOSES if flag in attributes)
        elif len(members) == 1:
            entry.inputs = [self._argument(argument) for argument in first.args]
        else:
            entry.inputs = [self._value(node) for node in external_inputs(members)]
        entry.__post_init__()
        return entry

    def _keep(self, node: Node, entry: Entry) -> Entry:
        is_forward = not (node.meta.get(node_metadata.GRADIENT) or node.meta.get(node_metadata.OPTIMIZER))
        (self._forward if is_forward and not self._is_forward_only_for_output(node) else self._others).append(entry)
        return entry

    @staticmethod
    def _is_forward_only_for_output(node: Node) -> bool:
        """Return whether an exchange only joins a result for the caller."""
        return node.target in _EXCHANGE_FUNCTIONS and all(user.op == "output" for user in node.users)

    def _item(self, node: Node) -> Any:
        arguments: Any = node.args
        source, at = arguments
        value = self._value(source)
        if isinstance(value, Entry) and len(getattr(source, "users", ())) > 1 and value.operator in _SEVERAL_RESULTS:
            return self._keep(node, Entry("TupleGetItem", [value, at]))
        return value

    def _value(self, node: Any) -> Any:
        if node not in self._values:
            self._values[node] = self._operator(node)
        return self._values[node]

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, Node):
            return self._value(argument)
        if isinstance(argument, (list, tuple)) and any(isinstance(item, Node) for item in argument):
            return Entry("MakeTuple", [self._argument(item) for item in argument])
        return argument

    # ---- exchanges

    def _exchange(self, node: Node) -> Entry | None:
        """Describe an exchange between devices; None for another node."""
        arguments: Any = node.args
        function: Any = node.target
        if function is collective_nodes.all_reduce:
            return self._total(arguments)
        if function in _EXCHANGES:
            return Entry(_EXCHANGES[function], [self._value(arguments[0])], self._group(arguments[1]))
        if function is collective_nodes.all_gather:
            x, axes, dim, mesh = arguments
            return self._joined(Entry("AllGather", [self._value(x)], self._group(axes)), dim, mesh.product(axes))
        if function is collective_nodes.reduce_scatter:
            x, axes, kind, dim, mesh = arguments
            parts = self._value(x) if dim == 0 else _concatenated(Entry("Split", [self._value(x), dim, mesh.product(axes)]), 0)
            return Entry("ReduceScatter", [parts], {**self._group(axes), "op": kind})
        if function is collective_nodes.cut:
            return self._part(node)
        return self._borders(node) if function is collective_nodes.borders else None

    def _total(self, arguments: Any) -> Entry:
        """Describe an all-reduce; a mean is a sum, divided by the number of devices."""
        x, axes, kind, mesh = arguments
        total = Entry("AllReduce", [self._value(x)], {**self._group(axes), "op": "sum" if kind == "avg" else kind})
        return Entry("RealDiv", [total, mesh.product(axes)]) if kind == "avg" else total

    def _borders(self, node: Node) -> Entry:
        """Describe the exchange of borders; those along several axes of one call are one operator. Lengths: top, bottom, left, right."""
        arguments: Any = node.args
        x, axes, dim, before, behind, mesh = arguments
        value = self._value(x)
        is_second = isinstance(value, Entry) and value.operator == "NeighborExchangeV2"
        if not is_second:
            lengths = {"send_lens": [0, 0, 0, 0], "recv_lens": [0, 0, 0, 0]}
            value = Entry("NeighborExchangeV2", [value], {"line": "", **lengths})
        position, last = mesh.position(self._split.rank, axes), mesh.product(axes) - 1
        first_side = 0 if dim == _FIRST_SPATIAL else 2
        sent = (behind if position > 0 else 0, before if position < last else 0)
        received = (before if position > 0 else 0, behind if position < last else 0)
        for side in (0, 1):
            value.attributes["send_lens"][first_side + side] = sent[side]
            value.attributes["recv_lens"][first_side + side] = received[side]
        return value

    def _joined(self, gathered: Entry, dim: int, count: int) -> Entry:
        return gathered if dim == 0 else _concatenated(Entry("Split", [gathered, 0, count]), dim)

    def _part(self, node: Node) -> Entry:
        """Describe the part of a value that this device takes."""
        arguments: Any = node.args
        x, axes, dim, mesh = arguments
        value, shape = self._value(x), tuple(map(int, node.meta["val"].shape))
        if isinstance(value, str) and value.startswith("Tensor("):
            return Entry("_GetTensorSlice", [value, shape])
        if isinstance(value, Entry) and value.operator == "_GetTensorSlice":
            return Entry("_GetTensorSlice", [value.inputs[0], shape])
        at = mesh.position(self._split.rank, axes)
        if isinstance(value, Entry) and value.is_open:
            return Entry("TupleGetItem", [Entry("Split", [value, dim, mesh.product(axes)]), at])
        begin = tuple(at * shape[dim] if axis == dim else 0 for axis in range(len(shape)))
        end = tuple(first + size for first, size in zip(begin, shape))
        return Entry("StridedSlice", [value, begin, end, (1,) * len(shape), 0, 0, 0, 0, 0])

    def _group(self, axes: Any) -> dict[str, Any]:
        ranks = self._mesh.group(self._split.rank, axes) if isinstance(axes, tuple) else ()
        if not ranks:
            return {}
        return {"rank_size": len(ranks), "rank_list": _shown(ranks), "group_ranks": "-".join(map(str, ranks))}


_FIRST_SPATIAL = 2
"""The first axis after batch and channels; its borders are above and below."""
_TRANSPOSES = ("transpose_a", "transpose_b")
"""Attributes that MindSpore's graphs show as inputs."""
_SEVERAL_RESULTS = frozenset({"Split", "SplitV", "SplitTensor", "SplitWithSize", "Unstack", "LayerNorm", "TopK", "Sort", "BatchNorm"})
"""Operators whose kernel has MindSpore's results in MindSpore's order."""
_EXCHANGE_FUNCTIONS = frozenset({
    *_EXCHANGES, collective_nodes.all_gather, collective_nodes.reduce_scatter, collective_nodes.cut, collective_nodes.borders,
})


def _is_trained(node: Node, item: Any) -> bool:
    """Return whether an input is a Parameter that the forward pass reads and of which a gradient may be computed."""
    return bool(getattr(item, "requires_grad", False)) and item._t.is_floating_point() and any(
        not user.meta.get(node_metadata.OPTIMIZER) and not user.meta.get(node_metadata.GRADIENT) for user in node.users
    )


def _concatenated(parts: Entry, dim: int) -> Entry:
    items = [Entry("TupleGetItem", [parts, at]) for at in range(int(parts.inputs[2]))]
    return Entry("Concat", [Entry("MakeTuple", list(items)), dim])


def _in_order(entries: list[Entry]) -> Iterator[Entry]:
    """Yield each entry once, after those of its inputs, in the order of a walk from the results."""
    seen: set[int] = set()
    used = {id(item) for entry in entries for item in entry.inputs}
    roots = [entry for entry in entries if id(entry) not in used]
    for root in [*roots, *entries]:
        pending: list[tuple[Entry, bool]] = [(root, False)]
        while pending:
            entry, is_entered = pending.pop()
            if is_entered:
                yield entry
            elif id(entry) not in seen:
                seen.add(id(entry))
                pending.append((entry, True))
                pending.extend((item, False) for item in reversed(entry.inputs) if isinstance(item, Entry))


def _shown_constant(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    return f"Tensor(shape={list(value.shape)}, dtype={str(value.dtype).removeprefix('torch.')}, value=[...])"


def _shown(item: Any) -> Any:
    """Return an input as MindSpore shows it: a name, a number, or the text of a tuple."""
    if isinstance(item, (list, tuple)):
        return "(" + ", ".join(str(_shown(part)) for part in item) + ")"
    return item if isinstance(item, int) else str(item)
