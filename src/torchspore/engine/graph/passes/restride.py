"""Works out the strides that values really have: fake kernels and a change of layout leave other ones in `meta`."""
from __future__ import annotations

import json
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


def layouts(module: torch.fx.GraphModule) -> str:
    """What `restrided` found out, as text for the next process."""
    return json.dumps([_layout(node.meta.get("val")) for node in module.graph.nodes], separators=(",", ":"))


def with_layouts(module: torch.fx.GraphModule, text: str) -> bool:
    """Gives `meta` what `layouts` told; whether the text belongs to this graph."""
    try:
        found = json.loads(text)
        nodes, mode = list(module.graph.nodes), FakeTensorMode()
        values = [_value(item, mode) for item in found]
    except (ValueError, TypeError, AttributeError, RuntimeError):
        return False
    if len(values) != len(nodes):
        return False
    for node, value in zip(nodes, values):
        if value is not None:
            node.meta["val"] = value
    return True


def _layout(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [list(value.shape), list(value.stride()), str(value.dtype).removeprefix("torch."), str(value.device)]
    return {"items": [_layout(item) for item in value]} if isinstance(value, (list, tuple)) else None


def _value(told: Any, mode: Any) -> Any:
    if isinstance(told, dict):
        return [_value(item, mode) for item in told["items"]]
    if told is None:
        return None
    shape, strides, dtype, device = told
    with mode:
        return torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device=device)
