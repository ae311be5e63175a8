"""What copies of MindSpore's own training loop ask about the parameter server: which part this process has, and the options."""
from __future__ import annotations

import os
from typing import Any

from torchspore.context.public import get_ps_context, reset_ps_context, set_ps_context


def _is_role_worker() -> bool:
    """Whether MS_ROLE says that this process trains."""
    return os.environ.get("MS_ROLE") == "MS_WORKER"


def _is_role_pserver() -> bool:
    """Whether MS_ROLE says that this process keeps Parameters for others."""
    return os.environ.get("MS_ROLE") == "MS_PSERVER"


def _is_role_sched() -> bool:
    """Whether MS_ROLE says that this process brings the others together."""
    return os.environ.get("MS_ROLE") == "MS_SCHED"


def _is_ps_mode() -> bool:
    """Whether Parameters are kept by a server."""
    return bool(get_ps_context("enable_ps"))


def _set_ps_context(**kwargs: Any) -> None:
    """`mindspore.set_ps_context`."""
    set_ps_context(**kwargs)


def _get_ps_context(attr_key: str) -> Any:
    """`mindspore.get_ps_context`."""
    return get_ps_context(attr_key)


def _reset_ps_context() -> None:
    """`mindspore.reset_ps_context`."""
    reset_ps_context()
