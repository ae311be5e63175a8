"""Matrix products."""
from __future__ import annotations

from torchspore.distributed.shard.propagation_rules.elementwise import aligned
from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Naming, Rule


@splits("mm", "bmm", "matmul", "dot", "mv")
def product(call: OperatorCall) -> Rule | None:
    """(.., i, k) by (.., k, j), both with the same leading dimensions; a split k gives partial sums."""
    first, other = (tuple(t.shape) for t in call.inputs)
    if len(first) != len(other) or len(first) < 2:
        return None
    naming = Naming()
    ahead = naming.all(first[:-2])
    i, k, j = naming.new(first[-2]), naming.new(first[-1]), naming.new(other[-1])
    return naming.rule([(*ahead, i, k), (*ahead, k, j)], [(*ahead, i, j)], reduced={k[0]: "sum"})


@splits("addmm", "baddbmm", "addbmm")
def product_and_sum(call: OperatorCall) -> Rule | None:
    """A product and a bias. Each device with a partial sum would add the bias, so k is not split."""
    bias, first, other = (tuple(t.shape) for t in call.inputs)
    naming = Naming()
    ahead = naming.all(first[:-2])
    i, k, j = naming.new(first[-2]), naming.new(first[-1], locked=True), naming.new(other[-1])
    full = (*first[:-1], other[-1])
    dims = (*ahead, i, j)
    return naming.rule([aligned(naming, dims, full, bias), (*ahead, i, k), (*ahead, k, j)], [dims])


@splits("linear", "_linear_pointwise")
def linear(call: OperatorCall) -> Rule | None:
    """(.., k) by (j, k), and a bias of length j."""
    x, weight = (tuple(t.shape) for t in call.inputs[:2])
    if call.target._opname == "_linear_pointwise" and len(call.inputs) > 3:
        return None
    naming = Naming()
    ahead = naming.all(x[:-1])
    has_bias = len(call.inputs) > 2
    k, j = naming.new(x[-1], locked=has_bias), naming.new(weight[0])
    inputs = [(*ahead, k), (j, k)] + ([(j,)] if has_bias else [])
    return naming.rule(inputs, [(*ahead, j)], reduced={} if has_bias else {k[0]: "sum"})
