"""Tensors and objects between the processes of a group; with one process, what is sent comes back. Ranks are those among all processes."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.core.tensor import raw, wrap
from torchspore.mindspore import ops
from torchspore.mindspore.mint.distributed import arguments
from torchspore.mindspore.mint.distributed.arguments import CommHandle, group_of, handled, place, tensor
from torchspore.mindspore.mint.shared import written


def _later() -> Any:
    from torchspore.distributed.comm import async_collectives

    return async_collectives


def _collectives() -> Any:
    from torchspore.distributed.comm import collectives

    return collectives


class _Over:
    """An exchange that nobody needs to wait for."""

    def wait(self) -> None:
        """Does nothing."""


OVER = _Over()


def _into(output: Any, begun: Any, async_op: bool) -> CommHandle | None:
    """Writes what an exchange gives into a Tensor when it is over."""
    value, work = begun

    def end() -> None:
        work.wait()
        written(output, wrap(value))

    return handled(async_op, end)


def _rows(x: Any) -> int:
    return x.shape[0] if x.ndim else 1


def all_reduce(tensor: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """`tensor` becomes the sum, product, extreme or mean over all processes."""
    arguments.tensor("tensor", tensor)
    return _into(tensor, _later().all_reduce(raw(tensor), arguments.kind(op), group_of(group)), async_op)


def reduce(tensor: Any, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The same as all_reduce, for the process `dst` alone."""
    found = group_of(group)
    at = place("dst", dst, found)
    value, work = _later().all_reduce(raw(arguments.tensor("tensor", tensor)), arguments.kind(op), found)
    if found.rank == at:
        return _into(tensor, (value, work), async_op)
    return handled(async_op, work.wait)


