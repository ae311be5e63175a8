"""Memories of what an agent saw, as reinforcement learning keeps them: rings of rows in Parameters, and buffers behind a handle."""
from __future__ import annotations

import itertools
from typing import Any

import torch

from torchspore.base.text import short
from torchspore.engine.core import device, dtypes
from torchspore.engine.core.generators import drawing
from torchspore.engine.core.tensor import modify, raw, wrap, write
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.graph.capture import trace_guard_hooks
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.declare import explaining, op

T = torch.Tensor
_RING = ("capacity", "buffer_shape", "buffer_dtype")


def _check_ring(data: Any, capacity: int, shapes: Any, kinds: Any) -> None:
    if len(data) != len(shapes) or len(kinds) != len(shapes):
        raise ValueError(f"expected {len(shapes)} Tensors, one for each shape and dtype, got {len(data)}, and {len(kinds)} dtypes.")
    for one, shape, kind in zip(data, shapes, kinds):
        if tuple(one.shape) != (capacity, *shape) or one.dtype != kind:
            raise ValueError(f"expected {kind} of shape {(capacity, *shape)}, got {one.dtype} of shape {tuple(one.shape)}.")


@op(primitive="BufferAppend", init=_RING, raw_arguments=True)
@explaining
def _buffer_append(data: Any, exp: Any, count: Any, head: Any, capacity: int, buffer_shape: Any, buffer_dtype: Any) -> Any:
    """Puts a row, or several, behind the last one of a ring of `capacity` rows in each Parameter of `data`; full, it loses its oldest.

    `count` says how many rows there are and `head` which is the first; both are Parameters of int32 and are moved on. Gives `count`.
    """
    _check_ring(data, capacity, buffer_shape, buffer_dtype)
    if len(exp) != len(data):
        raise ValueError(f"expected {len(data)} Tensors as exp, got {len(exp)}.")
    rows = exp[0].shape[0] if exp[0].ndim == data[0].ndim else 1
    for one, row in zip(data, exp):
        if tuple(row.shape) not in ((rows, *one.shape[1:]), one.shape[1:]) or rows > capacity or row.dtype != one.dtype:
            raise ValueError(f"expected {one.dtype} of shape {one.shape[1:]}, or of up to {capacity} such rows, "
                             f"got {row.dtype} of shape {tuple(row.shape)}.")
    known, first = raw(count), raw(head)
    at = (first.reshape(()) + known.reshape(()) + torch.arange(rows, device=known.device)) % capacity
    for one, row in zip(data, exp):
        new = raw(row).reshape(rows, *one.shape[1:])
        modify(one, lambda t, new=new: t.index_copy_(0, at.long(), new))  # type: ignore[misc]
    lost = (known + rows - capacity).clamp(min=0)
    write(head, ((first + lost) % capacity).to(first.dtype))
    write(count, (known + rows - lost).to(known.dtype))
    return count


@op(primitive="BufferGetItem", init=_RING)
def _buffer_get(data: Any, count: T, head: T, index: Any, capacity: int, buffer_shape: Any, buffer_dtype: Any) -> tuple[T, ...]:
    """Row `index` of a ring, counted from its first one; see BufferAppend."""
    at = (head.reshape(()) + torch.as_tensor(index, device=head.device).reshape(())) % capacity
    return tuple(one.index_select(0, at.reshape(1).long()).squeeze(0) for one in data)


@op(primitive="BufferSample", init=("capacity", "batch_size", "buffer_shape", "buffer_dtype", "seed", "unique"))
@drawing
def _buffer_sample(
    data: Any, count: T, head: T, capacity: int, batch_size: int, buffer_shape: Any, buffer_dtype: Any, seed: Any = 0,
    unique: bool = False,
) -> tuple[T, ...]:
    """`batch_size` rows of a ring, drawn; with `unique` each at most once. See BufferAppend."""
    if batch_size > capacity:
        raise ValueError(f"batch_size={batch_size}: expected {capacity} at most, the capacity.")
    source = stream(seed).on(head.device)
    if unique:
        if int(count) < batch_size:
            raise ValueError(f"expected {batch_size} rows to draw {batch_size} different ones from, got {int(count)}.")
        chosen = torch.randperm(int(count), generator=source, device=head.device)[:batch_size]
    else:
        chosen = (torch.rand(batch_size, generator=source, device=head.device, dtype=torch.float64) * count.reshape(())).long()
    at = (head.reshape(()) + chosen) % capacity
    return tuple(one.index_select(0, at) for one in data)


