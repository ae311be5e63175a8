"""Compiles a captured graph to code at the level of the settings."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import torch

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.base.text import with_hint
from torchspore.engine.execution import current_operator, printing
from torchspore.engine.memory import malloc
from torchspore.engine.native import allocator
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.errors import InferenceOnly
from torchspore.graph import passes
from torchspore.graph.backend import convolution_choice, eager_codegen, inference, lanes, matrix_products, measurement, variants
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.early_update_guard import guard_updates
from torchspore.graph.backend.variant_race import Race
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx import exchanges
from torchspore.graph.fx.fingerprint import fingerprint
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.fx.order import reorder
from torchspore.graph.passes import joined_products, memory, precision
from torchspore.graph.passes.communication import overlap_exchanges
from torchspore.graph.passes.layout import has_images
from torchspore.graph.passes.regather import regather_weights
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Settings
from torchspore.graph.tiers import open_forms, tiered_code
from torchspore.translations import translatable, translate

Inputs = measurement.Inputs
_IS_DUMPED = "each operator runs separately while a dump is active"
_PRINTS = "it prints, so that it can't be run to be measured"
_HAS_EXCHANGES = "it exchanges values with other processes, which would not answer a run that only measures"


def compile(
    module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, has_exchanges: bool, persistent: frozenset[int] = frozenset(),
    open_level: str = "O0",
) -> Code:
    """Return the code of a graph after the cleanup passes. `open_level` is the level of a graph of open lengths; `settings` has O0 then.

    `inputs` returns example inputs; only a measurement calls it, and no measurement writes to them. `has_exchanges` is true if the graph
    exchanges values with other processes, which would not take part in a measurement. `persistent` contains the indexes of the inputs that
    the program stores (Parameters, Tensors in attributes). They seldom change, so values that depend only on them may be computed once.
    """
    requested, why = settings, ""
    if current_operator.followers or printing.prints(module):
        why = _IS_DUMPED if current_operator.followers else _PRINTS
        settings = dataclasses.replace(settings, level="O0", infer_boost=False, kernels=None, tuning=None, lanes=0)
    if current_operator.followers:                              # a dump needs the program's order, with the kernels of each call together
        settings = dataclasses.replace(settings, order="", saves_memory=False)
    if has_exchanges:
        kernels = None if settings.kernels is None else dataclasses.replace(settings.kernels, measured=False)
        settings, why = dataclasses.replace(settings, infer_boost=False, kernels=kernels, tuning=None, lanes=0), why or _HAS_EXCHANGES
    module = apply_requested_passes(module, settings, has_exchanges)
    stages.keep("backend_pass", module)
    outcomes.compiling(settings, requested, why)
    try:
        with allocator.aside():
            source = copy_module(module) if open_level != "O0" else None
            code = _compile_in_tiers(module, inputs, settings, persistent)
            if source is not None and open_forms.is_fit(source, settings):
                code = open_forms.compile(source, code, settings, open_level)
    except measurement.Unrunnable as reason:
        event_log.event("level", f"nothing is measured, the graph runs as at O0: {reason}")
        code = _compile_plain(module)
    stages.emitted(code, module, inputs)
    malloc.give_back()
    for node in module.graph.nodes:
        if node_metadata.EARLY_UPDATE in node.meta:
            return guard_updates(code, module)
    return code


def _compile_in_tiers(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    if settings.level == "O0" or settings.infer_boost or _has_cached_values(module):
        return compile_completely(module, inputs, settings, persistent)

    def complete(module: torch.fx.GraphModule, inputs: Inputs) -> Code:
        return compile_completely(module, inputs, settings, persistent)

    return tiered_code.compile(module, inputs, settings, persistent, _compile_plain, complete)


def compile_completely(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    """Return the code of a graph after the requested passes, tuned, measured and in lanes as the settings request it."""
    code = _compile_tuned(module, inputs, settings, persistent)
    if (settings.lanes > 1 or settings.level == "O2") and not exchanges.has_exchanges(module):
        code = lanes.run_in_lanes(code, module, inputs, settings)
    return code


def _compile_tuned(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    if settings.tuning is None or _has_cached_values(module):
        return _compile_at_level(module, inputs, settings, persistent)
    from torchspore.graph.autotune import tuner

    return tuner.compile(module, inputs, settings, persistent, lambda: compile_untuned(module, inputs, settings, persistent))


def _compile_at_level(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    if settings.infer_boost:
        return _compile_boosted(module, inputs, settings, persistent)
    if settings.level != "O0" and not _has_cached_values(module):
        return variants.compile(module, inputs, settings, persistent)
    if settings.kernels is not None and settings.kernels.combines and persistent:
        hoisted = joined_products.hoist_stacks(module, persistent)
        if hoisted is not None:
            return inference.code(hoisted)
    return _compile_plain(module)


def _compile_plain(module: torch.fx.GraphModule) -> Code:
    return eager_codegen.compile(passes.run(passes.FINISH, module))


def compile_untuned(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    """Return the code of a graph after the requested passes, without tuning. The graph does not change."""
    module = copy_module(module)
    if settings.kernels is not None and settings.level == "O0" and not settings.infer_boost:
        from torchspore.graph.graph_kernels import kernel_build

        module = kernel_build.build(module, settings.kernels).module
    return _compile_at_level(module, inputs, dataclasses.replace(settings, tuning=None), persistent)


def apply_requested_passes(module: torch.fx.GraphModule, settings: Settings, has_exchanges: bool) -> torch.fx.GraphModule:
    """Return the graph after the passes that switches request at every level: precision, memory, graph kernels, order."""
    steps = list(_requested_passes(module, settings, has_exchanges))
    return passes.run(steps, module) if steps else module


def _requested_passes(module: torch.fx.GraphModule, settings: Settings, has_exchanges: bool) -> Iterator[passes.Step]:
    may_plan = _may_plan_memory(module, settings, has_exchanges)
    if precision.is_requested(module, settings):
        yield "precision", lambda module: precision.apply(module, settings)
    order: list[passes.Step] = [("exec_order", lambda module: reorder(module, settings.order))] if settings.order else []
    if settings.saves_memory:
        yield from order                             # the memory pass positions recomputed nodes after this order
    if settings.saves_memory or not settings.reuses_memory:
        yield "memory", lambda module: memory.apply(module, settings)
    elif may_plan and memory.plans(module):
        yield "memory", memory.plan
    if settings.kernels is not None:
        from torchspore.graph.graph_kernels import steps

        yield "graph_kernels", lambda module: steps.applied(module, settings)
    if not settings.saves_memory:
        yield from order
    if has_exchanges:
        yield "regather", regather_weights
        yield "communication", overlap_exchanges
    if settings.offloads is not None or settings.offloads_state or memory.is_requested(module):
        yield "memory_offload", lambda module: memory.offload_values(module, settings)


def _may_plan_memory(module: torch.fx.GraphModule, settings: Settings, has_exchanges: bool) -> bool:
    """Return whether the graph trains, and no switch, dump or other process depends on the order or the memory of its operators."""
    if settings.level != "O0" or not settings.reuses_memory or has_exchanges or current_operator.followers:
        return False
    if settings.saves_memory or settings.infer_boost or settings.order or settings.lanes > 1 or settings.kernels or settings.tuning:
        return False
    if settings.offloads is not None or settings.offloads_state:
        return False
    names = [node.target._opname for node in module.graph.nodes if is_operator(node.target)]
    return any(name.endswith("_backward") or name.startswith("_fused_") for name in names)


def _compile_boosted(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    """Return the code for inference only if that is faster. Raise InferenceOnly if the graph trains."""
    reason = inference.trains(module, persistent)
    if reason is not None:
        text = translate("{line}: infer_boost 'on' compiles for inference only, and this call {reason}.")
        hint = translate("train with jit_config={'infer_boost': 'off'}, and call set_train(False) on a net for inference")
        raise InferenceOnly(with_hint(text.format(line=user_line(), reason=reason), hint))
    plain = functools.partial(eager_codegen.compile, passes.run(passes.FINISH, module, copies=True, keep=None))
    prefers_onednn = matrix_products.is_large if settings.deterministic else matrix_products.prefers_onednn
    choose_tile = None if settings.deterministic else convolution_choice.choose_tile
    hoisted = inference.hoisted(module, persistent, prefers_onednn, settings.layout, settings.fuses_products, choose_tile)
    if hoisted is None:
        outcomes.not_boosted(translatable("nothing in it depends only on weights"))
        return plain()
    outcomes.layout(settings, has_images(module))
    code = inference.code(hoisted)
    if settings.deterministic or _boost_wins(module, inputs, settings, plain, code):
        outcomes.boost(*inference.counts(module, hoisted))
        return code
    outcomes.not_boosted(translatable("that was measured to be as fast"))
    return plain()


def _boost_wins(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, plain: Callable[[], Code], code: Code) -> bool:
    """Return whether the boosted form is faster. Equal graphs are measured once."""
    key = fingerprint(module, settings)
    best = autotune_cache.find(key)
    if best is None:
        race = Race(inputs)
        race.enter("O0", plain)
        race.enter("boosted", lambda: code)
        best = race.best()
        autotune_cache.keep(key, best)
        event_log.event("level", f"kept {best} of {race}")
    return best == "boosted"


def _has_cached_values(module: torch.fx.GraphModule) -> bool:
    """Return whether the graph is the gradient of a branch or loop. Its forward half runs elsewhere, so it cannot be measured alone."""
    return any(node.op == "placeholder" and node.meta.get("val") is None for node in module.graph.nodes)
