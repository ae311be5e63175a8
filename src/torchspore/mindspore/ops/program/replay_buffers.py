"""Replay buffers for reinforcement learning: rings of rows in Parameters, and buffers with handles."""
from __future__ import annotations

import itertools
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.devices import device
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import modify, raw, wrap, write
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.declaration.declare import explaining, op

T = torch.Tensor
_RING = ("capacity", "buffer_shape", "buffer_dtype")


def _check_ring(data: Any, capacity: int, shapes: Any, kinds: Any) -> None:
    if len(data) != len(shapes) or len(kinds) != len(shapes):
        raise ValueError(f"expected {len(shapes)} Tensors, one for each shape and dtype, got {len(data)}, and {len(kinds)} dtypes.")
    for ring, shape, kind in zip(data, shapes, kinds):
        if tuple(ring.shape) != (capacity, *shape) or ring.dtype != kind:
            raise ValueError(f"expected {kind} of shape {(capacity, *shape)}, got {ring.dtype} of shape {tuple(ring.shape)}.")


@op(primitive="BufferAppend", init=_RING, raw_arguments=True)
@explaining
def _buffer_append(data: Any, exp: Any, count: Any, head: Any, capacity: int, buffer_shape: Any, buffer_dtype: Any) -> Any:
    """Append one or more rows to a ring of `capacity` rows in each Parameter of `data`; a full ring drops its oldest rows.

    `count` is the number of rows and `head` the index of the first; both are int32 Parameters and are updated. Return `count`.
    """
    _check_ring(data, capacity, buffer_shape, buffer_dtype)
    if len(exp) != len(data):
        raise ValueError(f"expected {len(data)} Tensors as exp, got {len(exp)}.")
    rows = exp[0].shape[0] if exp[0].ndim == data[0].ndim else 1
    for ring, row in zip(data, exp):
        if tuple(row.shape) not in ((rows, *ring.shape[1:]), ring.shape[1:]) or rows > capacity or row.dtype != ring.dtype:
            raise ValueError(f"expected {ring.dtype} of shape {ring.shape[1:]}, or of up to {capacity} such rows, "
                             f"got {row.dtype} of shape {tuple(row.shape)}.")
    filled, first = raw(count), raw(head)
    at = (first.reshape(()) + filled.reshape(()) + torch.arange(rows, device=filled.device)) % capacity
    for ring, row in zip(data, exp):
        new = raw(row).reshape(rows, *ring.shape[1:])
        modify(ring, lambda t, new=new: t.index_copy_(0, at.long(), new))  # type: ignore[misc]
    lost = (filled + rows - capacity).clamp(min=0)
    write(head, ((first + lost) % capacity).to(first.dtype))
    write(count, (filled + rows - lost).to(filled.dtype))
    return count


@op(primitive="BufferGetItem", init=_RING)
def _buffer_get(data: Any, count: T, head: T, index: Any, capacity: int, buffer_shape: Any, buffer_dtype: Any) -> tuple[T, ...]:
    """Return row `index` of a ring, counted from its first row; see BufferAppend."""
    at = (head.reshape(()) + torch.as_tensor(index, device=head.device).reshape(())) % capacity
    return tuple(ring.index_select(0, at.reshape(1).long()).squeeze(0) for ring in data)


@op(primitive="BufferSample", init=("capacity", "batch_size", "buffer_shape", "buffer_dtype", "seed", "unique"))
@drawing
def _buffer_sample(
    data: Any, count: T, head: T, capacity: int, batch_size: int, buffer_shape: Any, buffer_dtype: Any, seed: Any = 0,
    unique: bool = False,
) -> tuple[T, ...]:
    """Draw `batch_size` rows of a ring; with `unique`, each at most once. See BufferAppend."""
    if batch_size > capacity:
        raise ValueError(f"batch_size={batch_size}: expected {capacity} at most, the capacity.")
    source = stream(seed).on(head.device)
    if unique:
        if int(count) < batch_size:
            raise ValueError(f"expected at least {batch_size} rows to draw {batch_size} different ones, got {int(count)}.")
        chosen = torch.randperm(int(count), generator=source, device=head.device)[:batch_size]
    else:
        chosen = (torch.rand(batch_size, generator=source, device=head.device, dtype=torch.float64) * count.reshape(())).long()
    at = (head.reshape(()) + chosen) % capacity
    return tuple(ring.index_select(0, at) for ring in data)


# ---- buffers with handles


class _Buffer:
    """Stores `size` rows of several shapes, and counts all pushed rows."""

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
        for rows, value in zip(self.rows, transition):
            rows[at].copy_(raw(value).reshape(rows.shape[1:]))
        self.size = max(self.size, at + 1)
        self.pushed += 1

    def taken(self, at: T) -> list[T]:
        return [rows[at.to(rows.device)] for rows in self.rows]

    def need(self, count: int) -> None:
        if not self.size:
            raise RuntimeError(f"expected at least one pushed transition to draw {count}, got none.")


