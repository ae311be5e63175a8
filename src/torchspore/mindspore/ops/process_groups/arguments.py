"""Argument checks of `mint.distributed` and `comm_func`, and handles of exchanges."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import list_choices, message, short
from torchspore.distributed.comm.groups import Group
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.common import process_groups
from torchspore.mindspore.ops.collectives.collective import KINDS
from torchspore.mindspore.ops.process_groups.groups import named


class CommHandle:
    """The result of an exchange with `async_op=True`: the Tensors that it fills may be read after `wait`."""

    def __init__(self, end: Callable[[], Any] | None = None) -> None:
        self._end = end

    def wait(self) -> None:
        """Wait until the exchange has finished."""
        end, self._end = self._end, None
        if end is not None:
            end()


def group_of(group: Any) -> Group:
    """Return the group of that name; None means all processes."""
    return process_groups.find_group("group", named(group))


def handled(async_op: Any, end: Callable[[], Any]) -> CommHandle | None:
    """Return a handle for a running exchange, or finish it and return None."""
    if not isinstance(async_op, bool):
        raise TypeError(message(f"async_op={short(async_op)}", f"a bool, got {type(async_op).__name__}"))
    if async_op:
        return CommHandle(end)
    end()
    return None


def tensor(name: str, value: Any) -> Any:
    """Return the value if it is a Tensor. Raises TypeError."""
    if not isinstance(value, TensorBase):
        raise TypeError(message(f"{name}={short(value)}", f"a Tensor, got {type(value).__name__}"))
    return value


def tensors_of(name: str, values: Any, group: Group) -> list[Any]:
    """Return the Tensors of a list with one Tensor for each process. Raises TypeError."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(message(f"{name}={short(values)}", f"a list of Tensors, got {type(values).__name__}"))
    if len(values) != group.size:
        have = "one: the group has one process" if group.size == 1 else f"{group.size}: one for each process of the group"
        raise TypeError(message(f"{name} of {len(values)} Tensors", have))
    return [tensor(name, value) for value in values]


def kind(op: Any) -> str:
    """Return the kind of reduction. Raises TypeError for an unknown name."""
    if not isinstance(op, str) or op not in KINDS:
        raise TypeError(message(f"op={short(op)}", list_choices(KINDS)))
    return op


def rank_in_group(name: str, rank: Any, group: Group) -> int:
    """Return the rank within the group of a global rank. Raises TypeError and ValueError if it is not in the group."""
    if not is_int(rank):
        raise TypeError(message(f"{name}={short(rank)}", f"an int, got {type(rank).__name__}"))
    if rank not in group.ranks:
        raise ValueError(message(
            f"{name}={rank}", "0, the only process" if group.ranks == (0,) else f"one of the group's ranks, {list(group.ranks)}",
        ))
    return group.ranks.index(rank)


def other_rank_in_group(call: str, name: str, rank: Any, group: Group) -> int:
    """Return the rank within the group of another process than this one. Raises TypeError and ValueError if there is none."""
    if group.size == 1:
        hint = "call it where get_world_size() > 1"
        raise ValueError(message(f"{call} with process {short(rank)}", "another process: this training has one", hint=hint))
    index = rank_in_group(name, rank, group)
    if index == group.rank:
        raise ValueError(message(f"{call}({name}={rank}) in rank {rank}", "another process"))
    return index


def sizes(name: str, lengths: Any, length: int, group: Group) -> list[int]:
    """Return the lengths of the processes' parts along axis 0, equal ones for None. Raises ValueError if they do not sum to `length`."""
    if lengths is not None and not hasattr(type(lengths), "__len__"):
        raise TypeError(message(f"{name}={short(lengths)}", f"None or a list of ints, got {type(lengths).__name__}"))
    if lengths is None or len(lengths) == 0:
        if length % group.size:
            raise ValueError(message(f"{name}=None for {length} rows", f"rows that divide by {group.size}, or the lengths"))
        return [length // group.size] * group.size
    try:
        row_counts = [int(length_of_process) for length_of_process in lengths]
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(message(f"{name}={short(lengths)}", "None or a list of ints")) from None
    if len(row_counts) != group.size or sum(row_counts) != length:
        expected = f"None or [{length}]: one part, all of it" if group.size == 1 else f"{group.size} lengths that sum to {length}"
        raise ValueError(message(f"{name}={short(lengths)}", expected))
    return row_counts


def check_output(output: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises ValueError if a Tensor cannot store a result of this shape and dtype."""
    tensor("output", output)
    if tuple(output.shape) != tuple(shape) or output.dtype != dtype:
        raise ValueError(message(f"an output of {output.dtype}{list(output.shape)} for {dtype}{list(shape)}", "the same shape and dtype"))
