"""What the functions of `mint.distributed` and `comm_func` look at before they exchange anything, and the handles that they give."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.distributed.comm.groups import Group
from torchspore.engine.core.tensor import TensorBase
from torchspore.mindspore.communication import management
from torchspore.mindspore.mint.distributed.groups import named
from torchspore.mindspore.ops.collective import KINDS


class CommHandle:
    """What an exchange with `async_op=True` gives: the Tensors that it fills are to be read after `wait`."""

    def __init__(self, end: Callable[[], Any] | None = None) -> None:
        self._end = end

    def wait(self) -> None:
        """Waits until the exchange is over."""
        end, self._end = self._end, None
        if end is not None:
            end()


def group_of(group: Any) -> Group:
    """The group of that name; None is all processes."""
    return management.find_group("group", named(group))


def handled(async_op: Any, end: Callable[[], Any]) -> CommHandle | None:
    """A handle that ends an exchange, or None when it has ended it."""
    if not isinstance(async_op, bool):
        raise TypeError(message(f"async_op={short(async_op)}", f"a bool, got {type(async_op).__name__}"))
    if async_op:
        return CommHandle(end)
    end()
    return None


def tensor(name: str, value: Any) -> Any:
    """The value, which is a Tensor. Raises TypeError."""
    if not isinstance(value, TensorBase):
        raise TypeError(message(f"{name}={short(value)}", f"a Tensor, got {type(value).__name__}"))
    return value


def each(name: str, values: Any, group: Group) -> list[Any]:
    """The Tensors of a list that has one for each process. Raises TypeError."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(message(f"{name}={short(values)}", f"a list of Tensors, got {type(values).__name__}"))
    if len(values) != group.size:
        have = "one: the group has one process" if group.size == 1 else f"{group.size}: one for each process of the group"
        raise TypeError(message(f"{name} of {len(values)} Tensors", have))
    return [tensor(name, value) for value in values]


def kind(op: Any) -> str:
    """How values become one. Raises TypeError for what is no such name."""
    if not isinstance(op, str) or op not in KINDS:
        raise TypeError(message(f"op={short(op)}", list_choices(KINDS)))
    return op


def place(name: str, rank: Any, group: Group) -> int:
    """The place in the group of a rank among all. Raises TypeError and ValueError where there is none."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(message(f"{name}={short(rank)}", f"an int, got {type(rank).__name__}"))
    if rank not in group.ranks:
        raise ValueError(message(
            f"{name}={rank}", "0, the only process there is" if group.ranks == (0,) else f"one of the group's ranks, {list(group.ranks)}",
        ))
    return group.ranks.index(rank)


def other(call: str, name: str, rank: Any, group: Group) -> int:
    """The place in the group of another process than this one. Raises TypeError and ValueError where there is none."""
    if group.size == 1:
        hint = "call it where get_world_size() > 1"
        raise ValueError(message(f"{call} with process {short(rank)}", "another process: this training has one", hint=hint))
    found = place(name, rank, group)
    if found == group.rank:
        raise ValueError(message(f"{call}({name}={rank}) in rank {rank}", "another process"))
    return found


def sizes(name: str, given: Any, length: int, group: Group) -> list[int]:
    """Lengths of the processes' shares along axis 0, equal ones for None. Raises ValueError where they do not come to `length`."""
    if given is not None and not hasattr(type(given), "__len__"):
        raise TypeError(message(f"{name}={short(given)}", f"None or a list of ints, got {type(given).__name__}"))
    if given is None or len(given) == 0:
        if length % group.size:
            raise ValueError(message(f"{name}=None for {length} rows", f"rows that divide by {group.size}, or the lengths"))
        return [length // group.size] * group.size
    try:
        found = [int(one) for one in given]
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(message(f"{name}={short(given)}", "None or a list of ints")) from None
    if len(found) != group.size or sum(found) != length:
        expected = f"None or [{length}]: one share, all of it" if group.size == 1 else f"{group.size} lengths that come to {length}"
        raise ValueError(message(f"{name}={short(given)}", expected))
    return found


def same(output: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Looks whether a Tensor can hold a result. Raises ValueError."""
    tensor("output", output)
    if tuple(output.shape) != tuple(shape) or output.dtype != dtype:
        raise ValueError(message(f"an output of {output.dtype}{list(output.shape)} for {dtype}{list(shape)}", "the same shape and dtype"))
