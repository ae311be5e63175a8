"""Levels O1 and O2: forms of the graph with faster kernels, measured once on copies of the real inputs; never slower than O0."""
from __future__ import annotations

import functools

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.graph import log, passes
from torchspore.engine.graph.levels import boost, fusion, measure, products, straight
from torchspore.engine.graph.levels.choice import Race
from torchspore.engine.graph.levels.settings import Settings
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.copy import copied
from torchspore.engine.graph.passes.layout import channels_last, has_images
from torchspore.engine.graph.passes.linear import fuse_activations, onednn_linears
from torchspore.engine.graph.passes.restride import restrided

Module = torch.fx.GraphModule


def compile(module: Module, inputs: measure.Inputs, settings: Settings, held: frozenset[int] = frozenset()) -> Code:
    """The fastest form that gives O0's numbers."""
    if settings.deterministic:
        return _by_rule(module, settings)
    modules = {"O0": module}
    tuned = _tuned(module, products.prefers_onednn)
    if tuned is not None:
        modules["oneDNN products"] = tuned
    if settings.layout and has_images(module):
        modules["channels last"] = channels_last(copied(tuned or module))
    race = Race(inputs)
    for name, form in modules.items():
        race.enter(name, functools.partial(_lines, form))
    best = race.best()
    with measure.undisturbed():
        restrided(modules[best], race.inputs())
    with_kernels = fusion.fused(modules[best], settings.level, race.seconds[best])
    if with_kernels is not None:
        race.enter("fused kernels, " + best, functools.partial(_lines, with_kernels))
        best = race.best()
    if settings.level == "O2" and boost.trains(module, held) is None:
        ready = boost.prepared(module, held, products.prefers_onednn, settings.layout)
        if ready is not None:
            race.enter("weights prepared", lambda: ready)
            best = race.best()
    log.event("level", f"kept {best} of {race}")
    _tell(settings, "channels last" in modules)
    return race.codes[best]


def _by_rule(module: Module, settings: Settings) -> Code:
    """What is chosen by time could be another kernel in the next run and give other bits: here a rule decides."""
    return _lines(_tuned(module, products.is_large) or module)


def _tuned(module: Module, wanted: products.Wanted) -> Module | None:
    """The graph with products by oneDNN; None where there is nothing to change."""
    changed = onednn_linears(copied(module), wanted)
    if not any(node.target is products.LINEAR for node in changed.graph.nodes):
        return None
    return fuse_activations(changed)


def _lines(module: Module) -> Code:
    return straight.compile(passes.overwrite(copied(module)))


def _tell(settings: Settings, had_layout: bool) -> None:
    effects.report("jit_level", Outcome.applied(f"{settings.level}: the fastest of several forms of each graph is kept"))
    if had_layout:
        effects.report("disable_format_transform", Outcome.applied("channels last is tried and kept where it is faster"))
