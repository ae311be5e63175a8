"""`mindspore.utils.dlpack`: capsules that share a Tensor's memory with another library."""
from __future__ import annotations

from torchspore.mindspore.common.shared_memory import from_dlpack, to_dlpack
from torchspore.public_names import missing

__all__ = ["from_dlpack", "to_dlpack"]

__getattr__ = missing(__name__)
