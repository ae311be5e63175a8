"""Tensors of another stage's processes: they have a shape and no memory, and raise an error if their values are needed."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message
from torchspore.engine.split_layouts.sharded_value import is_elementwise
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.torch_private import tree_flatten, tree_map
from torchspore.errors import ValueElsewhere

_HINT = "compute it in the step's graph (@ms.jit, or the Cell that trains); pipeline_result_broadcast=True gives results to all stages"

_EXCHANGES = frozenset({"torchspore::scatter", "torchspore::gather", "torchspore::exchange"})


class RemoteTensor(torch.Tensor):
    """Stands for a value that only one stage of a pipeline stores.

    Elementwise results of it, also together with a replicated value or a number, are remote too: the same program computes them on that
    stage. Raises ValueElsewhere if its values are read on this process, or combined with values that are stored here.
    """

    stage: int
    """The stage that holds it."""

    @staticmethod
    def __new__(cls, like: torch.Tensor, device: torch.device, stage: int) -> RemoteTensor:
        remote_tensor: RemoteTensor = torch_private.wrapper_tensor(cls, like, device)
        remote_tensor.stage = stage
        return remote_tensor

    __torch_function__ = torch_private.no_torch_function  # type: ignore[assignment]

    def numpy(self, *, force: bool = False) -> Any:
        """Raises ValueElsewhere."""
        raise self.unreadable("the values")

    def tolist(self) -> Any:
        """Raises ValueElsewhere."""
        raise self.unreadable("the values")

    @property
    def description(self) -> str:
        """Return a description of the processes that store it, for the user."""
        return f"held by stage {self.stage} of the pipeline"

    def __repr__(self) -> str:  # type: ignore[override]
        return self.description

    def data_ptr(self) -> int:
        """Raises ValueElsewhere."""
        raise self.unreadable("the address")

    def __dlpack__(self, **keywords: Any) -> Any:
        raise self.unreadable("the memory")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self.unreadable("a copy for other processes (pickle)")

    def unreadable(self, what: str) -> ValueElsewhere:
        """Return the error for reading `what` of it."""
        wrote = f"{user_line()}: {what} of a Tensor of shape {tuple(self.shape)} that stage {self.stage} of the pipeline holds"
        return ValueElsewhere(message(wrote, "one that this process holds", hint=_HINT))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None,
    ) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        gone = [leaf for leaf in tensors if isinstance(leaf, RemoteTensor)]
        here = [leaf for leaf in tensors if not isinstance(leaf, RemoteTensor)]
        first, name = gone[0], function._schema.name.removeprefix("aten::")
        if "c10d" in function.namespace or name in _EXCHANGES:                   # those that hold it would wait for this process
            raise first.unreadable(name.rpartition("::")[2])
        if function._schema.is_mutable and isinstance(args[0], RemoteTensor):
            return args[0]  # those that hold it write to it
        if here and (
            function._schema.is_mutable or not first._has_elementwise_layout(function, name, here) or not any(t.ndim for t in gone)
        ):
            raise first.unreadable(f"{name} of values that are here and")
        return first._computed(function, name, args, kwargs)

    def _has_elementwise_layout(self, function: Any, name: str, here: list[torch.Tensor]) -> bool:
        """Return whether each element depends on remote elements and, at most, on one number or one element of another value."""
        if all(t.numel() == 1 for t in here):
            return True
        return is_elementwise(function, name.partition(".")[0]) and all(fits(t.shape, self.shape) for t in here)

    def _computed(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the results of an operator on such tensors, which are remote too."""
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        try:
            results = function(*tree_map(_form, args), **tree_map(_form, kwargs))
        except (RuntimeError, NotImplementedError):
            results = None
        if not any(isinstance(leaf, torch.Tensor) for leaf in tree_flatten(results)[0]):
            raise self.unreadable(f"{name}, which reads the values,")
        return tree_map(lambda leaf: RemoteTensor(leaf, self.device, self.stage) if isinstance(leaf, torch.Tensor) else leaf, results)


def fits(shape: torch.Size, target_shape: torch.Size) -> bool:
    """Return whether a value of this shape broadcasts to the other shape without enlarging it."""
    return len(shape) <= len(target_shape) and all(size in (1, other) for size, other in zip(reversed(shape), reversed(target_shape)))


def _form(value: Any) -> Any:
    """Return a tensor of the same shape and dtype without values."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
