"""Queries of the parameter server for copies of MindSpore's training loop: the role of this process, and the options."""
from __future__ import annotations

import os
from typing import Any

from torchspore.context.public import get_ps_context, reset_ps_context, set_ps_context


def _is_role_worker() -> bool:
    """Return whether this process trains, according to MS_ROLE."""
    return os.environ.get("MS_ROLE") == "MS_WORKER"


def _is_role_pserver() -> bool:
    """Return whether this process stores Parameters for others, according to MS_ROLE."""
    return os.environ.get("MS_ROLE") == "MS_PSERVER"


def _is_role_sched() -> bool:
    """Return whether this process schedules the others, according to MS_ROLE."""
    return os.environ.get("MS_ROLE") == "MS_SCHED"


def _is_ps_mode() -> bool:
    """Return whether a server stores the Parameters."""
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
