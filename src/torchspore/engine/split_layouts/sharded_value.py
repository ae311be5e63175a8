"""Values that are split among processes, outside of graphs: only elementwise operators accept them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message
from torchspore.engine import process
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.torch_private import tree_flatten, tree_map
from torchspore.errors import ValueElsewhere

_HINT = "compute it in the step's graph (@ms.jit, or the Cell that trains), where values are full; asnumpy() returns this process's part"
_UNTAGGED_ELEMENTWISE = frozenset(
    {"alias", "clone", "copy", "detach", "fill", "full_like", "lift_fresh", "ones_like", "_to_copy", "zero", "zeros_like"}
)
"""Elementwise operators without torch's `pointwise` tag. Random operators are not elementwise."""


class RowShard(torch.Tensor):
    """A weight of which this process stores some rows (`optimizer_level` 3); `distributed.data_parallel.sharded_weights` implements it."""

    def store_rows(self, values: torch.Tensor) -> None:
        """Store this process's rows of a full value."""
        raise NotImplementedError

    def record_gather(self, read: Callable[[Any], torch.Tensor]) -> torch.Tensor:
        """Record a gather of all rows in a capture and return its result; `read` returns the capture's tensor of a Tensor."""
        raise NotImplementedError

    def record_write(self, read: Callable[[Any], torch.Tensor], value: torch.Tensor) -> None:
        """Record a write of this process's rows of a full value in a capture; `read` returns the capture's tensor of a Tensor."""
        raise NotImplementedError


