"""The operators of exchanges: torch's own, by their names, and those that torch has not, with what each gives for fake tensors.

All are called by the key of a group, so that a graph which names them can be kept. They are never taken out and keep their order. On real
tensors each of torch's has a twin here, which starts the same exchange and keeps its handle: `waited` can then say who does not come.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed

from torchspore.blackbox import marks
from torchspore.distributed.comm import groups, watchdog
from torchspore.engine.core import torch_private
from torchspore.engine.core.custom_operators import define
from torchspore.engine.core.torch_private import modes_of_now, processes_of
from torchspore.graph.fx import exchanges

functional: Any = torch.ops._c10d_functional
_Op = torch.distributed.ReduceOp
_KINDS: dict[str, Any] = {"sum": _Op.SUM, "max": _Op.MAX, "min": _Op.MIN, "product": _Op.PRODUCT, "avg": _Op.AVG}
_running: dict[int, tuple[torch.Tensor, Any, watchdog.Waiting]] = {}
"""The exchanges that nobody has waited for, by the id of the tensor that each fills."""


def _is_real(x: torch.Tensor) -> bool:
    """Return whether the twin is called: where a dump looks on, only for what torch's operator could not send."""
    if type(x) is not torch.Tensor:
        return False
    modes = modes_of_now()
    return not modes or (x.dtype in UNKNOWN_TO_GLOO and all(getattr(mode, "looks_on", False) for mode in modes))


def _started(
    key: str, kind: str, x: torch.Tensor | None, out: torch.Tensor, start: Callable[[Any], Any], lengths: Any = None,
    announced: torch.dtype | None = None,
) -> torch.Tensor:
    """Starts an exchange of `x` that fills `out`."""
    _running[id(out)] = (out, *_start(key, kind, x, start, lengths, announced))
    return out


def _start(
    key: str, kind: str, x: torch.Tensor | None, start: Callable[[Any], Any], lengths: Any = None, announced: torch.dtype | None = None,
) -> tuple[Any, watchdog.Waiting]:
    """Starts an exchange of a whole group, once all say the same of it; gives what it is waited for by."""
    assert watchdog.watch is not None
    watch = watchdog.watch
    waiting = watch.begin(key, kind, None if x is None else (announced or x.dtype, x.shape), groups.ranks_of(key), lengths=lengths)
    watch.firsts.look(waiting)
    try:
        return watch.firsts.start(key, _claims(waiting.claims), lambda: start(processes_of(key))), waiting
    except (RuntimeError, ValueError, TypeError) as error:                # gloo does not know the dtype
        raise _failed(waiting, error) from None


def _claims(new: list[tuple[str, int]] | None) -> list[tuple[str, int]] | None:
    """What is to be compared: nothing where the device waits, which this thread could not look after."""
    return None if new and groups.has_queue() else new


def _failed(waiting: watchdog.Waiting, error: Exception) -> Exception:
    assert watchdog.watch is not None
    return watchdog.watch.lost(waiting, error)


def finish(work: Any, waiting: watchdog.Waiting) -> None:
    """Waits until an exchange is over. Raises CommunicationError where it can't be."""
    if not marks.is_enabled:
        _finish(work, waiting)
        return
    marks.begin("operator", waiting.what)          # a wait in a graph is not an operator of torch's, and `op_timeout` is to see it
    try:
        _finish(work, waiting)
    finally:
        marks.end()


def _finish(work: Any, waiting: watchdog.Waiting) -> None:
    assert watchdog.watch is not None
    works = [each for each in (work if isinstance(work, list) else [work]) if each is not None]
    if groups.has_queue():
        for each in works:
            each.wait()                            # the device waits, not this thread; torch's own watchdog looks after it
    elif waiting.others:
        watchdog.watch.finish_pairs(works, waiting)
    elif works:
        watchdog.watch.finish(work, waiting)


def waited(out: torch.Tensor) -> torch.Tensor:
    """The tensor, when what fills it is over."""
    running = _running.pop(id(out), None)
    if running is None:
        return functional.wait_tensor.default(out)
    finish(running[1], running[2])
    return out


def _shown(x: torch.Tensor) -> str:
    return watchdog.shown(x.dtype, x.shape)


# ---- twins of torch's operators, which take the same arguments


