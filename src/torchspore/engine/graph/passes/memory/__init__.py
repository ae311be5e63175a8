"""Memory: what the switches do to the values of a captured graph, whose lifetimes are known before it runs.

`memory_optimize_level` O1 lets an optimizer's steps run as soon as their gradients are there, and computes forward values again in the
backward half instead of keeping them, where that lowers the peak most for the time it takes. `sys.mem_reuse` off keeps every value.
"""
from __future__ import annotations

import torch

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.graph.report import log
from torchspore.engine.graph.settings import Settings

_KEPT = Outcome.applied("each value of a graph keeps its memory until the end of the call")


def apply(module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
    """The graph with what the switches ask for, in place."""
    from torchspore.engine.graph.passes.memory import early_updates, keep, lifetimes, rematerialize

    if settings.saves_memory and lifetimes.is_known(module):
        before = lifetimes.peak(module)
        early_updates.updated_early(module)
        count, share = rematerialize.computed_again(module)
        _tell(before, lifetimes.peak(module), count, share)
    if not settings.reuses_memory:
        keep.kept(module)
        effects.report("env_config_path.sys.mem_reuse", _KEPT)
    return module


def _tell(before: int, after: int, count: int, share: float) -> None:
    text = f"O1: values of a graph take {_mib(after)} at most instead of {_mib(before)}"
    if count:
        text += f"; {count} operators run again in the backward half, about {share:.0%} more arithmetic"
    effects.note("memory of graphs", f"{user_line()}: {text}")
    log.event("memory", text)
    effects.report("memory_optimize_level", Outcome.applied(text))


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
