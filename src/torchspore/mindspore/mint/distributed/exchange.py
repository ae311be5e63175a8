"""Tensors and objects between the processes of a group: with one process, what is sent comes back."""
from __future__ import annotations

import copy
from typing import Any

from torchspore.base.text import message, one_of, short
from torchspore.engine.tensor import TensorBase
from torchspore.mindspore import ops
from torchspore.mindspore.mint.distributed.groups import named
from torchspore.mindspore.mint.shared import written
from torchspore.mindspore.ops.collective import KINDS


class CommHandle:
    """What an exchange with `async_op=True` gives; with one process it is over by then."""

    def wait(self) -> None:
        """Waits until the exchange is over."""


def _done(async_op: bool) -> CommHandle | None:
    if not isinstance(async_op, bool):
        raise TypeError(message(f"async_op={short(async_op)}", f"a bool, got {type(async_op).__name__}"))
    return CommHandle() if async_op else None


def _tensor(name: str, value: Any) -> Any:
    if not isinstance(value, TensorBase):
        raise TypeError(message(f"{name}={short(value)}", f"a Tensor, got {type(value).__name__}"))
    return value


def _one(name: str, values: Any) -> Any:
    """The Tensor of a list of one, as many as there are processes."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(message(f"{name}={short(values)}", f"a list of Tensors, got {type(values).__name__}"))
    if len(values) != 1:
        raise TypeError(message(f"{name} of {len(values)} Tensors", "one: the group has one process"))
    return _tensor(name, values[0])


def _kind(op: Any) -> None:
    if not isinstance(op, str) or op not in KINDS:
        raise TypeError(message(f"op={short(op)}", one_of(KINDS)))


def _itself(name: str, rank: Any) -> None:
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(message(f"{name}={short(rank)}", f"an int, got {type(rank).__name__}"))
    if rank != 0:
        raise ValueError(message(f"{name}={rank}", "0, the only process there is"))


def _copied(output: Any, input: Any) -> None:
    _tensor("output", output), _tensor("input", input)
    if tuple(output.shape) != tuple(input.shape) or output.dtype != input.dtype:
        raise ValueError(message(
            f"an output of {output.dtype}{list(output.shape)} for {input.dtype}{list(input.shape)}", "the same shape and dtype",
        ))
    written(output, ops.identity(input))


def _sizes(name: str, sizes: Any, tensor: Any) -> None:
    if sizes is not None and list(sizes) != [tensor.shape[0] if tensor.ndim else 1]:
        raise ValueError(message(f"{name}={short(sizes)}", f"None or [{tensor.shape[0] if tensor.ndim else 1}]: one share, all of it"))


def all_reduce(tensor: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """`tensor` becomes the sum, product, extreme or mean over all processes: with one it stays."""
    _tensor("tensor", tensor), _kind(op), named(group)
    return _done(async_op)


def reduce(tensor: Any, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The same as all_reduce, for the process `dst` alone."""
    _itself("dst", dst)
    return all_reduce(tensor, op, group, async_op)


