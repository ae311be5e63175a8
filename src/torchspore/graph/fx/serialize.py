"""A captured graph as JSON and back: operators by name, arguments, shapes, constants as bytes.

The JSON is not trusted: it may only name listed functions (allowed_functions.py), and everything that becomes part of generated text is
checked.
"""
from __future__ import annotations

import base64
import functools
import keyword
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import FakeTensorMode
from torchspore.graph.fx import allowed_functions


class Unwritable(Exception):
    """The graph holds something that has no text."""


def write(module: torch.fx.GraphModule) -> dict[str, Any]:
    """The graph as what JSON can hold. Raises Unwritable."""
    return {"nodes": [_node(module, node) for node in module.graph.nodes]}


def read(document: Any) -> torch.fx.GraphModule:
    """Return the graph. Raises ValueError for JSON that this module did not write."""
    try:
        return _read(document)
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError, OverflowError, AssertionError) as error:
        raise ValueError(f"it is not a graph ({type(error).__name__}: {error!s:.80})") from None


_OUTPUTS, _INPUTS, _CALLS, _CONSTANTS = "output", "placeholder", "call_function", "get_attr"


def _read(document: dict[str, Any]) -> torch.fx.GraphModule:
    graph, root = torch.fx.Graph(), torch.nn.Module()
    nodes: dict[str, Node] = {}
    mode = FakeTensorMode()
    for index, entry in enumerate(document["nodes"]):
        arguments = tuple(_value_of(item, nodes) for item in entry["args"])
        keywords = {_word(key): _value_of(item, nodes) for key, item in entry["kwargs"].items()}
        kind, target = entry["op"], entry["target"]
        if kind == _CALLS:
            target = allowed_functions.function(target)
            if target is operator.getitem and not (len(arguments) == 2 and isinstance(arguments[0], Node) and type(arguments[1]) is int):
                raise ValueError("getitem takes a value and an index")
        elif kind == _CONSTANTS:
            target = f"constant{index}"
            setattr(root, target, _constant(entry["constant"]))
        elif kind not in (_INPUTS, _OUTPUTS) or (kind == _INPUTS and arguments):
            raise ValueError(f"{kind!r:.40} is not a node of a captured graph")
        target = _word(target) if kind == _INPUTS else target
        if kind == _INPUTS and any(target == node.target for node in graph.nodes if node.op == _INPUTS):
            raise ValueError(f"two of its inputs have the name {target!r:.40}")
        node = nodes[entry["name"]] = graph.create_node(kind, target, arguments, keywords, _word(entry["name"]))
        if "val" in entry:
            node.meta["val"] = _fake(entry["val"], mode)
        if entry.get("optimizer"):
            node.meta[node_metadata.OPTIMIZER] = True
    if [node.op for node in graph.nodes].count(_OUTPUTS) != 1 or next(iter(reversed(graph.nodes))).op != _OUTPUTS:
        raise ValueError("a graph ends with its one output")
    return torch.fx.GraphModule(root, graph)


def moved(entries: list[Any], device: str) -> list[Any]:
    """Return the nodes of a written graph for another device: what was on the device of its first value is on `device`."""
    kind_of_writer = next((kind for entry in entries if (kind := _kind_of_device(entry.get("val")))), None)

    def changed(name: str) -> str:
        return device if name.partition(":")[0] == kind_of_writer else name

    return [_changed_entry(entry, changed) for entry in entries]


def _kind_of_device(meta: Any) -> str | None:
    if isinstance(meta, dict):
        return next((kind for item in meta["items"] if (kind := _kind_of_device(item))), None)
    return None if meta is None else str(meta[3]).partition(":")[0]


