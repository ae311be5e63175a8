"""The lifetimes of a graph's values, and the memory in use at each operator.

Level O0 runs a graph's nodes in order and frees each value after its last use. Inputs and constants belong to the caller.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch.fx.node import Node

from torchspore.graph.fx.aliasing import view_source
from torchspore.graph.passes.in_place import overwrites


@dataclass
class Storage:
    """The memory of a value: its size in bytes, the operator that creates it, its views, and the operators that read them."""

    node: Node
    size: int
    created_at: int
    views: list[Node] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)

    @property
    def freed_at(self) -> int:
        """The index of the operator after which it is freed."""
        return self.uses[-1] if self.uses else self.created_at


class Lifetimes:
    """The storages of all values of a graph, in graph order."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self.nodes = list(module.graph.nodes)
        self.index_of = {node: index for index, node in enumerate(self.nodes)}
        self.storage_of: dict[Node, Storage] = {}
        self.storages: list[Storage] = []
        for index, node in enumerate(self.nodes):
            self._add_value(node, index)
        for index, node in enumerate(self.nodes):
            for item in node.all_input_nodes:
                storage = self.storage_of.get(item)
                if storage is not None and node.target is not operator.getitem:
                    storage.uses.append(index)

    def _add_value(self, node: Node, index: int) -> None:
        source = view_source(node)
        if source is None and overwrites(node):
            source = node.args[0]  # type: ignore[assignment]
        if source is not None and source in self.storage_of:
            storage = self.storage_of[source]
        elif node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor) and source is None:
            born = self.index_of[node.args[0]] if node.target is operator.getitem else index
            storage = Storage(node, size_of(node), born)
            self.storages.append(storage)
        else:
            return
        self.storage_of[node] = storage
        storage.views.append(node)

    def timeline(self) -> list[int]:
        """Return for each operator the bytes of all values that exist while it runs."""
        change = [0] * (len(self.nodes) + 1)
        for storage in self.storages:
            change[storage.created_at] += storage.size
            change[storage.freed_at + 1] -= storage.size
        total, entries = 0, []
        for step in change[:-1]:
            total += step
            entries.append(total)
        return entries


def size_of(node: Node) -> int:
    """Return the bytes of a value; 0 if it is not a tensor."""
    value = node.meta.get("val")
    return int(value.numel()) * value.element_size() if isinstance(value, torch.Tensor) else 0


def peak(module: torch.fx.GraphModule) -> int:
    """Return the largest number of bytes that the graph's values need at the same time."""
    return max(Lifetimes(module).timeline(), default=0)


def has_known_sizes(module: torch.fx.GraphModule) -> bool:
    """Return whether all shapes consist of numbers, so that all sizes are known."""
    return all(_has_fixed_shape(node.meta.get("val")) for node in module.graph.nodes)


def _has_fixed_shape(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_has_fixed_shape(item) for item in value)
    return not isinstance(value, torch.Tensor) or _are_numbers(value.shape)


def _are_numbers(shape: Sequence[object]) -> bool:
    return all(type(length) is int for length in shape)
