"""Axes of any length: `set_inputs` with `Tensor(shape=[None, ...])`, or many lengths of one axis, give one graph for all lengths.

A graph that a length does not fit is captured again. A trace that needs the numbers is made for each length.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torchspore.base.text import message
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.dynamic_shapes import Axes

OPENS_AFTER = 4
"""So many lengths of an axis have graphs of their own; with the next one it is left open."""
SPLITS = 4
"""So many graphs of open lengths one form of a call has, before each length has its own again."""


Position = tuple[int | str, ...]
"""Where a Tensor is among the arguments: the number or name of the argument, then the items of nested tuples, lists and dicts."""


def _tensors_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[Position, TensorBase]]:
    """Return the Tensors among the arguments, also those in tuples, lists and dicts, as caches of keys and values are."""
    tensors: list[tuple[Position, TensorBase]] = []
    _collect((), enumerate(args), tensors)
    if kwargs:
        _collect((), kwargs.items(), tensors)
    return tensors


def _collect(position: Position, items: Iterable[tuple[Any, Any]], tensors: list[tuple[Position, TensorBase]]) -> None:
    """Append the Tensors in `items`, pairs of a key and a value, with their positions."""
    for key, item in items:
        if isinstance(item, TensorBase):
            tensors.append(((*position, key), item))
        elif isinstance(item, (tuple, list)):
            _collect((*position, key), enumerate(item), tensors)
        elif isinstance(item, dict):
            _collect((*position, key), item.items(), tensors)


class Lengths:
    """The lengths of the arguments of a Cell or function, and the axes that are open because of them."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Position, int, int], set[int]] = {}
        self.open: dict[tuple[Position, int], Axes] = {}
        """By position and rank of an argument."""
        self.changes = 0
        """How often the open axes changed."""
        self._is_closed = False

    def see(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Record a call that has no graph yet."""
        if self._is_closed:
            return
        for position, tensor in _tensors_of(args, kwargs):
            if type(tensor).__dict__.get("__parameter__"):
                continue
            sizes = tensor._t.shape
            for axis, size in enumerate(sizes):
                if size > 1:
                    lengths = self._seen.setdefault((position, len(sizes), axis), set())
                    lengths.add(size)
                    if len(lengths) > OPENS_AFTER:
                        self.open[position, len(sizes)] = tuple(sorted({*self.open.get((position, len(sizes)), ()), axis}))
                        self.changes += 1

    def axes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int, Axes]:
        """Return by id of the Tensor the axes that are open in this call."""
        open_axes: dict[int, Axes] = {}
        for position, tensor in _tensors_of(args, kwargs):
            t = tensor._t
            shape = t.shape
            candidates = self.open.get((position, len(shape)))
            if candidates is not None and t.is_contiguous():
                axes = tuple([axis for axis in candidates if shape[axis] > 1])
                if axes:
                    open_axes[id(tensor)] = axes
        return open_axes

    def close(self) -> None:
        """Close all axes: each length gets a separate graph from now on."""
        self._is_closed = True
        self.changes += 1
        self.open.clear()


class _Closed(tuple[Any, ...]):
    """Inputs whose lengths are held to Symbols, and have graphs of their own all the same."""


def close(owner: Any) -> None:
    """Close the axes of a Cell or function."""
    declared = owner.__dict__.pop("_open_inputs_", ())
    if any(hasattr(size, "fits") for like in declared for size in getattr(like, "symbolic", ())):
        owner.__dict__["_open_inputs_"] = _Closed(declared)


def declared(owner: Any, args: Sequence[Any]) -> dict[int, Axes]:
    """Return by id of the Tensor the axes that `set_inputs` left open, for contiguous Tensors with at least two elements along them.

    torch specializes on 0 and 1: such lengths have separate graphs.
    """
    declared = owner.__dict__.get("_open_inputs_")
    if not declared:
        return {}
    axes_of: dict[int, Axes] = {}
    seen: dict[Any, int] = {}
    for index, (argument, like) in enumerate(zip(args, declared)):
        shape = getattr(like, "symbolic", None)
        if isinstance(argument, TensorBase) and isinstance(like, TensorBase):
            _check_declared(f"{type(owner).__name__}: input {index}", argument, like, shape)
        if shape is not None and isinstance(argument, TensorBase) and argument._t.is_contiguous():
            sizes = argument._t.shape
            _check_symbols(shape, sizes, seen)
            if isinstance(declared, _Closed):
                continue
            axes = tuple(axis for axis, size in enumerate(shape) if not isinstance(size, int) and axis < len(sizes) and sizes[axis] > 1)
            if axes:
                axes_of[id(argument)] = axes
    return axes_of


def _check_declared(name: str, argument: Any, like: Any, shape: Sequence[Any] | None) -> None:
    """Raise TypeError for another dtype than `set_inputs` declared, ValueError for another number of axes or another fixed length."""
    hint = "pass set_inputs the arguments of the call"
    if argument.dtype != like.dtype:
        raise TypeError(message(f"{name} of {argument.dtype}", f"{like.dtype}, as set_inputs says", hint=hint))
    if not shape:                             # a fixed shape, or `Tensor(shape=None)`, of any number of axes
        return
    given = argument.shape
    if len(given) != len(shape) or any(isinstance(size, int) and size not in (-1, length) for size, length in zip(shape, given)):
        declared_shape = f"({', '.join('None' if not isinstance(size, int) or size == -1 else str(size) for size in shape)})"
        raise ValueError(message(f"{name} of shape {tuple(given)}", f"{declared_shape}, as set_inputs says", hint=hint))


def _check_symbols(shape: Sequence[Any], sizes: Sequence[int], seen: dict[Any, int]) -> None:
    """Raise ValueError if a length violates the Symbol of its axis; `seen` has the lengths of unique symbols."""
    for axis, (symbol, size) in enumerate(zip(shape, sizes)):
        if not hasattr(symbol, "fits"):
            continue
        if not symbol.fits(size):
            raise ValueError(message(f"axis {axis} of {size} elements", f"a length that fits Symbol {symbol}"))
        if symbol.unique and seen.setdefault(symbol, size) != size:
            raise ValueError(message(f"axis {axis} of {size} elements", f"{seen[symbol]}, as of the other axes of this unique Symbol"))
