"""Creates nodes of a graph, each with the fake tensor of its result."""
from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import FakeTensor, disable_proxy_modes_tracing, is_operator

_aten = torch.ops.aten
_NOTHING: Mapping[str, Any] = {}
_meta_cache: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
"""For each fake mode: meta results by operator and the form of its arguments. Parts of a batch, and equal blocks, share entries."""
_modes: weakref.WeakKeyDictionary[torch.fx.GraphModule, Any] = weakref.WeakKeyDictionary()
_EXCHANGES = frozenset({nodes.all_reduce, nodes.reduce_scatter, nodes.all_gather, nodes.all_to_all})
_VARIES = frozenset({torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output})


def call(
    graph: torch.fx.Graph, target: Any, args: Sequence[Any], source: Node, kwargs: Mapping[str, Any] = _NOTHING,
    around: torch.fx.GraphModule | None = None,
) -> Node:
    """Write a call with the metadata of `source` and the fake result that `target` computes.

    Fake arguments are computed in the current mode, or in that of the graph `around`.
    """
    meta_arguments = tree.mapped([list(args), dict(kwargs)], lambda leaf: leaf.meta["val"] if isinstance(leaf, Node) else leaf)
    try:
        val = _meta_result(target, meta_arguments[0], meta_arguments[1], around)
    except (RuntimeError, ValueError):
        if target is not _aten.view.default:
            raise
        # what was laid out lies one after the other in the whole graph, and as a part of something larger in the local one
        target = _aten.reshape.default
        val = _meta_result(target, meta_arguments[0], meta_arguments[1], around)
    node = graph.call_function(target, tuple(args), dict(kwargs))
    node.meta = {**source.meta, "val": val}
    return node


def _meta_result(target: Any, args: list[Any], kwargs: dict[str, Any], around: torch.fx.GraphModule | None) -> Any:
    cached, key = _cache_for(args) if _depends_on_form_only(target) else None, None
    if cached is not None:
        try:
            key = (target, _form(args), tuple((name, _form(value)) for name, value in sorted(kwargs.items())))
            if key in cached:
                return cached[key]
        except TypeError:                                      # a length that is a symbol
            key = None
    block: AbstractContextManager[None] = nullcontext() if around is None else faking(around)
    with block:
        result = target(*args, **kwargs)
    if cached is not None and key is not None:
        cached[key] = result
    return result


def _cache_for(args: list[Any]) -> dict[Any, Any] | None:
    first = next((leaf for leaf in tree.leaves(args) if isinstance(leaf, torch.Tensor)), None)
    return _meta_cache.setdefault(first.fake_mode, {}) if isinstance(first, FakeTensor) else None


@functools.lru_cache(4096)
def _depends_on_form_only(target: Any) -> bool:
    """Return whether only the shapes and dtypes of the operands determine those of the result, and the operator writes nothing.

    Views qualify: schemas (`graph/fx/aliasing`), never fake tensors, say which values share memory.
    """
    if target in _EXCHANGES:
        return True
    return is_operator(target) and not target._schema.is_mutable and not _VARIES & set(target.tags)


def _form(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if not isinstance(value, FakeTensor):
            raise TypeError
        return (torch.Tensor, value.shape, value.stride(), value.storage_offset(), value.dtype, value.device, value.layout)
    if isinstance(value, (list, tuple)):
        return (list, *map(_form, value))
    return (value.__class__, value)


@contextmanager
def faking(module: torch.fx.GraphModule) -> Iterator[None]:
    """Return a context manager in which operators compute fake tensors for the values of a graph."""
    mode = _modes.get(module)
    if mode is None:
        vals = (node.meta.get("val") for node in module.graph.nodes)
        mode = next((val.fake_mode for val in vals if hasattr(val, "fake_mode")), None)
        if mode is not None:
            _modes[module] = mode
    with torch.no_grad(), disable_proxy_modes_tracing(), mode if mode is not None else nullcontext():
        yield
