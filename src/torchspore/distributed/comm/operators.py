"""The operators that exchange tensors: torch's collectives, and custom operators for exchanges that torch does not have.

Every operator names its group by a key, so that a graph with the operator can be stored. Passes never remove or reorder these operators.
For each of torch's collectives this module has a tracked function: on real tensors it starts the same collective and stores the handle, so
that the error of `wait_for` can name the missing rank.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed

from torchspore.base.text import message
from torchspore.blackbox import marks
from torchspore.distributed.comm import channels, groups, torch_diagnosis, watchdog
from torchspore.engine.torch_internals import torch_process_groups
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.engine.torch_internals.torch_private import modes_of_now
from torchspore.engine.torch_internals.torch_process_groups import processes_of
from torchspore.graph.fx import exchanges

functional: Any = torch.ops._c10d_functional
_Op = torch.distributed.ReduceOp
_KINDS: dict[str, Any] = {"sum": _Op.SUM, "max": _Op.MAX, "min": _Op.MIN, "product": _Op.PRODUCT, "avg": _Op.AVG}
_pending: dict[int, tuple[torch.Tensor, Any, watchdog.Waiting]] = {}
"""The exchanges that no caller has waited for, by the id of the tensor that each one fills."""


def _is_real(x: torch.Tensor) -> bool:
    """Return whether the tracked function runs. During a dump, it runs only for dtypes that torch's operator cannot send."""
    if type(x) is not torch.Tensor:
        return False
    modes = modes_of_now()
    return not modes or (x.dtype in UNKNOWN_TO_GLOO and all(getattr(mode, "looks_on", False) for mode in modes))


