"""Exchanges of `mint.distributed`: they write into their arguments and return handles. A single process receives what it sends.

Ranks are global.
"""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore import ops
from torchspore.mindspore.ops.declaration.write_back import write_back
from torchspore.mindspore.ops.process_groups import arguments
from torchspore.mindspore.ops.process_groups.arguments import CommHandle, group_of, handled, rank_in_group, tensor


def _later() -> Any:
    from torchspore.distributed.comm import async_collectives

    return async_collectives


def load_collectives() -> Any:
    from torchspore.distributed.comm import collectives

    return collectives


class _Over:
    """An exchange that does not need waiting."""

    def wait(self) -> None:
        """Do nothing."""


OVER = _Over()


def write_result(output: Any, begun: Any, async_op: bool) -> CommHandle | None:
    """Writes the result of an exchange into a Tensor when it has finished."""
    value, work = begun

    def end() -> None:
        work.wait()
        write_back(output, wrap(value))

    return handled(async_op, end)


def _rows(x: Any) -> int:
    return x.shape[0] if x.ndim else 1


def all_reduce(tensor: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Reduce `tensor` over all processes, in place: sum, product, extreme or mean."""
    arguments.tensor("tensor", tensor)
    return write_result(tensor, _later().all_reduce(raw(tensor), arguments.kind(op), group_of(group)), async_op)


def reduce(tensor: Any, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """all_reduce for the process `dst` only."""
    process_group = group_of(group)
    at = rank_in_group("dst", dst, process_group)
    value, work = _later().all_reduce(raw(arguments.tensor("tensor", tensor)), arguments.kind(op), process_group)
    if process_group.rank == at:
        return write_result(tensor, (value, work), async_op)
    return handled(async_op, work.wait)


def broadcast(tensor: Any, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Set `tensor` to that of the process `src`."""
    arguments.tensor("tensor", tensor)
    process_group = group_of(group)
    return write_result(tensor, _later().broadcast(raw(tensor), rank_in_group("src", src, process_group), process_group), async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Wait until all processes of the group have arrived; `device_ids` is reserved."""
    process_group = group_of(group)
    if device_ids is not None:
        raise ValueError(message(f"barrier(device_ids={short(device_ids)})", "None: it is reserved"))
    load_collectives().barrier(process_group)
    return handled(async_op, lambda: None)


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Concatenate the `input_tensor` of all processes along axis 0 into `output_tensor`."""
    process_group, x = group_of(group), tensor("input_tensor", input_tensor)
    size = process_group.size
    shape = (x.shape[0] * size, *x.shape[1:]) if x.ndim else () if size == 1 else (size,)
    arguments.check_output(output_tensor, shape, x.dtype)
    return write_result(output_tensor, _later().all_gather(raw(x) if x.ndim or size == 1 else raw(x).reshape(1), process_group), async_op)


def all_gather_into_tensor_uneven(
    output: Any, input: Any, output_split_sizes: Any = None, group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """Concatenate inputs of different lengths, `output_split_sizes` along axis 0, into `output`."""
    process_group = group_of(group)
    lengths = arguments.sizes("output_split_sizes", output_split_sizes, _rows(tensor("output", output)), process_group)
    arguments.check_output(output, (sum(lengths), *tensor("input", input).shape[1:]) if input.ndim else (), input.dtype)
    value = load_collectives().all_gather_uneven(raw(input), lengths, process_group)
    return handled(async_op, lambda: write_back(output, wrap(value)))


def reduce_scatter_tensor(
    output: Any, input: Any, op: str = "sum", group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """Write this process's part, along axis 0, of the all_reduce result into `output`."""
    process_group, kind = group_of(group), arguments.kind(op)
    rows = arguments.sizes("input", None, _rows(tensor("input", input)), process_group)[0]
    arguments.check_output(output, (rows, *input.shape[1:]) if input.ndim else (), input.dtype)
    return write_result(output, _later().reduce_scatter(raw(input), kind, process_group), async_op)


def reduce_scatter_tensor_uneven(
    output: Any, input: Any, input_split_sizes: Any = None, op: str = "sum", group: str | None = None, async_op: bool = False,
) -> CommHandle | None:
    """reduce_scatter_tensor for parts of different lengths, `input_split_sizes` along axis 0."""
    process_group, kind = group_of(group), arguments.kind(op)
    lengths = arguments.sizes("input_split_sizes", input_split_sizes, _rows(tensor("input", input)), process_group)
    arguments.check_output(output, (lengths[process_group.rank], *input.shape[1:]) if input.ndim else (), input.dtype)
    value = load_collectives().reduce_scatter_uneven(raw(input), lengths, kind, process_group)
    return handled(async_op, lambda: write_back(output, wrap(value)))


def _into_each(outputs: list[Any], begun: Any, lengths: list[int], async_op: bool) -> CommHandle | None:
    value, work = begun

    def end() -> None:
        work.wait()
        for output, share in zip(outputs, value.split(lengths)):
            write_back(output, wrap(share.reshape(tuple(output.shape))))

    return handled(async_op, end)


def all_gather(tensor_list: Any, tensor: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Write the `tensor` of each process into the Tensors of `tensor_list`."""
    process_group, x = group_of(group), arguments.tensor("tensor", tensor)
    outputs = arguments.tensors_of("tensor_list", tensor_list, process_group)
    for output in outputs:
        arguments.check_output(output, x.shape, x.dtype)
    return _into_each(outputs, _later().all_gather(raw(x).reshape(-1), process_group), [x.size] * process_group.size, async_op)


def gather(tensor: Any, gather_list: Any, dst: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """all_gather for the process `dst` only; the others' `gather_list` is ignored."""
    process_group, x = group_of(group), arguments.tensor("tensor", tensor)
    at = rank_in_group("dst", dst, process_group)
    outputs = arguments.tensors_of("gather_list", gather_list, process_group) if process_group.rank == at else []
    for output in outputs:
        arguments.check_output(output, x.shape, x.dtype)
    value = load_collectives().gather(raw(x).reshape(-1), at, process_group)
    return handled(async_op, lambda: [
        write_back(output, wrap(share.reshape(tuple(output.shape)))) for output, share in zip(outputs, value.chunk(process_group.size))
    ])


def scatter(tensor: Any, scatter_list: Any, src: int = 0, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Write the Tensors of `scatter_list` of the process `src`, one for each process, into `tensor`; the others' list is ignored."""
    process_group, output = group_of(group), arguments.tensor("tensor", tensor)
    at = rank_in_group("src", src, process_group)
    if process_group.rank == at:
        tensors = arguments.tensors_of("scatter_list", scatter_list, process_group)
        for item in tensors:
            arguments.check_output(output, item.shape, item.dtype)
        flat = ops.concat([ops.reshape(item, (-1,)) for item in tensors]) if len(tensors) > 1 else ops.reshape(tensors[0], (-1,))
    else:
        flat = ops.zeros((output.size * process_group.size,), output.dtype)
    value = load_collectives().scatter(raw(flat), at, process_group)
    return handled(async_op, lambda: write_back(output, wrap(value.reshape(tuple(output.shape)))))


def reduce_scatter(output: Any, input_list: Any, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Reduce the Tensors of `input_list` over all processes, one for each process, into `output`."""
    process_group, kind = group_of(group), arguments.kind(op)
    tensors = arguments.tensors_of("input_list", input_list, process_group)
    for item in tensors:
        arguments.check_output(output, item.shape, item.dtype)
    value, work = _later().reduce_scatter(raw(joined_rows(tensors)), kind, process_group)
    return write_result(output, (value.reshape(tuple(output.shape)), work), async_op)


def joined_rows(tensors: list[Any]) -> Any:
    """Return the concatenated elements of Tensors."""
    flat = [ops.reshape(item, (-1,)) for item in tensors]
    return flat[0] if len(flat) == 1 else ops.concat(flat)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Send the Tensors of `input_tensor_list`, one to each process, and receive into `output_tensor_list`."""
    process_group = group_of(group)
    outputs = arguments.tensors_of("output_tensor_list", output_tensor_list, process_group)
    tensors = arguments.tensors_of("input_tensor_list", input_tensor_list, process_group)
    arguments.check_output(outputs[process_group.rank], tensors[process_group.rank].shape, tensors[process_group.rank].dtype)
    received = [item.size for item in outputs]
    begun = _later().all_to_all(raw(joined_rows(tensors)), received, [item.size for item in tensors], process_group)
    return _into_each(outputs, begun, received, async_op)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """all_to_all for parts of one Tensor along axis 0, with these sizes."""
    process_group = group_of(group)
    received = arguments.sizes("output_split_sizes", output_split_sizes, _rows(tensor("output", output)), process_group)
    sent = arguments.sizes("input_split_sizes", input_split_sizes, _rows(tensor("input", input)), process_group)
    arguments.check_output(output, (sum(received), *input.shape[1:]) if input.ndim else (), input.dtype)
    x = raw(input) if input.ndim else raw(input).reshape(1)
    value, work = _later().all_to_all(x, received, sent, process_group)
    return write_result(output, (value.reshape(tuple(output.shape)), work), async_op)


def all_to_all_v_c(output: Any, input: Any, send_count_matrix: Any, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """all_to_all_single with one list for all processes: element `i * size + j` is the number of rows from process i to process j."""
    process_group = group_of(group)
    if not isinstance(send_count_matrix, list) or len(send_count_matrix) != process_group.size ** 2:
        raise TypeError(message(f"send_count_matrix={short(send_count_matrix)}", f"a list of {process_group.size ** 2} ints"))
    rows = [send_count_matrix[at:at + process_group.size] for at in range(0, process_group.size ** 2, process_group.size)]
    return all_to_all_single(output, input, [row[process_group.rank] for row in rows], rows[process_group.rank], group, async_op)
