"""`mindspore.ops.communication`: exchanges between processes as functions that write into their arguments.

They are the functions of `mint.distributed`; `set_comm_ops_inplace` makes five of them return new Tensors instead.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.ops import process_groups
from torchspore.mindspore.ops.process_groups import (
    P2POp,
    TCPStore,
    arguments,
    comm_func,
    destroy_process_group,
    exchange,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
    point_to_point,
)
from torchspore.mindspore.ops.process_groups.arguments import CommHandle, group_of, rank_in_group

WithHandle = tuple[Any, CommHandle | None]
_GIVING = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "recv", "irecv")
_WRITING = (
    "all_gather", "all_gather_into_tensor_uneven", "all_gather_object", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "gather", "gather_object", "isend", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_tensor_uneven", "scatter", "scatter_object_list", "send", "send_object_list",
)
_EXTRA = ("all_to_all_v_c", "gather_into_tensor", "scatter_tensor")
_writes_in_place = dict.fromkeys((*_GIVING, *_WRITING, *_EXTRA), True)


def set_comm_ops_inplace(is_enable: bool, func_list: Any = None) -> None:
    """Set whether functions (those named in `func_list`, or all) write into their Tensor arguments. The default is True.

    With False, `all_reduce`, `all_gather_into_tensor`, `reduce_scatter_tensor`, `recv` and `irecv` return a new Tensor; the others then
    raise a ValueError, as in MindSpore. Raises TypeError for a value that is not a bool or not a list, ValueError for other names.
    """
    if not isinstance(is_enable, bool):
        raise TypeError(message(f"set_comm_ops_inplace({short(is_enable)})", f"a bool, got {type(is_enable).__name__}"))
    if func_list is not None and not isinstance(func_list, (list, tuple)):
        raise TypeError(message(f"set_comm_ops_inplace(func_list={short(func_list)})", f"a list of names, got {type(func_list).__name__}"))
    names = list(_writes_in_place) if func_list is None else list(func_list)
    for name in names:
        if name not in _writes_in_place:
            raise ValueError(message(f"set_comm_ops_inplace(func_list=[{short(name)}])", list_choices(sorted(_writes_in_place))))
    _writes_in_place.update(dict.fromkeys(names, is_enable))
    change_counters.calls_changed()                              # captured graphs contain the other form


def _writes(name: str) -> bool:
    return _writes_in_place[name]


def _expects_writing(name: str) -> None:
    if not _writes_in_place[name]:
        raise ValueError(message(
            f"{name} after set_comm_ops_inplace(False)", f"one of {', '.join(_GIVING)}", hint=f"set_comm_ops_inplace(True, ['{name}'])",
        ))


def all_reduce(tensor: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> Any:
    """Reduce `tensor` over all processes (sum, product, extreme or mean). Return a handle or None, or (new Tensor, handle or None)."""
    return (exchange if _writes("all_reduce") else comm_func).all_reduce(tensor, op, group, async_op)


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: str | None = None, async_op: bool = False) -> Any:
    """Write the `input_tensor` of all processes along axis 0 into `output_tensor`, or return it as a new Tensor."""
    if _writes("all_gather_into_tensor"):
        return exchange.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)
    return comm_func.all_gather_into_tensor(input_tensor, group, async_op)


def reduce_scatter_tensor(output: Any, input: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> Any:
    """Write this process's part, along axis 0, of the all_reduce result into `output`, or return it as a new Tensor."""
    if _writes("reduce_scatter_tensor"):
        return exchange.reduce_scatter_tensor(output, input, op, group, async_op)
    return comm_func.reduce_scatter_tensor(input, op, group, async_op)


def recv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    """Receive a Tensor from process `src` into `tensor` and return 0, or return a new Tensor."""
    return (point_to_point if _writes("recv") else comm_func).recv(tensor, src, group, tag)


def irecv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    """Start to receive a Tensor from process `src` into `tensor` and return a handle, or return (new Tensor, handle)."""
    return (point_to_point if _writes("irecv") else comm_func).irecv(tensor, src, group, tag)


