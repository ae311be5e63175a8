"""Collective operators: every process of a group takes part in an exchange, with MindSpore's gradients.

In a group of one process, the result is a copy of the input. Ranks in constructors are ranks within the group.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchspore.base.lazy_modules import LazyModule
from torchspore.base.text import list_choices, message, short
from torchspore.context.store import STORE
from torchspore.distributed import device_count
from torchspore.distributed.comm import groups
from torchspore.distributed.comm.groups import Group
from torchspore.mindspore.common.process_groups import HCCL_WORLD_COMM_GROUP, find_group
from torchspore.mindspore.ops.declaration.declare import part_of
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.ops.declaration.wide import Widening
from torchspore.translations import translate

if TYPE_CHECKING:
    from torchspore.distributed.comm import collectives
else:
    collectives = LazyModule("torchspore.distributed.comm.collectives")

WORLD = HCCL_WORLD_COMM_GROUP


class ReduceOp:
    """The values of `op` in a reduction over processes."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


KINDS = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD, ReduceOp.AVG)


# ---- on torch tensors


@part_of("AllReduce")
def _all_reduce(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
    return collectives.all_reduce(x, kind, group)


@part_of("Reduce")
def _reduce(x: torch.Tensor, rank: int, kind: str, group: Group) -> torch.Tensor:
    return collectives.reduce(x, rank, kind, group)


@part_of("ReduceScatter")
def _reduce_scatter(x: torch.Tensor, kind: str, group: Group) -> torch.Tensor:
    return collectives.reduce_scatter(x, kind, group)


class _RepeatedBlock(torch.autograd.Function):
    """The value that a device receives from devices with equal inputs; its gradient would need their gradients."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor, split_dim: int, start: int, length: int, concat_dim: int, count: int) -> torch.Tensor:
        return torch.cat([x.narrow(split_dim, start, length)] * count, concat_dim)

    @staticmethod
    def backward(_: Any, *__: torch.Tensor) -> Any:
        raise RuntimeError(message(
            "the gradient of AlltoAll in one process", "a process for each device", hint="torchspore workers -n N SCRIPT",
        ))


@part_of("AlltoAll")
def _repeated_block(x: torch.Tensor, split_dim: int, start: int, length: int, concat_dim: int, count: int) -> torch.Tensor:
    received: torch.Tensor = _RepeatedBlock.apply(x, split_dim, start, length, concat_dim, count)
    return received


@part_of("AllGather")
def _all_gather(x: torch.Tensor, group: Group) -> torch.Tensor:
    return collectives.all_gather(x, group)


@part_of("CollectiveGather", wide=Widening())
def _gather(x: torch.Tensor, rank: int, group: Group) -> torch.Tensor:
    return collectives.gather(x, rank, group)


@part_of("CollectiveScatter")
def _scatter(x: torch.Tensor, rank: int, group: Group) -> torch.Tensor:
    return collectives.scatter(x, rank, group)


@part_of("Broadcast")
def _broadcast(x: torch.Tensor, rank: int, group: Group) -> torch.Tensor:
    return collectives.broadcast(x, rank, group)


@part_of("AlltoAll")
def _all_to_all(x: torch.Tensor, split_axis: int, concat_axis: int, group: Group) -> torch.Tensor:
    return collectives.all_to_all(x, group, split_axis, concat_axis)


@part_of("AlltoAllV")
def _all_to_all_uneven(x: torch.Tensor, sent: Sequence[int], received: Sequence[int], group: Group) -> torch.Tensor:
    return collectives.all_to_all_uneven(x, group, received, sent)


@part_of("AllGatherV")
def _all_gather_uneven(x: torch.Tensor, lengths: Sequence[int], group: Group) -> torch.Tensor:
    return collectives.all_gather_uneven(x, lengths, group)


@part_of("ReduceScatterV")
def _reduce_scatter_uneven(x: torch.Tensor, lengths: Sequence[int], kind: str, group: Group) -> torch.Tensor:
    return collectives.reduce_scatter_uneven(x, lengths, kind, group)


# ---- public classes


class Collective(Primitive):
    """Base class of collectives: a group, and checks of the constructor's arguments."""

    def __init__(self, group: Any, **attributes: Any) -> None:
        super().__init__(type(self).__name__)
        for name, value in {**attributes, "group": group}.items():
            self.add_prim_attr(name, value)
        self._expect("group", group, str)
        self.add_prim_attr("rank_size", self._size())

    def _size(self) -> int:
        """Return the number of processes in the group; 1 for a group that does not exist yet."""
        exists = self.group in groups.WORLDS or self.group in groups.names()
        return groups.find(self.group).size if exists else 1

    def _find_group(self) -> Group:
        """Return the group at the time of a call."""
        return find_group(self.name, self.group)

    def _expect(self, argument: str, value: Any, kind: type) -> None:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            expected = {str: "the name of a group" if argument == "group" else "a str", int: "an int"}[kind]
            raise TypeError(message(f"{self.name}({argument}={short(value)})", f"{expected}, got {type(value).__name__}"))

    def _expect_rank(self, argument: str, value: Any) -> None:
        self._expect(argument, value, int)
        if not 0 <= value < self.rank_size:
            expected = "0, the only process" if self.rank_size == 1 else f"a rank in the group, 0 to {self.rank_size - 1}"
            raise ValueError(message(f"{self.name}({argument}={value})", expected))

    def _expect_kind(self, op: Any) -> None:
        self._expect("op", op, str)
        if op not in KINDS:
            raise ValueError(message(f"{self.name}(op={op!r})", list_choices(KINDS)))

    def _numbers_only(self, x: Any) -> Any:
        if getattr(x, "dtype", None) is not None and str(x.dtype) == "Bool":
            raise TypeError(message(f"{self.name}: a Tensor of bool", "a Tensor of numbers"))
        return x


class AllReduce(Collective):
    """Reduce `input_x` over all processes of the group (sum, product, minimum, maximum or mean) and return the result to each."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, op=op, fusion=0, index=0)
        self._expect_kind(op)

    def __call__(self, input_x: Any) -> Any:
        return _all_reduce(self._numbers_only(input_x), self.op, self._find_group())


class Reduce(Collective):
    """AllReduce for the process `dest_rank` only; the other processes return their own `input_x`."""

    def __init__(self, dest_rank: int, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, dest_rank=dest_rank, op=op)
        self._expect_rank("dest_rank", dest_rank)
        self._expect_kind(op)

    def __call__(self, input_x: Any) -> Any:
        return _reduce(self._numbers_only(input_x), self.dest_rank, self.op, self._find_group())


class ReduceScatter(Collective):
    """Return this process's part, along axis 0, of the AllReduce result."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, op=op, fusion=0)
        self._expect_kind(op)

    def __call__(self, input_x: Any) -> Any:
        return _reduce_scatter(self._numbers_only(input_x), self.op, self._find_group())


class AllGather(Collective):
    """Concatenate `input_x` of all processes along axis 0."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__(group, fusion=0)

    def __call__(self, input_x: Any) -> Any:
        return _all_gather(self._numbers_only(input_x), self._find_group())


class CollectiveGather(Collective):
    """AllGather for the process `dest_rank` only; the other processes return zeros."""

    def __init__(self, dest_rank: int, group: str = WORLD) -> None:
        super().__init__(group, dest_rank=dest_rank)
        self._expect_rank("dest_rank", dest_rank)

    def __call__(self, input_x: Any) -> Any:
        return _gather(self._numbers_only(input_x), self.dest_rank, self._find_group())


class CollectiveScatter(Collective):
    """Return this process's part, along axis 0, of `input_x` of process `src_rank`. The other processes pass Tensors of its shape."""

    def __init__(self, src_rank: int = 0, group: str = WORLD) -> None:
        super().__init__(group, src_rank=src_rank)
        self._expect_rank("src_rank", src_rank)

    def __call__(self, input_x: Any) -> Any:
        return _scatter(self._numbers_only(input_x), self.src_rank, self._find_group())


class Broadcast(Collective):
    """Return the Tensors of process `root_rank` to all processes: a tuple, for a Tensor as for a tuple.

    As in MindSpore, each process keeps its own gradient; gradients are not summed at the root.
    """

    def __init__(self, root_rank: int, group: str = WORLD) -> None:
        super().__init__(group, root_rank=root_rank)
        self._expect_rank("root_rank", root_rank)

    def __call__(self, input_x: Any) -> Any:
        group = self._find_group()
        tensors = input_x if isinstance(input_x, (tuple, list)) else (input_x,)
        return tuple(_broadcast(self._numbers_only(x), self.root_rank, group) for x in tensors)


class AlltoAll(Collective):
    """Send one of `split_count` blocks along `split_dim` to each process; join the received blocks along `concat_dim`."""

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = WORLD) -> None:
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)
        for name, value in (("split_count", split_count), ("split_dim", split_dim), ("concat_dim", concat_dim)):
            self._expect(name, value, int)

    def __call__(self, input_x: Any) -> Any:
        for name in ("split_dim", "concat_dim"):
            axis = getattr(self, name)
            if not -input_x.ndim <= axis < input_x.ndim:
                raise IndexError(message(f"AlltoAll({name}={axis}) of a Tensor of rank {input_x.ndim}", "one of its axes"))
        group = self._find_group()
        if group.size == 1 < self.split_count == device_count.devices()[0]:
            return self._of_equal_devices(self._numbers_only(input_x))
        if self.split_count != group.size:
            raise ValueError(message(f"AlltoAll(split_count={self.split_count})", f"{group.size}, the number of processes"))
        return _all_to_all(self._numbers_only(input_x), self.split_dim, self.concat_dim, group)


    def _of_equal_devices(self, x: Any) -> Any:
        """Return the result of device `global_rank` if one process computes for all `split_count` devices, which hold the same input."""
        length, rest = divmod(x.shape[self.split_dim], self.split_count)
        if rest:
            expected = translate("a length of axis {axis} that {count} divides").format(axis=self.split_dim, count=self.split_count)
            raise ValueError(message(f"AlltoAll(split_count={self.split_count}) of a Tensor of shape {x.shape}", expected))
        start = int(STORE.get("auto_parallel.global_rank")) * length
        return _repeated_block(x, self.split_dim, start, length, self.concat_dim, self.split_count)