def all_reduce(x: torch.Tensor, kind: str, key: str, announced: torch.dtype | None = None) -> torch.Tensor:
    """As `_c10d_functional.all_reduce`; `announced` is what the program calls its dtype."""
    if not _is_real(x):
        return functional.all_reduce.default(x, kind, key)
    out = x.clone(memory_format=torch.contiguous_format)
    return _started(
        key,
        f"AllReduce({kind})",
        x,
        out,
        lambda group: torch.distributed.all_reduce(out, _KINDS[kind], group, async_op=True),
        announced=announced,
    )


def start_all_reduce(t: torch.Tensor, kind: str, key: str) -> Callable[[], None]:
    """Begins all_reduce in place; gives what waits for it."""
    work, waiting = _start(key, f"AllReduce({kind})", t, lambda group: torch.distributed.all_reduce(t, _KINDS[kind], group, async_op=True))
    return lambda: finish(work, waiting)


def all_gather(x: torch.Tensor, size: int, key: str) -> torch.Tensor:
    """As `_c10d_functional.all_gather_into_tensor`."""
    if not _is_real(x):
        return functional.all_gather_into_tensor.default(x, size, key)
    out, contiguous = x.new_empty((size * x.shape[0], *x.shape[1:])), x.contiguous()
    return _started(
        key, "AllGather", x, out, lambda group: torch_private.all_gather_into(as_bytes(out), as_bytes(contiguous), group),
    )


