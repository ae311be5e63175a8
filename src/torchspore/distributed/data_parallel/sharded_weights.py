"""`optimizer_level` 3: a weight of which each process stores its rows; the full weight exists only while an operator computes with it.

To torch it is a tensor of the full shape. Changes of shape are delayed. An operator that computes first gathers the rows of all processes,
and saves this tensor for the backward pass, which gathers the full weight again.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.split_layouts.sharded_value import RowShard
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.torch_private import tree_map

_aten: Any = torch.ops.aten
_COPIES = frozenset({_aten.detach.default, _aten.alias.default})
_LATER = frozenset({
    _aten.t.default, _aten.transpose.int, _aten.view.default, _aten.permute.default, _aten.unsqueeze.default, _aten.squeeze.dim,
})
Change = tuple[Callable[..., torch.Tensor], tuple[Any, ...]]


class RowShardedWeight(RowShard):
    """This process's rows of a weight, in place of the full weight."""

    rows: TensorBase
    """The own rows."""
    share: Any
    changes: tuple[Change, ...]
    """The change of shape to apply once all rows are gathered."""

    @staticmethod
    def __new__(cls, rows: TensorBase, share: Any, changes: tuple[Change, ...] = ()) -> RowShardedWeight:
        like = torch.empty(share.full_shape, dtype=rows._t.dtype, device="meta")
        for change, arguments in changes:
            like = change(like, *arguments)
        tensor: RowShardedWeight = torch_private.wrapper_tensor(cls, like, rows._t.device)
        tensor.rows, tensor.share, tensor.changes = rows, share, changes
        return tensor

    __torch_function__ = torch_private.no_torch_function  # type: ignore[assignment]

    def full_value(self) -> torch.Tensor:
        """All rows, in memory of their own."""
        from torchspore.distributed.comm import collectives

        with torch.no_grad():
            gathered = collectives.all_gather(self.rows._t, self.share.group)
        for change, arguments in self.changes:
            gathered = change(gathered, *arguments)
        return gathered

    def record_gather(self, read: Callable[[TensorBase], torch.Tensor]) -> torch.Tensor:
        """Return all rows, gathered at each read, because the program may have written to this process's rows."""
        from torchspore.distributed.comm import collectives

        return collectives.all_gather(read(self.rows), self.share.group)

    def record_write(self, read: Callable[[TensorBase], torch.Tensor], value: torch.Tensor) -> None:
        """Writes this process's rows of a full value as operators of a capture."""
        read(self.rows).copy_(self.share.of(value))

    def store_rows(self, values: torch.Tensor) -> None:
        """Store this process's rows of full values."""
        with torch.no_grad():
            self.rows._t.copy_(self.share.of(values))

    def numpy(self, *, force: bool = False) -> Any:
        """Return all rows as an array; every process must make this call."""
        return self.full_value().numpy(force=force)

    def tolist(self) -> Any:
        """Return all rows as lists; every process must make this call."""
        return self.full_value().tolist()

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.full_value().__dlpack__(**keywords)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Gather all rows, so that later reads need no other process; every process must make this call."""
        return self.full_value().__reduce_ex__(protocol)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"RowShardedWeight(rows {self.share.start} to {self.share.start + self.share.rows} of {tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None,
    ) -> Any:
        first = args[0] if args else None
        if isinstance(first, RowShardedWeight):
            if function in _COPIES:
                return cls(first.rows, first.share, first.changes)
            if function in _LATER and not kwargs:
                return cls(first.rows, first.share, (*first.changes, (function, args[1:])))
            if function is _aten.copy_.default and not first.changes:
                first.store_rows(args[1].full_value() if isinstance(args[1], RowShardedWeight) else args[1].expand(first.shape))
                return first
        if function._schema.is_mutable and isinstance(first, RowShardedWeight):
            name = function._schema.name.removeprefix("aten::")
            raise RuntimeError(message(
                f"{name} in place on a weight that processes share (optimizer_level 'level3')", "an assignment of a full value",
                hint="write ops.assign(weight, value)",
            ))
        return function(*tree_map(_full_value, args), **tree_map(_full_value, kwargs or {}))


def _full_value(value: Any) -> Any:
    return value.full_value() if isinstance(value, RowShardedWeight) else value
