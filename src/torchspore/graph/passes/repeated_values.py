"""Values that a graph computes more often than necessary: equal ones, and constants that an operator fills at each call.

Each operator on small values costs more time than its computation. Results have equal bits.
"""
from __future__ import annotations

import itertools

import torch
from torch.fx.node import Node

from torchspore.engine.execution import current_operator
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import is_result, mutated_owners, owner_of
from torchspore.graph.passes.common_subexpressions import common_subexpressions

_aten = torch.ops.aten

MOST_BYTES = 1 << 20
"""Larger values are computed again: they would occupy memory for longer."""
_MOST_CONSTANT_BYTES = 1 << 12
_FILLS = {
    _aten.scalar_tensor.default, _aten.zeros.default, _aten.ones.default, _aten.full.default, _aten.arange.default, _aten.arange.start,
    _aten.arange.start_step,
}
"""Operators whose result depends on their constant arguments alone."""


def share_small_values(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Compute equal small values once, and fill small constants on the CPU before the first call, in place.

    While a dump is active the graph stays as it is: the dump needs the result of each operator.
    """
    if current_operator.followers:
        return module
    return _store_constants(common_subexpressions(module, _is_small))


def _is_small(node: Node) -> bool:
    """Return whether each result of a node has at most MOST_BYTES."""
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else (value,)
    return all(bytes_of(item) <= MOST_BYTES for item in values)


def bytes_of(value: object) -> int:
    """Return the bytes of a tensor of known lengths; for other values, more than MOST_BYTES."""
    if not isinstance(value, torch.Tensor) or any(type(length) is not int for length in value.shape):
        return MOST_BYTES + 1
    return value.numel() * value.element_size()


def _store_constants(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    fills = [node for node in module.graph.nodes if _is_fill(node)]
    mutated = mutated_owners(module) if fills else set()
    numbers = itertools.count()
    for node in fills:
        if owner_of(node) in mutated or is_result(node):
            continue
        name = next(name for number in numbers if not hasattr(module, name := f"constant_fill_{number}"))
        setattr(module, name, node.target(*node.args, **node.kwargs))
        with module.graph.inserting_before(node):
            stored = module.graph.create_node("get_attr", name)
        stored.meta = dict(node.meta)
        node.replace_all_uses_with(stored)
        module.graph.erase_node(node)
    return module


def _is_fill(node: Node) -> bool:
    if node.op != "call_function" or not is_operator(node.target) or node.target not in _FILLS or node.all_input_nodes:
        return False
    value = node.meta.get("val")
    return bytes_of(value) <= _MOST_CONSTANT_BYTES and isinstance(value, torch.Tensor) and value.device.type == "cpu"
