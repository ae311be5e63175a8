"""A captured graph as text."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata


def text(module: torch.fx.GraphModule) -> str:
    """Return one line for each value: its name, dtype and shape, the operator and its operands; its source if the graph recorded it."""
    lines = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            lines.append(f"%{node.name}: {_kind(node)} = input")
        elif node.op == "output":
            lines.append(f"return {_value(node.args[0])}")
        else:
            arguments = ", ".join([_value(a) for a in node.args] + [f"{k}={_value(v)}" for k, v in node.kwargs.items()])
            lines.append(f"%{node.name}: {_kind(node)} = {node.target}({arguments}){_origin(node)}")
    return "\n".join(lines)


def _origin(node: Node) -> str:
    if node_metadata.LINE not in node.meta:
        return ""
    backward = " backward of" if node.meta.get(node_metadata.GRADIENT) else ""
    return f"  #{backward} {node.meta[node_metadata.LINE]} in {node.meta[node_metadata.SCOPE]}"


def _kind(node: Node) -> str:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return "(" + ", ".join(
        f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}" for v in value if isinstance(v, torch.Tensor)
    ) + ")" if isinstance(value, (list, tuple)) else "?"


def _value(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
