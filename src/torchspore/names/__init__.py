"""Names: where MindSpore's own, old and moved names live here, and what is said about one that is missing. No torch.

The front end's modules end with `__getattr__ = missing(__name__)`.
"""
from __future__ import annotations

from torchspore.names.lookup import missing, text_for
from torchspore.names.version import mindspore_version

__all__ = ["mindspore_version", "missing", "text_for"]
