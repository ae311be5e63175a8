"""A graph with the casts that a policy asks for; optimizer steps are recognized, because they keep their dtypes."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.fx.node import Node, map_arg

from torchspore.engine.core import node_metadata, tree
from torchspore.engine.core import tensor as engine
from torchspore.engine.core.torch_private import FakeTensor, FakeTensorMode, is_operator, without_modes
from torchspore.graph.fx.aliasing import owners, writes
from torchspore.graph.fx.exchanges import is_exchange
from torchspore.graph.passes.precision.policy import with_dtype


@contextmanager
def marked() -> Iterator[None]:
    """Marks the operators that this thread captures in the block."""
    frame = engine.frame()
    while frame is not None and not hasattr(frame, "tracer"):
        frame = frame.outer
    if frame is None:
        yield
        return
    graph = frame.tracer.graph
    before = next(iter(reversed(graph.nodes)), None)
    try:
        yield
    finally:
        for node in reversed(graph.nodes):
            if node is before:
                break
            node.meta[node_metadata.OPTIMIZER] = True


def is_of_optimizer(node: Node) -> bool:
    """Return whether the operator is part of an optimizer's formula."""
    return node_metadata.OPTIMIZER in node.meta


CAST = torch.ops.aten._to_copy.default
Module = torch.fx.GraphModule
_PROMOTES = frozenset({"add", "sub", "mul", "div"})
"""Operators that take a 0-d tensor of another dtype as a number: a loss scale would be infinite in float16."""


