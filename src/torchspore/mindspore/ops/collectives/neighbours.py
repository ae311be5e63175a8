"""Exchanges between pairs of processes of a group. Ranks are ranks within the group; gradients flow in the opposite direction."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base.text import list_choices, message, short
from torchspore.distributed import device_count
from torchspore.distributed.comm import groups
from torchspore.distributed.comm.groups import Group
from torchspore.engine.tensors import dtypes
from torchspore.graph.capture.running_trace import current
from torchspore.mindspore.ops.arrays.creation import zeros
from torchspore.mindspore.ops.collectives.collective import WORLD, Collective
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import part_of
from torchspore.mindspore.ops.declaration.primitive import Primitive


@part_of("exchange")
def exchanged(
    like: torch.Tensor, dtype: Any, sent: list[torch.Tensor], to: Sequence[int], shapes: Sequence[Sequence[int]], sources: Sequence[int],
    group: Group, tags: Sequence[int] | None = None, source_tags: Sequence[int] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Send `sent` to the processes at `to`; return the Tensors, of these shapes and this dtype, from the processes at `sources`."""
    from torchspore.distributed.comm import collectives

    template = like if dtype is None else like.to(as_dtype(dtype))
    return collectives.exchange(sent, to, shapes, sources, template, group, tags, source_tags)


@part_of("exchange")
def planned_exchange(
    like: torch.Tensor, dtype: Any, shapes: Sequence[Sequence[int]], name: str, devices: int,
) -> tuple[torch.Tensor, ...]:
    """Return what an exchange among planned devices returns, in a graph that is compiled and cannot run."""
    from torchspore.distributed.comm import operators

    template = like if dtype is None else like.to(as_dtype(dtype))
    return tuple(operators.PLANNED(template.detach(), list(map(int, shape)), name, devices) for shape in shapes)


def _planned_devices(group: str) -> int:
    """Return for how many devices a graph is compiled in this process if the program sets `device_num` and starts no processes; else 1."""
    is_planned = group in groups.WORLDS and current() is not None and device_count.devices()[1] == device_count.PLANNED
    return device_count.devices()[0] if is_planned else 1


class _Pair(Collective):
    """Base class of exchanges from one process to another, which need two processes."""

    def _other(self, argument: str, rank: Any, may_be_planned: bool = False) -> Group:
        self._expect(argument, rank, int)
        group = self._find_group()
        count = _planned_devices(self.group) if group.size == 1 and may_be_planned else group.size
        if count == 1:
            hint = "call it where get_group_size() > 1"
            raise ValueError(message(f"{self.name}({argument}={rank})", "another process: this training has one", hint=hint))
        if not 0 <= rank < count or (rank == group.rank and count == group.size):
            raise ValueError(message(f"{self.name}({argument}={rank}) in rank {group.rank}", f"another rank from 0 to {count - 1}"))
        return group

    def _expect_ints(self, argument: str, least: int) -> list[int]:
        """Return the list of ints in an argument. Raise TypeError for other types, ValueError for a value below `least`."""
        values = getattr(self, argument)
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            raise TypeError(message(f"{self.name}({argument}={short(values)})", "a list of ints"))
        if any(value < least for value in values):
            raise ValueError(message(f"{self.name}({argument}={short(values)})", f"ints from {least} on"))
        return values


class Send(_Pair):
    """Sends a Tensor to the process `dest_rank` of the group, and returns it. `sr_tag` distinguishes messages to the same process."""

    def __init__(self, sr_tag: int, dest_rank: int, group: str = WORLD, group_back: str = WORLD) -> None:
        super().__init__(group, sr_tag=sr_tag, dest_rank=dest_rank, group_back=group_back)

    def __call__(self, input_x: Any) -> Any:
        group = self._other("dest_rank", self.dest_rank)
        exchanged(input_x, None, [input_x], [self.dest_rank], [], [], group, [self.sr_tag], [])
        return input_x


class Receive(_Pair):
    """Receives a Tensor of `shape` and `dtype` from the process `src_rank` of the group; its argument is ignored."""

    def __init__(self, sr_tag: int, src_rank: int, shape: Any, dtype: Any, group: str = WORLD, group_back: str = WORLD) -> None:
        super().__init__(group, sr_tag=sr_tag, src_rank=src_rank, shape=shape, dtype=dtype, group_back=group_back)

    def __call__(self, input_x: Any = None) -> Any:
        group = self._other("src_rank", self.src_rank)
        like = zeros((1,), self.dtype) if input_x is None else input_x
        return exchanged(like, self.dtype, [], [], [tuple(self.shape)], [self.src_rank], group, [], [self.sr_tag])[0]


