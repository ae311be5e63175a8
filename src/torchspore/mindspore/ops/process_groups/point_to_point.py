"""Exchanges between two processes. Ranks are global; a `tag` distinguishes messages to the same process."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.distributed.comm.groups import Group
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore import ops
from torchspore.mindspore.ops.declaration.write_back import write_back
from torchspore.mindspore.ops.process_groups.arguments import CommHandle, group_of, other_rank_in_group, rank_in_group, tensor
from torchspore.mindspore.ops.process_groups.groups import named


def _tag(tag: Any) -> int:
    if not is_int(tag):
        raise TypeError(message(f"tag={short(tag)}", f"an int, got {type(tag).__name__}"))
    return tag


def send(tensor: Any, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send a Tensor to the process `dst`; refused with a single process."""
    handle = isend(tensor, dst, group, tag)
    if handle is not None:
        handle.wait()


def isend(tensor: Any, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Start to send a Tensor to the process `dst`; refused with a single process."""
    process_group, x = group_of(group), _check_tensor(tensor)
    at = other_rank_in_group(f"send(tag={_tag(tag)})", "dst", dst, process_group)
    from torchspore.distributed.comm import async_collectives

    return CommHandle(async_collectives.send(raw(x), at, process_group, tag).wait)


def _check_tensor(value: Any) -> Any:
    return tensor("tensor", value)


def recv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive a Tensor from the process `src` into `tensor`; refused with a single process."""
    handle = irecv(tensor, src, group, tag)
    if handle is not None:
        handle.wait()
    return 0


def irecv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Start to receive a Tensor from the process `src` into `tensor`; refused with a single process."""
    process_group, x = group_of(group), _check_tensor(tensor)
    at = other_rank_in_group(f"recv(tag={_tag(tag)})", "src", src, process_group)
    from torchspore.distributed.comm import async_collectives

    value, work = async_collectives.receive(raw(x), at, process_group, tag)

    def end() -> None:
        work.wait()
        write_back(x, wrap(value))

    return CommHandle(end)


class P2POp:
    """A send or receive for `batch_isend_irecv`; `op` is 'isend' or 'irecv' (or the function itself).

    A receive may specify shape and `recv_dtype` instead of a Tensor.
    """

    def __init__(self, op: Any, tensor: Any, peer: int, group: str | None = None, tag: int = 0, *, recv_dtype: Any = None) -> None:
        name = getattr(op, "__name__", op)
        if name not in ("isend", "irecv"):
            raise TypeError(message(f"P2POp(op={short(op)})", "'isend' or 'irecv'"))
        if isinstance(tensor, tuple) and name == "irecv" and recv_dtype is not None:
            tensor = ops.zeros(tensor, recv_dtype)
        self.op, self.tensor, self.peer, self.group, self.tag = name, _check_tensor(tensor), peer, named(group), tag
        self.recv_dtype = recv_dtype


def batch_isend_irecv(p2p_op_list: Any) -> list[CommHandle]:
    """Start all sends and receives in the list of P2POp; refused with a single process."""
    if not isinstance(p2p_op_list, list) or not p2p_op_list or not all(isinstance(operation, P2POp) for operation in p2p_op_list):
        raise TypeError(message(f"batch_isend_irecv({short(p2p_op_list)})", "a list of P2POp"))
    started = [(isend if item.op == "isend" else irecv)(item.tensor, item.peer, item.group, item.tag) for item in p2p_op_list]
    return [handle for handle in started if handle is not None]


# ---- Python objects


def _room(name: str, listed: Any, group: Group) -> None:
    if not isinstance(listed, list) or len(listed) != group.size:
        expected = "one object: the group has one process" if group.size == 1 else f"{group.size} objects, one for each process"
        raise TypeError(message(f"{name}={short(listed)}", f"a list of {expected}"))


def _refuse_device(device: Any) -> None:
    if device is not None:
        raise ValueError(message(f"device={short(device)}", "None: it is reserved"))


def _objects() -> Any:
    from torchspore.distributed.comm import object_collectives

    return object_collectives


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Write a copy of each process's object into `object_list`."""
    process_group = group_of(group)
    _room("object_list", object_list, process_group)
    object_list[:] = _objects().all_gather(obj, process_group)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None) -> None:
    """all_gather_object for the process `dst` only; the others pass no list."""
    process_group = group_of(group)
    at = rank_in_group("dst", dst, process_group)
    if process_group.rank == at:
        _room("object_gather_list", object_gather_list, process_group)
    values = _objects().gather(obj, at, process_group)
    if values is not None and object_gather_list is not None:
        object_gather_list[:] = values


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """Set `object_list` to that of the process `src`; those of the others have its length."""
    process_group = group_of(group)
    at = rank_in_group("src", src, process_group)
    _refuse_device(device)
    if not isinstance(object_list, list):
        raise TypeError(message(f"object_list={short(object_list)}", f"a list, got {type(object_list).__name__}"))
    object_list[:] = _objects().broadcast(object_list, at, process_group)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int = 0, group: str | None = None,
) -> None:
    """Write a copy of this process's object, of those at the process `src`, into the first element of the output list."""
    process_group = group_of(group)
    at = rank_in_group("src", src, process_group)
    if process_group.rank == at:
        _room("scatter_object_input_list", scatter_object_input_list, process_group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise TypeError(message(f"scatter_object_output_list={short(scatter_object_output_list)}", "a list of at least one element"))
    scatter_object_output_list[0] = _objects().scatter(scatter_object_input_list, at, process_group)


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Send objects to the process `dst`; refused with a single process."""
    process_group = group_of(group)
    _refuse_device(device)
    _objects().send(object_list, other_rank_in_group(f"send_object_list of {len(object_list)}", "dst", dst, process_group), process_group)


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Receive objects from the process `src` into `object_list`; refused with a single process."""
    process_group = group_of(group)
    _refuse_device(device)
    source = other_rank_in_group(f"recv_object_list of {len(object_list)}", "src", src, process_group)
    object_list[:] = _objects().receive(object_list, source, process_group)
    return src
