"""Graphs draw random numbers from MindSpore's streams, whatever compiled them: their operators use torch's global generators."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine import generators, tree
from torchspore.engine.graph.backend.eager_codegen import Code
from torchspore.engine.graph.call.undo import is_random
from torchspore.engine.graph.fx.modules import nested_nodes


def with_own_numbers(code: Code, module: torch.fx.GraphModule) -> Code:
    """`code` of the graph `module`, with MindSpore's streams in torch's generators while it runs, if it draws random numbers."""
    nested = nested_nodes(module)
    random_nodes = [node for node in module.graph.nodes if is_random(node, nested)]
    if not random_nodes:
        return code
    values = [value for node in random_nodes for value in tree.listed(node.meta.get("val")) if isinstance(value, torch.Tensor)]
    devices = {torch.device("cpu"), *(value.device for value in values)}

    def run(*inputs: Any) -> Any:
        with generators.lent(devices):
            return code(*inputs)

    return run
