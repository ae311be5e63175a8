"""The inputs of a call of an operator, in the form in which the program wrote them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx.node import Node

from torchspore.distributed.shard.strategy_validation import Fit
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.capture.capture import Capture

TENSOR = "<Tensor>"
"""Represents a Tensor in the recorded arguments of a call; the name of a Parameter follows."""


class _Calls:
    """The number of recorded calls."""

    def __init__(self) -> None:
        self.count = 0


_CALLS = _Calls()


def last_node(capture: Capture) -> Node | None:
    """Return the last node that was recorded; None if there is none."""
    return next(iter(reversed(capture.tracer.graph.nodes)), None)


def note_call(capture: Capture, before: Node | None, primitive: Any, args: tuple[Any, ...], fitting: Fit | None) -> None:
    """Record, in the nodes that a call of a primitive added after `before`, its name, its attributes and the form of its arguments.

    The attributes include the layouts of its strategy, by MindSpore's names.
    """
    _CALLS.count += 1
    attributes = {str(name): value if isinstance(value, (int, float)) else _text(value) for name, value in primitive.attrs.items()}
    if fitting is not None:
        attributes["device_matrix"] = _text(fitting.device_matrix)
        for name, layouts in (("inputs_tensor_map", fitting.inputs), ("outputs_tensor_map", fitting.outputs)):
            attributes[name] = _text(tuple(layout.tensor_map for layout in layouts if layout is not None))
    noted = (_CALLS.count, primitive.name, attributes, tree.mapped(args, _noted_leaf))
    for node in reversed(capture.tracer.graph.nodes):
        if node is before:
            break
        if node.op == "call_function" and not node.meta.get(node_metadata.GRADIENT):
            node.meta[node_metadata.PRIMITIVE] = noted


def external_inputs(members: Sequence[Node]) -> list[Node]:
    """Return the nodes that these nodes read and that are not among them, in order; each once, unless there is only one kernel."""
    inside = set(members)
    if len(members) == 1:
        return [leaf for leaf in tree.leaves((members[0].args, dict(members[0].kwargs))) if isinstance(leaf, Node)]
    return list(dict.fromkeys(source for node in members for source in node.all_input_nodes if source not in inside))


def described_inputs(form: Any, values: Sequence[Any], entry: Callable[[str, list[Any]], Any]) -> list[Any]:
    """Return the values in the form of the arguments: a tuple of Tensors becomes an entry MakeTuple, other arguments stay as they are.

    If the number of Tensors differs, the values alone are returned.
    """
    tensors = [leaf for leaf in tree.leaves(form) if _is_tensor(leaf)]
    if len(tensors) != len(values):
        return list(values)
    others, by_name = [], {}
    for value in values:                        # a kernel may read its inputs in another order
        name = value if isinstance(value, str) else value.inputs[0] if getattr(value, "operator", "") == "_MirrorOperator" else None
        if f"{TENSOR}{name}" in tensors:
            by_name[f"{TENSOR}{name}"] = value
        else:
            others.append(value)
    remaining = iter(others)

    def filled(item: Any) -> Any:
        if isinstance(item, (list, tuple)) and any(map(_is_tensor, tree.leaves(item))):
            return entry("MakeTuple", [filled(part) for part in item])
        if not _is_tensor(item):
            return item
        return by_name[item] if item in by_name else next(remaining, "")

    return [filled(item) for item in form]


def _noted_leaf(leaf: Any) -> Any:
    if isinstance(leaf, TensorBase):
        return f"{TENSOR}{getattr(leaf, 'name', '')}"
    return leaf if isinstance(leaf, (int, float)) else str(leaf)


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, str) and leaf.startswith(TENSOR)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ("[{}]" if isinstance(value, list) else "({})").format(", ".join(map(_text, value)))
    return str(value)
