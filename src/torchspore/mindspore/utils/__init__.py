"""`mindspore.utils`: memory shared with other libraries."""
from __future__ import annotations

from torchspore.mindspore.common.shared_memory import from_dlpack, to_dlpack
from torchspore.mindspore.utils import dlpack
from torchspore.public_names import missing

__all__ = ["dlpack", "from_dlpack", "to_dlpack"]

__getattr__ = missing(__name__)
