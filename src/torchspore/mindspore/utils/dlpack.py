"""`mindspore.utils.dlpack`: capsules that carry a Tensor's memory to another library and back."""
from __future__ import annotations

from torchspore.mindspore.common.sharing import from_dlpack, to_dlpack
from torchspore.names import missing

__all__ = ["from_dlpack", "to_dlpack"]

__getattr__ = missing(__name__)
