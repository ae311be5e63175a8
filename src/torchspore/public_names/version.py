"""The MindSpore version that torchspore reports."""
from __future__ import annotations

import os

from torchspore.base.versions import MINDSPORE


def mindspore_version() -> str:
    """Return `mindspore.__version__`: 2.10.0, or TORCHSPORE_VERSION for scripts that branch on an older one."""
    return os.environ.get("TORCHSPORE_VERSION") or MINDSPORE
