"""The operators of exchanges: torch's own, by their names, and those that torch has not, with what each gives for fake tensors.

All are called by the key of a group, so that a graph which names them can be kept. They are never taken out and keep their order.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.engine.private import processes_of

functional: Any = torch.ops._c10d_functional
wait: Any = functional.wait_tensor.default

_library = torch.library.Library("torchspore", "FRAGMENT")


def _global(key: str, place: int) -> int:
    return torch.distributed.get_global_rank(processes_of(key), place)


def _scatter(x: torch.Tensor, place: int, key: str) -> torch.Tensor:
    """The share of this process, along axis 0, of the `x` of the process at `place`."""
    group = processes_of(key)
    count = torch.distributed.get_world_size(group)
    out = x.new_empty((x.shape[0] // count, *x.shape[1:]))
    own = torch.distributed.get_rank(group) == place
    shares = [share.contiguous() for share in x.chunk(count)] if own else None
    torch.distributed.scatter(as_bytes(out), [as_bytes(share) for share in shares] if shares else None, _global(key, place), group)
    return out


def _gather(x: torch.Tensor, place: int, key: str) -> torch.Tensor:
    """The `x` of all processes along axis 0 for the one at `place`, zeros for the others."""
    group = processes_of(key)
    count = torch.distributed.get_world_size(group)
    own = torch.distributed.get_rank(group) == place
    out = x.new_zeros((count * x.shape[0], *x.shape[1:]))
    shares = [as_bytes(share) for share in out.chunk(count)] if own else None
    torch.distributed.gather(as_bytes(x.contiguous()), shares, _global(key, place), group)
    return out


def _exchange(
    sent: Sequence[torch.Tensor], to: Sequence[int], tags: Sequence[int], shapes: Sequence[int], sources: Sequence[int],
    source_tags: Sequence[int], like: torch.Tensor, key: str,
) -> list[torch.Tensor]:
    """Sends `sent[i]` to the process at `to[i]`, and gives what those at `sources` send here.

    `shapes` are those of what comes, one after the other, each after its number of axes; `like` has its dtype.
    """
    group = processes_of(key)
    received = _received(shapes, like)
    works = [
        torch.distributed.irecv(as_bytes(t), _global(key, place), group, tag) for t, place, tag in zip(received, sources, source_tags)
    ] + [torch.distributed.isend(as_bytes(t.contiguous()), _global(key, place), group, tag) for t, place, tag in zip(sent, to, tags)]
    for work in works:
        if work is not None:
            work.wait()
    return received


def _received(shapes: Sequence[int], like: torch.Tensor) -> list[torch.Tensor]:
    made, at = [], 0
    while at < len(shapes):
        axes = shapes[at]
        made.append(like.new_empty(list(shapes[at + 1:at + 1 + axes])))
        at += 1 + axes
    return made


def _barrier(key: str) -> None:
    group = processes_of(key)
    torch.distributed.barrier(group)


def as_bytes(t: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor as its bytes where gloo does not know its dtype."""
    return t.view(torch.uint8) if t.dtype in UNKNOWN_TO_GLOO and t.device.type == "cpu" and t.ndim else t


UNKNOWN_TO_GLOO = frozenset({torch.int16, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64})


def _define(schema: str, compute: Any, fake: Any) -> Any:
    name = schema.partition("(")[0]
    _library.define(schema)
    _library.impl(name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"torchspore::{name}", fake, lib=_library)
    return getattr(torch.ops.torchspore, name).default


def _count(key: str) -> int:
    return torch.distributed.get_world_size(processes_of(key))


scatter = _define(
    "scatter(Tensor x, int place, str key) -> Tensor", _scatter,
    lambda x, place, key: x.new_empty((x.shape[0] // _count(key), *x.shape[1:])),
)
gather = _define(
    "gather(Tensor x, int place, str key) -> Tensor", _gather,
    lambda x, place, key: x.new_empty((x.shape[0] * _count(key), *x.shape[1:])),
)
exchange = _define(
    "exchange(Tensor[] sent, int[] to, int[] tags, int[] shapes, int[] sources, int[] source_tags, Tensor like, str key) -> Tensor[]",
    _exchange, lambda sent, to, tags, shapes, sources, source_tags, like, key: _received(shapes, like),
)
barrier = _define("barrier(str key) -> ()", _barrier, lambda key: None)