def _start_and_track(
    key: str, kind: str, x: torch.Tensor | None, out: torch.Tensor, start: Callable[[Any], Any], lengths: Any = None,
    program_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Start an exchange of `x` that fills `out`; return `out`."""
    _pending[id(out)] = (out, *_start(key, kind, x, start, lengths, program_dtype))
    return out


def _start(
    key: str, kind: str, x: torch.Tensor | None, start: Callable[[Any], Any], lengths: Any = None, program_dtype: torch.dtype | None = None,
) -> tuple[Any, watchdog.Waiting]:
    """Start an exchange of all ranks of a group when their claims agree. Return the handle and the record of the wait."""
    assert watchdog.watch is not None
    watch = watchdog.watch
    is_shared = channels.is_serial() and groups.shares_channel(key)
    if is_shared:
        channels.wait_for_others(key)
    waiting = watch.begin(key, kind, None if x is None else (program_dtype or x.dtype, x.shape), groups.ranks_of(key), lengths=lengths)
    watch.handshake.collect_claims(waiting)
    try:
        work = watch.handshake.start(key, _claims_to_compare(waiting.claims), lambda: start(processes_of(key)))
    except (RuntimeError, ValueError, TypeError) as error:                # gloo does not support the dtype
        raise _error_of(waiting, error) from None
    if is_shared:
        channels.add(key, work, lambda: _finish(work, waiting))
    return work, waiting


def _claims_to_compare(claims: list[tuple[str, int]] | None) -> list[tuple[str, int]] | None:
    """Return the claims to compare: none if the device waits for the exchange, because this thread cannot delay the device."""
    return None if claims and groups.has_queue() else claims


def _error_of(waiting: watchdog.Waiting, error: Exception) -> Exception:
    assert watchdog.watch is not None
    if groups.has_queue():
        torch_diagnosis.write_dump(groups.rank())
    return watchdog.watch.lost(waiting, error)


def finish(work: Any, waiting: watchdog.Waiting) -> None:
    """Wait for the end of an exchange. Raises CommunicationError if it cannot end."""
    if not marks.is_enabled:
        _finish(work, waiting)
        return
    marks.begin("operator", waiting.what)          # torch has no operator for a wait in a graph, and `op_timeout` must time it
    try:
        _finish(work, waiting)
    finally:
        marks.end()


def _finish(work: Any, waiting: watchdog.Waiting) -> None:
    assert watchdog.watch is not None
    works = [each for each in (work if isinstance(work, list) else [work]) if each is not None]
    if groups.has_queue():
        try:
            for each in works:
                each.wait()                        # the device waits, and torch's watchdog limits the time
        except RuntimeError as error:
            raise _error_of(waiting, error) from None
    elif waiting.others:
        watchdog.watch.finish_pairs(works, waiting)
    elif works:
        watchdog.watch.finish(work, waiting)


def wait_for(out: torch.Tensor) -> torch.Tensor:
    """Wait for the exchange that fills `out`; return `out`."""
    running = _pending.pop(id(out), None)
    if running is None:
        return functional.wait_tensor.default(out)
    finish(running[1], running[2])
    return out


def _shown(x: torch.Tensor) -> str:
    return watchdog.shown(x.dtype, x.shape)


# ---- tracked functions, with the arguments of torch's operators


def all_reduce(x: torch.Tensor, kind: str, key: str, program_dtype: torch.dtype | None = None) -> torch.Tensor:
    """Act as `_c10d_functional.all_reduce`; `program_dtype` is the dtype of the program's tensor, for messages."""
    if not _is_real(x):
        return functional.all_reduce.default(x, kind, key)
    out = x.clone(memory_format=torch.contiguous_format)
    return _start_and_track(
        key,
        f"AllReduce({kind})",
        x,
        out,
        lambda group: torch.distributed.all_reduce(out, _KINDS[kind], group, async_op=True),
        program_dtype=program_dtype,
    )


def start_all_reduce(t: torch.Tensor, kind: str, key: str) -> Callable[[], None]:
    """Start all_reduce in place; return the function that waits for it."""
    work, waiting = _start(key, f"AllReduce({kind})", t, lambda group: torch.distributed.all_reduce(t, _KINDS[kind], group, async_op=True))
    return lambda: finish(work, waiting)


def start_all_gather(out: torch.Tensor, x: torch.Tensor, key: str) -> Callable[[], None]:
    """Start to gather `x`, which may be this process's part of `out`, into `out`; return the function that waits for it."""
    work, waiting = _start(key, "AllGather", x, lambda group: torch_process_groups.all_gather_into(as_bytes(out), as_bytes(x), group))
    return lambda: finish(work, waiting)


def all_gather(x: torch.Tensor, size: int, key: str) -> torch.Tensor:
    """Act as `_c10d_functional.all_gather_into_tensor`."""
    if not _is_real(x):
        return functional.all_gather_into_tensor.default(x, size, key)
    out, contiguous = x.new_empty((size * x.shape[0], *x.shape[1:])), x.contiguous()
    return _start_and_track(
        key, "AllGather", x, out, lambda group: torch_process_groups.all_gather_into(as_bytes(out), as_bytes(contiguous), group),
    )


def reduce_scatter(x: torch.Tensor, kind: str, size: int, key: str, program_dtype: torch.dtype | None = None) -> torch.Tensor:
    """Act as `_c10d_functional.reduce_scatter_tensor`; `program_dtype` is the dtype of the program's tensor, for messages."""
    if not _is_real(x):
        return functional.reduce_scatter_tensor.default(x, kind, size, key)
    out, contiguous = x.new_empty((x.shape[0] // size, *x.shape[1:])), x.contiguous()
    return _start_and_track(
        key, f"ReduceScatter({kind})", x, out,
        lambda group: torch_process_groups.reduce_scatter_into(out, contiguous, _KINDS[kind], group), program_dtype=program_dtype,
    )


def all_to_all(x: torch.Tensor, received: list[int], sent: list[int], key: str) -> torch.Tensor:
    """Act as `_c10d_functional.all_to_all_single`."""
    if not _is_real(x):
        return functional.all_to_all_single.default(x, received, sent, key)
    out, contiguous = x.new_empty((sum(received), *x.shape[1:])), x.contiguous()
    return _start_and_track(
        key, f"AlltoAll of {watchdog.shown(x.dtype, ['..', *x.shape[1:]])}".replace("'", ""), None, out,
        lambda group: torch.distributed.all_to_all_single(as_bytes(out), as_bytes(contiguous), received, sent, group, async_op=True),
        (tuple(sent), tuple(received)),                   # lengths may differ between ranks
    )


def broadcast(x: torch.Tensor, root: int, key: str) -> torch.Tensor:
    """Act as `_c10d_functional.broadcast`, from the process with the index `root` in the group."""
    if not _is_real(x):
        return functional.broadcast.default(x, root, key)
    out = x.clone(memory_format=torch.contiguous_format)
    return _start_and_track(
        key, f"Broadcast({root})", x, out,
        lambda group: torch.distributed.broadcast(as_bytes(out), group=group, group_src=root, async_op=True),
    )


exchanges.tracked_collectives.update({
    "all_reduce": all_reduce, "all_gather_into_tensor": all_gather, "reduce_scatter_tensor": reduce_scatter,
    "all_to_all_single": all_to_all, "broadcast": broadcast, "wait_tensor": wait_for,
})


# ---- custom operators


def start_pair(call: Callable[..., Any], t: torch.Tensor, peer: int, tag: int, key: str) -> Callable[[], None]:
    """Start `isend` or `irecv`; return the function that waits for it."""
    work, waiting = _pair(call, t, peer, tag, key)
    return lambda: finish(work, waiting)


def _pair(call: Callable[..., Any], t: torch.Tensor, peer: int, tag: int, key: str) -> tuple[Any, watchdog.Waiting]:
    is_sent = call is torch.distributed.isend
    rank = groups.ranks_of(key)[peer]
    waiting = _begin_pairs(key, f"{'Send' if is_sent else 'Receive'} of {_shown(t)} {'to' if is_sent else 'from'} rank {rank}", (rank,))
    return _start_pair(call, t, peer, tag, key, waiting), waiting


def _begin_pairs(key: str, what: str, others: tuple[int, ...]) -> watchdog.Waiting:
    assert watchdog.watch is not None
    return watchdog.watch.begin(key + watchdog.PAIRS, what, None, groups.ranks_of(key), others)


def _start_pair(call: Callable[..., Any], t: torch.Tensor, peer: int, tag: int, key: str, waiting: watchdog.Waiting) -> Any:
    """Start `isend` or `irecv` when the claims of both processes agree. Return the handle."""
    assert watchdog.watch is not None
    is_sent, watch = call is torch.distributed.isend, watchdog.watch
    rank = groups.ranks_of(key)[peer]
    way = f"{watch.rank}>{rank}/{tag}" if is_sent else f"{rank}>{watch.rank}/{tag}"
    claims = _claims_to_compare(watch.handshake.collect_pair_claims(waiting, way, _shown(t)))
    group: dict[str, Any] = {"group_dst" if is_sent else "group_src": peer}
    try:
        return watch.handshake.start(f"{key} {way}", claims, lambda: call(as_bytes(t), group=processes_of(key), tag=tag, **group))
    except RuntimeError as error:
        raise _error_of(waiting, error) from None


def _send(x: torch.Tensor, peer: int, tag: int, key: str) -> torch.Tensor:
    """Start to send `x`. `wait_for` of the returned tensor ends the exchange."""
    out = x.clone(memory_format=torch.contiguous_format)
    _pending[id(out)] = (out, *_pair(torch.distributed.isend, out, peer, tag, key))
    return out


def _receive(shape: list[int], dtype: torch.dtype, device: torch.device, peer: int, tag: int, key: str) -> torch.Tensor:
    """Start to receive a value from the process with the index `peer`. `wait_for` of the returned tensor ends the exchange."""
    out = torch.empty(shape, dtype=dtype, device=device)
    _pending[id(out)] = (out, *_pair(torch.distributed.irecv, out, peer, tag, key))
    return out


def _run_blocking(key: str, what: str, start: Callable[[Any], Any]) -> None:
    """Run an exchange of all ranks of a group and wait for it."""
    finish(*_start(key, what, None, start))


def _scatter(x: torch.Tensor, root: int, key: str) -> torch.Tensor:
    """Return the slice of this process, along axis 0, of the `x` of the process `root`."""
    group = processes_of(key)
    count = torch.distributed.get_world_size(group)
    out = x.new_empty((x.shape[0] // count, *x.shape[1:]))
    is_root = torch.distributed.get_rank(group) == root
    shares = [as_bytes(share.contiguous()) for share in x.chunk(count)] if is_root else None
    _run_blocking(
        key, f"CollectiveScatter({root}) of {_shown(x)}",
        lambda group: torch.distributed.scatter(as_bytes(out), shares, group=group, group_src=root, async_op=True),
    )
    return out


def _gather(x: torch.Tensor, root: int, key: str) -> torch.Tensor:
    """Return the `x` of all processes along axis 0 in the process `root`, and zeros in the others."""
    group = processes_of(key)
    count = torch.distributed.get_world_size(group)
    is_root = torch.distributed.get_rank(group) == root
    out = x.new_zeros((count * x.shape[0], *x.shape[1:]))
    shares = [as_bytes(share) for share in out.chunk(count)] if is_root else None
    _run_blocking(
        key, f"CollectiveGather({root}) of {_shown(x)}",
        lambda group: torch.distributed.gather(as_bytes(x.contiguous()), shares, group=group, group_dst=root, async_op=True),
    )
    return out


def _exchange(
    sent: Sequence[torch.Tensor], to: Sequence[int], tags: Sequence[int], shapes: Sequence[int], sources: Sequence[int],
    source_tags: Sequence[int], like: torch.Tensor, key: str,
) -> list[torch.Tensor]:
    """Send `sent[i]` to the process `to[i]`; return the tensors that the processes `sources` send to this one.

    `shapes` lists the shape of each received tensor after its number of axes. The received tensors have the dtype of `like`.
    """
    received = _received(shapes, like)
    ranks = groups.ranks_of(key)
    words = [("Send of ", "sends ", f"{_shown(t)} to rank {ranks[peer]}") for t, peer in zip(sent, to)]
    words += [("Receive of ", "receives ", f"{_shown(t)} from rank {ranks[peer]}") for t, peer in zip(received, sources)]
    what = words[0][0] + words[0][2] if len(words) == 1 else f"an exchange that {', '.join(verb + rest for _, verb, rest in words)}"
    waiting = _begin_pairs(key, what, tuple(ranks[peer] for peer in (*sources, *to)))
    receive, send = torch.distributed.irecv, torch.distributed.isend
    works = [_start_pair(receive, t, peer, tag, key, waiting) for t, peer, tag in zip(received, sources, source_tags)]
    works += [_start_pair(send, t.contiguous(), peer, tag, key, waiting) for t, peer, tag in zip(sent, to, tags)]
    finish(works, waiting)
    return received


def _received(shapes: Sequence[int], like: torch.Tensor) -> list[torch.Tensor]:
    results, at = [], 0
    while at < len(shapes):
        axes = shapes[at]
        results.append(like.new_empty(list(shapes[at + 1:at + 1 + axes])))
        at += 1 + axes
    return results


def meet(key: str, what: str) -> None:
    """Wait until all processes of the group call this function with the same `what`.

    On accelerators Python waits too, through the half of the group that connects the hosts: the error names a process that does not come.
    """
    has_host_half = False

    def start(group: Any) -> Any:
        nonlocal has_host_half
        if groups.has_queue():
            with contextlib.suppress(RuntimeError, ValueError):                 # a group that somebody else made may connect devices alone
                work = torch.distributed.all_reduce(torch.zeros(1, device="cpu"), group=group, async_op=True)
                has_host_half = True
                return work
        return torch.distributed.barrier(group, async_op=True)

    work, waiting = _start(key, what, None, start)
    if has_host_half:
        assert watchdog.watch is not None
        watchdog.watch.finish(work, waiting)
    else:
        finish(work, waiting)


def _barrier(key: str) -> None:
    _run_blocking(key, "Barrier", lambda group: torch.distributed.barrier(group, async_op=True))


def as_bytes(t: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a contiguous tensor, in as many rows, if gloo does not support its dtype; otherwise the tensor."""
    if t.dtype not in UNKNOWN_TO_GLOO or t.device.type != "cpu":
        return t
    return t.reshape(t.shape[0] if t.ndim else 1, -1 if t.numel() else 0).view(torch.uint8)


UNKNOWN_TO_GLOO = frozenset({torch.int16, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64})


def count(key: str) -> int:
    """Return the number of processes of the group."""
    return len(groups.ranks_of(key))


scatter = define(
    "scatter(Tensor x, int root, str key) -> Tensor", _scatter,
    lambda x, root, key: x.new_empty((x.shape[0] // count(key), *x.shape[1:])), is_exchange=True,
)
gather = define(
    "gather(Tensor x, int root, str key) -> Tensor", _gather,
    lambda x, root, key: x.new_empty((x.shape[0] * count(key), *x.shape[1:])), is_exchange=True,
)
exchange = define(
    "exchange(Tensor[] sent, int[] to, int[] tags, int[] shapes, int[] sources, int[] source_tags, Tensor like, str key) -> Tensor[]",
    _exchange, lambda sent, to, tags, shapes, sources, source_tags, like, key: _received(shapes, like), is_exchange=True,
)
send = define(
    "send(Tensor x, int peer, int tag, str key) -> Tensor", _send,
    lambda x, peer, tag, key: torch.empty_like(x, memory_format=torch.contiguous_format), is_exchange=True,
)
receive = define(
    "receive(SymInt[] shape, ScalarType dtype, Device device, int peer, int tag, str key) -> Tensor", _receive,
    lambda shape, dtype, device, peer, tag, key: torch.empty(shape, dtype=dtype, device=device), is_exchange=True,
)
barrier = define("barrier(str key) -> ()", _barrier, lambda key: None, is_exchange=True)


def _refuse_planned(like: torch.Tensor, shape: list[int], name: str, devices: int) -> torch.Tensor:
    raise RuntimeError(message(f"{name} among {devices} devices in one process", "a process for each device",
                               hint="torchspore workers -n N SCRIPT"))


PLANNED = define(
    "planned_exchange(Tensor like, int[] shape, str name, int devices) -> Tensor", _refuse_planned,
    lambda like, shape, name, devices: like.new_empty(shape), is_exchange=True,
)
"""The value that a device receives in a graph that is compiled for devices without processes. Only its shape is known: to run it raises an
error."""
