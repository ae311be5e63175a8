"""Options of parallel execution: sharded optimizers, fused collectives and pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.kinds import INT32, Bool, Choice, Fusion, Int, IntList, Members, Wrong
from torchspore.context.option import Option
from torchspore.errors import OptionKeyError, OptionTypeError, OptionValueError

API = "auto_parallel"


def _check_gradient_shard(config: dict[str, Any]) -> None:
    level = config.get("optimizer_level", "level2")
    if config.get("gradient_accumulation_shard") and level != "level2":
        raise Wrong(OptionValueError, "gradient_accumulation_shard only with optimizer_level 'level2'",
                    hint="write optimizer_level='level2'")


def _many(size: int) -> int:
    return size if size > 1 else -1


enable_parallel_optimizer = Option(
    read_by="distributed.data_parallel.optimizer_shards",
    fixed_outcomes={False: "each process has the full state of its optimizer"},
    kind=Bool(), default=False, example="set_auto_parallel_context(enable_parallel_optimizer=True)",
    since="0.7",
    doc="Shards the optimizer's state and its work across the processes that have the same parameters.",
)
parallel_optimizer_config = Option(
    kind=Members(validate=_check_gradient_shard), default={},
    example="set_auto_parallel_context(parallel_optimizer_config={'optimizer_level': 'level2'})",
    since="1.6",
    doc="Settings of `enable_parallel_optimizer`.",
)
gradient_accumulation_shard = Option(
    read_by="distributed.data_parallel.optimizer_shards",
    member_of="parallel_optimizer_config", top_level=False, kind=Bool(), default=False,
    example="set_auto_parallel_context(parallel_optimizer_config={'gradient_accumulation_shard': True})",
    doc="Also shards gradients that are summed over several steps.",
)
parallel_optimizer_threshold = Option(
    read_by="distributed.data_parallel.optimizer_shards",
    member_of="parallel_optimizer_config", top_level=False, kind=Int(0, unit="of KB"), default=64,
    example="set_auto_parallel_context(parallel_optimizer_config={'parallel_optimizer_threshold': 24})",
    doc="Parameters smaller than this many KB are not sharded.",
)
optimizer_weight_shard_size = Option(
    read_by="distributed.data_parallel.optimizer_shards",
    member_of="parallel_optimizer_config", kind=Int(-1, INT32, bools=False, without=(0,), give=_many), default=-1,
    example="set_auto_parallel_context(parallel_optimizer_config={'optimizer_weight_shard_size': 4})",
    since="1.3",
    doc="The size of the largest group across which a weight is sharded; -1 means no limit.",
)
optimizer_level = Option(
    read_by="distributed.data_parallel.optimizer_shards",
    member_of="parallel_optimizer_config", top_level=False, kind=Choice("level1", "level2", "level3"), default="level1",
    example="set_auto_parallel_context(parallel_optimizer_config={'optimizer_level': 'level2'})",
    doc="The values that are sharded: level1 weights and the optimizer's state, level2 also gradients. level3 shards weights again after "
        "the forward pass.",
)
optimizer_weight_shard_aggregated_save = Option(
    idle="files always contain full weights and full state",
    kind=Bool(), default=False, example="set_auto_parallel_context(optimizer_weight_shard_aggregated_save=True)",
    since="1.3",
    doc="Writes full weights into checkpoints instead of the shards.",
)
all_reduce_fusion_config = Option(
    read_by="distributed.data_parallel.fusion",
    kind=IntList(), default=[], example="set_auto_parallel_context(all_reduce_fusion_config=[20, 35])",
    since="1.0",
    doc="The indices at which the list of gradients is split into groups that are summed together.",
)


def _cut_at_index(fusion: dict[str, Any], is_set: Callable[[str], bool]) -> dict[str, Any]:
    rule = fusion["allreduce"]
    return {"auto_parallel.all_reduce_fusion_config": rule["config"]} if rule["mode"] == "index" else {}


_AUTO = {"mode": "auto", "config": None}
comm_fusion = Option(
    kind=Members(merges=True, unknown=OptionKeyError), implies=_cut_at_index,
    default={"openstate": True, "allreduce": _AUTO, "allgather": _AUTO, "reducescatter": _AUTO},
    example="set_auto_parallel_context(comm_fusion={'allreduce': {'mode': 'size', 'config': 32}})",
    since="1.6",
    doc="The way in which collectives are merged into larger ones: up to 64 MB, up to a size in MB, or at the specified indices.",
)
openstate = Option(
    read_by="distributed.data_parallel.fusion",
    member_of="comm_fusion", top_level=False, kind=Bool(), default=True,
    example="set_auto_parallel_context(comm_fusion={'openstate': False})", doc="Enables the merging of collectives.",
)
allreduce = Option(
    read_by="distributed.data_parallel.fusion",
    member_of="comm_fusion", top_level=False, kind=Fusion("auto", "size", "index"), default=_AUTO,
    example="set_auto_parallel_context(comm_fusion={'allreduce': {'mode': 'index', 'config': [1, 3]}})",
    doc="The way in which sums of gradients are merged.",
)
allgather = Option(
    read_by="distributed.data_parallel.fusion",
    member_of="comm_fusion", top_level=False, kind=Fusion("auto", "size"), default=_AUTO,
    example="set_auto_parallel_context(comm_fusion={'allgather': {'mode': 'size', 'config': 32}})",
    doc="The way in which gathers of weights are merged.",
)
reducescatter = Option(
    read_by="distributed.data_parallel.fusion",
    member_of="comm_fusion", top_level=False, kind=Fusion("auto", "size"), default=_AUTO,
    example="set_auto_parallel_context(comm_fusion={'reducescatter': {'mode': 'size', 'config': 32}})",
    doc="The way in which reduce-scatter operations are merged.",
)


def _check_schedule(config: dict[str, Any]) -> None:
    if not config["pipeline_interleave"] and config["pipeline_scheduler"] != "1f1b":
        raise Wrong(OptionTypeError, "pipeline_scheduler '1f1b' if pipeline_interleave is False",
                    hint="write pipeline_interleave=True")


pipeline_stages = Option(
    read_by="distributed.device_count",
    kind=Int(1, INT32, bools=False), default=1, example="set_auto_parallel_context(pipeline_stages=2)",
    since="1.1",
    doc="The number of stages into which the devices are divided; each Cell names its stage.",
)
pipeline_segments = Option(
    read_by="distributed.shard.outcomes",
    kind=Int(1, INT32, bools=False), default=1, example="set_auto_parallel_context(pipeline_segments=2)",
    since="2.2",
    doc="The number of segments of the network that each stage of a pipeline runs in turn. With more than 1, the `pipeline_stage` of a "
        "Cell is a virtual stage from 0 to `pipeline_stages` * `pipeline_segments` - 1. Stage s runs the virtual stages s, s + "
        "`pipeline_stages` and so on, in the order of `pipeline_interleave`. Results do not change.",
)
pipeline_result_broadcast = Option(
    read_by="distributed.shard.pipeline_parallel.construction",
    kind=Bool(), default=False, example="set_auto_parallel_context(pipeline_result_broadcast=True)",
    since="2.3",
    doc="Sends the result of the last stage to all stages.",
)
auto_pipeline = Option(
    read_by="distributed.shard.pipeline_parallel.stage_count",
    fixed_outcomes={False: "pipeline_stages sets the number of stages"},
    kind=Bool(), default=False, example="set_auto_parallel_context(auto_pipeline=True)",
    since="2.3",
    doc="Chooses the number of stages, up to `pipeline_stages`.",
)
pipeline_config = Option(
    read_by="distributed.shard.pipeline_parallel.construction",
    kind=Members("pipeline_interleave", "pipeline_scheduler", validate=_check_schedule), default={},
    example="set_auto_parallel_context(pipeline_config={'pipeline_interleave': True, 'pipeline_scheduler': '1f1b'})",
    since="2.3",
    doc="The order in which a pipeline runs its parts.",
)
pipeline_interleave = Option(
    read_by="distributed.shard.pipeline_parallel.construction",
    member_of="pipeline_config", settable=False, kind=Bool(), default=False,
    example="set_auto_parallel_context(pipeline_config={'pipeline_interleave': True, 'pipeline_scheduler': '1f1b'})",
    doc="Assigns several segments that are not adjacent to each device.",
)
pipeline_scheduler = Option(
    read_by="distributed.shard.pipeline_parallel.construction",
    member_of="pipeline_config", settable=False, default="1f1b",
    kind=Choice("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v"),
    example="set_auto_parallel_context(pipeline_config={'pipeline_interleave': True, 'pipeline_scheduler': 'gpipe'})",
    doc="The order of forward and backward passes.",
)
