"""`mindspore._extends.parse`: the settings of MindSpore's compiler that programs change."""
from __future__ import annotations

from torchspore.mindspore._extends.parse import compile_config

__all__ = ["compile_config"]
