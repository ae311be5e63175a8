"""What the switches of tuning ask for: which searches one after the other, now or later, of the graph as a whole or of its operators."""
from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from torchspore.context.store import STORE

BUDGET = "TORCHSPORE_TUNE_SECONDS"
SECONDS = 60.0
"""How long one graph is searched for where TORCHSPORE_TUNE_SECONDS does not say it."""


@dataclass(frozen=True)
class Tuning:
    """How a graph is tuned."""

    searches: tuple[str, ...] = ("RL", "GA")
    is_online: bool = True
    job: str = "2"


_made = functools.cache(Tuning)


def tuning() -> Tuning | None:
    """What the context asks for; None where nothing is tuned. `auto_tune_mode` names the searches, `aoe_tune_mode` says when."""
    searches, when = STORE.get("auto_tune_mode"), STORE.get("aoe_tune_mode")
    if searches == "NO_TUNE" and not when:
        return None
    return _made(_searches(searches), when != "offline", STORE.get("aoe_config.job_type"))


def _searches(value: str) -> tuple[str, ...]:
    if value == "NO_TUNE":
        return "RL", "GA"
    _, setting = STORE.source("auto_tune_mode")
    written = setting.written if setting is not None else value
    return tuple(str(written).split(","))


def budget() -> float:
    """Seconds that one graph may be searched for."""
    try:
        return max(0.0, float(os.environ.get(BUDGET, "")))
    except ValueError:
        return SECONDS