def reduce_scatter(x: torch.Tensor, kind: str, size: int, key: str, announced: torch.dtype | None = None) -> torch.Tensor:
    """As `_c10d_functional.reduce_scatter_tensor`; `announced` is what the program calls its dtype."""
    if not _is_real(x):
        return functional.reduce_scatter_tensor.default(x, kind, size, key)
    out, contiguous = x.new_empty((x.shape[0] // size, *x.shape[1:])), x.contiguous()
    return _started(
        key, f"ReduceScatter({kind})", x, out,
        lambda group: torch_private.reduce_scatter_into(out, contiguous, _KINDS[kind], group), announced=announced,
    )


def all_to_all(x: torch.Tensor, received: list[int], sent: list[int], key: str) -> torch.Tensor:
    """As `_c10d_functional.all_to_all_single`."""
    if not _is_real(x):
        return functional.all_to_all_single.default(x, received, sent, key)
    out, contiguous = x.new_empty((sum(received), *x.shape[1:])), x.contiguous()
    return _started(
        key, f"AlltoAll of {watchdog.shown(x.dtype, ['..', *x.shape[1:]])}".replace("'", ""), None, out,
        lambda group: torch.distributed.all_to_all_single(as_bytes(out), as_bytes(contiguous), received, sent, group, async_op=True),
        (tuple(sent), tuple(received)),                   # these may differ between ranks
    )


def broadcast(x: torch.Tensor, root: int, key: str) -> torch.Tensor:
    """As `_c10d_functional.broadcast`: from the process at that place of the group."""
    if not _is_real(x):
        return functional.broadcast.default(x, root, key)
    out = x.clone(memory_format=torch.contiguous_format)
    return _started(
        key, f"Broadcast({root})", x, out,
        lambda group: torch.distributed.broadcast(as_bytes(out), group=group, group_src=root, async_op=True),
    )


exchanges.twins.update({
    "all_reduce": all_reduce, "all_gather_into_tensor": all_gather, "reduce_scatter_tensor": reduce_scatter,
    "all_to_all_single": all_to_all, "broadcast": broadcast, "wait_tensor": waited,
})


# ---- operators that torch has not


def start_pair(call: Callable[..., Any], t: torch.Tensor, peer: int, tag: int, key: str) -> Callable[[], None]:
    """Begins `isend` or `irecv`; gives what waits for it."""
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
    """Begins `isend` or `irecv`, once the other says the same of it; gives what it is waited for by."""
    assert watchdog.watch is not None
    is_sent, watch = call is torch.distributed.isend, watchdog.watch
    rank = groups.ranks_of(key)[peer]
    way = f"{watch.rank}>{rank}/{tag}" if is_sent else f"{rank}>{watch.rank}/{tag}"
    claims = _claims(watch.firsts.look_at_pair(waiting, way, _shown(t)))
    group: dict[str, Any] = {"group_dst" if is_sent else "group_src": peer}
    try:
        return watch.firsts.start(f"{key} {way}", claims, lambda: call(as_bytes(t), group=processes_of(key), tag=tag, **group))
    except RuntimeError as error:
        raise _failed(waiting, error) from None


def _passed_on(x: torch.Tensor, peer: int, tag: int, key: str) -> torch.Tensor:
    """Begins to send `x`; what is given is waited for like the result of an exchange."""
    out = x.clone(memory_format=torch.contiguous_format)
    _running[id(out)] = (out, *_pair(torch.distributed.isend, out, peer, tag, key))
    return out


def _taken_over(shape: list[int], dtype: torch.dtype, device: torch.device, peer: int, tag: int, key: str) -> torch.Tensor:
    """Begins to receive a value from the process at `peer`; it is there when what is given was waited for."""
    out = torch.empty(shape, dtype=dtype, device=device)
    _running[id(out)] = (out, *_pair(torch.distributed.irecv, out, peer, tag, key))
    return out


def _now(key: str, what: str, start: Callable[[Any], Any]) -> None:
    """An exchange of a whole group that is over when this is."""
    finish(*_start(key, what, None, start))


def _scatter(x: torch.Tensor, root: int, key: str) -> torch.Tensor:
    """The share of this process, along axis 0, of the `x` of the process at `root`."""
    group = processes_of(key)
    count = torch.distributed.get_world_size(group)
    out = x.new_empty((x.shape[0] // count, *x.shape[1:]))
    is_root = torch.distributed.get_rank(group) == root
    shares = [as_bytes(share.contiguous()) for share in x.chunk(count)] if is_root else None
    _now(
        key, f"CollectiveScatter({root}) of {_shown(x)}",
        lambda group: torch.distributed.scatter(as_bytes(out), shares, group=group, group_src=root, async_op=True),
    )
    return out


def _gather(x: torch.Tensor, root: int, key: str) -> torch.Tensor:
    """The `x` of all processes along axis 0 for the one at `root`, zeros for the others."""
    group = processes_of(key)
    count = torch.distributed.get_world_size(group)
    is_root = torch.distributed.get_rank(group) == root
    out = x.new_zeros((count * x.shape[0], *x.shape[1:]))
    shares = [as_bytes(share) for share in out.chunk(count)] if is_root else None
    _now(
        key, f"CollectiveGather({root}) of {_shown(x)}",
        lambda group: torch.distributed.gather(as_bytes(x.contiguous()), shares, group=group, group_dst=root, async_op=True),
    )
    return out


def _exchange(
    sent: Sequence[torch.Tensor], to: Sequence[int], tags: Sequence[int], shapes: Sequence[int], sources: Sequence[int],
    source_tags: Sequence[int], like: torch.Tensor, key: str,
) -> list[torch.Tensor]:
    """Sends `sent[i]` to the process at `to[i]`, and gives what those at `sources` send here.

    `shapes` are those of what comes, one after the other, each after its number of axes; `like` has its dtype.
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
    """Waits for the others of the group, which must come with the same words."""
    _now(key, what, lambda group: torch.distributed.barrier(group, async_op=True))


def _barrier(key: str) -> None:
    _now(key, "Barrier", lambda group: torch.distributed.barrier(group, async_op=True))


def as_bytes(t: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor as its bytes, of as many rows, where gloo does not know its dtype."""
    if t.dtype not in UNKNOWN_TO_GLOO or t.device.type != "cpu":
        return t
    return t.reshape(t.shape[0] if t.ndim else 1, -1 if t.numel() else 0).view(torch.uint8)


UNKNOWN_TO_GLOO = frozenset({torch.int16, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64})


def count(key: str) -> int:
    """How many processes the group has."""
    return len(groups.ranks_of(key))


scatter = define(
    "scatter(Tensor x, int place, str key) -> Tensor", _scatter,
    lambda x, root, key: x.new_empty((x.shape[0] // count(key), *x.shape[1:])),
)
gather = define(
    "gather(Tensor x, int place, str key) -> Tensor", _gather,
    lambda x, root, key: x.new_empty((x.shape[0] * count(key), *x.shape[1:])),
)
exchange = define(
    "exchange(Tensor[] sent, int[] to, int[] tags, int[] shapes, int[] sources, int[] source_tags, Tensor like, str key) -> Tensor[]",
    _exchange, lambda sent, to, tags, shapes, sources, source_tags, like, key: _received(shapes, like),
)
pass_on = define(
    "pass_on(Tensor x, int place, int tag, str key) -> Tensor", _passed_on,
    lambda x, peer, tag, key: torch.empty_like(x, memory_format=torch.contiguous_format),
)
take_over = define(
    "take_over(SymInt[] shape, ScalarType dtype, Device device, int place, int tag, str key) -> Tensor", _taken_over,
    lambda shape, dtype, device, peer, tag, key: torch.empty(shape, dtype=dtype, device=device),
)
barrier = define("barrier(str key) -> ()", _barrier, lambda key: None)
