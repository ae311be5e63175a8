"""`parameter_broadcast`: the Parameters of process 0 for all, before they are first trained with."""
from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.data_parallel import option_effects, settings
from torchspore.distributed.data_parallel.gradient_reduction import is_traced
from torchspore.engine.split_layouts.sharded_value import ShardedValue

_sent: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""The Parameters that have been sent, by their ids."""


class _Connection:
    """The store through which processes exchange values of Parameters."""

    def __init__(self) -> None:
        self.store: Any = None
        """The store of the processes at the time of the broadcast."""


_CONNECTION = _Connection()
_LARGEST = 64 << 20
"""Bytes of a message."""
_NAME = "parameter_broadcast"
OPTION = "auto_parallel." + _NAME


def begin(parameters: Iterable[Any]) -> None:
    """Send Parameters that were not sent before from process 0 to all others; every process must make this call alike.

    Parameters with `layerwise_parallel`, and values of which each process stores a part (the state of a sharded optimizer), are unchanged.
    During a capture nothing is sent: the captured graph calls this function when it is complete.
    """
    if not STORE.get(OPTION) or is_traced():
        return
    if not settings.is_shared():
        where = "there is one process" if settings.processes() == 1 else f"{settings.mode()!r} uses equal seeds instead"
        option_effects.report_option(_NAME, Outcome.no_effect(where))
        return
    _forget_others()
    unsent = [p for p in parameters if id(p) not in _sent and not _is_local(p)]
    if not unsent:
        return
    send(unsent)
    for parameter in unsent:
        _sent[id(parameter)] = parameter
    option_effects.report_option(_NAME, Outcome.applied("process 0 sends its Parameters before they are first trained"))


def _is_local(parameter: Any) -> bool:
    return getattr(parameter, "layerwise_parallel", False) or isinstance(parameter._t, ShardedValue)


def _messages(parameters: list[Any]) -> list[list[Any]]:
    """The Parameters in rows of one dtype and device, none of many bytes."""
    rows: dict[Any, list[Any]] = {}
    filled: dict[Any, int] = {}
    done: list[list[Any]] = []
    for parameter in parameters:
        t = parameter._t
        kind = (t.dtype, t.device)
        if kind in rows and filled[kind] + t.nbytes > _LARGEST:
            done.append(rows.pop(kind))
        if kind not in rows:
            rows[kind], filled[kind] = [], 0
        rows[kind].append(parameter)
        filled[kind] += t.nbytes
    return done + list(rows.values())


def send(parameters: list[Any], group: Group | None = None) -> None:
    """Send Parameters from the first process of a group to the others (of all processes if the group is None)."""
    from torchspore.distributed.comm import groups

    for message in _messages(parameters):
        _send([p._t for p in message], group or groups.world())


def _send(values: list[torch.Tensor], group: Group) -> None:
    from torchspore.distributed.comm import collectives

    with torch.no_grad():
        row = collectives.broadcast(torch.cat([t.reshape(-1) for t in values]), 0, group)
        for t, part in zip(values, row.split([t.numel() for t in values])):
            t.copy_(part.view(t.shape))


def _forget_others() -> None:
    """Forget which values were sent to processes of groups that no longer exist."""
    from torchspore.distributed.comm import groups

    if _CONNECTION.store is not groups.store():
        _CONNECTION.store = groups.store()
        _sent.clear()
