"""`sys.mem_reuse` off: every value of a graph keeps its memory until the end of the call, as if it were a result."""
from __future__ import annotations

import torch


def extend_lifetimes(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Append all values to the results of the graph, in place, so that no value is freed or overwritten."""
    nodes = list(module.graph.nodes)
    output = nodes[-1]
    results = list(output.args[0])
    result_ids = set(results)
    more = [
        node for node in nodes if node.op == "call_function" and node not in result_ids and isinstance(node.meta.get("val"), torch.Tensor)
    ]
    output.args = ([*results, *more],)
    return module