class Rule(Protocol):
    """Says in which dtype an operator computes."""

    @property
    def sources(self) -> frozenset[torch.dtype]:
        """The dtypes that may be replaced."""

    @property
    def rounds(self) -> bool:
        """True if a result is cast back at once, and not only where another operator wants it in the dtype that the program gave."""

    def dtype_of(self, node: Node, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """The dtype for `node`; None for the dtypes of the program. `operands` are its inputs in the `sources`, `now` their dtypes now."""


def rewritten(module: Module, rule: Rule) -> Module:
    """The graph with the casts that the rule wants, in place. Inputs, results and whatever is written into keep their dtypes."""
    module.graph = _Rewriting(module.graph, rule).run()
    return module


class _Rewriting:
    """The new graph of one old one."""

    def __init__(self, old: torch.fx.Graph, rule: Rule) -> None:
        self._old, self._rule, self._new = old, rule, torch.fx.Graph()
        self._names: dict[Node, Node] = {}
        self._casts: dict[tuple[Node, torch.dtype], Node] = {}
        self._owner = owners(old)
        self._written_roots = {self._owner[item] for node in old.nodes for item in writes(node)}

    def run(self) -> torch.fx.Graph:
        """Makes it."""
        for node in self._old.nodes:
            if node.op == "call_function":
                self._names[node] = self._call(node)
            elif node.op == "output":
                output = self._new.output(_mapped(node.args[0], self._map_input))
                output.meta = dict(node.meta)
            else:
                self._names[node] = self._new.node_copy(node)
        return self._new

    def _call(self, node: Node) -> Node:
        dtype = self._wanted_dtype(node)
        try:
            copy = self._copy_node(node, dtype)
        except (RuntimeError, TypeError, NotImplementedError):     # the operator does not take these dtypes together
            if dtype is None:
                raise
            copy = self._copy_node(node, None)
        if self._rule.rounds and _dtype(node) is not _dtype(copy):
            copy = self._cast(copy, _dtype(node))
        for item in writes(node):
            owner = self._owner[item]
            self._casts = {key: cast for key, cast in self._casts.items() if self._owner[key[0]] is not owner}
        return copy

    def _wanted_dtype(self, node: Node) -> torch.dtype | None:
        """The dtype in which a node computes; None for the dtypes of the program."""
        sources = [n for n in node.all_input_nodes if _dtype(n) in self._rule.sources]
        if not sources or not self._is_free(node):
            return None
        return self._rule.dtype_of(node, [n.meta["val"] for n in sources], [dtype for n in sources if (dtype := self._now(n)) is not None])

    def _is_free(self, node: Node) -> bool:
        """Return whether the node may compute in another dtype: it is known, writes and draws nothing, and is not an optimizer's step."""
        target = node.target
        if not is_operator(target) or target.namespace == "torchspore" or is_exchange(node) or is_of_optimizer(node):
            return False
        if target._schema.is_mutable or writes(node) or torch.Tag.nondeterministic_seeded in target.tags:
            return False
        if self._owner[node] in self._written_roots or node.kwargs.get("dtype") is not None:
            return False
        inputs = [t for n in node.all_input_nodes if isinstance(t := n.meta.get("val"), torch.Tensor)]
        # Numbers by themselves (a rate, a count of steps) gain nothing and lose their range.
        return len(inputs) == len(node.all_input_nodes) and any(t.numel() > 1 for t in inputs)

    def _copy_node(self, node: Node, dtype: torch.dtype | None) -> Node:
        """The node in the new graph, its inputs cast to `dtype`."""
        is_open = dtype is None and self._takes_any(node)
        numbers_stay = getattr(node.target, "_opname", "") in _PROMOTES

        def mapped_input(n: Node) -> Node:
            node_dtype = _dtype(n)
            if is_open:
                return self._names[n]
            if dtype is None or node_dtype not in self._rule.sources or (numbers_stay and n.meta["val"].ndim == 0):
                return self._as(n, node_dtype)
            return self._as(n, dtype)

        arguments: Any = with_dtype(node, _mapped(node.args, mapped_input, self._inner), self._rule.sources, dtype)
        keywords = {key: _mapped(value, mapped_input, self._inner) for key, value in node.kwargs.items()}
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
        """Return whether an input has another dtype by now, also as one of several results."""
        return any(_dtypes(self._names[n]) != _dtypes(n) for n in node.all_input_nodes)

    def _takes_any(self, node: Node) -> bool:
        """Return whether the input's dtype does not matter: a view, one of several results, a cast that the program wrote."""
        target = node.target
        if target is operator.getitem:
            return True
        if not is_operator(target) or target._opname == "as_strided":
            return False
        is_view = self._owner[node] is not node and self._owner[node] not in self._written_roots
        return is_view or (target is CAST and node.kwargs.get("dtype") is not None)

    def _inner(self, module: Module) -> Module:
        """A branch or the body of a loop, with casts of its own."""
        return rewritten(module, self._rule)

    # ---- casts

    def _now(self, node: Node) -> torch.dtype | None:
        return _dtype(self._names[node])

    def _map_input(self, node: Node) -> Node:
        return self._as(node, _dtype(node))

    def _as(self, node: Node, dtype: torch.dtype | None) -> Node:
        """The new node for an old one, in this dtype; a cast is made once and used until its source is written into."""
        now = self._names[node]
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
    """The dtype of a value; None for several values, and for what is unknown."""
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _dtypes(node: Node) -> Any:
    value = node.meta.get("val")
    return [getattr(item, "dtype", None) for item in value] if isinstance(value, (list, tuple)) else _dtype(node)


def _value(node: Node) -> Any:
    """Return the result of the node, as a stand-in without memory. Raise the operator's error."""
    inputs = [t for n in node.all_input_nodes for t in _flat(n.meta["val"])]
    mode = next((t.fake_mode for t in inputs if isinstance(t, FakeTensor)), None) or FakeTensorMode()
    target: Any = node.target
    with without_modes(), torch.no_grad(), mode:
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: _stand_in(n.meta["val"], mode))
        return target(*args, **kwargs)


def _stand_in(value: Any, mode: FakeTensorMode) -> Any:
    """The value in this mode: the graphs of branches and loops come from traces of their own."""
    if isinstance(value, (list, tuple)):
        return type(value)(_stand_in(item, mode) for item in value)
    if not isinstance(value, torch.Tensor) or (isinstance(value, FakeTensor) and value.fake_mode is mode):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=getattr(value, "at", value.device))


def _flat(value: Any) -> list[Any]:
    return tree.listed(value)


def _mapped(value: Any, map_node: Callable[[Node], Node], inner: Callable[[Module], Module] | None = None) -> Any:
    """An argument with the nodes in it replaced, and graphs that it holds."""
    if isinstance(value, Node):
        return map_node(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, map_node, inner) for item in value)
    if isinstance(value, slice):
        return slice(*(_mapped(item, map_node, inner) for item in (value.start, value.stop, value.step)))
    return inner(value) if isinstance(value, Module) and inner is not None else value
