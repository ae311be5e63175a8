"""Products of matrices."""
from __future__ import annotations

from torchspore.distributed.shard.rules.elementwise import aligned
from torchspore.distributed.shard.rules.registry import Given, splits
from torchspore.distributed.shard.rules.rule import Naming, Rule


@splits("mm", "bmm", "matmul", "dot", "mv")
def product(given: Given) -> Rule | None:
    """(.., i, k) by (.., k, j), both with the same leading dimensions; what is cut along k gives terms."""
    one, other = (tuple(t.shape) for t in given.inputs)
    if len(one) != len(other) or len(one) < 2:
        return None
    naming = Naming()
    ahead = naming.all(one[:-2])
    i, k, j = naming.new(one[-2]), naming.new(one[-1]), naming.new(other[-1])
    return naming.rule([(*ahead, i, k), (*ahead, k, j)], [(*ahead, i, j)], reduced={k[0]: "sum"})


@splits("addmm", "baddbmm", "addbmm")
def product_and_sum(given: Given) -> Rule | None:
    """A product and a summand. The summand would be added once by each device that holds a term, so what is summed is not cut."""
    bias, one, other = (tuple(t.shape) for t in given.inputs)
    naming = Naming()
    ahead = naming.all(one[:-2])
    i, k, j = naming.new(one[-2]), naming.new(one[-1], locked=True), naming.new(other[-1])
    full = (*one[:-1], other[-1])
    dims = (*ahead, i, j)
    return naming.rule([aligned(naming, dims, full, bias), (*ahead, i, k), (*ahead, k, j)], [dims])


@splits("linear", "_linear_pointwise")
def linear(given: Given) -> Rule | None:
    """(.., k) by (j, k), and a summand of length j."""
    x, weight = (tuple(t.shape) for t in given.inputs[:2])
    if given.target._opname == "_linear_pointwise" and len(given.inputs) > 3:
        return None
    naming = Naming()
    ahead = naming.all(x[:-1])
    has_bias = len(given.inputs) > 2
    k, j = naming.new(x[-1], locked=has_bias), naming.new(weight[0])
    inputs = [(*ahead, k), (j, k)] + ([(j,)] if has_bias else [])
    return naming.rule(inputs, [(*ahead, j)], reduced={} if has_bias else {k[0]: "sum"})
