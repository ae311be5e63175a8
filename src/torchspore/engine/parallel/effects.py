"""What `explain` says of the options of data parallel training."""
from __future__ import annotations

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.parallel import fusion, setting
from torchspore.engine.parallel.gradients import Plan

NOTES = "processes"
_IN = "auto_parallel."


def told_plan(plan: Plan, count: int) -> None:
    """Reports how the gradients of a net travel."""
    several = plan.group.size > 1
    alone = Outcome.no_effect("there is one process, whose gradients are all there are")
    how = f"{count} gradients in {len(plan.buckets)} messages ({fusion.rule()}) over {plan.group.size} processes"
    for name in ("all_reduce_fusion_config", "comm_fusion.openstate", "comm_fusion.allreduce"):
        effects.report(_IN + name, Outcome.applied(how) if several else alone)
    no_part = Outcome.no_effect(f"{setting.mode()!r} gathers and scatters no weights by itself")
    for name in ("comm_fusion.allgather", "comm_fusion.reducescatter"):
        if several and not effects.has_outcome(_IN + name):
            effects.report(_IN + name, no_part)
    mean = f"sums are divided by {1 / plan.factor:g}" if plan.factor else "gradients stay sums"
    effects.report(_IN + "gradients_mean", Outcome.applied(mean) if several else alone)
    effects.report(_IN + "gradient_fp32_sync", told_precision())
    if several:
        effects.note(NOTES, how)


def told_precision() -> Outcome:
    """What comes of `gradient_fp32_sync` where whole gradients are summed."""
    if setting.mode() in setting.ALIKE:
        return Outcome.no_effect(f"{setting.mode()!r} always sums in float32, as MindSpore does")
    return Outcome.no_effect(f"{setting.mode()!r} sums no gradients over processes")