class ShardedValue(torch.Tensor):
    """This process's part of a value of a split graph.

    The result of an elementwise operator is again this process's part, because the other processes compute their parts. If another operand
    is a full Tensor, the operator uses this process's part of it. Raises ValueElsewhere for operators that need the other parts.
    """

    part: torch.Tensor
    """The elements that this process stores."""
    sharded_layout: Any
    """How the value is split (`sharded_layout.ShardedLayout`)."""

    @staticmethod
    def __new__(cls, part: torch.Tensor, sharded_layout: Any) -> ShardedValue:
        value: ShardedValue = torch_private.wrapper_tensor(cls, part, part.device)
        value.part, value.sharded_layout = part, sharded_layout
        return value

    __torch_function__ = torch_private.no_torch_function  # type: ignore[assignment]

    @property
    def _version(self) -> int:  # type: ignore[override]
        """The number of writes to the part."""
        return self.part._version

    def numpy(self, *, force: bool = False) -> Any:
        """The values of this process's part."""
        return self.part.numpy(force=force)

    def tolist(self) -> Any:
        """The values of this process's part."""
        return self.part.tolist()

    @property
    def description(self) -> str:
        """The position of the part as text, such as 'part [0:6, 6:12] of (6, 12)'."""
        mesh, position = Mesh(self.sharded_layout.matrix), self.sharded_layout.position(process.world.rank)
        slices = self.sharded_layout.layout(mesh).part(mesh, self.sharded_layout.shape, position)
        return f"part [{', '.join(f'{part_slice.start}:{part_slice.stop}' for part_slice in slices)}] of {self.sharded_layout.shape}"

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{self.part!r} {self.description}"

    def data_ptr(self) -> int:
        """The address of the part's first element."""
        return self.part.data_ptr()

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.part.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.part.__dlpack_device__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickle, (
            self.part.detach().clone(),
            self.sharded_layout,
            self.sharded_layout.position(process.world.rank),
            process.world.size,
        )

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None,
    ) -> Any:
        name, kwargs = function._schema.name.rpartition("::")[2], kwargs or {}
        first = next(leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, ShardedValue))
        if name.startswith("_fused_"):                        # an optimizer's formula; the weights are split in the same way
            return function(*tree_map(local_part, args), **tree_map(local_part, kwargs))
        if name.startswith("_foreach_"):
            return _compute_lists(function, name.removeprefix("_foreach_"), first, args, kwargs)
        return first._compute_elementwise(function, name, args, kwargs)

    def _compute_elementwise(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        writes = function._schema.is_mutable
        if not (
            is_elementwise(function, name.removesuffix("_")) and self._has_matching_operands([args, kwargs], args[0] if writes else None)
        ):
            raise self.error_for_operator(name)
        results = function(*tree_map(self._local_part, args), **tree_map(self._local_part, kwargs))
        if writes:
            return args[0]
        if tuple(results.shape) != tuple(self.shape):
            raise self.error_for_operator(name)
        return ShardedValue(results, self.sharded_layout)

    def _has_matching_operands(self, operands: Any, written: Any) -> bool:
        """Return whether each operand is split as this value is, or is a full Tensor from which this process's part can be taken."""
        for t in tree_flatten(operands)[0]:
            if isinstance(t, ShardedValue) and (t.sharded_layout != self.sharded_layout or t.shape != self.shape):
                return False
            if isinstance(t, torch.Tensor) and not isinstance(t, ShardedValue) and not self._has_equal_layout(t, t is written):
                return False
        return True

    def _has_equal_layout(self, t: torch.Tensor, is_write: bool) -> bool:
        if t.ndim > self.ndim or (is_write and t.shape != self.shape):
            return False
        ahead = self.ndim - t.ndim
        return all(size in (1, self.shape[at], self.sharded_layout.shape[at]) for at, size in enumerate(t.shape, ahead))

    def _local_part(self, leaf: Any) -> Any:
        """Return this process's part of a full Tensor. A ShardedValue gives its part; other values are returned unchanged."""
        if isinstance(leaf, ShardedValue):
            return leaf.part
        if not isinstance(leaf, torch.Tensor):
            return leaf
        mesh, ahead = Mesh(self.sharded_layout.matrix), self.ndim - leaf.ndim
        position = self.sharded_layout.position(process.world.rank)
        full_slices = self.sharded_layout.layout(mesh).part(mesh, self.sharded_layout.shape, position)
        return leaf[tuple(slice(None) if size in (1, self.shape[at]) else full_slices[at] for at, size in enumerate(leaf.shape, ahead))]

    def error_for_operator(self, name: str) -> ValueElsewhere:
        """Return the error for an operator that needs the parts of other processes."""
        wrote = f"{user_line()}: {name} of a Tensor of shape {self.sharded_layout.shape}, of which each process holds a part"
        return ValueElsewhere(message(wrote, "an elementwise operator on Tensors with equal layouts", hint=_HINT))


def check_is_complete(name: str, t: torch.Tensor) -> None:
    """Raise ValueElsewhere if `t` is split, because the operator `name` draws the numbers of all elements together."""
    if isinstance(t, ShardedValue):
        raise t.error_for_operator(name)


def _unpickle(part: torch.Tensor, sharded_layout: Any, position: int, count: int) -> ShardedValue:
    """Restore a pickled part. Raises ValueElsewhere in a process that stores another part."""
    if (process.world.size, sharded_layout.position(process.world.rank)) != (count, position):
        wrote = f"{user_line()}: unpickling what process {position} of {count} held of a Tensor of shape {sharded_layout.shape}"
        hint = "mindspore.save_checkpoint, called by all processes, writes full values; asnumpy() returns the part as an array"
        raise ValueElsewhere(message(wrote, "the process that holds this part, in a run of as many processes", hint=hint))
    return ShardedValue(part, sharded_layout)


def local_part(value: Any) -> Any:
    """Return this process's part of a tensor; other values unchanged."""
    return value.part if isinstance(value, ShardedValue) else value


def is_elementwise(function: Any, name: str) -> bool:
    """Return whether each element of an operator's result depends only on the operands' elements at the same index."""
    return name in _UNTAGGED_ELEMENTWISE or (
        torch.Tag.pointwise in function.tags and torch.Tag.nondeterministic_seeded not in function.tags
    )


def _compute_lists(function: Any, name: str, first: ShardedValue, args: Any, kwargs: Any) -> Any:
    """Run a `_foreach_` operator, which computes with the tensors at the same index of each list."""
    if name.removesuffix("_") in ("norm", "max", "powsum"):
        raise first.error_for_operator(name)
    lists = [item for item in args if isinstance(item, (list, tuple)) and any(isinstance(t, torch.Tensor) for t in item)]
    layouts = [_common_layout(operands, first, name) for operands in zip(*lists)]
    results = function(*tree_map(local_part, args), **tree_map(local_part, kwargs))
    if function._schema.is_mutable:
        return None
    return [t if layout is None else ShardedValue(t, layout) for t, layout in zip(results, layouts)]


def _common_layout(operands: Sequence[torch.Tensor], first: ShardedValue, name: str) -> Any:
    """Return the layout that the ShardedValues among these tensors share; None if there are none."""
    parts = [t for t in operands if isinstance(t, ShardedValue)]
    if any(t.sharded_layout != parts[0].sharded_layout for t in parts) or (
        parts and any(t.ndim and t.shape != parts[0].shape for t in operands)
    ):
        raise first.error_for_operator(name)
    return parts[0].sharded_layout if parts else None
