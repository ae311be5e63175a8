"""What goes from one process to another one. Ranks are those among all processes; a `tag` tells what is on its way to the same process."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.distributed.comm.groups import Group
from torchspore.engine.core.tensor import raw, wrap
from torchspore.mindspore import ops
from torchspore.mindspore.mint.distributed.arguments import CommHandle, group_of, other, place, tensor
from torchspore.mindspore.mint.distributed.groups import named
from torchspore.mindspore.mint.shared import written


def _tag(tag: Any) -> int:
    if isinstance(tag, bool) or not isinstance(tag, int):
        raise TypeError(message(f"tag={short(tag)}", f"an int, got {type(tag).__name__}"))
    return tag


def send(tensor: Any, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Sends a Tensor to the process `dst`; refused while there is one process."""
    handle = isend(tensor, dst, group, tag)
    if handle is not None:
        handle.wait()


def isend(tensor: Any, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Sends a Tensor to the process `dst` and does not wait; refused while there is one process."""
    found, x = group_of(group), _given(tensor)
    at = other(f"send(tag={_tag(tag)})", "dst", dst, found)
    from torchspore.distributed.comm import async_collectives

    return CommHandle(async_collectives.send(raw(x), at, found, tag).wait)


def _given(value: Any) -> Any:
    return tensor("tensor", value)


def recv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receives a Tensor from the process `src` into `tensor`; refused while there is one process."""
    handle = irecv(tensor, src, group, tag)
    if handle is not None:
        handle.wait()
    return 0


def irecv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Receives a Tensor from the process `src` into `tensor` and does not wait; refused while there is one process."""
    found, x = group_of(group), _given(tensor)
    at = other(f"recv(tag={_tag(tag)})", "src", src, found)
    from torchspore.distributed.comm import async_collectives

    value, work = async_collectives.receive(raw(x), at, found, tag)

    def end() -> None:
        work.wait()
        written(x, wrap(value))

    return CommHandle(end)


class P2POp:
    """A sending or receiving, `op` 'isend' or 'irecv' (or the function itself), for `batch_isend_irecv`.

    What is received may be named by its shape and `recv_dtype`.
    """

    def __init__(self, op: Any, tensor: Any, peer: int, group: str | None = None, tag: int = 0, *, recv_dtype: Any = None) -> None:
        name = getattr(op, "__name__", op)
        if name not in ("isend", "irecv"):
            raise TypeError(message(f"P2POp(op={short(op)})", "'isend' or 'irecv'"))
        if isinstance(tensor, tuple) and name == "irecv" and recv_dtype is not None:
            tensor = ops.zeros(tensor, recv_dtype)
        self.op, self.tensor, self.peer, self.group, self.tag = name, _given(tensor), peer, named(group), tag
        self.recv_dtype = recv_dtype


def batch_isend_irecv(p2p_op_list: Any) -> list[CommHandle]:
    """Sends and receives all that the list of P2POp says; refused while there is one process."""
    if not isinstance(p2p_op_list, list) or not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise TypeError(message(f"batch_isend_irecv({short(p2p_op_list)})", "a list of P2POp"))
    started = [(isend if one.op == "isend" else irecv)(one.tensor, one.peer, one.group, one.tag) for one in p2p_op_list]
    return [handle for handle in started if handle is not None]


# ---- Python's objects


def _room(name: str, listed: Any, group: Group) -> None:
    if not isinstance(listed, list) or len(listed) != group.size:
        many = "one object: the group has one process" if group.size == 1 else f"{group.size} objects, one for each process"
        raise TypeError(message(f"{name}={short(listed)}", f"a list of {many}"))


def _own_device(device: Any) -> None:
    if device is not None:
        raise ValueError(message(f"device={short(device)}", "None: it is reserved"))


def _objects() -> Any:
    from torchspore.distributed.comm import object_collectives

    return object_collectives


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """The object of each process, a copy of it, written into `object_list`."""
    found = group_of(group)
    _room("object_list", object_list, found)
    object_list[:] = _objects().all_gather(obj, found)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None) -> None:
    """The same as all_gather_object, for the process `dst` alone; the others give no list."""
    found = group_of(group)
    at = place("dst", dst, found)
    if found.rank == at:
        _room("object_gather_list", object_gather_list, found)
    values = _objects().gather(obj, at, found)
    if values is not None and object_gather_list is not None:
        object_gather_list[:] = values


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """`object_list` becomes that of the process `src`; those of the others have its length."""
    found = group_of(group)
    at = place("src", src, found)
    _own_device(device)
    if not isinstance(object_list, list):
        raise TypeError(message(f"object_list={short(object_list)}", f"a list, got {type(object_list).__name__}"))
    object_list[:] = _objects().broadcast(object_list, at, found)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int = 0, group: str | None = None,
) -> None:
    """The objects at the process `src`, one for each process, a copy written into the first place of the output list."""
    found = group_of(group)
    at = place("src", src, found)
    if found.rank == at:
        _room("scatter_object_input_list", scatter_object_input_list, found)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise TypeError(message(f"scatter_object_output_list={short(scatter_object_output_list)}", "a list of at least one place"))
    scatter_object_output_list[0] = _objects().scatter(scatter_object_input_list, at, found)


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Sends objects to the process `dst`; refused while there is one process."""
    found = group_of(group)
    _own_device(device)
    _objects().send(object_list, other(f"send_object_list of {len(object_list)}", "dst", dst, found), found)


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Receives objects from the process `src` into `object_list`; refused while there is one process."""
    found = group_of(group)
    _own_device(device)
    object_list[:] = _objects().receive(object_list, other(f"recv_object_list of {len(object_list)}", "src", src, found), found)
    return src
