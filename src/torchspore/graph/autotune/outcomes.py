"""Reports the results of tuning to `torchspore explain`."""
from __future__ import annotations

from typing import Any

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.graph.autotune.tuning_file import SECTION

_NAMES = ("auto_tune_mode", "aoe_tune_mode", "aoe_config")
_better: list[float] = []
_counts = [0, 0]


def idle(why: str) -> None:
    """Nothing is tuned."""
    _report(Outcome.no_effect(why))


def searched(result: Any, where: str) -> None:
    """A graph was searched for."""
    effects.note(SECTION, f"{user_line()}: {result}; kept in {where}")
    _counts[0] += 1
    if result.plan is not None:
        _better.append(result.gain[0])
    gains = f"{len(_better)} of {_counts[0]} graphs became faster, the best {max(_better):.2f} times" if _better else "nothing better found"
    _report(Outcome.applied(f"{_counts[0]} graph{'s' if _counts[0] > 1 else ''} searched for, {gains}"))


def used(entry: dict[str, Any]) -> None:
    """Report that the result of an earlier search is used."""
    how = f"{entry['gain'][0]:.2f} times faster" if entry["plan"] is not None else "no better choice was known"
    text = f"as in an earlier search: {how}, {entry.get('tried')} choices had been tried"
    event_log.event("tuning", text)
    effects.note(SECTION, f"{user_line()}: {text}")
    _report(Outcome.applied(text))


def deferred(where: Any) -> None:
    """A graph waits for `torchspore tune`."""
    if where is None:
        _report(Outcome.applied("offline: the graph could not be stored"))
        return
    _counts[1] += 1
    text = f"offline: {_counts[1]} graph{'s' if _counts[1] > 1 else ''} kept for `torchspore tune {where}`"
    event_log.event("tuning", text)
    _report(Outcome.applied(text))


def _report(outcome: Outcome) -> None:
    for name in _NAMES:
        if STORE.source(name)[0] != "default":
            effects.report(name, outcome)
