"""A model as a MINDIR file with torch's operators in the domain "torchspore", and back.

Each node holds its operator's name and, as JSON, its arguments; `graph.fx.serialize` writes and reads these. A file is data: it can
name operators of a list and nothing else.
"""
from __future__ import annotations

import json
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.devices import device
from torchspore.export import mindir_format
from torchspore.export.model import Model, NotExportable
from torchspore.graph.capture.capture import In, Out
from torchspore.graph.fx import serialize

DOMAIN = "torchspore"
PRODUCER = "torchspore"
RESULT = "torchspore.result"
_ARGUMENTS = "arguments"


class Unreadable(ValueError):
    """The file is not a model that can be run here; the text says why."""


def model_message(model: Model, call: str, version: str) -> Any:
    """The ModelProto of a model. Raises NotExportable where it holds what has no text."""
    try:
        nodes = serialize.write(model.module)["nodes"]
        result = json.dumps(_plain(model.result))
    except serialize.Unwritable as reason:
        raise NotExportable(message(f"{call}: {reason}", "operators that a file may name")) from None
    proto = mindir_format.model()
    proto.ir_version, proto.producer_name, proto.producer_version, proto.domain = "1.1", PRODUCER, version, DOMAIN
    proto.little_endian = True
    proto.graph.name = "construct"
    proto.user_info[RESULT] = result
    for entry in nodes:
        node = proto.graph.node.add(name=entry["name"], op_type=str(entry["target"]), domain=DOMAIN)
        node.input.extend(_names(entry["args"]) + _names(entry["kwargs"]))
        node.output.append(entry["name"])
        node.attribute.add(name=_ARGUMENTS, type=mindir_format.STRING, s=json.dumps(entry).encode())
    for name in model.names:
        proto.graph.input.add(name=name)
    for name, t in model.parameters.items():
        mindir_format.put(proto.graph.parameter.add(), name, t)
    return proto


def read(proto: Any) -> Model:
    """The model of a ModelProto that `written` made. Raises Unreadable."""
    try:
        entries = [json.loads(_only_item(node.attribute, _ARGUMENTS).s) for node in proto.graph.node]
        module = serialize.read({"nodes": serialize.moved(entries, str(device.current()))})
        names = [value.name for value in proto.graph.input]
        parameters = {t.name: mindir_format.tensor(t).to(device.current()) for t in proto.graph.parameter}
        result = _structure(json.loads(_user_info(proto)))
        _check_inputs(module, names, parameters)
        outputs = next(node for node in module.graph.nodes if node.op == "output").args[0]
        _check(result, len(outputs) if isinstance(outputs, (tuple, list)) else 1, len(names))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    return Model(module, names, parameters, result)


def _check_inputs(module: torch.fx.GraphModule, names: list[str], parameters: dict[str, torch.Tensor]) -> None:
    """Raise ValueError if the names, shapes and dtypes of the inputs differ from those of the graph's placeholders."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    count = len(placeholders)
    if count != len(names) or len(set(names)) < count or not set(parameters) <= set(names):
        raise ValueError(f"it has {len(names)} inputs for {count} places")
    for name, node in zip(names, placeholders):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"its input {name!r:.40} has no shape")
        parameter = parameters.get(name)
        if parameter is not None and (parameter.shape != value.shape or parameter.dtype is not value.dtype):
            raise ValueError(f"its parameter {name!r:.40} has another shape or dtype than the graph expects")


def _only_item(items: Any, name: str) -> Any:
    for item in items:
        if item.name == name:
            return item
    raise ValueError(f"it has no {name!r}")


def _user_info(proto: Any) -> str:
    if RESULT not in proto.user_info:
        raise ValueError(f"it has no {RESULT!r}")
    return str(proto.user_info[RESULT])


def _names(value: Any) -> list[str]:
    """The names of the nodes among written arguments."""
    if isinstance(value, dict):
        return [name for item in value.values() for name in _names(item)]
    if not isinstance(value, list):
        return []
    return [value[1]] if value[:1] == ["node"] else [name for item in value for name in _names(item)]


def _plain(structure: Any) -> Any:
    if isinstance(structure, Out):
        return {"out": structure.index, "number": structure.is_number}
    if isinstance(structure, In):
        return {"in": structure.index}
    if isinstance(structure, dict):
        return {"dict": [[key, _plain(value)] for key, value in structure.items()]}
    if isinstance(structure, (tuple, list)):
        return {"tuple" if isinstance(structure, tuple) else "list": [_plain(item) for item in structure]}
    if structure is None or isinstance(structure, (bool, int, float, str)):
        return {"value": structure}
    raise serialize.Unwritable(f"it gives a {type(structure).__name__}")


def _structure(structure: Any) -> Any:
    (kind, value), *rest = structure.items()
    if kind == "out":
        return Out(int(value), bool(rest and rest[0][1]))
    if kind == "in":
        return In(int(value))
    if kind == "dict":
        return {str(key): _structure(item) for key, item in value}
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(map(_structure, value))
    if kind == "value" and (value is None or isinstance(value, (bool, int, float, str))):
        return value
    raise ValueError(f"{kind!r:.40} is not part of a result")


def _check(structure: Any, outputs: int, inputs: int) -> None:
    if isinstance(structure, (Out, In)):
        if not 0 <= structure.index < (outputs if isinstance(structure, Out) else inputs):
            raise ValueError(f"its result names the position {structure.index}, which does not exist")
    elif isinstance(structure, (dict, list, tuple)):
        for item in structure.values() if isinstance(structure, dict) else structure:
            _check(item, outputs, inputs)


def shapes(model: Model) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shape and dtype of each input that the caller gives."""
    placeholders = [node for node in model.module.graph.nodes if node.op == "placeholder"]
    return [(tuple(node.meta["val"].shape), node.meta["val"].dtype)
            for name, node in zip(model.names, placeholders) if name not in model.parameters]
