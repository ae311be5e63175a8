"""Values of which this process stores a part, outside of graphs: they compute element by element only."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message
from torchspore.engine.core import process, torch_private
from torchspore.engine.core.device_mesh import Mesh
from torchspore.engine.core.torch_private import tree_flatten, tree_map
from torchspore.errors import ValueElsewhere

_HINT = "compute it in the step's graph (@ms.jit, or the Cell that trains), where values are whole; asnumpy() gives this process's part"
_ELEMENTWISE = frozenset(
    {"alias", "clone", "copy", "detach", "fill", "full_like", "lift_fresh", "ones_like", "_to_copy", "zero", "zeros_like"}
)
"""Operators that give each element for itself and are not marked so; random ones are none of them."""


class RowShard(torch.Tensor):
    """A weight of which this process stores some rows (`optimizer_level` 3); `distributed.parallel.sharded_weights` implements it."""

    def keep_rows(self, values: torch.Tensor) -> None:
        """Store this process's rows of a full value."""
        raise NotImplementedError

    def gather_in(self, read: Callable[[Any], torch.Tensor]) -> torch.Tensor:
        """Return all rows as operators of a capture; `read` gives the capture's tensor for a Tensor."""
        raise NotImplementedError

    def write_in(self, read: Callable[[Any], torch.Tensor], value: torch.Tensor) -> None:
        """Write this process's rows of a full value as operators of a capture."""
        raise NotImplementedError


