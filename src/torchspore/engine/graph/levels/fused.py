"""Levels O1 and O2: forms of the graph with faster kernels, measured once on copies of the real inputs; never slower than O0."""
from __future__ import annotations

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.graph import passes
from torchspore.engine.graph.levels import measure, products, straight
from torchspore.engine.graph.levels.choice import Form, fastest
from torchspore.engine.graph.levels.settings import Settings
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.copy import copied
from torchspore.engine.graph.passes.layout import channels_last, has_images
from torchspore.engine.graph.passes.linear import fuse_activations, onednn_linears

Module = torch.fx.GraphModule


def compile(module: Module, inputs: measure.Inputs, settings: Settings) -> Code:
    """The fastest form that gives O0's numbers."""
    if settings.deterministic:
        return _by_rule(module, settings)
    forms = [Form("O0", lambda: _lines(copied(module)))]
    tuned = _tuned(module, products.prefers_onednn)
    if tuned is not None:
        forms.append(Form("oneDNN products", lambda: _lines(copied(tuned))))
    if settings.layout and has_images(module):
        forms.append(Form("channels last", lambda: _lines(channels_last(copied(tuned or module)))))
    if len(forms) == 1:
        return _lines(module)
    chosen = fastest(forms, inputs)
    _tell(settings, chosen.name, "channels last" in chosen.seconds)
    return chosen.code


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
    return straight.compile(passes.overwrite(module))


def _tell(settings: Settings, name: str, had_layout: bool) -> None:
    effects.report("jit_level", Outcome.applied(f"{settings.level}: the fastest of several forms of each graph is kept"))
    if had_layout:
        effects.report("disable_format_transform", Outcome.applied("channels last is tried and kept where it is faster"))
