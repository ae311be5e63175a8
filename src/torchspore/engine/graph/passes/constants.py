"""Gives captured constants their real values."""
from __future__ import annotations

import torch

from torchspore.engine.graph.refusal import Refusal
from torchspore.engine.private import FakeTensor


def real_constants(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With real tensors where an operator's body made one from a Python number. Raises Refusal where the values are not known."""
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        value = getattr(module, node.target)
        if isinstance(value, FakeTensor):
            if value.constant is None:
                raise Refusal("makes a constant whose values are not known while capturing")
            setattr(module, node.target, value.constant)
    return module
