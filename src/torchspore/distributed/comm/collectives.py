"""Exchanges between the processes of a group, on torch tensors: new tensors, with gradients, operators in a graph that is being captured.

A group of one process gives copies. Gradients are MindSpore's: what was summed comes back summed, an extreme's goes to who had it, and a
broadcast hands each process its own gradient back.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from torchspore.base.text import list_choices, message
from torchspore.distributed.comm import groups, operators
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.comm.operators import waited
from torchspore.engine.core.torch_private import in_transform

KINDS = {"sum": "sum", "max": "max", "min": "min", "prod": "product", "avg": "avg"}
"""How the values of several processes become one: MindSpore's names, and torch's."""


def _key(group: Group) -> str:
    groups.processes(group)                       # says in words where there is none
    return group.key


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(message(f"op={kind!r}", list_choices(KINDS)))
    return KINDS[kind]


# ---- what torch's operators do, and what gloo's lack of a dtype makes of it


def _reduced(x: torch.Tensor, kind: str, key: str, announced: torch.dtype | None = None) -> torch.Tensor:
    """`announced` is the program's own dtype, where gloo is given another one."""
    if x.device.type == "cpu" and x.dtype in _WIDER:
        return _reduced(x.to(_WIDER[x.dtype]), kind, key, x.dtype).to(x.dtype)
    if x.device.type == "cpu" and x.dtype == torch.uint64:
        return _as_unsigned(_reduced(_as_signed(x, kind), kind, key, x.dtype), kind)
    if x.is_complex() and kind == "product":                                # torch has none
        return _gathered(x.unsqueeze(0), operators.count(key), key).prod(0)
    if kind == "avg" and not x.is_floating_point() and not x.is_complex():
        total = waited(operators.all_reduce(x, "sum", key, announced))
        return torch.div(total, operators.count(key), rounding_mode="trunc")
    return waited(operators.all_reduce(x.contiguous(), kind, key, announced))


_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32, torch.uint32: torch.int64}
"""The dtypes in which gloo adds those that it does not support: sums and products are equal in as many bits."""
_LOWEST = -(1 << 63)


def _as_signed(x: torch.Tensor, kind: str) -> torch.Tensor:
    """Numbers of 64 bits as signed ones whose sums, or whose order, are theirs."""
    return x.view(torch.int64) ^ _LOWEST if kind in ("max", "min") else x.view(torch.int64)


def _as_unsigned(x: torch.Tensor, kind: str) -> torch.Tensor:
    return (x ^ _LOWEST if kind in ("max", "min") else x).view(torch.uint64)


def _gathered(x: torch.Tensor, size: int, key: str) -> torch.Tensor:
    return waited(operators.all_gather(x.contiguous(), size, key))


