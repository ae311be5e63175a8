"""The operators that the flags allow in a generated kernel, and which of them may follow each other."""
from __future__ import annotations

import functools
import operator

from torch.fx.node import Node

from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.backend import fusion
from torchspore.graph.fx.aliasing import is_view
from torchspore.graph.settings import Flags, Names
from torchspore.public_names.kernels import OPERATORS

PLAIN = frozenset(fusion.POINTWISE)
"""Operators that compute each value for itself."""
SUMS = frozenset({"sum", "mean", "amax", "amin", "var", "var_mean"})
"""Reductions that are one operator and no more."""
REDUCTIONS_IN_MEMORY = frozenset(fusion.REDUCTIONS) - SUMS - {"max_pool2d_with_indices", "avg_pool2d", "avg_pool2d_backward"}
"""Operators that consist of several reductions and elementwise steps: they are decomposed if they become part of a kernel."""
MOVES = frozenset(fusion.MOVES)
LOOKUPS = frozenset({"index"})
"""Operators that read the elements of a Tensor at the positions of a sparse CSR matrix."""
EXACT = frozenset("""
    add sub mul div neg abs relu sign floor ceil trunc clamp clamp_min clamp_max minimum maximum where eq ne lt le gt ge logical_and
    logical_or logical_not bitwise_and bitwise_or bitwise_not threshold_backward hardtanh hardtanh_backward masked_fill _to_copy clone
    ones_like zeros_like full_like full zeros ones fill square sqrt reciprocal
""".split()) | MOVES | LOOKUPS
"""Operators that IEEE arithmetic defines to the last bit, so that a generated kernel gives ATen's bits."""


@functools.cache
def allowed(flags: Flags) -> frozenset[str]:
    """ATen's names of the operators that may be in a kernel."""
    names = set(PLAIN)
    if flags.level >= 2 and flags.depth != 0:
        names |= SUMS
    reductions: set[str] = set(REDUCTIONS_IN_MEMORY) if flags.stitch else set()
    reductions |= REDUCTIONS_IN_MEMORY & _of(flags.expand)
    if flags.expand_only:
        reductions = _of(flags.expand_only) & REDUCTIONS_IN_MEMORY
    names |= reductions - _of(flags.expand_not)
    if flags.moves:
        names |= MOVES
    if flags.sparse:
        names |= LOOKUPS
    names |= _of(flags.cluster)
    if flags.cluster_only:
        names = set(_of(flags.cluster_only))
    names -= _of(flags.cluster_not)
    return frozenset(names & EXACT if flags.exact else names)


def _of(names: Names) -> set[str]:
    return {opname for name in names for opname in OPERATORS[name]}


def is_allowed(flags: Flags, node: Node) -> bool:
    """Return whether the flags allow a node into a kernel, and a kernel can compute it with the same numbers."""
    if not fusion.is_fusable(node, flags.open_batch or flags.open_lengths, LOOKUPS if flags.sparse else ()) or not _has_inputs(node):
        return False
    return is_view(node) or node.target._opname in allowed(flags)  # type: ignore[union-attr]


def _has_inputs(node: Node) -> bool:
    return all(item.meta.get("val") is not None for item in node.all_input_nodes)


def is_reduction(node: Node) -> bool:
    """Return whether the value is a reduction, or one of the results of one."""
    if node.target is operator.getitem:
        return is_reduction(node.args[0])  # type: ignore[arg-type]
    return is_operator(node.target) and node.target._opname in SUMS | REDUCTIONS_IN_MEMORY


def is_plain(node: Node) -> bool:
    """Return whether the operator computes each value for itself."""
    return is_operator(node.target) and node.target._opname in PLAIN


def is_work(node: Node) -> bool:
    """Return whether the node is a kernel of its own where nothing is fused: no view, no choice of a result."""
    return is_operator(node.target) and not is_view(node)


class Apart:
    """Decides whether two neighbours must not be in one kernel."""

    def __init__(self, flags: Flags, nodes: list[Node]) -> None:
        self._flags = flags
        self._distance = _distances(flags, nodes) if flags.depth > 0 else {}

    def __call__(self, first: Node, then: Node) -> bool:
        """Return whether `then`, which reads `first`, begins another kernel."""
        if is_reduction(first) and not (then.target is operator.getitem and then.args[0] is first):
            return not self._flags.stitch
        return self._distance.get(then) == self._flags.depth


def _distances(flags: Flags, nodes: list[Node]) -> dict[Node, int]:
    """Return for each operator that leads to a reduction the number of operators between, including itself."""
    depths: dict[Node, int] = {}
    for node in reversed(nodes):
        if node.op != "call_function" or not is_allowed(flags, node):
            continue
        if is_reduction(node):
            depths[node] = 0
            continue
        after = [depths[user] for user in node.users if user in depths]
        if after:
            depths[node] = min(after) + (not is_view(node))
    return depths
