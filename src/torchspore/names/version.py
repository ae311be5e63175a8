"""Which MindSpore this is taken for."""
from __future__ import annotations

import os

from torchspore.base.versions import MINDSPORE


def mindspore_version() -> str:
    """What `mindspore.__version__` says: 2.10.0, or TORCHSPORE_VERSION for scripts that branch on an older one."""
    return os.environ.get("TORCHSPORE_VERSION") or MINDSPORE
