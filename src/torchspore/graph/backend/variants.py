"""Levels O1 and O2: forms of the graph with faster kernels, measured once on copies of the real inputs; never slower than O0."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import torch
from torch.fx.node import Node

from torchspore.base import event_log
from torchspore.engine.devices.npu import graph_engine
from torchspore.graph import passes
from torchspore.graph.backend import (
    collective_segments,
    convolution_choice,
    cuda_graphs,
    eager_codegen,
    fusion,
    inductor,
    inference,
    kernel_operators,
    matrix_products,
    measurement,
)
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.variant_race import Race
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.exchanges import has_exchanges
from torchspore.graph.fx.fingerprint import fingerprint, of_text, signature
from torchspore.graph.fx.modules import copy_module, transform_inner
from torchspore.graph.passes.layout import channels_last, dump_layouts, has_images, load_layouts, record_strides
from torchspore.graph.passes.onednn import fuse_activations, onednn_linears
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Settings
from torchspore.translations import translate

Module = torch.fx.GraphModule
PLAIN, PRODUCTS, LAYOUT, FUSED, PREPARED = "O0", "oneDNN products", "channels last", "fused kernels, ", "weights prepared"
LAUNCH, RECORDED, ENGINE = "one launch", "recorded, ", "graph engine"


def compile(module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int] = frozenset()) -> Code:
    """Return the fastest form that gives O0's numbers; the choice for an equal graph is reused without measuring."""
    if has_exchanges(module) and not settings.deterministic:
        text = translate("{level}: the graph exchanges values with other processes, a rule chooses kernels and nothing is measured")
        outcomes.level(text.format(level=settings.level))
        return _between_exchanges(module, inputs, settings)
    if settings.deterministic:
        # A choice by time could be another kernel in the next run, with other bits: here a rule decides.
        text = translate("{level}: deterministic is ON, a rule chooses kernels and nothing is measured")
        outcomes.level(text.format(level=settings.level))
        return _by_rule(module)
    forms = Forms(module, inputs, settings, persistent)
    outcomes.level(translate("{level}: the fastest of several forms of each graph is kept").format(level=settings.level))
    outcomes.layout(settings, has_images(module))
    key = fingerprint(module, settings)
    choice = autotune_cache.find(key)
    if choice is not None:
        code = forms.code(choice)
        if code is not None:
            event_log.event("level", f"{choice}, as measured before")
            return code
    inductor.expect_compilation()
    best, code = _raced(forms, inputs)
    autotune_cache.keep(key, best)
    return code


def _by_rule(module: Module) -> Code:
    return _lines(_ruled(module))


def _ruled(module: Module) -> Module:
    return passes.pool_channels_last(copy_module(with_onednn(module, matrix_products.is_large) or module))


def _between_exchanges(module: Module, inputs: measurement.Inputs, settings: Settings) -> Code:
    base = _ruled(module)
    segments = None if settings.generates is False else collective_segments.with_kernels(base, inputs, _lines, may_fuse(settings))
    return _lines(base if segments is None else segments)


def _raced(forms: Forms, inputs: measurement.Inputs) -> tuple[str, Code]:
    race = Race(inputs)
    for name in forms.simple():
        race.enter(name, functools.partial(_lines, forms.modules[name]))
    _enter(race, PREPARED, forms.prepared())
    best = race.best()
    if best != PREPARED:
        _enter(race, FUSED + best, forms.with_kernels(best, race.seconds[best]))
    elif forms.is_thorough:
        _enter(race, FUSED + PREPARED, forms.prepared(race.seconds[best]))
    if forms.is_thorough:
        _enter(race, LAUNCH, forms.fused())
        _enter(race, ENGINE, forms.by_graph_engine())
        _enter(race, RECORDED + race.best(), forms.recorded(race.codes[race.best()]))
    best = race.best()
    event_log.event("level", f"kept {best} of {race}")
    return best, race.codes[best]


def _enter(race: Race, name: str, code: Code | None) -> None:
    if code is not None:
        race.enter(name, lambda: code)


