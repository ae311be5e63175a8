"""Products of matrices of any rank, as torch's kernels take them."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.shard.lowerings.table import lowers

_aten = torch.ops.aten


@lowers("matmul")
def matmul(to: Any, node: Node) -> Any:
    """Split by its rule; on each device the leading dimensions, now those of its part, are joined for `bmm`."""
    values = to.by_rule(node, lambda operands: _joined(to, *operands))
    return values


def _joined(to: Any, one: Node, other: Node) -> Node:
    lead = one.meta["val"].shape[:-2]
    flat = [to.call(_aten.reshape.default, (x, [math.prod(lead), *x.meta["val"].shape[-2:]]), {}) for x in (one, other)]
    made = to.call(_aten.bmm.default, tuple(flat), {})
    found: Node = to.call(_aten.view.default, (made, [*lead, *made.meta["val"].shape[-2:]]), {})
    return found
