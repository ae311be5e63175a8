"""What `explain` says of the options of data parallel training."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def told_shares(optimizer: str, parameters: Sequence[Any], shares: Sequence[Any], why_not: str) -> None:
    """Reports which Parameters of an optimizer are cut among the processes; `why_not` says why none is."""
    cut = [(p._t.nbytes, share) for p, share in zip(parameters, shares) if share is not None]
    config = _IN + "parallel_optimizer_config."
    own = ("optimizer_level", "parallel_optimizer_threshold")
    if not cut and not why_not and effects.has_outcome(_IN + "enable_parallel_optimizer"):
        return                                            # such as LARS around an optimizer that has told already
    if not cut:
        why_not = why_not or "no Parameter is large enough, has a first axis that divides, and may be cut"
        for name in (_IN + "enable_parallel_optimizer", *[config + name for name in own], _IN + "optimizer_weight_shard_size"):
            effects.report(name, Outcome.no_effect(why_not))
        return
    share = cut[0][1]
    megabytes = sum(size for size, _ in cut) / 2**20
    how = f"{optimizer} keeps 1/{share.group.size} of the state of {len(cut)} of {len(parameters)} Parameters ({megabytes:.3g} MB)"
    effects.note(NOTES, how)
    effects.report(_IN + "enable_parallel_optimizer", Outcome.applied(how))
    effects.report(config + "parallel_optimizer_threshold", Outcome.applied(f"{len(parameters) - len(cut)} Parameters stay whole"))
    effects.report(_IN + "optimizer_weight_shard_size", Outcome.applied(f"{share.group.size} processes have a Parameter together"))
    gradients = "each process sums the gradients of its own rows" if share.scatters else "gradients are summed whole"
    effects.report(config + "optimizer_level", Outcome.applied(gradients))
    effects.report(config + "gradient_accumulation_shard", Outcome.no_effect(
        "micro batches are added up inside the backward pass, and their sum is sent once"))
    effects.report(_IN + "comm_fusion.allgather", Outcome.applied(f"new rows travel in messages {fusion.rule('allgather')}"))
