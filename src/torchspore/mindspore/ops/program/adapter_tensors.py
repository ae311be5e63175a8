"""Conversions between MindSpore's Tensor and the Tensor of a package that adapts PyTorch's API, as in MindSpore 2.2 to 2.4."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.common._stub_tensor import adapter_tensor, plain_tensor
from torchspore.mindspore.ops.declaration.primitive import Primitive


class ConvertToAdapterTensor(Primitive):
    """Returns a Tensor of the package's class in the memory of a Tensor. Raises RuntimeError if no package has set a class."""

    def __call__(self, x: Any) -> Any:
        return adapter_tensor(x)


class ConvertToMsTensor(Primitive):
    """Returns MindSpore's Tensor in the memory of a Tensor of the package's class."""

    def __call__(self, x: Any) -> Any:
        return plain_tensor(x)


convert_to_adapter_tensor = ConvertToAdapterTensor()
convert_to_ms_tensor = ConvertToMsTensor()
