"""A captured graph as JSON and back: operators by name, arguments, shapes, constants as bytes; nothing in it runs when it is read."""
from __future__ import annotations

import base64
import functools
import importlib
import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.graph import marks
from torchspore.engine.private import FakeTensorMode, is_operator


class Unwritable(Exception):
    """The graph holds something that has no text."""


def write(module: torch.fx.GraphModule) -> dict[str, Any]:
    """The graph as what JSON can hold. Raises Unwritable."""
    return {"nodes": [_node(module, node) for node in module.graph.nodes]}


def read(written: dict[str, Any]) -> torch.fx.GraphModule:
    """The graph again. Raises KeyError, TypeError, ValueError or AttributeError for what was not written here."""
    graph, root = torch.fx.Graph(), torch.nn.Module()
    nodes: dict[str, Node] = {}
    mode = FakeTensorMode()
    for place, entry in enumerate(written["nodes"]):
        arguments = tuple(_value_of(item, nodes) for item in entry["args"])
        keywords = {key: _value_of(item, nodes) for key, item in entry["kwargs"].items()}
        target: Any = entry["target"]
        if entry["op"] == "call_function":
            target = _function(target)
        elif entry["op"] == "get_attr":
            target = f"constant{place}"
            setattr(root, target, _constant(entry["constant"]))
        node = nodes[entry["name"]] = graph.create_node(entry["op"], target, arguments, keywords, entry["name"])
        if "val" in entry:
            node.meta["val"] = _fake(entry["val"], mode)
        if entry.get("optimizer"):
            node.meta[marks.OPTIMIZER] = True
    return torch.fx.GraphModule(root, graph)


def _node(module: torch.fx.GraphModule, node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "op": node.op, "name": node.name, "target": _name(node) if node.op == "call_function" else str(node.target),
        "args": [_text(item) for item in node.args], "kwargs": {key: _text(item) for key, item in node.kwargs.items()},
    }
    if node.op == "get_attr":
        entry["constant"] = _bytes(functools.reduce(getattr, str(node.target).split("."), module))
    if "val" in node.meta:
        entry["val"] = _meta(node.meta["val"])
    if node.meta.get(marks.OPTIMIZER):
        entry["optimizer"] = True
    return entry


def _name(node: Node) -> str:
    target: Any = node.target
    if is_operator(target):
        return f"operator {target.namespace}.{target._opname}.{target._overloadname}"
    if target is operator.getitem:
        return "getitem"
    module, name = getattr(target, "__module__", "") or "", getattr(target, "__name__", "")
    if module.startswith("torchspore.engine.") and getattr(importlib.import_module(module), name, None) is target:
        return f"function {module}:{name}"
    raise Unwritable(f"{target!r:.60} has no name")


def _function(name: str) -> Any:
    kind, _, path = name.partition(" ")
    if name == "getitem":
        return operator.getitem
    if kind == "operator":
        return functools.reduce(getattr, path.split("."), torch.ops)
    module, _, function = path.partition(":")
    if kind != "function" or not module.startswith("torchspore.engine."):
        raise ValueError(name)
    return getattr(importlib.import_module(module), function)


_NAMED = (torch.dtype, torch.layout, torch.memory_format)


def _text(value: Any) -> Any:
    """An argument as JSON: what is no plain value is a list that begins with its kind."""
    if isinstance(value, Node):
        return ["node", value.name]
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if isinstance(value, (list, tuple)):
        return ["tuple" if isinstance(value, tuple) else "list", *[_text(item) for item in value]]
    if isinstance(value, _NAMED):
        return ["torch", str(value).removeprefix("torch.")]
    if isinstance(value, torch.device):
        return ["device", str(value)]
    if isinstance(value, slice):
        return ["slice", *[_text(item) for item in (value.start, value.stop, value.step)]]
    if isinstance(value, torch.fx.GraphModule):
        return ["graph", write(value)]
    raise Unwritable(f"an argument of type {type(value).__name__}")


def _value_of(written: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(written, list):
        return written
    kind, *items = written
    if kind == "node":
        return nodes[items[0]]
    if kind in ("tuple", "list"):
        found = [_value_of(item, nodes) for item in items]
        return tuple(found) if kind == "tuple" else found
    if kind == "torch":
        found = getattr(torch, items[0])
        if not isinstance(found, _NAMED):
            raise ValueError(items[0])
        return found
    if kind == "device":
        return torch.device(items[0])
    if kind == "slice":
        return slice(*[_value_of(item, nodes) for item in items])
    if kind == "graph":
        return read(items[0])
    raise ValueError(kind)


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [list(value.shape), list(value.stride()), str(value.dtype).removeprefix("torch."), str(value.device)]
    return {"items": [_meta(item) for item in value]} if isinstance(value, (list, tuple)) else None


def _fake(written: Any, mode: Any) -> Any:
    if written is None:
        return None
    if isinstance(written, dict):
        return tuple(_fake(item, mode) for item in written["items"])
    shape, strides, dtype, device = written
    with mode:
        return torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device=device)


def _bytes(value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor) or value.numel() > 1 << 20:
        raise Unwritable("a large constant, or one that is no Tensor")
    flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return {"meta": _meta(value), "bytes": base64.b64encode(flat.numpy().tobytes()).decode()}


def _constant(written: dict[str, Any]) -> torch.Tensor:
    shape, _, dtype, device = written["meta"]
    flat = torch.frombuffer(bytearray(base64.b64decode(written["bytes"])) or bytearray(1), dtype=torch.uint8)
    kind = getattr(torch, dtype)
    count = functools.reduce(operator.mul, shape, 1)
    return flat[: count * kind.itemsize].view(kind).reshape(shape).to(device).clone()