# ---- buffers behind a handle


class _Buffer:
    """Rows of several shapes, of which `size` are there, and how many were pushed."""

    def __init__(self, capacity: int, shapes: Any, kinds: Any, seeds: tuple[int, int]) -> None:
        self.capacity, self.size, self.pushed = capacity, 0, 0
        where = device.current()
        self.rows = [torch.zeros((capacity, *shape), dtype=dtypes.to_torch(kind), device=where) for shape, kind in zip(shapes, kinds)]
        self.random = Stream(*seeds)

    def generator(self) -> torch.Generator | None:
        return self.random.on(torch.device("cpu"))

    def put(self, at: int, transition: Any) -> None:
        if len(transition) != len(self.rows):
            raise ValueError(f"expected {len(self.rows)} Tensors, got {len(transition)}.")
        for rows, one in zip(self.rows, transition):
            rows[at].copy_(raw(one).reshape(rows.shape[1:]))
        self.size = max(self.size, at + 1)
        self.pushed += 1

    def taken(self, at: T) -> list[T]:
        return [rows[at.to(rows.device)] for rows in self.rows]

    def need(self, count: int) -> None:
        if not self.size:
            raise RuntimeError(f"expected a transition to draw {count} from: nothing was pushed.")


class _Priorities(_Buffer):
    """Prioritized experience replay (Schaul and others, 2015): rows are drawn in proportion to priority ** alpha."""

    def __init__(self, capacity: int, alpha: float, shapes: Any, kinds: Any, seeds: tuple[int, int]) -> None:
        super().__init__(capacity, shapes, kinds, seeds)
        self.alpha, self.highest = alpha, 1.0
        self.weights = torch.zeros(capacity, dtype=torch.float64)

    def push(self, transition: Any) -> None:
        at = self.pushed % self.capacity
        self.put(at, transition)
        self.weights[at] = self.highest ** self.alpha

    def sample(self, count: int, beta: float) -> list[T]:
        self.need(count)
        known = self.weights[: self.size]
        ends = known.cumsum(0)
        drawn = (torch.arange(count) + torch.rand(count, generator=self.generator(), dtype=torch.float64)) / count * ends[-1]
        at = torch.searchsorted(ends, drawn, right=True).clamp(max=self.size - 1)
        importance = (known[at] / known.min()) ** -beta
        return [at, importance.float(), *self.taken(at)]

    def update(self, indices: T, priorities: T) -> None:
        found = priorities.detach().cpu().double().reshape(-1)
        self.weights[indices.detach().cpu().long().reshape(-1)] = found ** self.alpha
        self.highest = max(self.highest, float(found.max()))


