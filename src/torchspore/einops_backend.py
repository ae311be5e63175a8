"""The package einops takes Tensors, with their gradients: a backend in einops' own terms, added when einops is imported."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

BACKENDS = "einops._backends"
"""The module of einops that has the class of backends."""
_NAME = "MindSporeBackend"


class LoaderWithBackend(importlib.abc.Loader):
    """Loads einops' backends, and adds the one of Tensors."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Leave the creation to the module's own loader."""
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then add the backend."""
        self._loader.exec_module(module)
        add_to(module)


def spec_of_backends(path: Any) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of einops' module of backends, whose loader adds the one of Tensors; None if it does not exist."""
    spec = importlib.machinery.PathFinder.find_spec(BACKENDS, path)
    if spec is not None and spec.loader is not None:
        spec.loader = LoaderWithBackend(spec.loader)
    return spec


def add_if_loaded() -> None:
    """Add the backend to einops if the program imported it before MindSpore."""
    if BACKENDS in sys.modules:
        add_to(sys.modules[BACKENDS])


def add_to(backends: ModuleType) -> None:
    """Define the backend of Tensors as a subclass of einops' class, which is how einops finds backends; a second call does nothing."""
    base = getattr(backends, "AbstractBackend", None)
    if base is not None and not hasattr(backends, _NAME):
        setattr(backends, _NAME, type(_NAME, (_Operations, base), {"__module__": __name__}))


class _Operations:
    """Functions that einops calls on Tensors, by the names of its backends."""

    framework_name = "mindspore"

    def __init__(self) -> None:
        self.mindspore: Any = importlib.import_module("mindspore")
        self.ops: Any = importlib.import_module("mindspore.ops")

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Return whether `tensor` is a Tensor."""
        return isinstance(tensor, self.mindspore.Tensor)

    def from_numpy(self, x: Any) -> Any:
        """Return a Tensor of an array."""
        return self.mindspore.Tensor(x)

    def to_numpy(self, x: Any) -> Any:
        """Return the array of a Tensor."""
        return x.asnumpy()

    def arange(self, start: int, stop: int) -> Any:
        """Return the int64 numbers from `start` to `stop`."""
        return self.ops.arange(start, stop, dtype=self.mindspore.int64)

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        """Return the reduction of `x` along several axes."""
        axes = tuple(sorted(axes))
        if operation in ("min", "max", "sum", "mean"):
            return getattr(self.ops, {"min": "amin", "max": "amax"}.get(operation, operation))(x, axes)
        for axis in reversed(axes):
            x = getattr(self.ops, operation)(x, axis)
        return x

    def transpose(self, x: Any, axes: Any) -> Any:
        """Return `x` with its axes in another order."""
        return self.ops.transpose(x, tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        """Return Tensors of one shape as one Tensor with another first axis."""
        return self.ops.stack(tensors, 0)

    def tile(self, x: Any, repeats: Any) -> Any:
        """Return `x` repeated along its axes."""
        return self.ops.tile(x, tuple(repeats))

    def concat(self, tensors: Any, axis: int) -> Any:
        """Return Tensors joined along an axis."""
        return self.ops.cat(tuple(tensors), axis)

    def add_axis(self, x: Any, new_position: int) -> Any:
        """Return `x` with another axis of length 1."""
        return self.ops.expand_dims(x, new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        """Return `x` repeated along further axes of these lengths."""
        repeats = [1] * n_axes
        for position, length in pos2len.items():
            x, repeats[position] = self.add_axis(x, position), length
        return self.tile(x, repeats)

    def is_float_type(self, x: Any) -> bool:
        """Return whether `x` has real floating-point numbers."""
        return bool(x.is_floating_point())

    def einsum(self, pattern: str, *x: Any) -> Any:
        """Return the sum of products that `pattern` describes."""
        return self.ops.einsum(pattern, *x)
