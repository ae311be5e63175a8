"""Exchanges that run concurrently with other work, on real tensors: the given tensor is filled when `wait` returns."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from torchspore.distributed.comm import collectives, groups, operators
from torchspore.distributed.comm.collectives import KINDS, Work
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.comm.operators import UNKNOWN_TO_GLOO
from torchspore.engine.tensors import tensor as engine

Begun = tuple[torch.Tensor, Work]


def _is_plain(x: torch.Tensor, group: Group, kind: str = "sum") -> bool:
    """Return whether torch's operator alone is the exchange, so that nothing is to be done after it."""
    return (
        group.size > 1 and not engine.active and x.dtype not in UNKNOWN_TO_GLOO
        and (kind != "avg" or x.is_floating_point())
    )


def _begun(make: Callable[[], torch.Tensor], group: Group) -> Begun:
    groups.process_group(group)
    out = make()
    return out, Work(lambda: operators.wait_for(out))


def all_reduce(x: torch.Tensor, kind: str, group: Group) -> Begun:
    """Begin `collectives.all_reduce`."""
    if not _is_plain(x, group, kind) or kind not in KINDS:
        return collectives.all_reduce(x, kind, group), Work(None)
    return _begun(lambda: operators.all_reduce(x.contiguous(), KINDS[kind], group.key), group)


def all_gather(x: torch.Tensor, group: Group) -> Begun:
    """Begin `collectives.all_gather`."""
    if not _is_plain(x, group):
        return collectives.all_gather(x, group), Work(None)
    return _begun(lambda: operators.all_gather(x.contiguous(), group.size, group.key), group)


def reduce_scatter(x: torch.Tensor, kind: str, group: Group) -> Begun:
    """Begin `collectives.reduce_scatter`."""
    if not _is_plain(x, group, kind) or kind not in KINDS or not x.ndim or x.shape[0] % group.size:
        return collectives.reduce_scatter(x, kind, group), Work(None)
    return _begun(lambda: operators.reduce_scatter(x.contiguous(), KINDS[kind], group.size, group.key), group)


def all_to_all(x: torch.Tensor, received: Sequence[int], sent: Sequence[int], group: Group) -> Begun:
    """Begin `collectives.all_to_all_uneven`."""
    if not _is_plain(x, group) or len(sent) != group.size or len(received) != group.size or sum(sent) != x.shape[0]:
        return collectives.all_to_all_uneven(x, group, received, sent), Work(None)
    return _begun(lambda: operators.all_to_all(x.contiguous(), list(received), list(sent), group.key), group)


def broadcast(x: torch.Tensor, root: int, group: Group) -> Begun:
    """Begin `collectives.broadcast`."""
    if not _is_plain(x, group):
        return collectives.broadcast(x, root, group), Work(None)
    return _begun(lambda: operators.broadcast(x.contiguous(), root, group.key), group)


def send(x: torch.Tensor, target: int, group: Group, tag: int) -> Work:
    """Begin to send `x` to the process with that rank in the group."""
    copied = x.detach().contiguous().clone()                     # the program may write into its own before it is gone
    groups.process_group(group)
    return Work(operators.start_pair(torch.distributed.isend, copied, target, tag, group.key))


def receive(like: torch.Tensor, source: int, group: Group, tag: int) -> Begun:
    """Begin to receive a tensor with the shape and dtype of `like` from the process with that rank in the group."""
    out = torch.empty_like(like.detach(), memory_format=torch.contiguous_format)
    groups.process_group(group)
    return out, Work(operators.start_pair(torch.distributed.irecv, out, source, tag, group.key))
