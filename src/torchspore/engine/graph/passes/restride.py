"""Works out the strides that values really have: fake kernels and a change of layout leave other ones in `meta`."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.private import FakeTensorMode


class _Recorder(torch.fx.Interpreter):
    """Runs the graph and keeps what comes out of each node, without its memory."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.mode = FakeTensorMode()

    def run_node(self, node: torch.fx.Node) -> Any:
        value = super().run_node(node)
        if isinstance(value, torch.Tensor):
            node.meta["val"] = self._fake(value)
        elif isinstance(value, (list, tuple)) and node.op == "call_function":
            node.meta["val"] = [self._fake(v) if isinstance(v, torch.Tensor) else v for v in value]
        return value

    def _fake(self, t: torch.Tensor) -> torch.Tensor | None:
        if t.layout is not torch.strided:          # packed weights
            return None
        with self.mode:
            return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)


def restrided(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
    """With `meta['val']` of each node as it comes out of a run on these inputs, which the graph may write to."""
    with torch.no_grad():
        _Recorder(module).run(*inputs)
    return module