class NeighborExchange(_Pair):
    """Sends the tuple `input_x` to `send_rank_ids`, one Tensor each, and returns a tuple of these shapes from `recv_rank_ids`.

    A call checks the arguments of the constructor, as in MindSpore.
    """

    def __init__(
        self, send_rank_ids: Any, recv_rank_ids: Any, recv_shapes: Any, send_shapes: Any, recv_type: Any, group: str = WORLD,
    ) -> None:
        super().__init__(
            group if isinstance(group, str) else WORLD, send_rank_ids=send_rank_ids, recv_rank_ids=recv_rank_ids, recv_shapes=recv_shapes,
            send_shapes=send_shapes, recv_type=recv_type,
        )
        self.add_prim_attr("group", group)

    def _check(self) -> None:
        self._expect("group", self.group, str)
        for kind in ("send", "recv"):
            ranks, shapes = self._expect_ints(f"{kind}_rank_ids", 0), getattr(self, f"{kind}_shapes")
            if not isinstance(shapes, tuple) or not all(isinstance(shape, list) for shape in shapes):
                raise TypeError(message(f"NeighborExchange({kind}_shapes={short(shapes)})", "a tuple of lists of ints"))
            if len(shapes) != len(ranks):
                wrote = f"NeighborExchange({kind}_shapes={short(shapes)}) of {len(shapes)} shapes"
                raise ValueError(message(wrote, f"{len(ranks)}, as in {kind}_rank_ids"))
        if not isinstance(self.recv_type, dtypes.Type):
            wrote = f"NeighborExchange(recv_type={short(self.recv_type)})"
            raise TypeError(message(wrote, "a type of mindspore, such as mindspore.float32"))

    def __call__(self, input_x: Any = ()) -> Any:
        self._check()
        group = self._find_group()
        for argument in ("send_rank_ids", "recv_rank_ids"):
            for rank in getattr(self, argument):
                self._other(argument, rank, may_be_planned=True)
        if len(input_x) != len(self.send_rank_ids):
            expected = "none, as in send_rank_ids" if not self.send_rank_ids else f"{len(self.send_rank_ids)}, as in send_rank_ids"
            raise ValueError(message(f"NeighborExchange: {len(input_x)} Tensors to send", expected))
        for x, shape in zip(input_x, self.send_shapes):
            if tuple(x.shape) != tuple(shape):
                raise ValueError(message(f"NeighborExchange: a Tensor of shape {tuple(x.shape)}", f"{tuple(shape)}, as in send_shapes"))
        if not self.send_rank_ids and not self.recv_rank_ids:
            return ()
        like = input_x[0] if input_x else zeros((1,), self.recv_type)
        if group.size == 1:
            return planned_exchange(like, self.recv_type, self.recv_shapes, self.name, device_count.devices()[0])
        return exchanged(like, self.recv_type, list(input_x), self.send_rank_ids, self.recv_shapes, self.recv_rank_ids, group)


