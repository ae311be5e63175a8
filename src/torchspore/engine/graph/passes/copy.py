"""A graph of its own to change, where several forms of one graph are tried."""
from __future__ import annotations

import torch


def copied(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same graph in new nodes; constants and sub-graphs are shared."""
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    result = graph.graph_copy(module.graph, values, return_output_node=True)
    assert isinstance(result, tuple)
    output = graph.output(result[0])
    output.meta = dict(result[1].meta)
    return torch.fx.GraphModule(module, graph)
