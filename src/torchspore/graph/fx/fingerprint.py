"""A short text that is another one whenever the code of a graph may have to be another one."""
from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.devices import gpu_kinds
from torchspore.engine.random.operator_streams import NAMING_STREAMS
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.settings import Settings


def fingerprint(module: torch.fx.GraphModule, settings: Settings, kind: str = "graph") -> str:
    """Hashes operators, their arguments, shapes, strides, dtypes and devices of the inputs, constants, settings and the machine.

    Streams of random numbers count in the order of their first use: equal nets have streams with different numbers.
    """
    text = "\n".join((kind, signature(module, {}), repr(dataclasses.astuple(settings)), machine()))
    return hashlib.sha256(text.encode()).hexdigest()


def of_text(kind: str, text: str) -> str:
    """Return the fingerprint of something that a text describes completely."""
    return hashlib.sha256("\n".join((kind, text, machine())).encode()).hexdigest()


def machine() -> str:
    """Return the conditions of a measurement: torch, the processor and its instructions, the number of threads."""
    return f"{_machine()} {torch.get_num_threads()} threads"


@functools.cache
def _machine() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        model = ""
    module = gpu_kinds.module()
    devices = [module.get_device_name(index) for index in range(module.device_count())] if module.is_available() else []
    return f"torch {torch.__version__} {torch.backends.cpu.get_cpu_capability()} {model} {devices}"


def signature(module: torch.fx.GraphModule, streams: dict[int, int] | None = None) -> str:
    """The graph as text, without names: one line a node. With `streams` each stream of random numbers is its position in `streams`."""
    names = {node: f"%{index}" for index, node in enumerate(module.graph.nodes)}
    return "\n".join(f"{names[node]} {_line(module, node, names, streams)}" for node in module.graph.nodes)


def streams_of(module: torch.fx.GraphModule) -> tuple[int, ...]:
    """The numbers of the streams that the graph draws from, in the order of their first use."""
    streams: dict[int, int] = {}
    signature(module, streams)
    return tuple(streams)


def _line(module: torch.fx.GraphModule, node: Node, names: dict[Node, str], streams: dict[int, int] | None) -> str:
    if node.op == "placeholder":
        return _meta(node.meta.get("val"))
    if node.op == "get_attr":
        submodule = functools.reduce(getattr, str(node.target).split("."), module)
        return _constant(submodule) if isinstance(submodule, torch.Tensor) else _shown(submodule, names, streams)
    args = node.args
    if streams is not None and node.target in NAMING_STREAMS and isinstance(args[0], int):
        args = (streams.setdefault(args[0], len(streams)), *args[1:])
    return f"{_target(node.target)} {_shown(args, names, streams)} {_shown(node.kwargs, names, streams)}"


def _meta(value: Any) -> str:
    return f"{tuple(value.shape)} {value.stride()} {value.dtype} {value.device}" if isinstance(value, torch.Tensor) else repr(value)


def _constant(value: torch.Tensor) -> str:
    values = value.detach().cpu().contiguous()
    return f"{_meta(value)} {hashlib.sha256(values.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()}"


def _target(target: Any) -> str:
    if is_operator(target) or isinstance(target, str):
        return str(target)
    return f"{target.__module__}.{getattr(target, '__qualname__', target)}"


def _shown(value: Any, names: dict[Node, str], streams: dict[int, int] | None) -> str:
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, torch.fx.GraphModule):
        return "{" + signature(value, streams) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shown(item, names, streams) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item, names, streams)}" for key, item in value.items()) + "}"
    return repr(value)
