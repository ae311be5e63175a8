"""What came of graph kernels, for `torchspore explain` and the log."""
from __future__ import annotations

import sys

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.graph import log
from torchspore.engine.graph.kernels.idle import NAMES, SECTION, tell_idle
from torchspore.engine.graph.kernels.making import Made
from torchspore.engine.graph.levels import inductor
from torchspore.engine.graph.levels.settings import Settings

_warned: set[str] = set()
_sums: dict[int, list[int]] = {}
"""For each opt_level, over all graphs: kernels before, kernels after, generated ones, groups that stayed operators."""


def warn(text: str) -> None:
    """Says on stderr what a user must see, once."""
    if text not in _warned:
        _warned.add(text)
        print(f"torchspore: {user_line() or 'graph kernels'}: {text}", file=sys.stderr)
        effects.note(SECTION, text)


def fused(settings: Settings, before: int, after: int, made: Made) -> None:
    """What became of a graph at O0; `explain` tells it of all graphs together."""
    flags = settings.kernels
    assert flags is not None
    sums = _sums.setdefault(flags.level, [0, 0, 0, 0])
    for place, more in enumerate((before, after, len(made.kernels), made.slower)):
        sums[place] += more
    for name, nodes in made.kernels:
        log.event("kernels", f"{name} of {len(nodes)} nodes")
    log.event("kernels", _told(flags.level, before, after, len(made.kernels), made.slower))
    _report(_told(flags.level, *sums))


def _told(level: int, before: int, after: int, generated: int, slower: int) -> str:
    text = f"opt_level {level}: of {before} kernels {after} are left, {generated} of them generated"
    if not inductor.is_there():
        text += ", because there is no working C++ compiler"
    elif not generated and not slower:
        text += ": nothing can be fused"
    return text + (f"; {slower} groups stayed operators, which were faster" if slower else "")


def left_to_level(settings: Settings, before: int, after: int) -> None:
    """What became of a graph whose kernels the level chooses."""
    flags = settings.kernels
    assert flags is not None
    how = "infer_boost" if settings.infer_boost else f"jit_level {settings.level}" if settings.level != "O0" else "the tuner"
    _report(f"opt_level {flags.level}: of {before} kernels {after} are left after arithmetic; {how} chooses and measures generated ones")


def _report(text: str) -> None:
    tell_idle()
    for name in NAMES:
        if STORE.source(name)[0] != "default":
            effects.report(name, Outcome.applied(text))
