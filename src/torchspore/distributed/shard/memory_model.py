"""The memory of one device: values that last for the entire step, and values of a graph at its peak."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.pipeline_parallel import stage_graph
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.aliasing import owners


@dataclass(frozen=True)
class Memory:
    """Bytes that one device holds at the peak of a step."""

    parameters: int
    states: int
    inputs: int
    gradients: int
    activations: int
    work: int
    """The bytes that the optimizer works with."""

    @property
    def total(self) -> int:
        """Return the total."""
        return self.parameters + self.states + self.inputs + self.gradients + self.activations + self.work


def memory(split: Any, stage: int | None = None) -> Memory:
    """Return the memory of one device: inputs for the entire step, other values from their creation to their last use.

    In a pipeline it is a device of the `stage`, or of the one that holds most.
    """
    if split.pipeline is not None and stage is None:
        return max((memory(split, stage) for stage in range(split.pipeline.stages)), key=lambda stage_memory: stage_memory.total)
    module = split.local.module
    totals = {"parameters": 0, "states": 0, "inputs": 0}
    names = split.sharded_capture.parameters
    if stage is not None:
        module = stage_graph.of_stage(module, stage, split.pipeline.stages)
    for node, item in zip((n for n in module.graph.nodes if n.op == "placeholder"), split.lifted):
        name = str(getattr(item, "name", "")) if item is not None else ""
        if stage is not None and split.sharded_capture.homes.get(name, stage) != stage:
            continue
        kind = "inputs" if name not in names else "states" if is_state(name, names) else "parameters"
        totals[kind] += bytes_of(node)
    return Memory(**totals, **peak(module))


def is_state(name: str, names: Any) -> bool:
    """Return whether a Parameter with this name belongs to an optimizer, given all `names`."""
    parts = name.split(".")
    return any(".".join(parts[at:]) in names for at in range(1, len(parts))) or (len(parts) == 1 and not names[name][3])


def bytes_of(node: Node) -> int:
    """Return the bytes of a node's results."""
    return sum(t.numel() * t.element_size() for t in tree.leaves(node.meta.get("val")) if isinstance(t, torch.Tensor))


def peak(module: torch.fx.GraphModule) -> dict[str, int]:
    """Return the bytes of the graph's values at their peak, by kind; views have no memory of their own."""
    owner, last = owners(module.graph), dict[Node, int]()
    nodes = list(module.graph.nodes)
    for at, node in enumerate(nodes):
        for used in (node, *node.all_input_nodes):
            last[owner[used]] = at
    ends: dict[int, list[Node]] = {}
    for node, at in last.items():
        ends.setdefault(at, []).append(node)
    now = dict.fromkeys(("gradients", "activations", "work"), 0)
    most = dict(now)
    for at, node in enumerate(nodes):
        if node.op == "call_function" and owner[node] is node:
            now[_kind(node)] += bytes_of(node)
            if sum(now.values()) > sum(most.values()):
                most = dict(now)
        for gone in ends.get(at, ()):
            if gone.op == "call_function" and owner[gone] is gone:
                now[_kind(gone)] -= bytes_of(gone)
    return most


def _kind(node: Node) -> str:
    return "work" if node.meta.get(node_metadata.OPTIMIZER) else "gradients" if node_metadata.is_backward(node.meta) else "activations"
