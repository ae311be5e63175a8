"""Public names: where MindSpore's current, old and moved names are defined here, and the messages for missing ones. No torch.

Every module of the front end ends with `__getattr__ = missing(__name__)`.
"""
from __future__ import annotations

from torchspore.public_names.lookup import missing, text_for
from torchspore.public_names.version import mindspore_version

__all__ = ["mindspore_version", "missing", "text_for"]
