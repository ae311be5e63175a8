"""Collective operators, for a group of one process: what is sent comes back, and its gradient is that of a copy.

A group of several processes can't exist here yet: `communication.init` and `create_group` refuse it. So whatever names another process than
rank 0 is refused, at the constructor where the program wrote it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base.text import message, one_of, short
from torchspore.mindspore.communication.management import HCCL_WORLD_COMM_GROUP, get_group_size
from torchspore.mindspore.ops.declare import op
from torchspore.mindspore.ops.primitive import Primitive

WORLD = HCCL_WORLD_COMM_GROUP


class ReduceOp:
    """How the values of several processes become one: the names that `op` of a reduction takes."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


KINDS = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD, ReduceOp.AVG)


@op()
def _own_share(x: torch.Tensor) -> torch.Tensor:
    """What a group of one computes of its only share: a copy, so that the result can be written to."""
    return x.clone()


class _Collective(Primitive):
    """What collectives share: a group, and one process in it."""

    def __init__(self, group: Any, **attributes: Any) -> None:
        super().__init__(type(self).__name__)
        for name, value in {**attributes, "group": group}.items():
            self.add_prim_attr(name, value)
        self._expect("group", group, str)
        self.add_prim_attr("rank_size", 1)

    def _expect(self, argument: str, value: Any, kind: type) -> None:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            expected = {str: "the name of a group" if argument == "group" else "a str", int: "an int"}[kind]
            raise TypeError(message(f"{self.name}({argument}={short(value)})", f"{expected}, got {type(value).__name__}"))

    def _expect_rank(self, argument: str, value: Any) -> None:
        self._expect(argument, value, int)
        if value != 0:
            raise ValueError(message(f"{self.name}({argument}={value})", "0, the only process there is"))

    def _expect_kind(self, op: Any) -> None:
        self._expect("op", op, str)
        if op not in KINDS:
            raise ValueError(message(f"{self.name}(op={op!r})", one_of(KINDS)))

    def _share(self, x: Any) -> Any:
        get_group_size(self.group)
        if getattr(x, "dtype", None) is not None and str(x.dtype) == "Bool":
            raise TypeError(message(f"{self.name}: a Tensor of bool", "a Tensor of numbers"))
        return _own_share(x)

    def __call__(self, input_x: Any) -> Any:
        return self._share(input_x)


class AllReduce(_Collective):
    """The sum, product, largest or smallest value or mean of `input_x` over all processes of the group, for each of them."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, op=op, fusion=0, index=0)
        self._expect_kind(op)


class Reduce(_Collective):
    """The same as AllReduce, for the process `dest_rank` alone."""

    def __init__(self, dest_rank: int, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, dest_rank=dest_rank, op=op)
        self._expect_rank("dest_rank", dest_rank)
        self._expect_kind(op)


class ReduceScatter(_Collective):
    """The share of this process, along axis 0, of what AllReduce gives."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group, op=op, fusion=0)
        self._expect_kind(op)


