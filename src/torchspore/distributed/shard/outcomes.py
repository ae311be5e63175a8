"""The outcomes of the options of parallel execution for a split graph."""
from __future__ import annotations

from collections import Counter
from typing import Any

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE
from torchspore.distributed import device_count
from torchspore.distributed.shard import gradient_norms
from torchspore.distributed.shard.lowerings import LOWERINGS
from torchspore.distributed.shard.pipeline_parallel import construction

_IN = "auto_parallel."
_KINDS = {
    device_count.RANKS: "processes", device_count.SIMULATED: "ranks in this process",
    device_count.PLANNED: "devices, which this process simulates",
}


def report(split: Any) -> None:
    """Report the outcomes of the options that splitting reads."""
    local, sharded_capture = split.local, split.sharded_capture
    count, kinds = (
        local.mesh.count * sharded_capture.stages,
        Counter(step.kind for placed in local.split_operators for step, _ in placed.steps),
    )
    sent = sum(step.sent for placed in local.split_operators for step, _ in placed.steps)
    shown = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "nothing is exchanged"
    mode = str(STORE.get(_IN + "parallel_mode"))
    if split.messages[0] > split.messages[1]:
        shown += f" ({split.messages[0]} sums of gradients in {split.messages[1]} messages)"
    grid = "a grid of " + (" x ".join(map(str, local.mesh.sizes)) or "1") + (" in each stage" if sharded_capture.stages > 1 else "")
    _report("parallel_mode", f"split over {count} {_KINDS[split.kind]}, {grid}: {shown}; {sent:,} bytes received by each")
    if STORE.source(_IN + "parallel_mode")[1] is None or mode == "auto_parallel":
        effects.note("distribution", f"{mode} over {count} {_KINDS[split.kind]}: {shown}; {sent:,} bytes received by each")
    if sharded_capture.searched is not None:
        effects.note("distribution", f"auto_parallel, {sharded_capture.searched.mode}: {sharded_capture.searched.describe()}")
        effects.report(_IN + "search_mode", Outcome.applied(sharded_capture.searched.describe()))
        _report("sharding_propagation", sharded_capture.searched.describe())
    _report("device_num", f"graphs are split over {count}")
    is_split_by_hand = sharded_capture.is_cut_by_hand
    batch_text = "each process passes its part of the batch" if is_split_by_hand else "each passes the full batch, which is split"
    is_full_batch = STORE.get(_IN + "dataset_strategy") == "full_batch"
    for name in ("dataset_strategy", "full_batch"):
        _report(name, "each device receives the full batch and uses its part" if is_full_batch else batch_text)
    _either("enable_alltoall", f"{kinds.get('all_to_all', 0)} all_to_all", "layouts change by gathering and cutting")
    _either("gradients_mean", "gradients are divided by the devices that hold the same part", "gradients are those of one device")
    _either("gradient_fp32_sync", "terms of gradients of half precision are summed in float32", "they are summed in their own dtype")
    _either("force_fp32_communication", "all terms of half precision are summed in float32", "they are summed in their own dtype")
    _shares(split)
    _pipeline(split)
    gradient_norms.report(sum(node.target is gradient_norms.local_norm for node in local.module.graph.nodes))
    _missing(local)


def report_delayed(parameters: list[Any]) -> None:
    """Report the Parameters whose initial values are drawn now: those that are split by parts."""
    split_count = sum("_sharded_layout" in item.__dict__ for item in parameters)
    _report("init_param_in_compile", f"each process draws its own part of the initial values of {split_count} Parameters")


def _shares(split: Any) -> None:
    """Report the outcome of `enable_parallel_optimizer` and its details."""
    if not STORE.get(_IN + "enable_parallel_optimizer"):
        return
    outcome = Outcome.applied(f"{len(split.sharded_capture.bases)} Parameters are split once more, with their optimizer's state")
    config = _IN + "parallel_optimizer_config."
    for name in (_IN + "enable_parallel_optimizer", config + "parallel_optimizer_threshold", config + "optimizer_level",
                 config + "gradient_accumulation_shard", _IN + "optimizer_weight_shard_size"):
        effects.report(name, outcome)


def _pipeline(split: Any) -> None:
    """Report the outcome of `pipeline_stages` and its details."""
    pipeline, devices_each = split.pipeline, split.local.mesh.count
    if pipeline is None:
        return
    homes = Counter(split.sharded_capture.homes.values())
    homes_text = "Parameters and states: " + ", ".join(f"{homes[stage]} in stage {stage}" for stage in range(pipeline.stages))
    sent = f"{len(pipeline.transfers)} values of {pipeline.sent:,} bytes pass between stages"
    _report("pipeline_stages", f"{pipeline.stages} stages of {devices_each} devices: {homes_text}; {sent}")
    effects.note("distribution", f"a pipeline of {pipeline.stages} stages: {homes_text}; {sent}")
    if pipeline.schedule is None:
        order = "stages cannot overlap: no PipelineCell splits the batch"
    else:
        most = ", ".join(map(str, pipeline.schedule.in_flight))
        order = (f"stages wait {pipeline.schedule.idle:.0%} of the time if all parts take equally long, "
                 f"and hold values of {most} parts at most")
    effects.note("distribution", f"pipeline: {order}")
    for name in ("pipeline_config", "pipeline_scheduler", "pipeline_interleave"):
        _report(name, order)
    segments = STORE.get(_IN + "pipeline_segments")
    _report("pipeline_segments", f"each stage runs {segments} segments of the network by turns; {order}" if segments > 1
            else "each stage runs its Cells in the order in which they are called")
    _either("pipeline_result_broadcast", "all stages receive the results",
            f"results of more than {construction.SMALL} bytes stay in their stage, elsewhere their values raise ValueElsewhere")


def _missing(local: Any) -> None:
    """Name the operators without a rule, and the statements that each device runs unsplit; each text once per line of the program."""
    parts = []
    for placed in local.split_operators:
        line, sent = placed.node.meta.get("line", ""), sum(step.sent for step, _ in placed.steps)
        if placed.why:
            parts.append(f"{line} {placed.name}: {placed.why}")
        elif not placed.has_rule and (sent or getattr(placed.node.target, "_opname", "") not in LOWERINGS):
            parts.append(f"{line} {placed.name}: no rule splits it, so each device runs it on full values; {sent:,} bytes")
    for text in dict.fromkeys(parts):
        effects.note("distribution", text)


def _either(name: str, yes: str, no: str) -> None:
    _report(name, yes if STORE.get(_IN + name) else no)


def _report(name: str, text: str) -> None:
    """Report the outcome of an option that acts: the mode, and the program's settings."""
    if name in ("parallel_mode", "device_num") or STORE.source(_IN + name)[0] != DEFAULT:
        effects.report(_IN + name, Outcome.applied(text))