class NeighborExchangeV2(_Pair):
    """Surrounds `input_x` (N, C, H, W) with edges of the neighbouring processes.

    The eight lists of ranks go clockwise: top, top right, right, bottom right, bottom, bottom left, left, top left. -1 means no neighbour,
    whose edge is zeros. `send_lens` and `recv_lens` have the widths of the edges: top, bottom, left, right.
    """

    def __init__(
        self, send_rank_ids: Any, send_lens: Any, recv_rank_ids: Any, recv_lens: Any, data_format: str, group: str = WORLD,
    ) -> None:
        super().__init__(
            group, send_rank_ids=send_rank_ids, send_lens=send_lens, recv_rank_ids=recv_rank_ids, recv_lens=recv_lens,
            data_format=data_format,
        )
        for name, count, least in (("send_rank_ids", 8, -1), ("recv_rank_ids", 8, -1), ("send_lens", 4, 0), ("recv_lens", 4, 0)):
            values = self._expect_ints(name, least)
            if len(values) != count:
                raise ValueError(message(f"NeighborExchangeV2({name}={short(values)})", f"a list of {count} ints"))
            ranks = [value for value in values if value != -1]
            if least == -1 and len(set(ranks)) < len(ranks):
                raise ValueError(message(f"NeighborExchangeV2({name}={short(values)})", "each rank once"))
        if data_format != "NCHW":
            raise ValueError(message(f"NeighborExchangeV2(data_format={short(data_format)})", "'NCHW'"))

    def __call__(self, input_x: Any) -> Any:
        group = self._find_group()
        for argument in ("send_rank_ids", "recv_rank_ids"):
            for rank in getattr(self, argument):
                if rank != -1:
                    self._other(argument, rank, may_be_planned=True)
        if input_x.ndim != 4:
            raise ValueError(message(f"NeighborExchangeV2 of a Tensor of rank {input_x.ndim}", "(N, C, H, W)"))
        for index, length in enumerate(self.send_lens):
            if length > input_x.shape[2 + index // 2]:
                wrote = f"NeighborExchangeV2(send_lens={self.send_lens}) of a Tensor of shape {tuple(input_x.shape)}"
                raise ValueError(message(wrote, f"at most {input_x.shape[2 + index // 2]} at index {index}"))
        if group.size == 1 and any(rank != -1 for rank in (*self.send_rank_ids, *self.recv_rank_ids)):
            top, bottom, left, right = self.recv_lens
            shape = (*input_x.shape[:2], input_x.shape[2] + top + bottom, input_x.shape[3] + left + right)
            return planned_exchange(input_x, None, [shape], self.name, device_count.devices()[0])[0]
        return _with_edges(
            input_x, tuple(self.send_rank_ids), tuple(self.send_lens), tuple(self.recv_rank_ids), tuple(self.recv_lens), group,
        )


_WAYS = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""The eight directions as steps (down, right)."""


@part_of("NeighborExchangeV2")
def _with_edges(
    x: torch.Tensor, to: Sequence[int], widths: Sequence[int], sources: Sequence[int], margins: Sequence[int], group: Group,
) -> torch.Tensor:
    from torchspore.distributed.comm import collectives

    sends = [way for way in range(8) if to[way] != -1]
    comes = [way for way in range(8) if sources[way] != -1]
    sent = [x[_edge(_WAYS[way], x.shape, widths)] for way in sends]
    regions = [_margin(_WAYS[way], x.shape, margins) for way in comes]
    shapes = [(*x.shape[:2], down.stop - down.start, right.stop - right.start) for down, right in regions]
    # One process sends upwards what the other receives from below; the tag is the direction.
    received = collectives.exchange(
        sent, [to[way] for way in sends], shapes, [sources[way] for way in comes], x, group, sends, [(way + 4) % 8 for way in comes],
    )
    top, bottom, left, right = margins
    height, width = x.shape[2] + top + bottom, x.shape[3] + left + right
    out = torch.nn.functional.pad(x, (left, right, top, bottom))
    for piece, (down, across) in zip(received, regions):
        out = out + torch.nn.functional.pad(piece, (across.start, width - across.stop, down.start, height - down.stop))
    return out


def _edge(way: tuple[int, int], shape: Sequence[int], widths: Sequence[int]) -> tuple[Any, ...]:
    """Return the index of the part of the image that is sent in this direction."""
    top, bottom, left, right = widths
    down = {-1: slice(0, top), 0: slice(None), 1: slice(shape[2] - bottom, None)}[way[0]]
    across = {-1: slice(0, left), 0: slice(None), 1: slice(shape[3] - right, None)}[way[1]]
    return (slice(None), slice(None), down, across)


def _margin(way: tuple[int, int], shape: Sequence[int], margins: Sequence[int]) -> tuple[slice, slice]:
    """Return the slices of the result for the part from this direction."""
    top, bottom, left, right = margins
    height, width = shape[2], shape[3]
    down = {-1: slice(0, top), 0: slice(top, top + height), 1: slice(top + height, top + height + bottom)}[way[0]]
    across = {-1: slice(0, left), 0: slice(left, left + width), 1: slice(left + width, left + width + right)}[way[1]]
    return down, across


class BatchISendIRecv(_Pair):
    """Sends and receives as in `op_types` ('isend' or 'irecv') and `remote_ranks`; returns what arrives, and zero at each 'isend'."""

    def __init__(
        self, op_types: Any, remote_ranks: Any, receive_shapes: Any = None, receive_dtypes: Any = None, group: str = WORLD,
    ) -> None:
        super().__init__(
            group, op_types=op_types, remote_ranks=remote_ranks, receive_shapes=receive_shapes, receive_dtypes=receive_dtypes,
        )
        if len(op_types) != len(remote_ranks) or not all(kind in ("isend", "irecv") for kind in op_types):
            raise ValueError(message(f"BatchISendIRecv({short(op_types)}, {short(remote_ranks)})", "as many ranks as " + list_choices(
                ("isend", "irecv"))))

    def __call__(self, input_x: Any) -> Any:
        inputs = iter(x for x in input_x if x is not None)
        shapes, dtypes = iter(self.receive_shapes or ()), iter(self.receive_dtypes or ())
        kinds = list(zip(self.op_types, self.remote_ranks))
        sent = [(next(inputs), rank) for kind, rank in kinds if kind == "isend"]
        comes = [(tuple(next(shapes)), next(dtypes), rank) for kind, rank in kinds if kind == "irecv"]
        for _, rank in kinds:
            group = self._other("remote_ranks", rank)
        if len({str(dtype) for _, dtype, _ in comes}) > 1:
            raise ValueError(message(f"BatchISendIRecv(receive_dtypes={short(self.receive_dtypes)})", "one dtype for all received Tensors"))
        if not kinds:
            return ()
        dtype = comes[0][1] if comes else None
        like = zeros((1,), dtype) if comes else sent[0][0]
        received = iter(exchanged(
            like, dtype, [x for x, _ in sent], [rank for _, rank in sent], [shape for shape, _, _ in comes],
            [rank for *_, rank in comes], group,
        ))
        return tuple(next(received) if kind == "irecv" else zeros((1,)) for kind, _ in kinds)


PRIMITIVES: Sequence[type[Primitive]] = (BatchISendIRecv, NeighborExchange, NeighborExchangeV2, Receive, Send)
