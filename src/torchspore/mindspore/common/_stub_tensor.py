"""`mindspore.common._stub_tensor`: in MindSpore until 2.6 a result that is still being computed.

Here every result is already a Tensor. Packages that adapt PyTorch's API derive their Tensor from StubTensor; MindSpore's compiler of 2.2 to
2.4 knows their class by `set_adapter_config`, and converts between it and MindSpore's Tensor.
"""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors.tensor import TensorBase, raw, rebind, wrap
from torchspore.mindspore.common.tensor import Tensor

_adapter: dict[str, Any] = {}


class StubTensor(Tensor):
    """A Tensor in the memory of another one, `tensor`. The results of operators are plain Tensors.

    Raises TypeError for a `tensor` that is not a Tensor.
    """

    __slots__ = ()
    stub: Any = None
    """The result that is being computed: None, because none is."""

    def __init__(self, stub: Any = None, tensor: Any = None) -> None:
        self.tensor = stub if tensor is None else tensor

    @property
    def tensor(self) -> Tensor:
        """MindSpore's Tensor in the same memory. An assignment gives the StubTensor the memory of another Tensor."""
        return wrap(raw(self))  # type: ignore[no-any-return]

    @tensor.setter
    def tensor(self, value: Any) -> None:
        if not isinstance(value, TensorBase):
            raise TypeError(message(f"{type(self).__name__}(tensor={short(value)})", with_type("a Tensor", value)))
        if hasattr(self, "_t"):
            rebind(self, raw(value))
        else:
            self._t = raw(value)

    def stub_sync(self) -> Tensor:
        """Return MindSpore's Tensor, which is already computed."""
        return self.tensor


def is_stub_tensor(tensor: object) -> bool:
    """Return whether `tensor` is still being computed: False."""
    del tensor
    return False


def set_adapter_config(config: dict[str, Any]) -> None:
    """Store the classes of a package that adapts PyTorch's API: `config["Tensor"]` is the class that `convert_to_adapter_tensor` returns.

    The package's tables of operators have no effect: Python calls the methods of its classes in both modes. Raises TypeError for a value
    that is not a dict.
    """
    if not isinstance(config, dict):
        raise TypeError(message(f"set_adapter_config({short(config)})", with_type("a dict", config)))
    _adapter.update(config)


def adapter_tensor(x: Any) -> Any:
    """Return a Tensor of the class of `set_adapter_config` in the memory of `x`. Raises RuntimeError if no package has set a class."""
    cls = _adapter.get("Tensor")
    if cls is None:
        raise RuntimeError(
            "ConvertToAdapterTensor: expected a class of Tensors from set_adapter_config."
            "\n\nhint: import the package that adapts PyTorch's API first."
        )
    return cls(x, cast_tensor=True)


def plain_tensor(x: Any) -> Any:
    """Return MindSpore's Tensor in the memory of `x`, a Tensor of any class; another value is returned unchanged."""
    return wrap(raw(x)) if isinstance(x, TensorBase) else x
