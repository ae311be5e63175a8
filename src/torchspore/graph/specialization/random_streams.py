"""Graphs draw random numbers from MindSpore's streams, whatever compiled them: their operators use torch's global generators."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.random import generators
from torchspore.engine.tensors import tree
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.fx.failing_operators import Nested, is_random


def with_own_streams(code: Code, nodes: list[Node], nested: Nested) -> Code:
    """`code` of a graph of `nodes`, with MindSpore's streams in torch's generators while it runs, if it draws random numbers."""
    random_nodes = [node for node in nodes if is_random(node, nested)]
    if not random_nodes:
        return code
    values = [value for node in random_nodes for value in tree.listed(node.meta.get("val")) if isinstance(value, torch.Tensor)]
    devices = {torch.device("cpu"), *(value.device for value in values)}

    def run(*inputs: Any) -> Any:
        with generators.lent(devices):
            return code(*inputs)

    return run
