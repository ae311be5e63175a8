"""New nodes of a graph, each with the stand-in of what it gives."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine import tree
from torchspore.engine.private import disable_proxy_modes_tracing

_NOTHING: Mapping[str, Any] = {}


def call(graph: torch.fx.Graph, target: Any, args: Sequence[Any], source: Node, kwargs: Mapping[str, Any] = _NOTHING) -> Node:
    """A call with the notes of `source`, and the stand-in that `target` gives for those of its arguments; for use within `faking`."""
    made = graph.call_function(target, tuple(args), dict(kwargs))
    given = tree.mapped([list(args), dict(kwargs)], lambda leaf: leaf.meta["val"] if isinstance(leaf, Node) else leaf)
    made.meta = {**source.meta, "val": target(*given[0], **given[1])}
    return made


@contextmanager
def faking(module: torch.fx.GraphModule) -> Iterator[None]:
    """A block in which operators compute stand-ins for the values of a graph."""
    vals = (node.meta.get("val") for node in module.graph.nodes)
    mode = next((val.fake_mode for val in vals if hasattr(val, "fake_mode")), None)
    with torch.no_grad(), disable_proxy_modes_tracing(), mode if mode is not None else nullcontext():
        yield
