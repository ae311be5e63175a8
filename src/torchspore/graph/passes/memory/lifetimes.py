"""When each value of a graph is born and dies, and how much memory values take at each operator.

Level O0 runs a graph's nodes in their order and frees each value after its last use; inputs and constants belong to the caller.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch.fx.node import Node

from torchspore.graph.fx.aliasing import shown
from torchspore.graph.passes.in_place import overwrites


@dataclass
class Storage:
    """The memory of one value: its size, the operator that makes it, the values that show it, and at which operators they are read."""

    node: Node
    size: int
    born: int
    shows: list[Node] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)

    @property
    def dies(self) -> int:
        """The operator after which it is freed."""
        return self.uses[-1] if self.uses else self.born


class Lifetimes:
    """The memory of all values of a graph in its order."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self.nodes = list(module.graph.nodes)
        self.index_of = {node: index for index, node in enumerate(self.nodes)}
        self.of: dict[Node, Storage] = {}
        self.storages: list[Storage] = []
        for index, node in enumerate(self.nodes):
            self._enter(node, index)
        for index, node in enumerate(self.nodes):
            for item in node.all_input_nodes:
                storage = self.of.get(item)
                if storage is not None and node.target is not operator.getitem:
                    storage.uses.append(index)

    def _enter(self, node: Node, index: int) -> None:
        source = shown(node)
        if source is None and overwrites(node):
            source = node.args[0]  # type: ignore[assignment]
        if source is not None and source in self.of:
            storage = self.of[source]
        elif node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor) and source is None:
            born = self.index_of[node.args[0]] if node.target is operator.getitem else index
            storage = Storage(node, size_of(node), born)
            self.storages.append(storage)
        else:
            return
        self.of[node] = storage
        storage.shows.append(node)

    def timeline(self) -> list[int]:
        """For each operator the bytes of all values that are there while it runs."""
        change = [0] * (len(self.nodes) + 1)
        for storage in self.storages:
            change[storage.born] += storage.size
            change[storage.dies + 1] -= storage.size
        total, entries = 0, []
        for step in change[:-1]:
            total += step
            entries.append(total)
        return entries


def size_of(node: Node) -> int:
    """The bytes of a value with memory of its own."""
    value = node.meta.get("val")
    return int(value.numel()) * value.element_size() if isinstance(value, torch.Tensor) else 0


def peak(module: torch.fx.GraphModule) -> int:
    """The most bytes that the graph's values take at a time."""
    return max(Lifetimes(module).timeline(), default=0)


def has_known_sizes(module: torch.fx.GraphModule) -> bool:
    """Return whether all lengths are numbers, so that sizes are."""
    return all(_is_fixed(node.meta.get("val")) for node in module.graph.nodes)


def _is_fixed(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_fixed(item) for item in value)
    return not isinstance(value, torch.Tensor) or _are_numbers(value.shape)


def _are_numbers(shape: Sequence[object]) -> bool:
    return all(type(length) is int for length in shape)
