"""The report of `explain` about the options of data parallel training."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchspore.base.lazy_modules import import_lazily
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.distributed.data_parallel import fusion, settings
from torchspore.distributed.data_parallel.gradient_reduction import Plan
from torchspore.translations import translatable, translate

if TYPE_CHECKING:
    from torchspore.distributed.data_parallel import gradient_scatters
else:
    import_lazily(globals(), "torchspore.distributed.data_parallel.gradient_scatters")

NOTES = translatable("processes")
_IN = "auto_parallel."
_CONFIG = "parallel_optimizer_config."
_ALONE = Outcome.no_effect("there is one process; torchspore workers -n 2 starts two")
_SHARES = (
    "enable_parallel_optimizer", "optimizer_weight_shard_size", _CONFIG + "optimizer_level", _CONFIG + "parallel_optimizer_threshold",
    _CONFIG + "gradient_accumulation_shard",
)


def report_option(name: str, outcome: Outcome) -> None:
    """Reports what came of an option of `set_auto_parallel_context` that the program has set."""
    if settings.is_set(name) or ("." in name and settings.is_set(name.partition(".")[0])):
        effects.report(_IN + name, outcome)


def report_plan(plan: Plan, count: int) -> None:
    """Reports how the gradients of a net travel."""
    several = plan.group.size > 1
    report_mode()
    how = translate("{count} gradients in {messages} messages ({rule}) over {processes} processes").format(
        count=count, messages=len(plan.buckets), rule=fusion.rule(), processes=plan.group.size)
    for name in ("all_reduce_fusion_config", "comm_fusion.openstate", "comm_fusion.allreduce"):
        report_option(name, Outcome.applied(how) if several else _ALONE)
    for name, why_not in (("comm_fusion.allgather", translatable("nothing is gathered without enable_parallel_optimizer")),
                          ("comm_fusion.reducescatter", translatable("nothing is scattered without enable_parallel_optimizer"))):
        if not effects.has_outcome(_IN + name):
            report_option(name, Outcome.no_effect(why_not) if several else _ALONE)
    mean = (translate("sums are divided by {number:g}").format(number=1 / plan.factor) if plan.factor else
            translate("gradients stay sums"))
    report_option("gradients_mean", Outcome.applied(mean) if several else _ALONE)
    report_option("gradient_fp32_sync", precision_outcome())
    for name in ("dump_local_norm", "dump_local_norm_path", "dump_device_local_norm"):
        if settings.is_set(name):
            report_option(
                name, Outcome.no_effect("as in MindSpore it acts where operators are split: in 'semi_auto_parallel' and 'auto_parallel'")
            )
    if several:
        effects.note(NOTES, how)


def report_mode() -> None:
    """Report the effects of the mode and of the number of processes."""
    if settings.mode() not in settings.ALIKE:
        return
    count = settings.processes()
    text = translate("gradients are summed over {count} processes").format(count=count)
    report_option("parallel_mode", Outcome.applied(text) if count > 1 else _ALONE)
    report_option("device_num", Outcome.applied("it is the number of processes"))
    report_option("global_rank", Outcome.applied("it is the rank of this process"))


def precision_outcome() -> Outcome:
    """Return the outcome of `gradient_fp32_sync` if full gradients are summed."""
    if settings.mode() in settings.ALIKE:
        return Outcome.no_effect(translate("{mode!r} always sums in float32, as MindSpore does").format(mode=settings.mode()))
    return Outcome.no_effect(translate("{mode!r} sums no gradients over processes").format(mode=settings.mode()))


def report_shares(optimizer: str, parameters: Sequence[Any], shares: Sequence[Any], why_not: str) -> None:
    """Report which Parameters of an optimizer are split among the processes; `why_not` is the reason if none is."""
    cut = [(p._t.nbytes, share) for p, share in zip(parameters, shares) if share is not None]
    if not cut and not why_not and effects.has_outcome(_IN + "enable_parallel_optimizer"):
        return                                            # such as LARS around an optimizer that has reported already
    if not cut:
        why_not = why_not or "no Parameter is large enough, has a divisible first axis and may be split"
        for name in _SHARES:
            report_option(name, Outcome.no_effect(why_not))
        return
    share = cut[0][1]
    megabytes = sum(size for size, _ in cut) / 2**20
    how = f"{optimizer} keeps 1/{share.group.size} of the state of {len(cut)} of {len(parameters)} Parameters ({megabytes:.3g} MB)"
    effects.note(NOTES, how)
    report_option("enable_parallel_optimizer", Outcome.applied(how))
    report_option("optimizer_weight_shard_size", Outcome.applied(f"{share.group.size} processes have a Parameter together"))
    report_option(_CONFIG + "parallel_optimizer_threshold", Outcome.applied(f"{len(parameters) - len(cut)} Parameters stay unsplit"))
    level = "in nn.TrainOneStepCell each process sums the gradients of its rows" if share.scatters else "gradients are summed whole"
    report_option(
        _CONFIG + "optimizer_level", Outcome.applied(level + ("; weights are complete only while they are used" if share.slices else ""))
    )
    report_option(_CONFIG + "gradient_accumulation_shard", Outcome.applied("the sum of micro batches covers this process's rows alone"))
    report_option("comm_fusion.allgather", Outcome.applied(f"new rows travel in messages {fusion.rule('allgather')}"))
    report_option("comm_fusion.reducescatter", Outcome.applied(gradient_scatters.describe_rule()) if share.scatters else Outcome.no_effect(
        "gradients are summed in full: optimizer_level is 'level1'"))
