"""An estimate of what each operator takes, from the shapes alone: it ranks operators and says nothing about a machine."""
from __future__ import annotations

import math
from collections.abc import Mapping

from torchspore.engine.graph.saved.kinds import Value
from torchspore.engine.graph.saved.snapshot import Call, Snapshot

FLOPS, BANDWIDTH, CALL = 50e9, 10e9, 2e-6
"""Operations and bytes a second, and seconds a call: a desktop's order of magnitude. Shares hang on their ratios only."""

_FREE = frozenset("t view _unsafe_view transpose permute expand unsqueeze squeeze slice select detach alias getitem as_strided".split())


def seconds(graph: Snapshot) -> dict[str, float]:
    """The estimate for each node of a graph, by name; a node that runs graphs takes what these take, the longest of them."""
    kinds = {given.name: given.kind for given in graph.inputs} | {call.name: call.kind for call in graph.calls}
    inner = {other.name: sum(seconds(other).values()) for other in graph.inner}
    return {call.name: _of(call, kinds) + max([inner.get(a.name, 0.0) for a in call.arguments if hasattr(a, "name")], default=0.0)
            for call in graph.calls}


def _of(call: Call, kinds: Mapping[str, Value]) -> float:
    name = call.target.rpartition(".")[2]
    if name in _FREE:
        return CALL / 4
    read = [kinds[other] for other in call.reads if other in kinds]
    moved = call.kind.bytes + sum(kind.bytes for kind in read)
    return CALL + max(moved / BANDWIDTH, _operations(name, call.kind, read) / FLOPS)


def _operations(name: str, gives: Value, read: list[Value]) -> float:
    """Multiplications and additions of products and convolutions; 0 for all else, which memory bounds."""
    shapes = [kind.shape for kind in read if kind.dtype and all(type(n) is int for n in kind.shape)]
    if name in ("mm", "bmm", "addmm", "baddbmm", "_linear_pointwise") and len(shapes) >= 2:
        factor = shapes[-2] if name in ("addmm", "baddbmm") else shapes[0]
        return 2.0 * _size(gives) * factor[-1] if factor else 0.0
    if name == "convolution" and len(shapes) >= 2:
        return 2.0 * _size(gives) * math.prod(shapes[1][1:])
    if name == "convolution_backward" and len(shapes) >= 3:
        return 4.0 * math.prod(shapes[0]) * math.prod(shapes[2][1:])
    if "attention" in name and shapes:
        return 4.0 * _size(gives) * shapes[0][-2] if len(shapes[0]) > 1 else 0.0
    return 0.0


def _size(kind: Value) -> int:
    if kind.items:
        return _size(kind.items[0])
    return math.prod(n for n in kind.shape if type(n) is int)