def _changed_entry(entry: dict[str, Any], changed: Callable[[str], str]) -> dict[str, Any]:
    def meta(document: Any) -> Any:
        if isinstance(document, dict):
            return {"items": [meta(item) for item in document["items"]]}
        return None if document is None else [*document[:3], changed(document[3])]

    def text(document: Any) -> Any:
        if not isinstance(document, list) or not document:
            return document
        if document[0] == "device":
            return ["device", changed(document[1])]
        if document[0] == "graph":
            return ["graph", {**document[1], "nodes": [_changed_entry(inner, changed) for inner in document[1]["nodes"]]}]
        return [document[0], *map(text, document[1:])]

    result = {**entry, "args": [text(item) for item in entry["args"]], "kwargs": {key: text(item) for key, item in entry["kwargs"].items()}}
    if "val" in entry:
        result["val"] = meta(entry["val"])
    if "constant" in entry:
        result["constant"] = {**entry["constant"], "meta": meta(entry["constant"]["meta"])}
    return result


def _word(name: Any) -> str:
    """Return a name that generated text may contain."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise ValueError(f"{name!r:.60} is no name")
    return name


def _node(module: torch.fx.GraphModule, node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "op": node.op, "name": node.name, "target": _name(node) if node.op == "call_function" else str(node.target),
        "args": [_text(item) for item in node.args], "kwargs": {key: _text(item) for key, item in node.kwargs.items()},
    }
    if node.op == "get_attr":
        entry["constant"] = _bytes(functools.reduce(getattr, str(node.target).split("."), module))
    if "val" in node.meta:
        entry["val"] = meta_of(node.meta["val"])
    if node.meta.get(node_metadata.OPTIMIZER):
        entry["optimizer"] = True
    return entry


def _name(node: Node) -> str:
    name = allowed_functions.name(node.target)
    if name is None:
        raise Unwritable(f"{node.target!r:.60} has no name")
    return name


_NAMED = (torch.dtype, torch.layout, torch.memory_format)


def _text(value: Any) -> Any:
    """Return an argument as JSON: other values than plain ones become a list that begins with their kind."""
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


def _value_of(document: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(document, list):
        if isinstance(document, dict):
            raise ValueError("an argument is not an object")
        return document
    kind, *items = document
    if kind == "node":
        return nodes[items[0]]
    if kind in ("tuple", "list"):
        values = [_value_of(item, nodes) for item in items]
        return tuple(values) if kind == "tuple" else values
    if kind == "torch":
        return _of_torch(items[0], _NAMED)
    if kind == "device":
        return torch.device(items[0])
    if kind == "slice":
        return slice(*[_value_of(item, nodes) for item in items])
    if kind == "graph":
        return read(items[0])
    raise ValueError(f"{kind!r:.40} is not a kind of argument")


def _of_torch(name: str, kinds: Any) -> Any:
    """A dtype, layout or memory format by its name."""
    dtype = vars(torch).get(name)
    if not isinstance(dtype, kinds):
        raise ValueError(f"{name!r:.40} is no {' or '.join(kind.__name__ for kind in kinds)}")
    return dtype


def meta_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [list(value.shape), list(value.stride()), str(value.dtype).removeprefix("torch."), str(value.device)]
    return {"items": [meta_of(item) for item in value]} if isinstance(value, (list, tuple)) else None


def _fake(document: Any, mode: Any) -> Any:
    if document is None:
        return None
    if isinstance(document, dict):
        return tuple(_fake(item, mode) for item in document["items"])
    shape, strides, dtype, device = document
    with mode:
        return torch.empty_strided(shape, strides, dtype=_of_torch(dtype, (torch.dtype,)), device=device)


def _bytes(value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor) or value.numel() > 1 << 20:
        raise Unwritable("a large constant, or a constant that is not a Tensor")
    flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return {"meta": meta_of(value), "bytes": base64.b64encode(flat.numpy().tobytes()).decode()}


def _constant(document: dict[str, Any]) -> torch.Tensor:
    shape, _, dtype, device = document["meta"]
    flat = torch.frombuffer(bytearray(base64.b64decode(document["bytes"])) or bytearray(1), dtype=torch.uint8)
    kind = _of_torch(dtype, (torch.dtype,))
    count = functools.reduce(operator.mul, shape, 1)
    return flat[: count * kind.itemsize].view(kind).reshape(shape).to(device).clone()