class _Reservoir(_Buffer):
    """A reservoir (Vitter, 1985): each row that was ever pushed is in it with the same probability."""

    def push(self, transition: Any) -> None:
        at = self.pushed
        if at >= self.capacity:
            at = int(torch.randint(self.pushed + 1, (), generator=self.generator()))
        if at < self.capacity:
            self.put(at, transition)
        else:
            self.pushed += 1

    def sample(self, count: int) -> list[T]:
        self.need(count)
        rounds = -(-count // self.size)
        return self.taken(torch.cat([torch.randperm(self.size, generator=self.generator()) for _ in range(rounds)])[:count])


_buffers: dict[int, Any] = {}
_handles = itertools.count()


def _made(buffer: _Buffer) -> Any:
    handle = next(_handles)
    _buffers[handle] = buffer
    return _handle(handle)


def _handle(handle: int) -> Any:
    return wrap(torch.tensor([handle]))


def _of(handle: int, kind: type[_Buffer]) -> Any:
    """The buffer of a handle. In GRAPH_MODE the call acts between two graphs."""
    trace_guard_hooks.ends_trace("uses a replay buffer", Kind.READS_VALUES)
    found = _buffers.get(handle) if isinstance(handle, int) else None
    if not isinstance(found, kind):
        raise TypeError(f"handle={short(handle)}: expected one that {kind.__name__.strip('_')} gave and that was not destroyed.".replace(
            "Priorities", "PriorityReplayBufferCreate").replace("Reservoir", "ReservoirReplayBufferCreate"))
    return found


def _let_go(handle: int, kind: type[_Buffer]) -> Any:
    """Forgets a buffer of this kind."""
    _of(handle, kind)
    del _buffers[handle]
    return _handle(handle)


def _check_capacity(capacity: int) -> None:
    if capacity < 1:
        raise ValueError(f"capacity={capacity}: expected an int above 0.")


@op(primitive="PriorityReplayBufferCreate", init=("capacity", "alpha", "shapes", "dtypes", "seed0", "seed1"), raw_arguments=True)
@explaining
def _priorities_create(capacity: int, alpha: float, shapes: Any, dtypes: Any, seed0: int = 0, seed1: int = 0) -> Any:
    """A buffer of `capacity` transitions that are drawn by their priority to the power of `alpha`; gives its handle, int64 (1,)."""
    _check_capacity(capacity)
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha={alpha}: expected a number from 0 to 1.")
    return _made(_Priorities(capacity, alpha, shapes, dtypes, (seed0, seed1)))


@op(primitive="PriorityReplayBufferPush", init=("handle",), raw_arguments=True)
@explaining
def _priorities_push(transition: Any, handle: int) -> Any:
    """Puts a transition, a tuple of Tensors, into the buffer, with the highest priority so far; full, it loses its oldest."""
    _of(handle, _Priorities).push(transition)
    return _handle(handle)


@op(primitive="PriorityReplayBufferSample", init=("handle", "batch_size", "shapes", "dtypes"), raw_arguments=True)
@explaining
def _priorities_sample(beta: Any, handle: int, batch_size: int, shapes: Any, dtypes: Any) -> Any:
    """`batch_size` transitions: indices (int64), the weights that correct for how likely they were (to `beta`), and they."""
    return tuple(map(wrap, _of(handle, _Priorities).sample(batch_size, float(beta))))


@op(primitive="PriorityReplayBufferUpdate", init=("handle",), raw_arguments=True)
@explaining
def _priorities_update(indices: Any, priorities: Any, handle: int) -> Any:
    """Gives the transitions at `indices` other priorities."""
    _of(handle, _Priorities).update(raw(indices), raw(priorities))
    return _handle(handle)


@op(primitive="PriorityReplayBufferDestroy", init=("handle",), raw_arguments=True)
@explaining
def _priorities_destroy(handle: int) -> Any:
    """Lets the buffer go."""
    return _let_go(handle, _Priorities)


@op(primitive="ReservoirReplayBufferCreate", init=("capacity", "shapes", "dtypes", "seed0", "seed1"), raw_arguments=True)
@explaining
def _reservoir_create(capacity: int, shapes: Any, dtypes: Any, seed0: int = 0, seed1: int = 0) -> Any:
    """A buffer of `capacity` transitions, each of all that were pushed with the same probability; gives its handle, int64 (1,)."""
    _check_capacity(capacity)
    return _made(_Reservoir(capacity, shapes, dtypes, (seed0, seed1)))


@op(primitive="ReservoirReplayBufferPush", init=("handle",), raw_arguments=True)
@explaining
def _reservoir_push(transition: Any, handle: int) -> Any:
    """Puts a transition, a tuple of Tensors, into the buffer, or leaves it out."""
    _of(handle, _Reservoir).push(transition)
    return _handle(handle)


@op(primitive="ReservoirReplayBufferSample", init=("handle", "batch_size", "shapes", "dtypes"), raw_arguments=True)
@explaining
def _reservoir_sample(handle: int, batch_size: int, shapes: Any, dtypes: Any) -> Any:
    """`batch_size` transitions, drawn; none comes again before all were drawn."""
    return tuple(map(wrap, _of(handle, _Reservoir).sample(batch_size)))


@op(primitive="ReservoirReplayBufferDestroy", init=("handle",), raw_arguments=True)
@explaining
def _reservoir_destroy(handle: int) -> Any:
    """Lets the buffer go."""
    return _let_go(handle, _Reservoir)