class ShardedValue(torch.Tensor):
    """This process's part of a value of a split graph.

    An elementwise result is a part too: the other processes compute theirs. Of a full Tensor in the same operator its part is taken.
    Raises ValueElsewhere for what would need the other parts.
    """

    part: torch.Tensor
    """The part."""
    cut: Any
    """How the whole is cut (`spread.Cut`)."""

    @staticmethod
    def __new__(cls, part: torch.Tensor, cut: Any) -> ShardedValue:
        value: ShardedValue = torch_private.stand_for(cls, part, part.device)
        value.part, value.cut = part, cut
        return value

    __torch_function__ = torch_private.no_torch_function  # type: ignore[assignment]

    @property
    def _version(self) -> int:  # type: ignore[override]
        """How often the part was written to."""
        return self.part._version

    def numpy(self, *, force: bool = False) -> Any:
        """The values of this process's part."""
        return self.part.numpy(force=force)

    def tolist(self) -> Any:
        """The values of this process's part."""
        return self.part.tolist()

    @property
    def holding(self) -> str:
        """Which part of the whole it is, for people: 'part [0:6, 6:12] of (6, 12)'."""
        mesh, position = Mesh(self.cut.matrix), self.cut.position(process.world.rank)
        slices = self.cut.layout(mesh).part(mesh, self.cut.shape, position)
        return f"part [{', '.join(f'{part_slice.start}:{part_slice.stop}' for part_slice in slices)}] of {self.cut.shape}"

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{self.part!r} {self.holding}"

    def data_ptr(self) -> int:
        """The address of the part's first element."""
        return self.part.data_ptr()

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.part.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.part.__dlpack_device__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickle, (self.part.detach().clone(), self.cut, self.cut.position(process.world.rank), process.world.size)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None,
    ) -> Any:
        name, kwargs = function._schema.name.rpartition("::")[2], kwargs or {}
        first = next(leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, ShardedValue))
        if name.startswith("_fused_"):                        # an optimizer's formula, beside weights that are parts alike
            return function(*tree_map(local_part, args), **tree_map(local_part, kwargs))
        if name.startswith("_foreach_"):
            return _each(function, name.removeprefix("_foreach_"), first, args, kwargs)
        return first._by_elements(function, name, args, kwargs)

    def _by_elements(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        writes = function._schema.is_mutable
        if not (is_by_elements(function, name.removesuffix("_")) and self._fits([args, kwargs], args[0] if writes else None)):
            raise self.refused(name)
        results = function(*tree_map(self._taken, args), **tree_map(self._taken, kwargs))
        if writes:
            return args[0]
        if tuple(results.shape) != tuple(self.shape):
            raise self.refused(name)
        return ShardedValue(results, self.cut)

    def _fits(self, shape_given: Any, written: Any) -> bool:
        """Return whether all that is computed with is a part of the same kind, or has a part for each of the elements here."""
        for t in tree_flatten(shape_given)[0]:
            if isinstance(t, ShardedValue) and (t.cut != self.cut or t.shape != self.shape):
                return False
            if isinstance(t, torch.Tensor) and not isinstance(t, ShardedValue) and not self._has_equal_layout(t, t is written):
                return False
        return True

    def _has_equal_layout(self, t: torch.Tensor, is_write: bool) -> bool:
        if t.ndim > self.ndim or (is_write and t.shape != self.shape):
            return False
        ahead = self.ndim - t.ndim
        return all(size in (1, self.shape[at], self.cut.shape[at]) for at, size in enumerate(t.shape, ahead))

    def _taken(self, leaf: Any) -> Any:
        """This process's part of a whole Tensor; what is a part already, as the weights are, stays."""
        if isinstance(leaf, ShardedValue):
            return leaf.part
        if not isinstance(leaf, torch.Tensor):
            return leaf
        mesh, ahead = Mesh(self.cut.matrix), self.ndim - leaf.ndim
        position = self.cut.position(process.world.rank)
        full_slices = self.cut.layout(mesh).part(mesh, self.cut.shape, position)
        return leaf[tuple(slice(None) if size in (1, self.shape[at]) else full_slices[at] for at, size in enumerate(leaf.shape, ahead))]

    def refused(self, name: str) -> ValueElsewhere:
        """The error for an operator that would need the parts of other processes."""
        wrote = f"{user_line()}: {name} of a Tensor of shape {self.cut.shape}, of which each process holds a part"
        return ValueElsewhere(message(wrote, "an operator that takes each element by itself, beside Tensors that lie alike", hint=_HINT))


def check_is_complete(name: str, t: torch.Tensor) -> None:
    """Raise ValueElsewhere where `t` is a part: the operator `name` draws numbers for all elements of a value together."""
    if isinstance(t, ShardedValue):
        raise t.refused(name)


def _unpickle(part: torch.Tensor, cut: Any, position: int, count: int) -> ShardedValue:
    """A part that was pickled. Raises ValueElsewhere in a process that does not hold it: there it would be taken for another one."""
    if (process.world.size, cut.position(process.world.rank)) != (count, position):
        wrote = f"{user_line()}: unpickling what process {position} of {count} held of a Tensor of shape {cut.shape}"
        hint = "mindspore.save_checkpoint, called by all processes, writes whole values; asnumpy() gives the part as an array"
        raise ValueElsewhere(message(wrote, "the process that holds this part, in a run of as many processes", hint=hint))
    return ShardedValue(part, cut)


def local_part(value: Any) -> Any:
    """Return this process's part of a tensor; other values unchanged."""
    return value.part if isinstance(value, ShardedValue) else value


def is_by_elements(function: Any, name: str) -> bool:
    """Return whether an operator computes each element of its result of those at the same place, and of nothing else."""
    return name in _ELEMENTWISE or (torch.Tag.pointwise in function.tags and torch.Tag.nondeterministic_seeded not in function.tags)


def _each(function: Any, name: str, first: ShardedValue, args: Any, kwargs: Any) -> Any:
    """An operator on lists of tensors, each of which is computed with those at its place."""
    if name.removesuffix("_") in ("norm", "max", "powsum"):
        raise first.refused(name)
    lists = [item for item in args if isinstance(item, (list, tuple)) and any(isinstance(t, torch.Tensor) for t in item)]
    cuts = [_common(together, first, name) for together in zip(*lists)]
    results = function(*tree_map(local_part, args), **tree_map(local_part, kwargs))
    if function._schema.is_mutable:
        return None
    return [t if cut is None else ShardedValue(t, cut) for t, cut in zip(results, cuts)]


def _common(together: Sequence[torch.Tensor], first: ShardedValue, name: str) -> Any:
    """How the tensors at one place lie."""
    parts = [t for t in together if isinstance(t, ShardedValue)]
    if any(t.cut != parts[0].cut for t in parts) or (parts and any(t.ndim and t.shape != parts[0].shape for t in together)):
        raise first.refused(name)
    return parts[0].cut if parts else None