class AlltoAllV(Collective):
    """Send parts of a flat `input_x`, of `send_numel_list` times `block_size` elements, one to each process."""

    def __init__(self, group: str = WORLD, block_size: int = 1) -> None:
        super().__init__(group, block_size=block_size)
        self._expect("block_size", block_size, int)

    def __call__(self, input_x: Any, send_numel_list: Any, recv_numel_list: Any) -> Any:
        group = self._find_group()
        sent, received = numbers(send_numel_list), numbers(recv_numel_list)
        if len(sent) != group.size or len(received) != group.size or (group.size == 1 and sent != received):
            each = "one number each, and equal ones" if group.size == 1 else f"{group.size} numbers each"
            raise ValueError(message(f"AlltoAllV: {sent} elements sent and {received} received", each))
        return self._shares(input_x, sent, received, group)

    def _shares(self, x: Any, sent: list[int], received: list[int], group: Group) -> Any:
        sent, received = [n * self.block_size for n in sent], [n * self.block_size for n in received]
        if x.ndim != 1 or x.shape[0] != sum(sent):
            raise ValueError(message(f"{self.name}: a Tensor of shape {x.shape}", f"the shape ({sum(sent)},)"))
        return _all_to_all_uneven(self._numbers_only(x), sent, received, group)


class AlltoAllVC(AlltoAllV):
    """AlltoAllV with one `send_count_matrix`: row i (column i with `transpose`) has the element counts that process i sends to each."""

    def __init__(self, group: str = WORLD, block_size: int = 1, transpose: bool = False) -> None:
        super().__init__(group, block_size)
        self.add_prim_attr("transpose", transpose)

    def __call__(self, input_x: Any, send_count_matrix: Any) -> Any:
        group = self._find_group()
        flat = numbers(send_count_matrix)
        if len(flat) != group.size ** 2:
            raise ValueError(message(f"AlltoAllVC: a matrix of {len(flat)} numbers", f"{group.size} times {group.size}"))
        rows = [flat[at:at + group.size] for at in range(0, len(flat), group.size)]
        if self.transpose:
            rows = [list(column) for column in zip(*rows)]
        return self._shares(input_x, rows[group.rank], [row[group.rank] for row in rows], group)


