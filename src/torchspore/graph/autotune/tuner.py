"""Tunes a graph: uses the result of an earlier run, searches now, or leaves the graph for `torchspore tune`."""
from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.graph.autotune import deferred, outcomes, tuning_file
from torchspore.graph.autotune.candidates import GraphVariant, Single
from torchspore.graph.autotune.searches import Plan, Trials, search_by_bandit, search_by_genes
from torchspore.graph.backend import measurement
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.variant_race import Race
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.fingerprint import fingerprint
from torchspore.graph.settings import Settings, Tuning, tuning_budget
from torchspore.translations import translate

Module = torch.fx.GraphModule
SEARCHES: dict[str, Callable[[Trials], None]] = {"RL": search_by_bandit, "GA": search_by_genes}
WORTH = 1.03
"""A tuned form is used if it is at least this many times faster, in the median of ROUNDS."""
ROUNDS = 9
SLOW = 0.05
"""Seconds: of a graph that takes more, a third of the rounds is enough."""
LEAST = 30e-6
"""Seconds: a graph that takes less is a handful of calls, and is not searched for."""


@dataclass
class SearchResult:
    """The result of a search: the plan, None if nothing was faster, and the speedup (median, least, greatest)."""

    plan: Plan | None
    gain: tuple[float, float, float]
    tried: int
    seconds: float
    base: float = 0.0

    def __str__(self) -> str:
        if self.plan is None:
            text = translate("{tried} ways tried in {duration:.1f} s, nothing better found")
            return text.format(tried=self.tried, duration=self.seconds)
        text = translate("{tried} ways tried in {duration:.1f} s, {median:.2f} times faster ({least:.2f} .. {greatest:.2f}): {plan}")
        return text.format(tried=self.tried, duration=self.seconds, median=self.gain[0], least=self.gain[1], greatest=self.gain[2],
                           plan=shown(self.plan))


def compile(module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int], plain: Callable[[], Code]) -> Code:
    """The code of a graph under the switches of tuning; `plain` makes the untuned one."""
    tuning = settings.tuning
    assert tuning is not None
    if settings.deterministic or settings.infer_boost:
        outcomes.idle("deterministic is ON, and a choice by time may give other bits" if settings.deterministic
                  else "infer_boost compiles its own form")
        return plain()
    untuned = dataclasses.replace(settings, tuning=None)
    key = fingerprint(module, untuned, f"tuning {tuning.job}")
    known = _find_entry(key)
    if known is not None:
        code = plain() if known["plan"] is None else built(module, inputs, untuned, persistent, known["job"], known["plan"])
        if code is not None:
            outcomes.used(known)
            return code
    if not tuning.is_online:
        outcomes.deferred(deferred.keep(key, module, inputs, untuned, persistent, tuning))
        return plain()
    result = search(module, inputs, untuned, persistent, tuning, plain)
    entry = entry_of(result, tuning, user_line() or "")
    autotune_cache.keep(key, json.dumps(entry))
    where = "the compile cache" if autotune_cache.ACTIVE.store is not None else tuning_file.keep(key, entry)
    event_log.event("tuning", str(result))
    outcomes.searched(result, str(where) if where else "nowhere")
    code = plain() if result.plan is None else built(module, inputs, untuned, persistent, tuning.job, result.plan)
    return code or plain()


def _find_entry(key: str) -> dict[str, Any] | None:
    """Return the result of an earlier search: of this process, of the compile cache or of the tuning file."""
    text = autotune_cache.find(key)
    try:
        entry = json.loads(text) if text is not None else tuning_file.find(key)
        return entry if entry is not None and entry.get("status") == "tuned" and {"plan", "job"} <= set(entry) else None
    except (ValueError, AttributeError, TypeError):
        return None


def entry_of(result: SearchResult, tuning: Tuning, net: str) -> dict[str, Any]:
    """Return the stored entry of a search."""
    return {
        "net": net, "status": "tuned", "job": tuning.job, "plan": result.plan, "gain": list(result.gain), "tried": result.tried,
        "seconds": round(result.seconds, 2),
    }