class Forms:
    """The ways in which one graph can be run, made when they are asked for."""

    def __init__(self, module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int]) -> None:
        self._module, self._inputs, self._settings, self._persistent = module, inputs, settings, persistent
        self.modules = {PLAIN: passes.pool_channels_last(copy_module(module))}

    def simple(self) -> list[str]:
        """Build the forms that need no compiler; return their names."""
        module = self._module
        tuned = with_onednn(module, matrix_products.prefers_onednn, self._settings.fuses_products)
        if tuned is not None:
            self.modules[PRODUCTS] = passes.pool_channels_last(copy_module(tuned))
        if self._settings.layout and has_images(module):
            self.modules[LAYOUT] = channels_last(copy_module(tuned or module))
        return list(self.modules)

    def with_kernels(self, base: str, seconds: float) -> Code | None:
        """Return a simple form with compiled clusters; `seconds` is its time without them."""
        if self._settings.generates is False:
            return None
        restride(self.modules[base], self._inputs)
        fused = fusion.fused(self.modules[base], self._settings.level, seconds, may_fuse(self._settings))
        return None if fused is None else _lines(fused)

    @property
    def is_thorough(self) -> bool:
        """True if the longer search is wanted."""
        return self._settings.level == "O2"

    def prepared(self, seconds: float | None = None) -> Code | None:
        """For inference: compute values that depend on weights alone once. `seconds` is the time that it takes with compiled clusters."""
        if inference.trains(self._module, self._persistent) is not None or (seconds is not None and self._settings.generates is False):
            return None
        settings, prefers_onednn = self._settings, matrix_products.prefers_onednn
        hoisted = inference.hoisted(
            self._module, self._persistent, prefers_onednn, settings.layout, settings.fuses_products, convolution_choice.choose_tile,
        )
        if hoisted is None:
            return None
        if seconds is None:
            return inference.code(hoisted)
        with measurement.undisturbed():
            copies = [measurement.copy(t) for t in self._inputs()]
            arguments = eager_codegen.compile(hoisted.first)(*[copies[index] for index in hoisted.input_indices])
            record_strides(hoisted.rest, [*copies, *arguments])
        rest = fusion.fused(hoisted.rest, self._settings.level, seconds, may_fuse(self._settings))
        return None if rest is None else inference.code(dataclasses.replace(hoisted, rest=rest))

    def fused(self) -> Code | None:
        """All in one C++ launch, where Inductor can write that."""
        if self._settings.generates is False:
            return None
        module = copy_module(self._module)
        restride(module, self._inputs)
        kernel_module = fusion.fuse_all(module)
        return None if kernel_module is None else _lines(kernel_module)

    def recorded(self, code: Code) -> Code | None:
        """On a GPU a form as one launch."""
        return (
            stages.shown(cuda_graphs.recorded(code, self._persistent), stages.graph_of(code)) if cuda_graphs.is_fit(self._module) else None
        )

    def by_graph_engine(self) -> Code | None:
        """On Ascend all as one piece, compiled by CANN's graph engine."""
        if not graph_engine.is_fit(self._module):
            return None
        with measurement.undisturbed():
            return graph_engine.compiled(copy_module(self._module), [measurement.copy(t) for t in self._inputs()])

    def code(self, name: str) -> Code | None:
        """Return the form with this name; None if it cannot be built here."""
        if name.startswith(RECORDED):
            code = self.code(name.removeprefix(RECORDED))
            return None if code is None else self.recorded(code)
        if name == LAUNCH:
            return self.fused()
        if name == ENGINE:
            return self.by_graph_engine()
        if name == PREPARED:
            return self.prepared()
        if name == FUSED + PREPARED:
            return self.prepared(0.0)
        base = name.removeprefix(FUSED)
        if base not in self.simple():
            return None
        return _lines(self.modules[base]) if base == name else self.with_kernels(base, 0.0)


def may_fuse(settings: Settings) -> Callable[[Node], bool]:
    """Return which operators may become parts of a kernel: the flags of graph kernels may exclude some."""
    return fusion.is_fusable if settings.kernels is None else functools.partial(kernel_operators.is_allowed, settings.kernels)


def restride(module: Module, inputs: measurement.Inputs) -> None:
    """Determine the strides of all values by a run, or take those of an equal graph's run."""
    key = of_text("strides", signature(module))
    choice = autotune_cache.find(key)
    if choice is None or not load_layouts(module, choice):
        with measurement.undisturbed():
            record_strides(module, [measurement.copy(t) for t in inputs()])
        autotune_cache.keep(key, dump_layouts(module))


def with_onednn(module: Module, prefers_onednn: matrix_products.Preference, fuses_products: bool = True) -> Module | None:
    """Return the graph with oneDNN products and fused activations; None if nothing changes."""
    changed = onednn_linears(copy_module(module), prefers_onednn)
    inside = transform_inner(changed, lambda inner: with_onednn(inner, prefers_onednn, fuses_products))
    if not inside and not any(node.target is matrix_products.LINEAR for node in changed.graph.nodes):
        return None
    return fuse_activations(changed) if fuses_products else changed


def _lines(module: Module) -> Code:
    return eager_codegen.compile(passes.with_fewest_calls(copy_module(module)))