def broadcast(tensor: Any, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """`tensor` becomes that of the process `src`."""
    _tensor("tensor", tensor), _itself("src", src), named(group)
    return _done(async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Waits until all processes of the group are here; `device_ids` is reserved."""
    named(group)
    if device_ids is not None:
        raise ValueError(message(f"barrier(device_ids={short(device_ids)})", "None: it is reserved"))
    return _done(async_op)


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The `input_tensor` of all processes, one after the other along axis 0, written into `output_tensor`."""
    named(group)
    _copied(output_tensor, input_tensor)
    return _done(async_op)


def all_gather_into_tensor_uneven(
    output: Any, input: Any, output_split_sizes: Any = None, group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """Inputs of different lengths, `output_split_sizes` along axis 0, one after the other, written into `output`."""
    _sizes("output_split_sizes", output_split_sizes, _tensor("output", output))
    return all_gather_into_tensor(output, input, group, async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: str = "sum", group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """This process's share, along axis 0, of what all_reduce gives, written into `output`."""
    _kind(op)
    return all_gather_into_tensor(output, input, group, async_op)


def reduce_scatter_tensor_uneven(
    output: Any, input: Any, input_split_sizes: Any = None, op: str = "sum", group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """The same for shares of different lengths, `input_split_sizes` along axis 0."""
    _sizes("input_split_sizes", input_split_sizes, _tensor("input", input))
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_gather(tensor_list: Any, tensor: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The `tensor` of each process, written into the Tensors of `tensor_list`."""
    return all_gather_into_tensor(_one("tensor_list", tensor_list), tensor, group, async_op)


def gather(tensor: Any, gather_list: Any, dst: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The same as all_gather, for the process `dst` alone."""
    _itself("dst", dst)
    return all_gather(gather_list, tensor, group, async_op)


def scatter(tensor: Any, scatter_list: Any, src: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The Tensors of `scatter_list` at the process `src`, one for each process, written into `tensor`."""
    _itself("src", src)
    return all_gather_into_tensor(tensor, _one("scatter_list", scatter_list), group, async_op)


def reduce_scatter(output: Any, input_list: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The Tensors of `input_list`, reduced over all processes, one for each of them, written into `output`."""
    return reduce_scatter_tensor(output, _one("input_list", input_list), op, group, async_op)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Each process sends the Tensors of its `input_tensor_list`, one to each process, and receives into `output_tensor_list`."""
    output = _one("output_tensor_list", output_tensor_list)
    return all_gather_into_tensor(output, _one("input_tensor_list", input_tensor_list), group, async_op)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """all_to_all of shares of one Tensor along axis 0, of the sizes given."""
    _sizes("output_split_sizes", output_split_sizes, _tensor("output", output))
    _sizes("input_split_sizes", input_split_sizes, _tensor("input", input))
    return all_gather_into_tensor(output, input, group, async_op)


def _nobody(call: str, rank: Any) -> None:
    raise ValueError(message(f"{call} with process {short(rank)}", "another process: this training has one",
                             hint="call it where get_world_size() > 1"))


def send(tensor: Any, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Sends a Tensor to the process `dst`; refused while there is one process."""
    _tensor("tensor", tensor), named(group)
    _nobody(f"send(tag={tag})", dst)


def isend(tensor: Any, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Sends a Tensor to the process `dst` and does not wait; refused while there is one process."""
    _tensor("tensor", tensor), named(group)
    _nobody(f"isend(tag={tag})", dst)
    return None


def recv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receives a Tensor from the process `src` into `tensor`; refused while there is one process."""
    _tensor("tensor", tensor), named(group)
    _nobody(f"recv(tag={tag})", src)
    return 0


def irecv(tensor: Any, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Receives a Tensor from the process `src` into `tensor` and does not wait; refused while there is one process."""
    _tensor("tensor", tensor), named(group)
    _nobody(f"irecv(tag={tag})", src)
    return None


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
        self.op, self.tensor, self.peer, self.group, self.tag = name, _tensor("tensor", tensor), peer, named(group), tag
        self.recv_dtype = recv_dtype


def batch_isend_irecv(p2p_op_list: Any) -> list[CommHandle]:
    """Sends and receives all that the list of P2POp says; refused while there is one process."""
    if not isinstance(p2p_op_list, list) or not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise TypeError(message(f"batch_isend_irecv({short(p2p_op_list)})", "a list of P2POp"))
    _nobody("batch_isend_irecv", p2p_op_list[0].peer)
    return []


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """The object of each process, a copy of it, written into `object_list`."""
    named(group)
    _room("object_list", object_list)
    object_list[0] = copy.deepcopy(obj)


def _room(name: str, listed: Any) -> None:
    if not isinstance(listed, list) or len(listed) != 1:
        raise TypeError(message(f"{name}={short(listed)}", "a list of one object: the group has one process"))


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None) -> None:
    """The same as all_gather_object, for the process `dst` alone."""
    _itself("dst", dst)
    all_gather_object(object_gather_list, obj, group)


def _own_device(device: Any) -> None:
    if device is not None:
        raise ValueError(message(f"device={short(device)}", "None: it is reserved"))


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """`object_list` becomes that of the process `src`."""
    _itself("src", src), named(group), _own_device(device)
    if not isinstance(object_list, list):
        raise TypeError(message(f"object_list={short(object_list)}", f"a list, got {type(object_list).__name__}"))


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any], src: int = 0, group: str | None = None,
) -> None:
    """The objects at the process `src`, one for each process, a copy written into the first place of the output list."""
    _itself("src", src), named(group)
    _room("scatter_object_input_list", scatter_object_input_list)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise TypeError(message(f"scatter_object_output_list={short(scatter_object_output_list)}", "a list of at least one place"))
    scatter_object_output_list[0] = copy.deepcopy(scatter_object_input_list[0])


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Sends objects to the process `dst`; refused while there is one process."""
    named(group), _own_device(device)
    _nobody(f"send_object_list of {len(object_list)}", dst)


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Receives objects from the process `src` into `object_list`; refused while there is one process."""
    named(group), _own_device(device)
    _nobody(f"recv_object_list of {len(object_list)}", src)
    return 0
