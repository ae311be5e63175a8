"""`torchspore.to_torch` and `torchspore.from_torch`: one memory as a MindSpore Tensor and as a torch tensor."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.tensors import torch_aliases
from torchspore.engine.tensors.creation import is_torch_tensor
from torchspore.mindspore.common.tensor import Tensor


def to_torch(tensor: Any) -> Any:
    """Return the torch tensor of a Tensor; a torch tensor itself. Raises TypeError for other values."""
    if is_torch_tensor(tensor):
        return tensor
    if not isinstance(tensor, Tensor):
        raise TypeError(message(f"to_torch({short(tensor)})", f"a MindSpore Tensor, got {type(tensor).__name__}"))
    tensor.init_data()
    return torch_aliases.torch_tensor(tensor)


def from_torch(tensor: Any) -> Tensor:
    """Return a Tensor on a torch tensor; a Tensor itself. Raises TypeError for other values."""
    return Tensor.from_torch(tensor)
