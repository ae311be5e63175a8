"""Reports the results of tuning to `torchspore explain`."""
from __future__ import annotations

from typing import Any

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.graph.autotune.tuning_file import SECTION
from torchspore.translations import translate

_NAMES = ("auto_tune_mode", "aoe_tune_mode", "aoe_config")
_better: list[float] = []
_counts = [0, 0]


def idle(why: str) -> None:
    """Nothing is tuned."""
    _report(Outcome.no_effect(why))


def searched(result: Any, where: str) -> None:
    """A graph was searched for."""
    effects.note(SECTION, translate("{line}: {result}; kept in {file}").format(line=user_line(), result=result, file=where))
    _counts[0] += 1
    if result.plan is not None:
        _better.append(result.gain[0])
    gains = (translate("{better} of {count} graphs became faster, the best {times:.2f} times") if _better else
             translate("nothing better found"))
    gains = gains.format(better=len(_better), count=_counts[0], times=max(_better, default=0.0))
    text = translate("{count} graphs searched for, {gains}") if _counts[0] > 1 else translate("1 graph searched for, {gains}")
    _report(Outcome.applied(text.format(count=_counts[0], gains=gains)))


def used(entry: dict[str, Any]) -> None:
    """Report that the result of an earlier search is used."""
    text = (translate("as in an earlier search: {times:.2f} times faster, {tried} choices had been tried") if entry["plan"] is not None else
            translate("as in an earlier search: no better choice was known, {tried} choices had been tried"))
    text = text.format(times=entry["gain"][0] if entry["plan"] is not None else 1.0, tried=entry.get("tried"))
    event_log.event("tuning", text)
    effects.note(SECTION, f"{user_line()}: {text}")
    _report(Outcome.applied(text))


def deferred(where: Any) -> None:
    """A graph waits for `torchspore tune`."""
    if where is None:
        _report(Outcome.applied("offline: the graph could not be stored"))
        return
    _counts[1] += 1
    text = (translate("offline: {count} graphs kept for {command}") if _counts[1] > 1 else
            translate("offline: 1 graph kept for {command}"))
    text = text.format(count=_counts[1], command=f"`torchspore tune {where}`")
    event_log.event("tuning", text)
    _report(Outcome.applied(text))


def _report(outcome: Outcome) -> None:
    for name in _NAMES:
        if STORE.source(name)[0] != "default":
            effects.report(name, outcome)
