"""The costs of operators and of full local graphs on an assumed machine."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard import memory_model, strategy_marker
from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.operator_arguments import arguments_by_name
from torchspore.translations import translate

FREE = frozenset({
    "t", "view", "_unsafe_view", "reshape", "_reshape_alias", "transpose", "permute", "expand", "unsqueeze", "squeeze", "slice", "select",
    "alias", "detach", "split", "split_with_sizes", "unbind", "chunk", "numpy_T", "narrow", "laid", "mirror", "mirrored",
})
"""Views, which compute nothing."""
ROWS = frozenset({"embedding", "index_select", "gather", "look_up"})
"""Operators that read as much of their first operand as they return."""
_ATTENTION = "_scaled_dot_product"
PRODUCTS = frozenset({
    "mm", "bmm", "matmul", "addmm", "baddbmm", "addbmm", "linear", "_linear_pointwise", "convolution", "convolution_backward",
})


@dataclass(frozen=True)
class Cost:
    """The cost of a step for each device."""

    received: int
    messages: int
    computing: float
    """Seconds."""
    peak_bytes: int
    """Bytes at the peak."""
    seconds: float
    """Seconds of a step: an exchange runs beside the later operators that do not wait for its result."""
    sending: float = 0.0
    """Seconds of the exchanges alone."""
    excess: float = 0.0
    """How many times the bytes that a device can hold are held, beyond them."""

    def order(self) -> tuple[float, float]:
        """Return the key of comparison: plans that fit into memory come first."""
        return (self.excess, self.seconds)

    def describe(self, more: str = "") -> str:
        """Return the description for the user: the time, `more`, and the memory beyond that of a device."""
        over = translate(", {share:.0%} more memory than a device has").format(share=self.excess) if self.excess else ""
        return f"{self.seconds * 1e3:.3f} ms{more}{over}"


def is_product(name: str) -> bool:
    """Return whether an operator is a matrix product, whose work devices share."""
    return name in PRODUCTS or name.startswith(_ATTENTION)


def additions(name: str, args: dict[str, Any], outputs: Sequence[Any]) -> float:
    """Return the multiplications and additions of a product; 0 for other operators. `args` are by name, Tensors as fake tensors."""
    shapes = [tuple(t.shape) for t in tree.leaves(list(args.values())) if isinstance(t, torch.Tensor)]
    if name.startswith(_ATTENTION):
        q, k = (shapes[0], shapes[1]) if "backward" not in name else (shapes[1], shapes[2])
        return (10.0 if "backward" in name else 4.0) * math.prod(q) * k[-2]
    if name not in PRODUCTS:
        return 0.0
    if name == "convolution":
        return 2.0 * math.prod((args["input"] if args["transposed"] else outputs[0]).shape) * math.prod(args["weight"].shape[1:])
    if name == "convolution_backward":
        counted = args["input"] if args["transposed"] else args["grad_output"]
        return 2.0 * sum(map(bool, args["output_mask"][:2])) * math.prod(counted.shape) * math.prod(args["weight"].shape[1:])
    if name in ("linear", "_linear_pointwise"):
        return 2.0 * math.prod(shapes[0]) * shapes[1][0]
    first, other = shapes[-2:]
    return 2.0 * math.prod(first) * other[-1]


def touched(tensors: Sequence[Any]) -> int:
    """Return the bytes of some Tensors."""
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def seconds(name: str, args: dict[str, Any], outputs: Sequence[Any], machine: Machine) -> float:
    """Return the seconds of an operator: of its products, or of the memory that it reads and writes."""
    if name in FREE:
        return 0.0
    moved = touched(list(tree.leaves(list(args.values())))) + touched(outputs)
    if name in ROWS:
        moved = 2 * touched(outputs)
    return max(machine.launch, additions(name, args, outputs) / machine.operations, moved / machine.memory)


def of(local: LocalGraph, machine: Machine, *, is_fused: bool = False) -> Cost:
    """Return the cost of a local graph.

    The operators run in the order of the graph, and the exchanges beside them in the same order: an exchange begins after the operators in
    front of it and the exchange before it, and an operator waits for the exchanges whose results it reads. Sums that only the optimizer
    waits for begin as soon as their gradients are computed. Before `allreduce_fusion` joins them (`is_fused` is False), they count as one
    message for each group of devices; in a fused graph each exchange is one message.
    """
    total = 0
    spent = sending = computed_until = exchanged_until = 0.0
    single, late = 0, set[Any]()
    ends: dict[Node, float] = {}
    for node in local.module.graph.nodes:
        ready = max((ends.get(source, 0.0) for source in node.all_input_nodes), default=0.0)
        if node.target in nodes.SENDING:
            node_bytes = received(node, local)
            total += node_bytes
            is_first, begin = True, max(exchanged_until, computed_until, ready)
            if node.target is nodes.all_reduce and node.users and all(user.meta.get(node_metadata.OPTIMIZER) for user in node.users):
                group = node if is_fused else node.args[1:3]
                is_first = group not in late
                late.add(group)
                begin = max(exchanged_until, ready)
            else:
                single += 1
            axes: Any = node.args[1]
            seconds_here = machine.transfer_seconds(node_bytes, int(is_first), local.mesh.extent(axes))
            sending += seconds_here
            exchanged_until = begin + seconds_here
            ends[node] = exchanged_until
        else:
            seconds_here = computing(node, machine)
            spent += seconds_here
            if seconds_here:
                computed_until = max(computed_until, ready) + seconds_here
                ends[node] = computed_until
            else:
                ends[node] = ready
    holders = [node for node in local.module.graph.nodes if node.op == "placeholder"]
    total_bytes = touched([node.meta.get("val") for node in holders]) + sum(memory_model.peak(local.module).values())
    messages = single + len(late)
    excess = max(0.0, total_bytes / machine.capacity - 1)
    return Cost(total, messages, spent, total_bytes, max(computed_until, exchanged_until), sending=sending, excess=excess)


def computing(node: Node, machine: Machine) -> float:
    """Return the seconds of a node of a local graph that is not an exchange."""
    if node.op != "call_function" or not is_operator(node.target) or node.target in strategy_marker.MARKS:
        return 0.0
    args = tree.mapped(arguments_by_name(node), lambda leaf: leaf.meta.get("val") if isinstance(leaf, Node) else leaf)
    return seconds(node.target._opname, args, list(tree.leaves([node.meta.get("val")])), machine)


def received(node: Node, local: LocalGraph) -> int:
    """Return the bytes that a device receives in an exchange."""
    source: Any = node.args[0]
    axes: Any = node.args[1]
    size, part_bytes = local.mesh.product(axes), touched([source.meta["val"]])
    if node.target in (nodes.borders, nodes.borders_sum):
        dim, *ends = (int(bound) for bound in node.args[2:5])  # type: ignore[arg-type]
        return part_bytes // max(1, int(source.meta["val"].shape[dim])) * sum(ends)
    if node.target is nodes.rotated:
        return part_bytes
    if node.target is nodes.all_gather:
        return part_bytes * (size - 1)
    return (2 if node.target is nodes.all_reduce else 1) * part_bytes * (size - 1) // size
