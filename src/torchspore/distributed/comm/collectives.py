"""Exchanges between the processes of a group on torch tensors. They return new tensors, have gradients, and become operators in a graph.

A group of one process returns copies. The gradients are MindSpore's: that of a sum is summed, that of a maximum or minimum goes to the
processes with that value, and that of a broadcast stays in each process.
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
from torchspore.distributed.comm.operators import wait_for
from torchspore.engine.torch_internals.torch_private import in_transform

KINDS = {"sum": "sum", "max": "max", "min": "min", "prod": "product", "avg": "avg"}
"""The reductions: torch's name by MindSpore's name."""


def _key(group: Group) -> str:
    groups.process_group(group)                       # raises an error that names the group if the process is not a member
    return group.key


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(message(f"op={kind!r}", list_choices(KINDS)))
    return KINDS[kind]


# ---- without gradients, in dtypes that gloo supports


def _all_reduce_tensor(x: torch.Tensor, kind: str, key: str, program_dtype: torch.dtype | None = None) -> torch.Tensor:
    """Reduce `x` over the group. `program_dtype` is the program's dtype if gloo computes in another dtype."""
    if x.device.type == "cpu" and x.dtype in _WIDER:
        return _all_reduce_tensor(x.to(_WIDER[x.dtype]), kind, key, x.dtype).to(x.dtype)
    if x.device.type == "cpu" and x.dtype == torch.uint64:
        return _as_unsigned(_all_reduce_tensor(_as_signed(x, kind), kind, key, x.dtype), kind)
    if x.is_complex() and kind == "product":                                # torch has no such reduction
        return _all_gather_tensor(x.unsqueeze(0), operators.count(key), key).prod(0)
    if kind == "avg" and not x.is_floating_point() and not x.is_complex():
        total = wait_for(operators.all_reduce(x, "sum", key, program_dtype))
        return torch.div(total, operators.count(key), rounding_mode="trunc")
    return wait_for(operators.all_reduce(x.contiguous(), kind, key, program_dtype))


_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32, torch.uint32: torch.int64}
"""By a dtype that gloo does not support, a wider dtype: the low bits of sums and products are equal."""
_LOWEST = -(1 << 63)


def _as_signed(x: torch.Tensor, kind: str) -> torch.Tensor:
    """Return 64-bit unsigned numbers as signed numbers with the same sums or, for max and min, the same order."""
    return x.view(torch.int64) ^ _LOWEST if kind in ("max", "min") else x.view(torch.int64)


def _as_unsigned(x: torch.Tensor, kind: str) -> torch.Tensor:
    return (x ^ _LOWEST if kind in ("max", "min") else x).view(torch.uint64)


def _all_gather_tensor(x: torch.Tensor, size: int, key: str) -> torch.Tensor:
    return wait_for(operators.all_gather(x.contiguous(), size, key))