def broadcast(tensor: Any, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """`tensor` becomes that of the process `src`."""
    arguments.tensor("tensor", tensor)
    found = group_of(group)
    return _into(tensor, _later().broadcast(raw(tensor), place("src", src, found), found), async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Waits until all processes of the group are here; `device_ids` is reserved."""
    found = group_of(group)
    if device_ids is not None:
        raise ValueError(message(f"barrier(device_ids={short(device_ids)})", "None: it is reserved"))
    _collectives().barrier(found)
    return handled(async_op, lambda: None)


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The `input_tensor` of all processes, one after the other along axis 0, written into `output_tensor`."""
    found, x = group_of(group), tensor("input_tensor", input_tensor)
    arguments.same(output_tensor, (x.shape[0] * found.size, *x.shape[1:]) if x.ndim else () if found.size == 1 else (found.size,), x.dtype)
    return _into(output_tensor, _later().all_gather(raw(x) if x.ndim or found.size == 1 else raw(x).reshape(1), found), async_op)


def all_gather_into_tensor_uneven(
    output: Any, input: Any, output_split_sizes: Any = None, group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """Inputs of different lengths, `output_split_sizes` along axis 0, one after the other, written into `output`."""
    found = group_of(group)
    lengths = arguments.sizes("output_split_sizes", output_split_sizes, _rows(tensor("output", output)), found)
    arguments.same(output, (sum(lengths), *tensor("input", input).shape[1:]) if input.ndim else (), input.dtype)
    value = _collectives().all_gather_uneven(raw(input), lengths, found)
    return handled(async_op, lambda: written(output, wrap(value)))


def reduce_scatter_tensor(
    output: Any, input: Any, op: str = "sum", group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """This process's share, along axis 0, of what all_reduce gives, written into `output`."""
    found, kind = group_of(group), arguments.kind(op)
    rows = arguments.sizes("input", None, _rows(tensor("input", input)), found)[0]
    arguments.same(output, (rows, *input.shape[1:]) if input.ndim else (), input.dtype)
    return _into(output, _later().reduce_scatter(raw(input), kind, found), async_op)


def reduce_scatter_tensor_uneven(
    output: Any, input: Any, input_split_sizes: Any = None, op: str = "sum", group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """The same for shares of different lengths, `input_split_sizes` along axis 0."""
    found, kind = group_of(group), arguments.kind(op)
    lengths = arguments.sizes("input_split_sizes", input_split_sizes, _rows(tensor("input", input)), found)
    arguments.same(output, (lengths[found.rank], *input.shape[1:]) if input.ndim else (), input.dtype)
    value = _collectives().reduce_scatter_uneven(raw(input), lengths, kind, found)
    return handled(async_op, lambda: written(output, wrap(value)))


def _into_each(outputs: list[Any], begun: Any, lengths: list[int], async_op: bool) -> CommHandle | None:
    value, work = begun

    def end() -> None:
        work.wait()
        for output, share in zip(outputs, value.split(lengths)):
            written(output, wrap(share.reshape(tuple(output.shape))))

    return handled(async_op, end)


def all_gather(tensor_list: Any, tensor: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The `tensor` of each process, written into the Tensors of `tensor_list`."""
    found, x = group_of(group), arguments.tensor("tensor", tensor)
    outputs = arguments.each("tensor_list", tensor_list, found)
    for output in outputs:
        arguments.same(output, x.shape, x.dtype)
    return _into_each(outputs, _later().all_gather(raw(x).reshape(-1), found), [x.size] * found.size, async_op)


def gather(tensor: Any, gather_list: Any, dst: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The same as all_gather, for the process `dst` alone; the others' `gather_list` is not read."""
    found, x = group_of(group), arguments.tensor("tensor", tensor)
    at = place("dst", dst, found)
    outputs = arguments.each("gather_list", gather_list, found) if found.rank == at else []
    for output in outputs:
        arguments.same(output, x.shape, x.dtype)
    value = _collectives().gather(raw(x).reshape(-1), at, found)
    return handled(async_op, lambda: [
        written(output, wrap(share.reshape(tuple(output.shape)))) for output, share in zip(outputs, value.chunk(found.size))
    ])


def scatter(tensor: Any, scatter_list: Any, src: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The Tensors of `scatter_list` at the process `src`, one for each process, written into `tensor`; the others' list is not read."""
    found, output = group_of(group), arguments.tensor("tensor", tensor)
    at = place("src", src, found)
    if found.rank == at:
        given = arguments.each("scatter_list", scatter_list, found)
        for one in given:
            arguments.same(output, one.shape, one.dtype)
        whole = ops.concat([ops.reshape(one, (-1,)) for one in given]) if len(given) > 1 else ops.reshape(given[0], (-1,))
    else:
        whole = ops.zeros((output.size * found.size,), output.dtype)
    value = _collectives().scatter(raw(whole), at, found)
    return handled(async_op, lambda: written(output, wrap(value.reshape(tuple(output.shape)))))


def reduce_scatter(output: Any, input_list: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """The Tensors of `input_list`, reduced over all processes, one for each of them, written into `output`."""
    found, kind = group_of(group), arguments.kind(op)
    given = arguments.each("input_list", input_list, found)
    for one in given:
        arguments.same(output, one.shape, one.dtype)
    value, work = _later().reduce_scatter(raw(_joined(given)), kind, found)
    return _into(output, (value.reshape(tuple(output.shape)), work), async_op)


def _joined(tensors: list[Any]) -> Any:
    """The elements of Tensors, one after the other."""
    flat = [ops.reshape(one, (-1,)) for one in tensors]
    return flat[0] if len(flat) == 1 else ops.concat(flat)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Each process sends the Tensors of its `input_tensor_list`, one to each process, and receives into `output_tensor_list`."""
    found = group_of(group)
    outputs = arguments.each("output_tensor_list", output_tensor_list, found)
    given = arguments.each("input_tensor_list", input_tensor_list, found)
    arguments.same(outputs[found.rank], given[found.rank].shape, given[found.rank].dtype)
    received = [one.size for one in outputs]
    begun = _later().all_to_all(raw(_joined(given)), received, [one.size for one in given], found)
    return _into_each(outputs, begun, received, async_op)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """all_to_all of shares of one Tensor along axis 0, of the sizes given."""
    found = group_of(group)
    received = arguments.sizes("output_split_sizes", output_split_sizes, _rows(tensor("output", output)), found)
    sent = arguments.sizes("input_split_sizes", input_split_sizes, _rows(tensor("input", input)), found)
    arguments.same(output, (sum(received), *input.shape[1:]) if input.ndim else (), input.dtype)
    x = raw(input) if input.ndim else raw(input).reshape(1)
    value, work = _later().all_to_all(x, received, sent, found)
    return _into(output, (value.reshape(tuple(output.shape)), work), async_op)


def all_to_all_v_c(output: Any, input: Any, send_count_matrix: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """all_to_all_single by one list for all processes: at `i * size + j` how many rows process i sends to process j."""
    found = group_of(group)
    if not isinstance(send_count_matrix, list) or len(send_count_matrix) != found.size ** 2:
        raise TypeError(message(f"send_count_matrix={short(send_count_matrix)}", f"a list of {found.size ** 2} ints"))
    rows = [send_count_matrix[at:at + found.size] for at in range(0, found.size ** 2, found.size)]
    return all_to_all_single(output, input, [row[found.rank] for row in rows], rows[found.rank], group, async_op)
