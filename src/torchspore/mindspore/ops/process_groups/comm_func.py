"""Exchanges of `mindspore.communication.comm_func`: they return their results as new Tensors. Ranks are global."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.common.process_groups import HCCL_WORLD_COMM_GROUP
from torchspore.mindspore.ops.collectives.collective import Broadcast, CollectiveGather, CollectiveScatter, Reduce
from torchspore.mindspore.ops.declaration.declare import part_of
from torchspore.mindspore.ops.process_groups import arguments, exchange, point_to_point
from torchspore.mindspore.ops.process_groups.arguments import CommHandle, group_of, rank_in_group

WORLD = HCCL_WORLD_COMM_GROUP
ResultAndHandle = tuple[Any, CommHandle | None]


def _begun(call: str, begin: Any, x: Any, async_op: bool) -> ResultAndHandle:
    """The result of an exchange that `begin` starts, filled when the handle has been waited for."""
    works: list[Any] = []

    def body(x: Any) -> Any:
        value, work = begin(x)
        works.append(work)
        return value

    out = part_of(call)(body)(x)
    return out, arguments.handled(async_op, works[0].wait)


def _later() -> Any:
    from torchspore.distributed.comm import async_collectives

    return async_collectives


def all_reduce(tensor: Any, op: str = "sum", group: str = WORLD, async_op: bool = False) -> ResultAndHandle:
    """Returns (the sum, product, extreme or mean of `tensor` over all processes, a handle or None)."""
    kind, named_group = arguments.kind(op), group_of(group)
    return _begun("all_reduce", lambda x: _later().all_reduce(x, kind, named_group), arguments.tensor("tensor", tensor), async_op)


def all_gather_into_tensor(tensor: Any, group: str = WORLD, async_op: bool = False) -> ResultAndHandle:
    """Returns (the `tensor` of all processes concatenated along axis 0, a handle or None)."""
    named_group = group_of(group)
    return _begun("all_gather_into_tensor", lambda x: _later().all_gather(x, named_group), arguments.tensor("tensor", tensor), async_op)


def reduce_scatter_tensor(tensor: Any, op: str = "sum", group: str = WORLD, async_op: bool = False) -> ResultAndHandle:
    """Returns (this process's share, along axis 0, of the result of all_reduce, a handle or None)."""
    kind, named_group = arguments.kind(op), group_of(group)
    x = arguments.tensor("tensor", tensor)
    return _begun("reduce_scatter_tensor", lambda t: _later().reduce_scatter(t, kind, named_group), x, async_op)


def reduce(tensor: Any, dst: int, op: str = "sum", group: str = WORLD) -> Any:
    """Returns the result of all_reduce on the process `dst`; the others get their `tensor`."""
    arguments.kind(op)
    return Reduce(rank_in_group("dst", dst, group_of(group)), op, group)(arguments.tensor("tensor", tensor))


def scatter_tensor(tensor: Any, src: int = 0, group: str = WORLD) -> Any:
    """Returns this process's share, along axis 0, of the `tensor` of process `src`; those of the others have its shape."""
    return CollectiveScatter(rank_in_group("src", src, group_of(group)), group)(arguments.tensor("tensor", tensor))


def gather_into_tensor(tensor: Any, dst: int = 0, group: str = WORLD) -> Any:
    """Returns the result of all_gather_into_tensor on the process `dst`; zeros on the others."""
    return CollectiveGather(rank_in_group("dst", dst, group_of(group)), group)(arguments.tensor("tensor", tensor))


def broadcast(tensor: Any, src: int = 0, group: str = WORLD) -> Any:
    """Returns the `tensor` of the process `src`; those of the others have its shape and dtype."""
    return Broadcast(rank_in_group("src", src, group_of(group)), group)(arguments.tensor("tensor", tensor))[0]


def barrier(group: str = WORLD) -> None:
    """Waits until all processes of the group have called this."""
    exchange.barrier(group)


def send(tensor: Any, dst: int = 0, group: str = WORLD, tag: int = 0) -> None:
    """Sends a Tensor to the process `dst`. Raises ValueError in a run of one process."""
    point_to_point.send(tensor, dst, group, tag)


def recv(tensor: Any, src: int = 0, group: str = WORLD, tag: int = 0) -> Any:
    """Returns a Tensor of the shape and dtype of `tensor` from the process `src`. Raises ValueError in a run of one process."""
    out, handle = irecv(tensor, src, group, tag)
    if handle is not None:
        handle.wait()
    return out


def isend(tensor: Any, dst: int = 0, group: str = WORLD, tag: int = 0) -> CommHandle | None:
    """Sends a Tensor to the process `dst` and does not wait. Raises ValueError in a run of one process."""
    return point_to_point.isend(tensor, dst, group, tag)


def irecv(tensor: Any, src: int = 0, group: str = WORLD, tag: int = 0) -> ResultAndHandle:
    """Returns (a Tensor that receives the data of the process `src`, a handle to wait for it). Raises ValueError as `recv` does."""
    out = arguments.tensor("tensor", tensor).copy()
    return out, point_to_point.irecv(out, src, group, tag)


def all_to_all_with_output_shape(
    output_shape_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False,
) -> tuple[tuple[Any, ...], CommHandle | None]:
    """Returns (the Tensors of these shapes from all processes, a handle or None); each process gets one of `input_tensor_list`."""
    named_group = group_of(group)
    tensors = arguments.tensors_of("input_tensor_list", input_tensor_list, named_group)
    shapes = [tuple(getattr(shape, "shape", shape)) for shape in output_shape_list]
    if len(shapes) != named_group.size or shapes[named_group.rank] != tuple(tensors[named_group.rank].shape):
        expected = f"[{tuple(tensors[0].shape)}], the shape of the sent Tensor" if named_group.size == 1 else (
            f"{named_group.size} shapes, that of this process's own Tensor {tuple(tensors[named_group.rank].shape)}")
        raise ValueError(message(f"output_shape_list={short(output_shape_list)}", expected))
    counts = [_count(shape) for shape in shapes]
    received, work = _later().all_to_all(raw(exchange.joined_rows(tensors)), counts, [tensor.size for tensor in tensors], named_group)
    outs = tuple(wrap(share.reshape(shape)) for share, shape in zip(received.split(counts), shapes))
    return outs, arguments.handled(async_op, work.wait)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def all_to_all_single_with_output_shape(
    output_shape: Any, tensor: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None,
    async_op: bool = False,
) -> ResultAndHandle:
    """Returns (the shares along axis 0 from all processes, in `output_shape`, a handle or None)."""
    named_group, x = group_of(group), arguments.tensor("tensor", tensor)
    shape = tuple(getattr(output_shape, "shape", output_shape))
    if (len(shape) != x.ndim or shape[1:] != tuple(x.shape[1:])) or (named_group.size == 1 and shape != tuple(x.shape)):
        raise ValueError(message(f"output_shape={short(output_shape)}", f"{tuple(x.shape)}, the shape of the sent Tensor"))
    received = arguments.sizes("output_split_sizes", output_split_sizes, shape[0], named_group)
    sent = arguments.sizes("input_split_sizes", input_split_sizes, x.shape[0], named_group)
    return _begun("all_to_all_single_with_output_shape", lambda t: _later().all_to_all(t, received, sent, named_group), x, async_op)
