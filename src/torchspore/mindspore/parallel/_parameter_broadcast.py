"""`parameter_broadcast`: sends replicated Parameters from the process that has them in its files."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.distributed import device_count
from torchspore.mindspore.nn.cell import Cell


def parameter_broadcast(net: Cell, layout: dict[str, Any], cur_rank: int = 0, initial_rank: int = 0) -> None:
    """Sends the values of replicated Parameters from the process that saved them in files without redundancy to the others.

    `layout` is the net's `parameter_layout_dict`, whose names are sent. `cur_rank` is this process, `initial_rank` the first process of its
    pipeline stage. A single process sends nothing. Raises TypeError unless the net is a Cell and the layout a dict, ValueError for other
    ranks and for a name that the net lacks.
    """
    if not isinstance(net, Cell):
        raise TypeError(message(f"parameter_broadcast({short(net)}, ...)", f"a Cell, got {type(net).__name__}"))
    if not isinstance(layout, dict):
        raise TypeError(message(f"parameter_broadcast(layout={short(layout)})", f"a dict, got {type(layout).__name__}"))
    from torchspore.distributed.comm import groups

    if not layout or not groups.is_started() or groups.size() == 1:
        return
    each = groups.size() // int(STORE.get("auto_parallel.pipeline_stages"))
    if cur_rank != device_count.rank():
        raise ValueError(message(f"parameter_broadcast(cur_rank={cur_rank})", f"the rank of this process, {device_count.rank()}"))
    if initial_rank % each:
        raise ValueError(message(f"parameter_broadcast(initial_rank={initial_rank})", "the first rank of a stage"))
    parameters = net.parameters_dict()
    missing = next((name for name in layout if name not in parameters), None)
    if missing is not None:
        raise ValueError(message(f"parameter_broadcast(layout={{{missing!r}: ...}})", "names of the net's Parameters"))
    _send([parameters[name] for name in layout])


def _send(parameters: list[Any]) -> None:
    from torchspore.distributed.shard import redundancy

    keepers = redundancy.keepers(parameters)
    for parameter in sorted(parameters, key=lambda parameter_to_send: str(parameter_to_send.name)):
        ranks = redundancy.holders(parameter)
        if len(ranks) > 1:
            redundancy.sent_from(parameter, ranks, ranks.index(keepers[str(parameter.name)]))
