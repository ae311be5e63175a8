"""Graphs that are called by nodes of other graphs."""
from __future__ import annotations

from typing import Any

import torch


class SubGraph(torch.fx.GraphModule):
    """A graph that stands among the arguments of a node; Python text is never made of it, which is most of a module's cost."""

    def __repr__(self) -> str:
        return "subgraph"

    def recompile(self) -> Any:
        """There is nothing to do."""

    def forward(self, *inputs: Any) -> Any:
        """Runs it, node by node."""
        return torch.fx.Interpreter(self).run(*inputs)