def _shared_out(x: torch.Tensor, kind: str, size: int, key: str, announced: torch.dtype | None = None) -> torch.Tensor:
    if x.device.type == "cpu" and x.dtype in _WIDER:
        return _shared_out(x.to(_WIDER[x.dtype]), kind, size, key, x.dtype).to(x.dtype)
    if x.device.type == "cpu" and x.dtype == torch.uint64:
        return _as_unsigned(_shared_out(_as_signed(x, kind), kind, size, key, x.dtype), kind)
    if x.is_complex() and kind == "product":
        shares = [x.shape[0] // size] * size
        return _swapped(x, shares, shares, key).view(size, -1, *x.shape[1:]).prod(0)
    if kind == "avg" and not x.is_floating_point() and not x.is_complex():
        return torch.div(_shared_out(x, "sum", size, key, announced), size, rounding_mode="trunc")
    return waited(operators.reduce_scatter(x.contiguous(), kind, size, key, announced))


def _swapped(x: torch.Tensor, received: Sequence[int], sent: Sequence[int], key: str) -> torch.Tensor:
    return waited(operators.all_to_all(x.contiguous(), list(received), list(sent), key))


# ---- with their gradients


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
        return _reduced(x, KINDS[kind], group.key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x, ctx.kind, ctx.group = inputs
        if ctx.kind in ("max", "min", "prod"):
            ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        (gradient,) = gradients
        if ctx.kind in ("sum", "avg"):
            return all_reduce(gradient, ctx.kind, ctx.group), None, None
        x, out = ctx.saved_tensors
        if ctx.kind == "prod":
            return all_reduce(gradient * out, "sum", ctx.group) / x, None, None
        return all_reduce(gradient, "sum", ctx.group) * (x == out).to(gradient.dtype), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        if ctx.kind not in ("sum", "avg"):
            raise NotImplementedError(f"AllReduce of kind {ctx.kind!r} has no forward derivative")
        return all_reduce(tangents[0], ctx.kind, ctx.group)


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, group: Group) -> torch.Tensor:
        return _gathered(x, group.size, group.key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _, ctx.group = inputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return reduce_scatter(gradients[0], "sum", ctx.group), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        return all_gather(tangents[0], ctx.group)


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
        return _shared_out(x, KINDS[kind], group.size, group.key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _, ctx.kind, ctx.group = inputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        if ctx.kind not in ("sum", "avg"):
            raise RuntimeError(message(f"the gradient of ReduceScatter(op={ctx.kind!r})", "op='sum' or 'avg', which have one"))
        gathered = all_gather(gradients[0], ctx.group)
        return gathered / ctx.group.size if ctx.kind == "avg" else gathered, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        return reduce_scatter(tangents[0], ctx.kind, ctx.group)


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, received: tuple[int, ...], sent: tuple[int, ...], group: Group) -> torch.Tensor:
        return _swapped(x, received, sent, group.key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _, ctx.received, ctx.sent, ctx.group = inputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return _AllToAll.apply(gradients[0], ctx.sent, ctx.received, ctx.group), None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        return _AllToAll.apply(tangents[0], ctx.received, ctx.sent, ctx.group)


class _Rooted(torch.autograd.Function):
    """An exchange with one process that sends to all or takes from all."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _, ctx.root, ctx.group = inputs


class _Broadcast(_Rooted):
    @staticmethod
    def forward(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
        return waited(operators.broadcast(x.contiguous(), root, group.key))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return gradients[0].clone(), None, None           # of itself, as in MindSpore: nothing is exchanged

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> torch.Tensor:
        return _Broadcast.apply(tangents[0], ctx.root, ctx.group)


class _Scatter(_Rooted):
    @staticmethod
    def forward(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
        return operators.scatter(x, root, group.key)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return gather(gradients[0], ctx.root, ctx.group), None, None


class _Gather(_Rooted):
    @staticmethod
    def forward(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
        return operators.gather(x, root, group.key)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return scatter(gradients[0], ctx.root, ctx.group), None, None


@dataclass(frozen=True)
class Plan:
    """Who sends what to whom: the places and tags of what is sent, those of what comes, and its shapes."""

    to: tuple[int, ...]
    sources: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    tags: tuple[int, ...]
    source_tags: tuple[int, ...]

    def turned(self, shapes: Sequence[Sequence[int]]) -> Plan:
        """The same the other way round, for what was sent in these shapes."""
        return Plan(self.sources, self.to, tuple(tuple(shape) for shape in shapes), self.source_tags, self.tags)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, group: Group, like: torch.Tensor, *sent: torch.Tensor) -> Any:
        ctx.plan, ctx.group, ctx.sent, ctx.like = plan.turned([t.shape for t in sent]), group, len(sent), like.detach()
        return tuple(_exchanged(plan, group, like, sent))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        back = _exchanged(ctx.plan, ctx.group, gradients[0] if gradients else ctx.like, gradients)
        return None, None, torch.zeros_like(ctx.like), *back


def _exchanged(plan: Plan, group: Group, like: torch.Tensor, sent: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    shapes = [number for shape in plan.shapes for number in (len(shape), *shape)]
    return operators.exchange(
        list(sent), list(plan.to), list(plan.tags), shapes, list(plan.sources), list(plan.source_tags), like, group.key,
    )


# ---- what all call


def _needs_gradient(x: torch.Tensor) -> bool:
    """Return whether a step on torch's tape is needed: it costs more than everything else here."""
    return (x.requires_grad and torch.is_grad_enabled()) or in_transform()


def all_reduce(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
    """The sum, product, largest or smallest value or mean (`kind`: sum, prod, max, min, avg) of `x` over the group, for each of it."""
    _kind(kind)
    _refuse_dtype("all_reduce", x, kind)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _AllReduce.apply(x, kind, group) if _needs_gradient(x) else _reduced(x, KINDS[kind], group.key)


def all_gather(x: torch.Tensor, group: Group, axis: int = 0) -> torch.Tensor:
    """`x` of all processes of the group, one after the other along the axis."""
    if group.size == 1:
        return x.clone()
    _key(group)
    gathered = _AllGather.apply(x, group) if _needs_gradient(x) else _gathered(x, group.size, group.key)
    return gathered if axis in (0, -x.ndim) else torch.cat(gathered.chunk(group.size), axis)


def reduce_scatter(x: torch.Tensor, kind: str, group: Group, axis: int = 0) -> torch.Tensor:
    """The share of this process, along the axis, of what all_reduce gives. Raises ValueError where the length does not divide."""
    _kind(kind)
    _refuse_dtype("reduce_scatter", x, kind)
    _divides("reduce_scatter", x, axis, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _ReduceScatter.apply(x if axis in (0, -x.ndim) else torch.cat(x.chunk(group.size, axis)), kind, group)


def _refuse_dtype(call: str, x: torch.Tensor, kind: str) -> None:
    """Raises TypeError for what has no such result, or of which gloo would never say that it failed."""
    if x.is_floating_point() and x.dtype.itemsize == 1 and x.device.type == "cpu":
        name = str(x.dtype).removeprefix("torch.")
        raise TypeError(message(f"{call}(op={kind!r}) of a Tensor of {name} on the CPU", "a wider dtype: x.astype(mindspore.float16)"))
    if kind in ("max", "min") and x.is_complex():
        call_text = f"{call}(op={kind!r}) of a Tensor of {str(x.dtype).removeprefix('torch.')}"
        raise TypeError(message(call_text, "op='sum', 'prod' or 'avg': complex numbers have no order"))


def _divides(call: str, x: torch.Tensor, axis: int, group: Group) -> None:
    if not x.ndim or x.shape[axis] % group.size:
        raise ValueError(message(
            f"{call} of a Tensor of shape {tuple(x.shape)} along axis {axis} over {group.size} processes",
            f"a length that divides by {group.size}",
        ))


def all_to_all(x: torch.Tensor, group: Group, split_axis: int = 0, concat_axis: int = 0) -> torch.Tensor:
    """`x` in equal blocks along `split_axis`, one for each process; the blocks that come are joined along `concat_axis`."""
    _divides("all_to_all", x, split_axis, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    split, concat = split_axis % x.ndim, concat_axis % x.ndim
    blocks = x if split == 0 else torch.cat(x.chunk(group.size, split))
    length = (blocks.shape[0] // group.size,) * group.size
    out = _AllToAll.apply(blocks, length, length, group)
    return out if concat == 0 else torch.cat(out.chunk(group.size), concat)


def all_to_all_uneven(x: torch.Tensor, group: Group, received: Sequence[int], sent: Sequence[int]) -> torch.Tensor:
    """`x` in blocks of the lengths `sent` along axis 0, one for each process; the blocks of the lengths `received` that come, joined."""
    if len(sent) != group.size or len(received) != group.size or sum(sent) != x.shape[0]:
        raise ValueError(message(
            f"all_to_all of a Tensor of shape {tuple(x.shape)} in {list(sent)}, receiving {list(received)}",
            f"{group.size} lengths each, which come to {x.shape[0]} in what is sent",
        ))
    if group.size == 1:
        if tuple(sent) != tuple(received):
            raise ValueError(message(f"all_to_all: {list(sent)} sent and {list(received)} received", "equal lengths in one process"))
        return x.clone()
    _key(group)
    return _AllToAll.apply(x, tuple(received), tuple(sent), group)


def all_gather_uneven(x: torch.Tensor, lengths: Sequence[int], group: Group) -> torch.Tensor:
    """`x` of all processes, of these lengths along axis 0, one after the other."""
    if len(lengths) != group.size or x.shape[0] != lengths[group.rank]:
        raise ValueError(message(
            f"all_gather of a Tensor of shape {tuple(x.shape)} in rank {group.rank} with the lengths {list(lengths)}",
            f"{group.size} lengths, of which this one's is the Tensor's",
        ))
    if group.size == 1:
        return x.clone()
    return all_to_all_uneven(torch.cat([x] * group.size), group, lengths, [x.shape[0]] * group.size)


def reduce_scatter_uneven(x: torch.Tensor, lengths: Sequence[int], kind: str, group: Group) -> torch.Tensor:
    """The share of this process of what all_reduce gives, in shares of these lengths along axis 0."""
    _kind(kind)
    if len(lengths) != group.size or x.shape[0] != sum(lengths):
        raise ValueError(message(
            f"reduce_scatter of a Tensor of shape {tuple(x.shape)} with the lengths {list(lengths)}",
            f"{group.size} lengths, which come to that of the Tensor",
        ))
    if group.size == 1:
        return x.clone()
    local_length = lengths[group.rank]
    shares = all_to_all_uneven(x, group, [local_length] * group.size, lengths).reshape(group.size, local_length, *x.shape[1:])
    if kind == "avg":
        total = shares.sum(0, dtype=x.dtype)
        return total / group.size if x.is_floating_point() else torch.div(total, group.size, rounding_mode="trunc")
    return {"sum": lambda: shares.sum(0, dtype=x.dtype), "max": lambda: shares.amax(0), "min": lambda: shares.amin(0),
            "prod": lambda: shares.prod(0, dtype=x.dtype)}[kind]()


def broadcast(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
    """The `x` of the process at place `root` of the group; those of the others have its shape and dtype."""
    _check_root("broadcast", root, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _Broadcast.apply(x, root, group)


def _check_root(call: str, root: int, group: Group) -> None:
    if not 0 <= root < group.size:
        raise ValueError(message(f"{call} at place {root} of group {group.name!r}", f"a place from 0 to {group.size - 1}"))


def scatter(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
    """The share of this process, along axis 0, of the `x` of the process at place `root`; the others' `x` have its shape and dtype."""
    _check_root("scatter", root, group)
    _divides("scatter", x, 0, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _Scatter.apply(x, root, group)


def gather(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
    """The `x` of all processes along axis 0 for the process at place `root`; zeros of that shape for the others."""
    _check_root("gather", root, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _Gather.apply(x, root, group)


def reduce(x: torch.Tensor, root: int, kind: str, group: Group) -> torch.Tensor:
    """Return the result of all_reduce for the process at position `root`; the others get their own `x`."""
    _check_root("reduce", root, group)
    total = all_reduce(x, kind, group)
    return total if group.rank == root else x.clone()


def exchange(
    sent: Sequence[torch.Tensor], to: Sequence[int], shapes: Sequence[Sequence[int]], sources: Sequence[int], like: torch.Tensor,
    group: Group, tags: Sequence[int] | None = None, source_tags: Sequence[int] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Sends `sent[i]` to the process at place `to[i]`; gives what those at `sources` send here, of these shapes and the dtype of `like`.

    Between two processes things come in the order in which they are sent, for each tag. A gradient goes the other way; where nothing is
    sent, it goes only if `like` has one.
    """
    for position in (*to, *sources):
        _check_root("exchange", position, group)
        if position == group.rank:
            raise ValueError(message(f"sending to or receiving from rank {group.ranks[position]}, this process", "another process"))
    if not sent and not sources:
        return ()
    _key(group)
    plan = Plan(
        tuple(to), tuple(sources), tuple(tuple(shape) for shape in shapes), tuple(tags or [0] * len(to)),
        tuple(source_tags or [0] * len(sources)),
    )
    return tuple(_Exchange.apply(plan, group, like, *sent))


def barrier(group: Group) -> None:
    """Waits until all processes of the group are here."""
    if group.size > 1:
        operators.barrier(_key(group))


def meet(what: str, group: Group) -> None:
    """Waits until all processes of the group call this with the same words, by which one that does something else is named."""
    if group.size > 1:
        operators.meet(_key(group), what)


class Work:
    """An exchange that runs; its tensor is to be left alone until `wait`."""

    def __init__(self, end: Callable[[], Any] | None) -> None:
        self._end = end

    def wait(self) -> None:
        """Waits until the exchange is over."""
        end, self._end = self._end, None
        if end is not None:
            end()


def start_all_reduce(t: torch.Tensor, kind: str, group: Group) -> Work:
    """Begins to replace the values of `t`, which is contiguous, by what all_reduce gives, and does not wait. Not for graphs."""
    _kind(kind)
    return Work(None) if group.size == 1 else Work(operators.start_all_reduce(t, KINDS[kind], _key(group)))
