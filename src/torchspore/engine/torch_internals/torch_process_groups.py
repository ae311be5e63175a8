"""torch's private functions for process groups, and for its Flight Recorder; `torch_private` has all others."""
from __future__ import annotations

import sys
from typing import Any

import torch


def _c10d_bindings() -> Any:
    return torch._C._distributed_c10d


def recorded_exchanges() -> bytes:
    """The last exchanges of this process in torch's Flight Recorder: a pickle."""
    return bytes(_c10d_bindings()._dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False))


def start_processes(backend: str, store: Any, rank: int, size: int, timeout: Any, key: str) -> None:
    """Create torch's default process group, which operators know as `key`."""
    import torch.distributed._functional_collectives  # how the operators of exchanges act on fake tensors

    show_error = sys.excepthook
    torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
    sys.excepthook = show_error                    # torch's hook would print all frames, where `torchspore run` shows the user's line
    world: Any = torch.distributed.group.WORLD
    _c10d_bindings()._register_process_group(key, world)


def adopted_store(key: str) -> Any:
    """The store of the default group of processes that somebody else has made, which operators know as `key` from now on."""
    import torch.distributed._functional_collectives  # how the operators of exchanges act on fake tensors
    from torch.distributed import distributed_c10d as c10d

    world: Any = torch.distributed.group.WORLD
    _c10d_bindings()._register_process_group(key, world)
    return c10d.PrefixStore("torchspore", c10d._get_default_store())


def new_processes(ranks: tuple[int, ...], key: str) -> Any:
    """A group of processes that operators know as `key`; only its members call this.

    `torch.distributed.new_group` would make up the name, out of how many groups this process has: processes of unequal counts never meet.
    """
    from torch.distributed import distributed_c10d as c10d

    world = c10d._get_default_group()
    _, store = c10d._world.pg_map[world]
    timeout = world._get_backend(torch.device("cpu")).options._timeout
    group, _ = c10d._new_process_group_helper(
        len(ranks), ranks.index(world.rank()), list(ranks), c10d.Backend(c10d._world.pg_backend_config[world]), store,
        c10d.GroupName(key), timeout=timeout, group_desc=key,
    )
    c10d._world.pg_group_ranks[group] = {rank: position for position, rank in enumerate(ranks)}
    return group


def all_gather_into(out: torch.Tensor, x: torch.Tensor, group: Any) -> Any:
    """Begins to gather `x` of all processes into `out`; torch 2.13 has another name for it."""
    call: Any = getattr(torch.distributed, "all_gather_single", None) or torch.distributed.all_gather_into_tensor
    return call(out, x, group=group, async_op=True)


def reduce_scatter_into(out: torch.Tensor, x: torch.Tensor, operation: Any, group: Any) -> Any:
    """Begins to reduce `x` of all processes and to put the share of this one into `out`."""
    call: Any = getattr(torch.distributed, "reduce_scatter_single", None) or torch.distributed.reduce_scatter_tensor
    return call(out, x, op=operation, group=group, async_op=True)


def processes_of(key: str) -> Any:
    """The group of processes that operators know by `key`."""
    return _c10d_bindings()._resolve_process_group(key)


def abandon_processes(groups: list[Any]) -> None:
    """Leave groups unchanged for the rest of the process: destroying them would wait for an exchange that never ends."""
    import ctypes

    for group in groups:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


def stop_processes(keys: list[str]) -> None:
    """Ends all groups of processes."""
    for key in keys:
        _c10d_bindings()._unregister_process_group(key)
    torch.distributed.destroy_process_group()
