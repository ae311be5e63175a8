"""`mindspore.communication.comm_func`: exchanges between processes as functions that give their result, for a group of one process."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.communication.management import HCCL_WORLD_COMM_GROUP, get_group_size
from torchspore.mindspore.mint.distributed import exchange
from torchspore.mindspore.mint.distributed.exchange import CommHandle, P2POp, batch_isend_irecv

WORLD = HCCL_WORLD_COMM_GROUP


def _share(tensor: Any, group: str | None, async_op: bool = False) -> tuple[Any, CommHandle | None]:
    """A copy of `tensor`, which is what one process gets of itself, and a handle where it is asked for."""
    get_group_size(WORLD if group is None else group)
    return exchange._tensor("tensor", tensor).copy(), exchange._done(async_op)


def all_reduce(tensor: Any, op: str = "sum", group: str = WORLD, async_op: bool = False) -> tuple[Any, CommHandle | None]:
    """(The sum, product, extreme or mean of `tensor` over all processes, a handle or None)."""
    exchange._kind(op)
    return _share(tensor, group, async_op)


def all_gather_into_tensor(tensor: Any, group: str = WORLD, async_op: bool = False) -> tuple[Any, CommHandle | None]:
    """(`tensor` of all processes one after the other along axis 0, a handle or None)."""
    return _share(tensor, group, async_op)


def reduce_scatter_tensor(tensor: Any, op: str = "sum", group: str = WORLD, async_op: bool = False) -> tuple[Any, CommHandle | None]:
    """(The share of this process, along axis 0, of what all_reduce gives, a handle or None)."""
    exchange._kind(op)
    return _share(tensor, group, async_op)


def reduce(tensor: Any, dst: int, op: str = "sum", group: str = WORLD) -> Any:
    """What all_reduce gives, for the process `dst` alone."""
    exchange._itself("dst", dst), exchange._kind(op)
    return _share(tensor, group)[0]


def scatter_tensor(tensor: Any, src: int = 0, group: str = WORLD) -> Any:
    """The share of this process, along axis 0, of the `tensor` of process `src`."""
    exchange._itself("src", src)
    return _share(tensor, group)[0]


def gather_into_tensor(tensor: Any, dst: int = 0, group: str = WORLD) -> Any:
    """What all_gather_into_tensor gives, for the process `dst` alone."""
    exchange._itself("dst", dst)
    return _share(tensor, group)[0]


def broadcast(tensor: Any, src: int = 0, group: str = WORLD) -> Any:
    """The `tensor` of the process `src`."""
    exchange._itself("src", src)
    return _share(tensor, group)[0]


def barrier(group: str = WORLD) -> None:
    """Waits until all processes of the group are here."""
    exchange.barrier(group)


def send(tensor: Any, dst: int = 0, group: str = WORLD, tag: int = 0) -> None:
    """Sends to another process, of which there is none. Raises ValueError."""
    exchange.send(tensor, dst, group, tag)


def recv(tensor: Any, src: int = 0, group: str = WORLD, tag: int = 0) -> Any:
    """Receives from another process, of which there is none. Raises ValueError."""
    return exchange.recv(tensor, src, group, tag)


def isend(tensor: Any, dst: int = 0, group: str = WORLD, tag: int = 0) -> CommHandle | None:
    """Sends to another process, of which there is none. Raises ValueError."""
    return exchange.isend(tensor, dst, group, tag)


def irecv(tensor: Any, src: int = 0, group: str = WORLD, tag: int = 0) -> tuple[Any, CommHandle | None]:
    """Receives from another process, of which there is none. Raises ValueError."""
    return tensor, exchange.irecv(tensor, src, group, tag)


def all_to_all_with_output_shape(
    output_shape_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False,
) -> tuple[tuple[Any, ...], CommHandle | None]:
    """(The Tensors that the processes sent to this one: its own, a handle or None). Raises ValueError for another shape than its own."""
    given = exchange._one("input_tensor_list", input_tensor_list)
    wanted = tuple(getattr(output_shape_list[0], "shape", output_shape_list[0]))
    if len(output_shape_list) != 1 or wanted != tuple(given.shape):
        raise ValueError(message(f"output_shape_list={short(output_shape_list)}", f"[{tuple(given.shape)}], the shape of what is sent"))
    out, handle = _share(given, group, async_op)
    return (out,), handle


def all_to_all_single_with_output_shape(
    output_shape: Any, tensor: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None,
    async_op: bool = False,
) -> tuple[Any, CommHandle | None]:
    """(The shares along axis 0 that the processes sent to this one: its own, a handle or None)."""
    exchange._tensor("tensor", tensor)
    exchange._sizes("output_split_sizes", output_split_sizes, tensor)
    exchange._sizes("input_split_sizes", input_split_sizes, tensor)
    if tuple(getattr(output_shape, "shape", output_shape)) != tuple(tensor.shape):
        raise ValueError(message(f"output_shape={short(output_shape)}", f"{tuple(tensor.shape)}, the shape of what is sent"))
    return _share(tensor, group, async_op)


__all__ = [
    "P2POp", "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape", "all_to_all_with_output_shape", "barrier",
    "batch_isend_irecv", "broadcast", "gather_into_tensor", "irecv", "isend", "recv", "reduce", "reduce_scatter_tensor", "scatter_tensor",
    "send",
]
