"""Switches for parallel training that MindSpore reads from a JSON file; each is a separate option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.kinds import Bool, Int, Overlap
from torchspore.context.kinds.files import read_object
from torchspore.context.option import Option

GROUP = "parallel_speed_up_json"
_COLLECTIVES = ("AlltoAll", "AlltoAllV", "AllGather", "ReduceScatter", "AllReduce", "MorphAllGather", "MorphReduceScatter")


def from_file(path: str | None, is_set: Callable[[str], bool]) -> dict[str, Any]:
    """Return the options that the JSON file at `path` sets, as written."""
    return read_object(path, "the path of a JSON file that exists") if path else {}


_IN = "distributed.speed_up_options:"
_EARLY, _READER = _IN + "early", "graph.passes.communication"


def _switch(doc: str, since: str, effect: str = "", idle: str = "", read_by: str | None = None) -> Option:
    return Option(
        group=GROUP, kind=Bool(), default=False, in_graph_key=True, effect=_IN + effect if effect else None, read_by=read_by, idle=idle,
        since=since, doc=doc,
    )


recompute_comm_overlap = Option(
    group=GROUP, kind=Overlap(*_COLLECTIVES), default="", in_graph_key=True, effect=_EARLY, read_by=_READER,
    since="2.0",
    doc="The collectives that run while the forward pass is recomputed.",
)
matmul_grad_comm_overlap = Option(
    group=GROUP, kind=Overlap(*_COLLECTIVES), default="", in_graph_key=True, effect=_EARLY, read_by=_READER,
    since="2.0",
    doc="The collectives that run while the gradients of matrix products are computed.",
)
pp_1f1b_overlap = Option(
    group=GROUP, kind=Overlap(*_COLLECTIVES, bools=False), default="", in_graph_key=True, effect=_IN + "pipelines",
    since="2.6",
    doc="The collectives of a pipeline's forward and backward passes that overlap with the computation of the other pass.",
)
enable_task_opt = _switch("Launches fewer and larger pieces of work on the device.", since="2.0", effect="joins")
enable_grad_comm_opt = _switch("Overlaps the collectives of gradients with the backward pass.", since="2.2", effect="always")
enable_opt_shard_comm_opt = _switch(
    "Overlaps the gathering of sharded weights with the forward pass.", since="2.3", effect="early", read_by=_READER,
)
enable_concat_eliminate_opt = _switch("Removes concatenations that only undo a split.", since="2.3", effect="cuts")
enable_begin_end_inline_opt = _switch("Moves the first and last parts of a graph into their callers.", since="2.3", effect="pipelines")
compute_communicate_fusion_level = Option(
    group=GROUP, kind=Int(0, 3), default=0, in_graph_key=True, effect=_IN + "cuts",
    since="2.3",
    doc="The passes that fuse computation with collectives: 0 none, 1 forward, 2 backward, 3 both.",
)
dataset_broadcast_opt_level = Option(
    group=GROUP, kind=Int(0, 3), default=0, in_graph_key=True, effect=_IN + "data",
    since="2.4",
    doc="Lets one process of a stage or of a model group read the data and send it to the others: 0 neither, 1 or 2 one of them, 3 both.",
)
bias_add_comm_swap = _switch("Adds a bias after the collective instead of before it.", since="2.3", effect="always")
recompute_allgather_overlap_fagrad = _switch(
    "Runs the gathers of the recomputed forward pass while the gradient of attention is "
    "computed.", since="2.3", effect="early", read_by=_READER,
)
interleaved_matmul_comm = _switch(
    "Splits matrix products in two, so that one half is sent while the other is computed.", since="2.0", effect="cuts",
)
interleaved_layernorm_comm = _switch(
    "Splits layer normalisations in two, so that one half is sent while the other is computed.", since="2.0", effect="cuts",
)
enable_allreduce_slice_to_reducescatter = _switch(
    "Replaces a reduction whose result is immediately sliced with a reduce-scatter.", since="2.4", effect="scatters",
    read_by="distributed.shard.reduce_scatter",
)
enable_interleave_split_concat_branch = _switch(
    "Interleaves the branches between a split and a concatenation.", since="2.4", effect="branches",
)
enable_interleave_parallel_branch = _switch(
    "Interleaves branches of the graph that do not depend on each other.", since="2.5", effect="branches",
)
enable_offloading_packed_experts = _switch(
    "Stores the weights of experts on the host until they are needed.", since="2.4",
    idle="the experts of MoE are ordinary Parameters here, which set_offload_context moves to the host",
)
enable_flash_attention_load_balance = _switch("Assigns an equal share of causal attention to every "
    "process.", since="2.3", effect="balances")
