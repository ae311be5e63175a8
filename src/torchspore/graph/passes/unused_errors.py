"""Unused operators that may raise an error. PyNative mode runs them, so a graph runs them too, and raises the same errors."""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import view_source
from torchspore.graph.passes.cleanup import has_effect

_aten = torch.ops.aten
_FLOATS = {torch.float32, torch.float64}
_FOR_ALL_DTYPES = {
    _aten._to_copy, _aten.clone, _aten.lift_fresh_copy, _aten.copy, _aten.zeros_like, _aten.ones_like, _aten.full_like, _aten.empty_like,
    _aten.cat, _aten.stack, _aten.where, _aten.eq, _aten.ne, _aten.add, _aten.mul, _aten.sum, _aten.logical_not, _aten.logical_and,
}
"""Operators with kernels for all dtypes, which raise no error for any values."""
_CHECKING_VALUES = (
    "linalg", "cholesky", "inverse", "lu_", "triangular", "geqrf", "ormqr", "orgqr", "svd", "bincount", "histc", "histogram",
    "binary_cross",
)
"""Beginnings of the names of operators that raise errors for some values of floats. Those with indices have an operand of ints."""


def keep_errors(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Mark unused operators that may raise an error, so that no later pass removes them."""
    unused: set[Node] = set()
    for node in reversed(module.graph.nodes):
        if node.op == "get_attr" or (node.op == "call_function" and all(user in unused for user in node.users) and not has_effect(node)):
            if _may_raise(node):
                node.meta[node_metadata.KEPT_FOR_ERRORS] = True
            else:
                unused.add(node)
    return module


def _may_raise(node: Node) -> bool:
    """Return whether the operator may raise an error although its trace did not: fake tensors have no values, and kernels lack dtypes."""
    target = node.target
    if not is_operator(target) or view_source(node) is not None:
        return False
    name = target._schema.name.partition("::")[2].lstrip("_")
    if name.startswith(_CHECKING_VALUES):
        return True
    operands = [value for each in node.all_input_nodes if isinstance(value := each.meta.get("val"), torch.Tensor)]
    if target.overloadpacket in _FOR_ALL_DTYPES:
        return False
    return any(value.dtype not in _FLOATS or not all(value.shape) for value in operands)
