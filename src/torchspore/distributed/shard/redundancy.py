"""Values that several processes store: which process writes them to files, and how the others read them again."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchspore.distributed import device_count
from torchspore.distributed.comm import collectives, groups, object_collectives
from torchspore.distributed.data_parallel import optimizer_shards
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.split_layouts.sharded_layout import ShardedLayout, sharded_layout_of
from torchspore.engine.split_layouts.sharded_value import local_part as own_part
from torchspore.engine.tensors.tensor import raw, wrap


def holders(parameter: Any) -> tuple[int, ...]:
    """Return the ranks that store the same part of a Parameter as this process, in order; empty if this process stores no part."""
    share, layout = parameter.__dict__.get(optimizer_shards.MARK), sharded_layout_of(parameter)
    if share is not None:
        return tuple(share.others.ranks)
    return groups.world().ranks if layout is None else _alike(layout)


def _alike(layout: ShardedLayout) -> tuple[int, ...]:
    mesh, position = Mesh(layout.matrix), layout.position(device_count.rank())
    if position is None:
        return ()
    taken = layout.layout(mesh).axes
    positions = mesh.group(position, (axis for axis in range(len(mesh.sizes)) if axis not in taken))
    if layout.stage is not None:
        return tuple(layout.first + position for position in positions)
    return tuple(rank for rank in range(groups.size()) if rank % mesh.count in positions)


def keepers(parameters: Iterable[Any]) -> dict[str, int]:
    """Return, by the names of the Parameters on this process, the rank that saves each: processes with equal parts take turns, in the order
    of names."""
    turns: dict[tuple[int, ...], int] = {}
    ranks_by_name = {}
    for name, ranks in sorted((str(parameter.name), holders(parameter)) for parameter in parameters):
        if ranks:
            turn = turns.get(ranks, 0)
            ranks_by_name[name], turns[ranks] = ranks[turn % len(ranks)], turn + 1
    return ranks_by_name


def filled(parameters: Iterable[Any], has: set[str]) -> set[str]:
    """Send Parameters that are missing in `has` from a process that stores the same part and has the value. Return their names.

    Every process must make this call.
    """
    names = set[str]()
    everyone = [set(names) for names in object_collectives.all_gather(sorted(has), groups.world())]
    for parameter in sorted(parameters, key=lambda parameter: str(parameter.name)):
        ranks, name = holders(parameter), str(parameter.name)
        having = [position for position, rank in enumerate(ranks) if name in everyone[rank]]
        if having and len(having) < len(ranks):
            sent_from(parameter, ranks, having[0])
            if name not in has:
                names.add(name)
    return names


def sent_from(parameter: Any, ranks: tuple[int, ...], position: int) -> None:
    """Send the part of a Parameter from one of these ranks, which all store it, to the others."""
    local_part = own_part(raw(parameter)).detach().contiguous()
    parameter.set_data(wrap(collectives.broadcast(local_part.clone(), position, groups.of_ranks(ranks))))
