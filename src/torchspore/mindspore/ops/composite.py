"""Functions over functions and over nested structures: `HyperMap`, `Map`, `MultitypeFuncGraph`, `partial`, clipping of gradients."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine import dtypes
from torchspore.engine.rows import RowsBase
from torchspore.engine.tensor import TensorBase, raw, wrap
from torchspore.mindspore.ops.gradient import GradOperation as GradOperation
from torchspore.mindspore.ops.primitive import Primitive

_TYPE_NAMES = {
    "Tensor": TensorBase, "Number": (int, float), "Int": int, "Float": float, "Bool": bool, "String": str, "Function": object,
    "Tuple": tuple, "List": list, "RowTensor": RowsBase,
}


class MultitypeFuncGraph:
    """One name for several functions, chosen by the types of the arguments: `@graph.register("Tensor", "Number")`."""

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Registers the function below for arguments of these types (names such as 'Tensor', or dtypes)."""

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((type_names, function))
            return function

        return keep

    def __call__(self, *args: Any) -> Any:
        for types, function in self.entries:
            if len(types) == len(args) and all(_is_of(a, t) for a, t in zip(args, types)):
                return function(*args)
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"MultitypeFuncGraph {self.name!r}: no function is registered for ({kinds}).\n\nhint: @{self.name}.register({kinds})."
        )


def _is_of(value: Any, kind: Any) -> bool:
    if isinstance(kind, dtypes.Type):
        if isinstance(kind, dtypes.TensorType):
            return isinstance(value, TensorBase)
        if isinstance(value, TensorBase):
            return False
        return isinstance(value, bool) if kind is dtypes.bool_ else isinstance(value, (int, float))
    name = str(kind)
    if name == "Function":
        return callable(value)
    found = _TYPE_NAMES.get(name)
    return True if found is None else isinstance(value, found)  # type: ignore[arg-type]


class HyperMap:
    """Applies an operation to all leaves of nested tuples and lists of one shape."""

    def __init__(self, ops: Any = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        operation, *structures = (self.ops, *args) if self.ops is not None else args
        return self._map(operation, structures)

    def _map(self, operation: Any, structures: list[Any]) -> Any:
        if all(isinstance(s, (tuple, list)) for s in structures):
            items = [self._map(operation, list(parts)) for parts in zip(*structures)]
            return tuple(items) if isinstance(structures[0], tuple) else items
        return operation(*structures)


class Map:
    """Applies an operation to the elements of tuples and lists, not inside of them."""

    def __init__(self, ops: Any = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        operation, *structures = (self.ops, *args) if self.ops is not None else args
        return tuple(operation(*parts) for parts in zip(*structures))


class Partial(Primitive):
    """Puts a function and its first arguments together."""

    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return functools.partial(function, *args, **kwargs)


def partial(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function` with its first arguments given already."""
    return functools.partial(function, *args, **kwargs)


def clip_by_norm(x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Scales Tensors down together so that their norm is at most `max_norm`."""
    alone = isinstance(x, TensorBase)
    values = [raw(x)] if alone else [raw(t) for t in x]
    total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v, norm_type) for v in values]), norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError("clip_by_norm: the norm is not finite.\n\nhint: error_if_nonfinite=False scales all the same.")
    scale = torch.clamp((raw(max_norm) if isinstance(max_norm, TensorBase) else max_norm) / (total + 1e-6), max=1.0)
    out = [wrap(v * scale) for v in values]
    return out[0] if alone else tuple(out)


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Any = None) -> Any:
    """Scales a tuple or list of Tensors down together so that their common norm is at most `clip_norm`."""
    values = [raw(t) for t in x]
    norm = torch.sqrt(sum(torch.sum(torch.square(v.float())) for v in values)) if use_norm is None else raw(use_norm)
    scale = clip_norm / torch.clamp(norm, min=clip_norm)
    return tuple(wrap(v * scale.to(v.dtype)) for v in values)


