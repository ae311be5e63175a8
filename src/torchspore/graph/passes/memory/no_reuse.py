"""`sys.mem_reuse` off: every value of a graph keeps its memory until the end of the call, as if it were a result."""
from __future__ import annotations

import torch


def extend_lifetimes(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph that gives all its values after its results, so that none is freed and none is written over; in place."""
    nodes = list(module.graph.nodes)
    output = nodes[-1]
    results = list(output.args[0])
    result_ids = set(results)
    more = [
        node for node in nodes if node.op == "call_function" and node not in result_ids and isinstance(node.meta.get("val"), torch.Tensor)
    ]
    output.args = ([*results, *more],)
    return module
