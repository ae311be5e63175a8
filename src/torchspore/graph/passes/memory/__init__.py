"""Memory passes: the effects of memory options on a captured graph. The lifetimes of all values are known before the graph runs.

At level O0 `plan` lowers the peak of a training step where that costs no time.
`memory_optimize_level` O1 runs an optimizer's steps as soon as their gradients are computed, and recomputes forward values in the backward
pass where that lowers the peak most for its cost. `sys.mem_reuse` off keeps every value until the end of the call. `memory_offload` moves
values out of memory that are not used during the peak.
"""
from __future__ import annotations

import os

import torch

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.base.text import format_bytes
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.memory import limit
from torchspore.engine.memory import offload as moving
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.settings import Settings
from torchspore.translations import translatable, translate

_NAME = "memory_optimize_level"
_peaks: list[tuple[int, int, int, float]] = []
"""For each graph: the peak before and after, the number of recomputed operators, and their share of the arithmetic."""
_NO_REUSE = Outcome.applied("each value of a graph keeps its memory until the end of the call")


def apply(module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
    """Apply the memory options to the graph, in place."""
    from torchspore.graph.passes.memory import early_updates, lifetimes, no_reuse, rematerialize

    if settings.saves_memory and lifetimes.has_known_sizes(module):
        before = lifetimes.peak(module)
        early_updates.move_updates_early(module)
        count, share = rematerialize.recompute_values(module)
        _report_recomputation(before, lifetimes.peak(module), count, share)
    if not settings.reuses_memory:
        no_reuse.extend_lifetimes(module)
        effects.report("env_config_path.sys.mem_reuse", _NO_REUSE)
    return module


_PLAN_COST_SHARE = 0.01
"""The cost of recomputation that early updates outweigh, as a share of the graph's cost."""
_LEAST_PLANNED_PEAK = 32 << 20
"""The smallest peak in bytes that is planned: the updates of small Parameters are faster in a single operator."""
_LEAST_GAIN = 0.05
"""The least share of the peak that a plan must save."""


def plans(module: torch.fx.GraphModule) -> bool:
    """Return whether `plan` may change a graph that trains: its peak is large, and all lengths are known."""
    from torchspore.graph.passes.memory import lifetimes

    if os.environ.get("TORCHSPORE_MEMORY_PLAN") == "0" or is_requested(module) or not lifetimes.has_known_sizes(module):
        return False
    return lifetimes.peak(module) >= _LEAST_PLANNED_PEAK


def plan(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a graph with a lower peak that takes no more time and computes equal bits; the graph itself if that saves little.

    Optimizer updates run as soon as their gradients are computed, unless `max_device_memory` is set: a program that catches the error of
    that limit expects unchanged Parameters. Values that are cheap for their size are recomputed.
    """
    from torchspore.graph.passes.memory import early_updates, lifetimes, rematerialize

    before = lifetimes.peak(module)
    planned = copy_module(module)
    is_early = not limit.is_set()
    if is_early:
        early_updates.move_updates_early(planned)
    count, _ = rematerialize.recompute_values(planned, _PLAN_COST_SHARE)
    after = lifetimes.peak(planned)
    if after > (1 - _LEAST_GAIN) * before:
        return module
    text = translate("values of a graph use {size} at most{comparison}; {early}{count} operators run again in the backward half").format(
        size=format_bytes(after), comparison=_compare_peaks(before, after), count=count,
        early=translate("Parameters are updated as soon as their gradients are computed; ") if is_early else "",
    )
    effects.note("memory of graphs", f"{user_line()}: {text}")
    event_log.event("memory", text)
    return planned


def is_requested(module: torch.fx.GraphModule) -> bool:
    """Return whether the graph contains values of Cells on which the program called `Cell.offload`."""
    if not moving.is_requested_by_cell():
        return False
    from torchspore.graph.passes.memory import offload

    return any(map(offload.is_requested, module.graph.nodes))


def offload_values(module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
    """Insert moves of idle values out of the device's memory and back, in place."""
    from torchspore.graph.passes.memory import early_updates, lifetimes, offload

    is_program_wide = settings.offloads is not None or settings.offloads_state
    if settings.level != "O0" or settings.infer_boost or settings.tuning is not None:
        _report_not_offloaded(
            is_program_wide,
            "values move between operators that run one by one, and jit_level O1 and O2, infer_boost and tuning compile them",
        )
    elif not settings.reuses_memory:
        _report_not_offloaded(is_program_wide, translatable("sys.mem_reuse is off: every value keeps its memory"))
    elif not lifetimes.has_known_sizes(module):
        _note_graph(is_program_wide, translate(" moves nothing, for lengths are open"))
    else:
        before = lifetimes.peak(module)
        early_updates.move_updates_early(module)
        if settings.offloads is not None or not is_program_wide:
            count, size, after = offload.insert_moves(
                module, moving.limit_for_values(settings.offloads or 0), only_requested=not is_program_wide
            )
            if count:
                _report_offload(is_program_wide, before, after, count, size)
            elif not is_program_wide:
                _note_graph(is_program_wide, translate(" moves nothing: each of its values is in use at the peak"))
        if settings.offloads_state:
            offload.put_away_states(module)
    return module


def _note_graph(is_program_wide: bool, text: str) -> None:
    effects.note("memory of graphs", f"{user_line()}: {'memory_offload' if is_program_wide else 'Cell.offload'}{text}")


def _report_offload(is_program_wide: bool, before: int, after: int, count: int, size: int) -> None:
    text = translate("values of a graph use {after} at most instead of {before}; {count} of them move out, {size} a call").format(
        after=format_bytes(after), before=format_bytes(before), count=count, size=format_bytes(size))
    _note_graph(is_program_wide, f": {text}")
    event_log.event("memory", text)
    if is_program_wide:
        moving.report_graph(text)
    else:
        effects.note(moving.NOTES, moving.figures)


def _report_not_offloaded(is_program_wide: bool, reason: str) -> None:
    if is_program_wide:
        effects.report("memory_offload", Outcome.no_effect(reason))
    else:
        _note_graph(is_program_wide, translate(" moves nothing: {reason}").format(reason=translate(reason)))


def _report_recomputation(before: int, after: int, count: int, share: float) -> None:
    text = translate("values of a graph use {size} at most{comparison}{recomputed}").format(
        size=format_bytes(after), comparison=_compare_peaks(before, after), recomputed=_describe_recomputed(count, share))
    effects.note("memory of graphs", f"{user_line()}: O1: {text}")
    event_log.event("memory", f"O1: {text}")
    if not effects.has_outcome(_NAME):
        _peaks.clear()
    _peaks.append((before, after, count, share))
    effects.report(_NAME, Outcome.applied(f"O1: {text}" if len(_peaks) == 1 else _summarize_graphs()))


def _summarize_graphs() -> str:
    """Return the result of O1 over all graphs. Their peaks do not coincide, so the largest one counts, not their sum."""
    before, after, count, share = max(_peaks)
    smaller = sum(now < then for then, now, *_ in _peaks)
    text = translate("O1: values of {smaller} of {count} graphs use less memory; the largest uses {size} at most{comparison}{recomputed}")
    return text.format(smaller=smaller, count=len(_peaks), size=format_bytes(after), comparison=_compare_peaks(before, after),
                       recomputed=_describe_recomputed(count, share))


def _compare_peaks(before: int, after: int) -> str:
    if format_bytes(after) == format_bytes(before):
        return translate(", as before")
    return translate(" instead of {size}").format(size=format_bytes(before))


def _describe_recomputed(count: int, share: float) -> str:
    text = translate("; {count} operators run again in the backward half, about {share:.0%} more arithmetic")
    return text.format(count=count, share=share) if count else ""
