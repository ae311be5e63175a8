"""Collectives that the program calls itself, in a split graph."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.distributed.shard.local_graph import Value
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.exchanges import is_exchange

_NO_VALUES = ("wait_tensor", "barrier")
"""Operators of collectives that send no value."""
_HINT = (
    "gradients are whole values here: ops.clip_by_global_norm(gradients, norm) needs no exchange; in a norm of one's own leave out both "
    "the exchange and the division by the number of devices that hold a copy"
)


def is_user_collective(node: Node) -> bool:
    """Return whether a node of a captured graph is a collective of the program; the pass has not added any yet."""
    return is_exchange(node) and node.target._opname not in _NO_VALUES  # type: ignore[union-attr]


def check(node: Node, values: Mapping[Node, Any]) -> None:
    """Raise ValueError if a collective sends a value that depends on the gradient of a split Parameter.

    MindSpore's devices compute such a value from their own part, and programs add up the parts. Here gradients are full values outside of
    the operators that created them, so a sum would count them several times. Flags (an overflow on any device) may be summed either way.
    """
    seen: set[Node] = set()
    open_ = [node]
    while open_:
        reader = open_.pop()
        for source in reader.all_input_nodes:
            if source.meta.get(node_metadata.GRADIENT) and not reader.meta.get(node_metadata.GRADIENT) and _is_cut(values.get(source)):
                name = str(node.target._opname)  # type: ignore[union-attr]
                raise ValueError(f"{node.meta.get(node_metadata.LINE, '')}: " + message(
                    f"{name} of values that depend on gradients of split Parameters", "no exchange of the program's own there",
                    hint=_HINT,
                ))
            if source not in seen and not _is_flag(source):
                seen.add(source)
                open_.append(source)


def _is_flag(node: Node) -> bool:
    return getattr(node.meta.get("val"), "dtype", None) is torch.bool


def _is_cut(value: Any) -> bool:
    return isinstance(value, Value) and any(value.layout.dim_axes)