def built(module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int], job: str, plan: Plan) -> Code | None:
    """Return the code of a plan; None if it is unavailable, or was made for something else."""
    try:
        return (GraphVariant(module, inputs, settings, persistent) if job == "1" else Single(module, inputs, settings)).code(plan)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        tuning_file.report_message(f"tuning: a stored plan does not fit this graph ({error!r:.80}); the graph runs untuned.")
        return None


def search(
    module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int], tuning: Tuning, plain: Callable[[], Code],
) -> SearchResult:
    """Search, then compare the result with the untuned form; no live value is written, and the random state is unchanged."""
    started = time.monotonic()
    race = Race(inputs)
    untuned = plain()
    race.enter("untuned", lambda: untuned)
    base = measured(race, untuned)
    if base < LEAST:
        return SearchResult(None, (1.0, 1.0, 1.0), 0, time.monotonic() - started, base)
    searches = [SEARCHES[name] for name in tuning.searches]
    if tuning.job == "1":
        variant = GraphVariant(module, inputs, settings, persistent)
        trials = Trials(variant.genes(), lambda plan: _entered(race, variant.code, trials.clean(plan)), tuning_budget())
        for search_name in searches:
            search_name(trials)
        ranked = [
            plan
            for plan in trials.ranked()
            if trials.effective_genes(plan) != trials.effective_genes(trials.base) or settings.level != "O0"
        ]
        tried, plan = len(trials.seconds), trials.clean(ranked[0]) if ranked else None
    else:
        with measurement.undisturbed():
            single = Single(module, inputs, settings)
            plan, tried = single.search(searches, tuning_budget())
    if not plan:
        return SearchResult(None, (1.0, 1.0, 1.0), tried, time.monotonic() - started, base)
    best = built(module, inputs, settings, persistent, tuning.job, plan)
    gain = _gain(race, untuned, best, base) if best is not None else (1.0, 1.0, 1.0)
    return SearchResult(plan if gain[0] >= WORTH else None, gain, tried, time.monotonic() - started, base)


def _entered(race: Race, make: Callable[[Plan], Code | None], plan: Plan) -> float | None:
    """Return the seconds of a plan; None if it cannot be built or gives other numbers."""
    with measurement.undisturbed():
        code = make(plan)
    if code is None:
        return None
    race.enter(shown(plan), lambda: code)
    entered = race.codes.pop(shown(plan), None)
    took = None if entered is None else measured(race, entered)
    event_log.event("tuning", f"{shown(plan)}: {'left out' if took is None else f'{took * 1e3:.3f} ms'}")
    return took


def measured(race: Race, code: Code) -> float:
    """The least seconds of a run on copies of the inputs."""
    with measurement.undisturbed():
        return measurement.seconds({"one": code}, race.inputs())["one"]


def _gain(race: Race, before: Code, after: Code, took: float) -> tuple[float, float, float]:
    """Return the speed-up: median, minimum and maximum of rounds in which both forms alternate; 1 if the numbers differ."""
    race.enter("tuned", lambda: after)
    if "tuned" not in race.codes:
        return 1.0, 1.0, 1.0
    ratios = []
    with measurement.undisturbed():
        inputs = race.inputs()
        for _ in range(ROUNDS if took < SLOW else ROUNDS // 3):
            seconds = measurement.seconds({"before": before, "after": after}, inputs)
            ratios.append(seconds["before"] / seconds["after"])
    return statistics.median(ratios), min(ratios), max(ratios)


def shown(plan: Plan) -> str:
    """A plan in words; of one for single operators, how many kinds it changes."""
    if plan and all(isinstance(value, dict) for value in plan.values()):
        return f"{len(plan)} kinds of operators changed"
    return ", ".join(f"{name} {value}" for name, value in plan.items())