class AllGather(_Collective):
    """`input_x` of all processes, one after the other along axis 0."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__(group, fusion=0)


class CollectiveGather(_Collective):
    """The same as AllGather, for the process `dest_rank` alone."""

    def __init__(self, dest_rank: int, group: str = WORLD) -> None:
        super().__init__(group, dest_rank=dest_rank)
        self._expect_rank("dest_rank", dest_rank)


class CollectiveScatter(_Collective):
    """The share of this process, along axis 0, of the `input_x` of process `src_rank`."""

    def __init__(self, src_rank: int = 0, group: str = WORLD) -> None:
        super().__init__(group, src_rank=src_rank)
        self._expect_rank("src_rank", src_rank)


class Broadcast(_Collective):
    """The Tensors of process `root_rank`, for all processes: a tuple of as many as are given, alone or in a tuple."""

    def __init__(self, root_rank: int, group: str = WORLD) -> None:
        super().__init__(group, root_rank=root_rank)
        self._expect_rank("root_rank", root_rank)

    def __call__(self, input_x: Any) -> Any:
        return tuple(self._share(x) for x in (input_x if isinstance(input_x, (tuple, list)) else (input_x,)))


class AlltoAll(_Collective):
    """`input_x` in `split_count` blocks along `split_dim`, one for each process; what comes is joined along `concat_dim`."""

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = WORLD) -> None:
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)
        for name, value in (("split_count", split_count), ("split_dim", split_dim), ("concat_dim", concat_dim)):
            self._expect(name, value, int)

    def __call__(self, input_x: Any) -> Any:
        if self.split_count != 1:
            raise ValueError(message(f"AlltoAll(split_count={self.split_count})", "1, the number of processes"))
        for name in ("split_dim", "concat_dim"):
            axis = getattr(self, name)
            if not -input_x.ndim <= axis < input_x.ndim:
                raise ValueError(message(f"AlltoAll({name}={axis}) of a Tensor of rank {input_x.ndim}", "one of its axes"))
        return self._share(input_x)


class AlltoAllV(_Collective):
    """Shares of a flat `input_x` of `send_numel_list` times `block_size` elements, one for each process."""

    def __init__(self, group: str = WORLD, block_size: int = 1) -> None:
        super().__init__(group, block_size=block_size)
        self._expect("block_size", block_size, int)

    def __call__(self, input_x: Any, send_numel_list: Any, recv_numel_list: Any) -> Any:
        sent, received = _numbers(send_numel_list), _numbers(recv_numel_list)
        if len(sent) != 1 or sent != received:
            raise ValueError(message(f"AlltoAllV: {sent} elements sent and {received} received", "one number each, and equal ones"))
        length = sent[0] * self.block_size
        if input_x.ndim != 1 or input_x.shape[0] != length:
            raise ValueError(message(f"AlltoAllV: a Tensor of shape {input_x.shape}", f"the shape ({length},)"))
        return self._share(input_x)


class Barrier(_Collective):
    """Waits until all processes of the group are here."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__(group)

    def __call__(self) -> None:
        get_group_size(self.group)


class _Pair(_Collective):
    """What goes from one process to another one: with one process there is none."""

    def _refuse(self, argument: str, rank: Any) -> None:
        self._expect(argument, rank, int)
        hint = "call it where get_group_size() > 1"
        raise ValueError(message(f"{self.name}({argument}={rank})", "another process: this training has one", hint=hint))


class Send(_Pair):
    """Sends a Tensor to the process `dest_rank`; refused at the call while there is one process."""

    def __init__(self, sr_tag: int, dest_rank: int, group: str = WORLD, group_back: str = WORLD) -> None:
        super().__init__(group, sr_tag=sr_tag, dest_rank=dest_rank, group_back=group_back)

    def __call__(self, input_x: Any) -> Any:
        self._refuse("dest_rank", self.dest_rank)


class Receive(_Pair):
    """Receives a Tensor of `shape` and `dtype` from the process `src_rank`; refused at the call while there is one process."""

    def __init__(self, sr_tag: int, src_rank: int, shape: Any, dtype: Any, group: str = WORLD, group_back: str = WORLD) -> None:
        super().__init__(group, sr_tag=sr_tag, src_rank=src_rank, shape=shape, dtype=dtype, group_back=group_back)

    def __call__(self, input_x: Any = None) -> Any:
        self._refuse("src_rank", self.src_rank)


class NeighborExchange(_Pair):
    """Sends `input_x`, a tuple, to `send_rank_ids` and receives a tuple from `recv_rank_ids`: with one process both lists are empty."""

    def __init__(
        self, send_rank_ids: Any, recv_rank_ids: Any, recv_shapes: Any, send_shapes: Any, recv_type: Any, group: str = WORLD,
    ) -> None:
        super().__init__(
            group, send_rank_ids=send_rank_ids, recv_rank_ids=recv_rank_ids, recv_shapes=recv_shapes, send_shapes=send_shapes,
            recv_type=recv_type,
        )

    def __call__(self, input_x: Any) -> Any:
        for argument in ("send_rank_ids", "recv_rank_ids"):
            for rank in getattr(self, argument):
                self._refuse(argument, rank)
        if len(input_x) != 0:
            raise ValueError(message(f"NeighborExchange: {len(input_x)} Tensors to send", "none, as send_rank_ids says"))
        return ()


def _numbers(values: Any) -> list[int]:
    return [int(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]


PRIMITIVES: Sequence[type[Primitive]] = (
    AllGather, AllReduce, AlltoAll, AlltoAllV, Barrier, Broadcast, CollectiveGather, CollectiveScatter, NeighborExchange, Receive, Reduce,
    ReduceScatter, Send,
)
