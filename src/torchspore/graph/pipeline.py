"""A captured graph becomes code, at the level that the settings ask for."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import torch

from torchspore.base.frames import user_line
from torchspore.engine.core import allocator, current_operator, event_log, printing
from torchspore.engine.memory import malloc
from torchspore.errors import InferenceOnly
from torchspore.graph import passes
from torchspore.graph.backend import autotune_cache, eager_codegen, inference, lanes, matrix_products, measurement, variants
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.variant_race import Race
from torchspore.graph.fx.fingerprint import fingerprint
from torchspore.graph.fx.modules import copied
from torchspore.graph.fx.order import ordered
from torchspore.graph.passes import memory, precision
from torchspore.graph.passes.communication import overlapped
from torchspore.graph.passes.layout import has_images
from torchspore.graph.passes.regather import regathered
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Settings

Inputs = measurement.Inputs
_FOLLOWED = "each operator runs by itself while a dump follows them"
_PRINTS = "it prints, so that it can't be run to be measured"
_TALKS = "it exchanges values with other processes, which would not answer a run that only measures"


def compile(
    module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, talks: bool, persistent: frozenset[int] = frozenset()
) -> Code:
    """The code of a cleaned graph.

    `inputs` is asked only where something is measured; what it gives is never written to. `talks`: whether the graph exchanges values with
    other processes, who would not answer a run that only measures. `persistent` are the places of inputs that the
    program stores (Parameters, Tensors in attributes), which seldom change: values that depend on them alone may be computed once.
    """
    requested, why = settings, ""
    if current_operator.followers or printing.prints(module):
        why = _FOLLOWED if current_operator.followers else _PRINTS
        settings = dataclasses.replace(settings, level="O0", infer_boost=False, kernels=None, tuning=None, lanes=0)
    if current_operator.followers:                              # in the program's order, the kernels of one call together
        settings = dataclasses.replace(settings, order="", saves_memory=False)
    if talks:
        kernels = None if settings.kernels is None else dataclasses.replace(settings.kernels, measured=False)
        settings, why = dataclasses.replace(settings, infer_boost=False, kernels=kernels, tuning=None, lanes=0), why or _TALKS
    module = prepared(module, settings, talks)
    stages.keep("backend_pass", module)
    outcomes.compiling(settings, requested, why)
    try:
        with allocator.aside():
            code = _tuned(module, inputs, settings, persistent)
            if (settings.lanes > 1 or settings.level == "O2") and not talks:
                code = lanes.run_in_lanes(code, module, inputs, settings)
    except measurement.Unrunnable as reason:
        event_log.event("level", f"nothing is measured, the graph runs as at O0: {reason}")
        code = _plain(module)
    stages.emitted(code, module, inputs)
    malloc.give_back()
    return code


def _tuned(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    if settings.tuning is None or _has_cached_values(module):
        return _code(module, inputs, settings, persistent)
    from torchspore.graph.autotune import tuner

    return tuner.compile(module, inputs, settings, persistent, lambda: untuned(module, inputs, settings, persistent))


def _code(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    if settings.infer_boost:
        return _boosted(module, inputs, settings, persistent)
    if settings.level != "O0" and not _has_cached_values(module):
        return variants.compile(module, inputs, settings, persistent)
    return _plain(module)


def _plain(module: torch.fx.GraphModule) -> Code:
    return eager_codegen.compile(passes.run(passes.FINISH, module))


def untuned(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    """The code that a prepared graph has where nothing is tuned; the graph stays as it is."""
    module = copied(module)
    if settings.kernels is not None and settings.level == "O0" and not settings.infer_boost:
        from torchspore.graph.graph_kernels import kernel_build

        module = kernel_build.build(module, settings.kernels).module
    return _code(module, inputs, dataclasses.replace(settings, tuning=None), persistent)


def prepared(module: torch.fx.GraphModule, settings: Settings, talks: bool) -> torch.fx.GraphModule:
    """The graph after the steps that switches ask for, whatever the level: precision, memory, graph kernels, order."""
    steps = list(_requested_steps(module, settings, talks))
    return passes.run(steps, module) if steps else module


def _requested_steps(module: torch.fx.GraphModule, settings: Settings, talks: bool) -> Iterator[passes.Step]:
    if precision.is_requested(module, settings):
        yield "precision", lambda module: precision.apply(module, settings)
    order: list[passes.Step] = [("exec_order", lambda module: ordered(module, settings.order))] if settings.order else []
    if settings.saves_memory:
        yield from order                             # what is computed again must stay where it is put
    if settings.saves_memory or not settings.reuses_memory:
        yield "memory", lambda module: memory.apply(module, settings)
    if settings.kernels is not None:
        from torchspore.graph.graph_kernels import steps

        yield "graph_kernels", lambda module: steps.applied(module, settings)
    if not settings.saves_memory:
        yield from order
    if talks:
        yield "regather", regathered
        yield "communication", overlapped
    if settings.offloads is not None or settings.offloads_state or memory.is_requested(module):
        yield "memory_offload", lambda module: memory.offloaded(module, settings)


def _boosted(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, persistent: frozenset[int]) -> Code:
    """The graph for inference alone, where that is faster. Raises InferenceOnly where the graph trains."""
    reason = inference.trains(module, persistent)
    if reason is not None:
        raise InferenceOnly(
            f"{user_line()}: infer_boost 'on' compiles for inference only, and this call {reason}.\n\n"
            "hint: train with jit_config={'infer_boost': 'off'}, and call set_train(False) on a net for inference.",
        )
    plain = functools.partial(eager_codegen.compile, passes.run(passes.FINISH, module, copies=True, keep=None))
    prefers_onednn = matrix_products.is_large if settings.deterministic else matrix_products.prefers_onednn
    hoisted = inference.hoisted(module, persistent, prefers_onednn, settings.layout)
    if hoisted is None:
        outcomes.not_boosted("nothing in it hangs on weights alone")
        return plain()
    outcomes.layout(settings, has_images(module))
    code = inference.code(hoisted)
    if settings.deterministic or _boost_wins(module, inputs, settings, plain, code):
        outcomes.boost(*inference.counts(module, hoisted))
        return code
    outcomes.not_boosted("that was measured to be as fast")
    return plain()


def _boost_wins(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings, plain: Callable[[], Code], code: Code) -> bool:
    """Return whether the boosted form is the faster one, measured once for graphs that are equal."""
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
    """Return whether it is the gradient of a branch or loop whose forward half runs elsewhere: nothing can be measured without that."""
    return any(node.op == "placeholder" and node.meta.get("val") is None for node in module.graph.nodes)
