"""Insertion of the casts that a precision rule requests. Optimizer steps are marked during capture, because they keep their dtypes."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.fx.node import Node, map_arg

from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import FakeTensor, FakeTensorMode, is_operator, without_modes
from torchspore.graph.fx.aliasing import owners, writes
from torchspore.graph.fx.exchanges import is_exchange
from torchspore.graph.passes.precision.policy import with_dtype


def is_of_optimizer(node: Node) -> bool:
    """Return whether the operator is part of an optimizer's step."""
    return node_metadata.OPTIMIZER in node.meta


CAST = torch.ops.aten._to_copy.default
Module = torch.fx.GraphModule
_PROMOTING = frozenset({"add", "sub", "mul", "div"})
"""Operators that accept a 0-d tensor of another dtype. It is not cast, because a loss scale would be infinite in float16."""


class Rule(Protocol):
    """A rule that selects the dtype in which each operator computes."""

    @property
    def sources(self) -> frozenset[torch.dtype]:
        """The dtypes that may be replaced."""

    @property
    def casts_back(self) -> bool:
        """True if each result is cast back immediately, and not only for operators that need the program's dtype."""

    def dtype_of(self, node: Node, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """Return the dtype for `node`; None for the program's dtypes.

        `operands` are its inputs whose dtypes are in `sources`, `now` the current dtypes of these inputs.
        """


def insert_casts(module: Module, rule: Rule) -> Module:
    """Insert the casts that the rule requests, in place. Inputs, results and mutated values keep their dtypes."""
    module.graph = _CastInsertion(module.graph, rule).run()
    return module


class _CastInsertion:
    """Writes a new graph with casts from an old graph."""

    def __init__(self, old: torch.fx.Graph, rule: Rule) -> None:
        self._old, self._rule, self._new = old, rule, torch.fx.Graph()
        self._copies: dict[Node, Node] = {}
        self._casts: dict[tuple[Node, torch.dtype], Node] = {}
        self._owner = owners(old)
        self._written_roots = {self._owner[item] for node in old.nodes for item in writes(node)}

    def run(self) -> torch.fx.Graph:
        """Return the new graph."""
        for node in self._old.nodes:
            if node.op == "call_function":
                self._copies[node] = self._call(node)
            elif node.op == "output":
                output = self._new.output(_map_nodes(node.args[0], self._map_input))
                output.meta = dict(node.meta)
            else:
                self._copies[node] = self._new.node_copy(node)
        return self._new

    def _call(self, node: Node) -> Node:
        dtype = self._requested_dtype(node)
        try:
            copy = self._copy_node(node, dtype)
        except (RuntimeError, TypeError, NotImplementedError):     # the operator does not accept this combination of dtypes
            if dtype is None:
                raise
            copy = self._copy_node(node, None)
        if self._rule.casts_back and _dtype(node) is not _dtype(copy):
            copy = self._cast(copy, _dtype(node))
        for item in writes(node):
            owner = self._owner[item]
            self._casts = {key: cast for key, cast in self._casts.items() if self._owner[key[0]] is not owner}
        return copy

    def _requested_dtype(self, node: Node) -> torch.dtype | None:
        """Return the dtype in which a node computes; None for the program's dtypes."""
        sources = [n for n in node.all_input_nodes if _dtype(n) in self._rule.sources]
        if not sources or not self._may_change_dtype(node):
            return None
        return self._rule.dtype_of(
            node, [n.meta["val"] for n in sources], [dtype for n in sources if (dtype := self._current_dtype(n)) is not None]
        )

    def _may_change_dtype(self, node: Node) -> bool:
        """Return whether the node may compute in another dtype: a known operator without writes and random numbers, not of an optimizer."""
        target = node.target
        if not is_operator(target) or target.namespace == "torchspore" or is_exchange(node) or is_of_optimizer(node):
            return False
        if target._schema.is_mutable or writes(node) or torch.Tag.nondeterministic_seeded in target.tags:
            return False
        if self._owner[node] in self._written_roots or node.kwargs.get("dtype") is not None:
            return False
        inputs = [t for n in node.all_input_nodes if isinstance(t := n.meta.get("val"), torch.Tensor)]
        # Casting single numbers (a learning rate, a step count) gains no time and loses range.
        return len(inputs) == len(node.all_input_nodes) and any(t.numel() > 1 for t in inputs)

    def _copy_node(self, node: Node, dtype: torch.dtype | None) -> Node:
        """Copy the node to the new graph with its inputs cast to `dtype`."""
        is_open = dtype is None and self._accepts_any_dtype(node)
        numbers_stay = getattr(node.target, "_opname", "") in _PROMOTING

        def mapped_input(n: Node) -> Node:
            node_dtype = _dtype(n)
            if is_open:
                return self._copies[n]
            if dtype is None or node_dtype not in self._rule.sources or (numbers_stay and n.meta["val"].ndim == 0):
                return self._node_in_dtype(n, node_dtype)
            return self._node_in_dtype(n, dtype)

        arguments: Any = with_dtype(node, _map_nodes(node.args, mapped_input, self._cast_inner_graph), self._rule.sources, dtype)
        keywords = {key: _map_nodes(value, mapped_input, self._cast_inner_graph) for key, value in node.kwargs.items()}
        copy = self._new.create_node(node.op, node.target, arguments, keywords, node.name, node.type)
        copy.meta = dict(node.meta)
        if dtype is not None or (is_open and "val" in node.meta and self._is_changed(node)):
            try:
                copy.meta["val"] = _value(copy)
            except BaseException:
                self._new.erase_node(copy)
                raise
        return copy

    def _is_changed(self, node: Node) -> bool:
        """Return whether the dtype of an input, or of an item of it, has changed."""
        return any(_dtypes(self._copies[n]) != _dtypes(n) for n in node.all_input_nodes)

    def _accepts_any_dtype(self, node: Node) -> bool:
        """Return whether the node accepts inputs of any dtype: a view, a `getitem`, a cast of the program."""
        target = node.target
        if target is operator.getitem:
            return True
        if not is_operator(target) or target._opname == "as_strided":
            return False
        is_view = self._owner[node] is not node and self._owner[node] not in self._written_roots
        return is_view or (target is CAST and node.kwargs.get("dtype") is not None)

    def _cast_inner_graph(self, module: Module) -> Module:
        """Insert casts into the graph of a branch or loop body."""
        return insert_casts(module, self._rule)

    # ---- casts

    def _current_dtype(self, node: Node) -> torch.dtype | None:
        return _dtype(self._copies[node])

    def _map_input(self, node: Node) -> Node:
        return self._node_in_dtype(node, _dtype(node))

    def _node_in_dtype(self, node: Node, dtype: torch.dtype | None) -> Node:
        """Return the new node of an old node in this dtype. A cast is reused until an operator writes into its source."""
        now = self._copies[node]
        if dtype is None or _dtype(now) is dtype or _dtype(now) is None:
            return now
        cast = self._casts.get((node, dtype))
        if cast is None:
            cast = self._casts[node, dtype] = self._cast(now, dtype)
        return cast

    def _cast(self, now: Node, dtype: torch.dtype | None) -> Node:
        cast = self._new.call_function(CAST, (now,), {"dtype": dtype})
        cast.meta = dict(now.meta)
        cast.meta["val"] = _value(cast)
        return cast


def _dtype(node: Node) -> torch.dtype | None:
    """Return the dtype of a value; None for several values and unknown values."""
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _dtypes(node: Node) -> Any:
    value = node.meta.get("val")
    return [getattr(item, "dtype", None) for item in value] if isinstance(value, (list, tuple)) else _dtype(node)


def _value(node: Node) -> Any:
    """Return the node's result as a fake tensor. Raises the operator's error."""
    inputs = [t for n in node.all_input_nodes for t in _flatten(n.meta["val"])]
    mode = next((t.fake_mode for t in inputs if isinstance(t, FakeTensor)), None) or FakeTensorMode()
    target: Any = node.target
    with without_modes(), torch.no_grad(), mode:
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: _as_fake(n.meta["val"], mode))
        return target(*args, **kwargs)


def _as_fake(value: Any, mode: FakeTensorMode) -> Any:
    """Return the value as a fake tensor of this mode; the graphs of branches and loops come from separate traces."""
    if isinstance(value, (list, tuple)):
        return type(value)(_as_fake(item, mode) for item in value)
    if not isinstance(value, torch.Tensor) or (isinstance(value, FakeTensor) and value.fake_mode is mode):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=getattr(value, "at", value.device))


def _flatten(value: Any) -> list[Any]:
    return tree.listed(value)


def _map_nodes(value: Any, map_node: Callable[[Node], Node], inner: Callable[[Module], Module] | None = None) -> Any:
    """Replace the nodes and the inner graphs in an argument."""
    if isinstance(value, Node):
        return map_node(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map_nodes(item, map_node, inner) for item in value)
    if isinstance(value, slice):
        return slice(*(_map_nodes(item, map_node, inner) for item in (value.start, value.stop, value.step)))
    return inner(value) if isinstance(value, Module) and inner is not None else value