class _Priorities(_Buffer):
    """Prioritized experience replay (Schaul and others, 2015): a row's probability is proportional to priority ** alpha."""

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
        filled_weights = self.weights[: self.size]
        ends = filled_weights.cumsum(0)
        drawn = (torch.arange(count) + torch.rand(count, generator=self.generator(), dtype=torch.float64)) / count * ends[-1]
        at = torch.searchsorted(ends, drawn, right=True).clamp(max=self.size - 1)
        importance = (filled_weights[at] / filled_weights.min()) ** -beta
        return [at, importance.float(), *self.taken(at)]

    def update(self, indices: T, priorities: T) -> None:
        new_priorities = priorities.detach().cpu().double().reshape(-1)
        self.weights[indices.detach().cpu().long().reshape(-1)] = new_priorities ** self.alpha
        self.highest = max(self.highest, float(new_priorities.max()))


class _Reservoir(_Buffer):
    """A reservoir (Vitter, 1985): each row that was ever pushed is in it with equal probability."""

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


def _register(buffer: _Buffer) -> Any:
    handle = next(_handles)
    _buffers[handle] = buffer
    return _handle(handle)


def _handle(handle: int) -> Any:
    return wrap(torch.tensor([handle]))


def _of(handle: int, kind: type[_Buffer]) -> Any:
    """Return the buffer of a handle. In GRAPH_MODE the call acts between two graphs."""
    running_trace.ends_trace("uses a replay buffer", Kind.READS_VALUES)
    buffer = _buffers.get(handle) if isinstance(handle, int) else None
    if not isinstance(buffer, kind):
        raise TypeError(f"handle={short(handle)}: expected the handle of a {kind.__name__.strip('_')} that was not destroyed.".replace(
            "Priorities", "PriorityReplayBufferCreate").replace("Reservoir", "ReservoirReplayBufferCreate"))
    return buffer


def _let_go(handle: int, kind: type[_Buffer]) -> Any:
    """Delete a buffer of this kind."""
    _of(handle, kind)
    del _buffers[handle]
    return _handle(handle)


def _check_capacity(capacity: int) -> None:
    if capacity < 1:
        raise ValueError(message(f"capacity={capacity}", "an int above 0"))


@op(primitive="PriorityReplayBufferCreate", init=("capacity", "alpha", "shapes", "dtypes", "seed0", "seed1"), raw_arguments=True)
@explaining
def _priorities_create(capacity: int, alpha: float, shapes: Any, dtypes: Any, seed0: int = 0, seed1: int = 0) -> Any:
    """Create a buffer of `capacity` transitions, drawn by their priority to the power of `alpha`; return its handle, int64 (1,)."""
    _check_capacity(capacity)
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha={alpha}: expected a number from 0 to 1.")
    return _register(_Priorities(capacity, alpha, shapes, dtypes, (seed0, seed1)))


@op(primitive="PriorityReplayBufferPush", init=("handle",), raw_arguments=True)
@explaining
def _priorities_push(transition: Any, handle: int) -> Any:
    """Push a transition, a tuple of Tensors, with the highest priority so far; a full buffer drops its oldest transition."""
    _of(handle, _Priorities).push(transition)
    return _handle(handle)


@op(primitive="PriorityReplayBufferSample", init=("handle", "batch_size", "shapes", "dtypes"), raw_arguments=True)
@explaining
def _priorities_sample(beta: Any, handle: int, batch_size: int, shapes: Any, dtypes: Any) -> Any:
    """Draw `batch_size` transitions: indices (int64), weights that correct for their probabilities (to `beta`), and the transitions."""
    return tuple(map(wrap, _of(handle, _Priorities).sample(batch_size, float(beta))))


@op(primitive="PriorityReplayBufferUpdate", init=("handle",), raw_arguments=True)
@explaining
def _priorities_update(indices: Any, priorities: Any, handle: int) -> Any:
    """Set the priorities of the transitions at `indices`."""
    _of(handle, _Priorities).update(raw(indices), raw(priorities))
    return _handle(handle)


@op(primitive="PriorityReplayBufferDestroy", init=("handle",), raw_arguments=True)
@explaining
def _priorities_destroy(handle: int) -> Any:
    """Delete the buffer."""
    return _let_go(handle, _Priorities)


@op(primitive="ReservoirReplayBufferCreate", init=("capacity", "shapes", "dtypes", "seed0", "seed1"), raw_arguments=True)
@explaining
def _reservoir_create(capacity: int, shapes: Any, dtypes: Any, seed0: int = 0, seed1: int = 0) -> Any:
    """Create a buffer of `capacity` transitions that keeps each pushed one with equal probability; return its handle, int64 (1,)."""
    _check_capacity(capacity)
    return _register(_Reservoir(capacity, shapes, dtypes, (seed0, seed1)))


@op(primitive="ReservoirReplayBufferPush", init=("handle",), raw_arguments=True)
@explaining
def _reservoir_push(transition: Any, handle: int) -> Any:
    """Push a transition, a tuple of Tensors, into the buffer, or drop it."""
    _of(handle, _Reservoir).push(transition)
    return _handle(handle)


@op(primitive="ReservoirReplayBufferSample", init=("handle", "batch_size", "shapes", "dtypes"), raw_arguments=True)
@explaining
def _reservoir_sample(handle: int, batch_size: int, shapes: Any, dtypes: Any) -> Any:
    """Draw `batch_size` transitions; none is repeated before all were drawn."""
    return tuple(map(wrap, _of(handle, _Reservoir).sample(batch_size)))


@op(primitive="ReservoirReplayBufferDestroy", init=("handle",), raw_arguments=True)
@explaining
def _reservoir_destroy(handle: int) -> Any:
    """Delete the buffer."""
    return _let_go(handle, _Reservoir)
