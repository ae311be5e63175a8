"""Lengths that are symbols: where they occur in a graph, and the numbers that they had in its trace."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.tensors import tree


def hint_of(size: Any) -> int:
    """Return a length as a number: of a symbol, the length that it had in the trace; -1 if it depends on the values of a Tensor."""
    if isinstance(size, int):
        return size
    hint = size.node.hint
    return -1 if hint is None else int(hint)


def symbols_of(size: Any) -> frozenset[Any]:
    """Return the symbols in a length; none for a number."""
    return frozenset() if isinstance(size, int) else frozenset(size.node.expr.free_symbols)


def is_plain_symbol(size: Any) -> bool:
    """Return whether a length is a symbol by itself, and not an expression."""
    return not isinstance(size, int) and bool(size.node.expr.is_symbol)


def is_open(value: Any) -> bool:
    """Return whether a length of a tensor is a symbol; a number may be a symbol too."""
    sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
    return any(isinstance(size, torch.SymInt) for size in sizes)


def open_axes(module: torch.fx.GraphModule) -> set[int]:
    """Return the axes of the graph's inputs that have symbols for lengths."""
    values = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    return {
        axis for value in values if isinstance(value, torch.Tensor) for axis, size in enumerate(value.shape)
        if isinstance(size, torch.SymInt)
    }


def shape_of(value: torch.Tensor) -> tuple[int, ...]:
    """Return the lengths of a tensor as numbers: those of the trace."""
    return tuple(map(hint_of, value.shape))


def stride_of(value: torch.Tensor) -> tuple[int, ...]:
    """Return the strides of a tensor as numbers: those of the trace."""
    return tuple(map(hint_of, value.stride()))


def bytes_of(value: torch.Tensor) -> int:
    """Return the size of a tensor in the trace."""
    return torch.Size(shape_of(value)).numel() * value.element_size()


def are_symbols_bound(inputs: Iterable[Node], inside: Iterable[Node]) -> bool:
    """Return whether each symbol in the values of a part of a graph is the length of an axis of an input, or an input itself."""
    bound: set[Any] = set()
    used: set[Any] = set()
    for node in inputs:
        for size in _sizes(node.meta.get("val")):
            (bound if is_plain_symbol(size) else used).update(symbols_of(size))
    for node in inside:
        for value in tree.listed(node.meta.get("val")):
            for size in _sizes(value):
                used.update(symbols_of(size))
    return used <= bound


def _sizes(value: Any) -> tuple[Any, ...]:
    if isinstance(value, torch.Tensor):
        return (*value.shape, *value.stride())
    return (value,) if isinstance(value, (int, torch.SymInt)) else ()