def _reduce_scatter_tensor(x: torch.Tensor, kind: str, size: int, key: str, program_dtype: torch.dtype | None = None) -> torch.Tensor:
    if x.device.type == "cpu" and x.dtype in _WIDER:
        return _reduce_scatter_tensor(x.to(_WIDER[x.dtype]), kind, size, key, x.dtype).to(x.dtype)
    if x.device.type == "cpu" and x.dtype == torch.uint64:
        return _as_unsigned(_reduce_scatter_tensor(_as_signed(x, kind), kind, size, key, x.dtype), kind)
    if x.is_complex() and kind == "product":
        shares = [x.shape[0] // size] * size
        return _all_to_all_tensor(x, shares, shares, key).view(size, -1, *x.shape[1:]).prod(0)
    if kind == "avg" and not x.is_floating_point() and not x.is_complex():
        return torch.div(_reduce_scatter_tensor(x, "sum", size, key, program_dtype), size, rounding_mode="trunc")
    return wait_for(operators.reduce_scatter(x.contiguous(), kind, size, key, program_dtype))


def _all_to_all_tensor(x: torch.Tensor, received: Sequence[int], sent: Sequence[int], key: str) -> torch.Tensor:
    return wait_for(operators.all_to_all(x.contiguous(), list(received), list(sent), key))


# ---- with gradients


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
        return _all_reduce_tensor(x, KINDS[kind], group.key)

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
        return _all_gather_tensor(x, group.size, group.key)

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
        return _reduce_scatter_tensor(x, KINDS[kind], group.size, group.key)

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
        return _all_to_all_tensor(x, received, sent, group.key)

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
    """An exchange in which one process sends to all or receives from all."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _, ctx.root, ctx.group = inputs


class _Broadcast(_Rooted):
    @staticmethod
    def forward(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
        return wait_for(operators.broadcast(x.contiguous(), root, group.key))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return gradients[0].clone(), None, None           # as in MindSpore, each process keeps its gradient

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
    """The messages of an exchange: targets and tags of the sent tensors; sources, tags and shapes of the received tensors."""

    to: tuple[int, ...]
    sources: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    tags: tuple[int, ...]
    source_tags: tuple[int, ...]

    def reversed(self, shapes: Sequence[Sequence[int]]) -> Plan:
        """Return the plan of the opposite direction, for sent tensors of these shapes."""
        return Plan(self.sources, self.to, tuple(tuple(shape) for shape in shapes), self.source_tags, self.tags)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, group: Group, like: torch.Tensor, *sent: torch.Tensor) -> Any:
        ctx.plan, ctx.group, ctx.sent, ctx.like = plan.reversed([t.shape for t in sent]), group, len(sent), like.detach()
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


# ---- public functions


def _needs_gradient(x: torch.Tensor) -> bool:
    """Return whether autograd must record the call. Recording costs more than the rest of this module."""
    return (x.requires_grad and torch.is_grad_enabled()) or in_transform()


def all_reduce(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
    """Return the elementwise reduction (`kind`: sum, prod, max, min, avg) of `x` over the group, in each process."""
    _kind(kind)
    _refuse_dtype("all_reduce", x, kind)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _AllReduce.apply(x, kind, group) if _needs_gradient(x) else _all_reduce_tensor(x, KINDS[kind], group.key)


def all_gather(x: torch.Tensor, group: Group, axis: int = 0) -> torch.Tensor:
    """Return the `x` of all processes of the group, concatenated along the axis."""
    if group.size == 1:
        return x.clone()
    _key(group)
    gathered = _AllGather.apply(x, group) if _needs_gradient(x) else _all_gather_tensor(x, group.size, group.key)
    return gathered if axis in (0, -x.ndim) else torch.cat(gathered.chunk(group.size), axis)


def reduce_scatter(x: torch.Tensor, kind: str, group: Group, axis: int = 0) -> torch.Tensor:
    """Return this process's slice, along the axis, of the result of all_reduce. Raise ValueError if the length is not divisible."""
    _kind(kind)
    _refuse_dtype("reduce_scatter", x, kind)
    _divides("reduce_scatter", x, axis, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _ReduceScatter.apply(x if axis in (0, -x.ndim) else torch.cat(x.chunk(group.size, axis)), kind, group)


def _refuse_dtype(call: str, x: torch.Tensor, kind: str) -> None:
    """Raise TypeError for a dtype without such a result, or for one with which gloo fails silently."""
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
    """Send one of the equal blocks of `x` along `split_axis` to each process; return the received blocks joined along `concat_axis`."""
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
    """Send blocks of `x` of the lengths `sent` along axis 0; return the received blocks, of the lengths `received`, joined."""
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
    """Return the `x` of all processes, of these lengths along axis 0, concatenated."""
    if len(lengths) != group.size or x.shape[0] != lengths[group.rank]:
        raise ValueError(message(
            f"all_gather of a Tensor of shape {tuple(x.shape)} in rank {group.rank} with the lengths {list(lengths)}",
            f"{group.size} lengths, of which this one's is the Tensor's",
        ))
    if group.size == 1:
        return x.clone()
    return all_to_all_uneven(torch.cat([x] * group.size), group, lengths, [x.shape[0]] * group.size)


def reduce_scatter_uneven(x: torch.Tensor, lengths: Sequence[int], kind: str, group: Group) -> torch.Tensor:
    """Return this process's slice of the result of all_reduce, which is split into these lengths along axis 0."""
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
    """Return the `x` of the process with the index `root` in the group; `x` has the same shape and dtype in all processes."""
    _check_root("broadcast", root, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _Broadcast.apply(x, root, group)


def _check_root(call: str, root: int, group: Group) -> None:
    if not 0 <= root < group.size:
        raise ValueError(message(f"{call} with the root {root} in group {group.name!r}", f"a root from 0 to {group.size - 1}"))


def scatter(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
    """Return this process's slice, along axis 0, of the `x` of the process `root`; `x` has the same shape and dtype in all processes."""
    _check_root("scatter", root, group)
    _divides("scatter", x, 0, group)
    if group.size == 1:
        return x.clone()
    _key(group)
    return _Scatter.apply(x, root, group)


def gather(x: torch.Tensor, root: int, group: Group) -> torch.Tensor:
    """Return the `x` of all processes along axis 0 in the process `root`, and zeros of that shape in the others."""
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
    """Send `sent[i]` to the process `to[i]`; return the tensors, of these shapes and the dtype of `like`, that `sources` send.

    Between two processes, messages with one tag arrive in the order in which they are sent. Gradients travel in the opposite direction; if
    nothing is sent, they travel only if `like` requires a gradient.
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
    """Wait until all processes of the group call this function."""
    if group.size > 1:
        operators.barrier(_key(group))


def meet(what: str, group: Group) -> None:
    """Wait until all processes of the group call this with the same `what`. The error names a process that calls something else."""
    if group.size > 1:
        operators.meet(_key(group), what)


class Work:
    """A running exchange; the program must not use its tensor before `wait`."""

    def __init__(self, end: Callable[[], Any] | None) -> None:
        self._end = end

    def wait(self) -> None:
        """Wait for the end of the exchange."""
        end, self._end = self._end, None
        if end is not None:
            end()


def start_all_reduce(t: torch.Tensor, kind: str, group: Group) -> Work:
    """Start all_reduce of the contiguous tensor `t` in place and return without waiting. Not for use in graphs."""
    _kind(kind)
    return Work(None) if group.size == 1 else Work(operators.start_all_reduce(t, KINDS[kind], _key(group)))