class AllGatherV(Collective):
    """Concatenate flat Tensors of `output_split_sizes` elements, one from each process."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__(group)

    def __call__(self, input_x: Any, output_split_sizes: Any) -> Any:
        return _all_gather_uneven(self._numbers_only(input_x), numbers(output_split_sizes), self._find_group())


class ReduceScatterV(Collective):
    """Return this process's part of the AllReduce result of a flat Tensor, split by `input_split_sizes`."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, op=op)
        self._expect_kind(op)

    def __call__(self, input_x: Any, input_split_sizes: Any) -> Any:
        return _reduce_scatter_uneven(self._numbers_only(input_x), numbers(input_split_sizes), self.op, self._find_group())


class Barrier(Collective):
    """Wait until all processes of the group have arrived."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__(group)

    def __call__(self) -> None:
        group = self._find_group()
        if group.size > 1:
            collectives.barrier(group)


def numbers(values: Any) -> list[int]:
    """Return the ints of a list, a tuple or a Tensor in row-major order."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    return [n for value in listed for n in (numbers(value) if isinstance(value, (list, tuple)) else [int(value)])]


PRIMITIVES: Sequence[type[Primitive]] = (
    AllGather, AllGatherV, AllReduce, AlltoAll, AlltoAllV, AlltoAllVC, Barrier, Broadcast, CollectiveGather, CollectiveScatter, Reduce,
    ReduceScatter, ReduceScatterV,
)