def scatter_tensor(
    output_tensor: Any, input_tensor: Any, src: int = 0, group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """Write this process's part of `input_tensor` of process `src`, along axis 0, into `output_tensor`."""
    _expects_writing("scatter_tensor")
    process_group, x = group_of(group), arguments.tensor("input_tensor", input_tensor)
    rows = arguments.sizes("input_tensor", None, x.shape[0] if x.ndim else 1, process_group)[0]
    arguments.check_output(output_tensor, (rows, *x.shape[1:]), x.dtype)
    value = exchange.load_collectives().scatter(raw(x), rank_in_group("src", src, process_group), process_group)
    return exchange.write_result(output_tensor, (value, exchange.OVER), async_op)


def gather_into_tensor(
    output_tensor: Any, input_tensor: Any, dst: int = 0, group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """Write the `input_tensor` of all processes along axis 0 into `output_tensor` of process `dst`; the others stay unchanged."""
    _expects_writing("gather_into_tensor")
    process_group, x = group_of(group), arguments.tensor("input_tensor", input_tensor)
    at = rank_in_group("dst", dst, process_group)
    if process_group.rank == at:
        arguments.check_output(output_tensor, (x.shape[0] * process_group.size, *x.shape[1:]), x.dtype)
    value = exchange.load_collectives().gather(raw(x), at, process_group)
    if process_group.rank == at:
        return exchange.write_result(output_tensor, (value, exchange.OVER), async_op)
    return arguments.handled(async_op, lambda: None)


def _writing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that always writes into its arguments."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _expects_writing(name)
        return function(*args, **kwargs)

    call.__module__ = __name__
    vars(call).pop("has_error_boundary", None)                  # belongs to the inner function; this wrapper handles the errors
    return call


all_gather = _writing("all_gather", process_groups.all_gather)
all_gather_into_tensor_uneven = _writing("all_gather_into_tensor_uneven", process_groups.all_gather_into_tensor_uneven)
all_gather_object = _writing("all_gather_object", process_groups.all_gather_object)
all_to_all = _writing("all_to_all", process_groups.all_to_all)
all_to_all_single = _writing("all_to_all_single", process_groups.all_to_all_single)
all_to_all_v_c = _writing("all_to_all_v_c", exchange.all_to_all_v_c)
barrier = _writing("barrier", process_groups.barrier)
batch_isend_irecv = _writing("batch_isend_irecv", process_groups.batch_isend_irecv)
broadcast = _writing("broadcast", process_groups.broadcast)
broadcast_object_list = _writing("broadcast_object_list", process_groups.broadcast_object_list)
gather = _writing("gather", process_groups.gather)
gather_object = _writing("gather_object", process_groups.gather_object)
isend = _writing("isend", process_groups.isend)
recv_object_list = _writing("recv_object_list", process_groups.recv_object_list)
reduce = _writing("reduce", process_groups.reduce)
reduce_scatter = _writing("reduce_scatter", process_groups.reduce_scatter)
reduce_scatter_tensor_uneven = _writing("reduce_scatter_tensor_uneven", process_groups.reduce_scatter_tensor_uneven)
scatter = _writing("scatter", process_groups.scatter)
scatter_object_list = _writing("scatter_object_list", process_groups.scatter_object_list)
send = _writing("send", process_groups.send)
send_object_list = _writing("send_object_list", process_groups.send_object_list)

__all__ = [
    "P2POp", "TCPStore", "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven", "all_gather_object", "all_reduce",
    "all_to_all", "all_to_all_single", "all_to_all_v_c", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "destroy_process_group", "gather", "gather_into_tensor", "gather_object", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv", "is_available", "is_initialized", "isend",
    "new_group", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_uneven",
    "scatter", "scatter_object_list", "scatter_tensor", "send", "send_object_list", "set_comm_ops_inplace",
]
