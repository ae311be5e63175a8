"""Turns a split graph into that of a pipeline: stages, transfers, and the order of micro batches."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.distributed.shard.collective_nodes import passed
from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.distributed.shard.pipeline_parallel import micro_batch_dependencies, random_numbers, stage_assignment, step_order
from torchspore.distributed.shard.pipeline_parallel import transfers as passing
from torchspore.distributed.shard.pipeline_parallel.schedule import FORWARD, Schedule
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.engine.torch_internals import node_metadata

EVERYWHERE = "_everywhere"
"""The mark of a Parameter that every stage stores, for later graphs."""
SMALL = 1024
"""Results of at most this many bytes go to all stages in any case: a loss."""


@dataclass
class Pipeline:
    """How a step is divided into stages."""

    stages: int
    transfers: list[Node]
    schedule: Schedule | None
    homes: dict[int, int]
    """By index of a result, the only stage that has it."""

    @property
    def sent(self) -> int:
        """Return the bytes that one device of each stage sends in a step."""
        vals = [node.meta["val"] for node in self.transfers]
        return sum(val.numel() * val.element_size() for val in vals)


def assign(local: LocalGraph, lifted: Sequence[Any], input_stages: Sequence[int | None], stages: int) -> dict[str, int]:
    """Assign each operator to a stage; return the stages of Parameters by name. Raises ValueError for a graph that cannot be divided."""
    micro_batch_dependencies.by_shape(local.module)
    is_state = [isinstance(item, TensorBase) and hasattr(item, "name") for item in lifted]
    is_trained = [is_state_input and bool(getattr(item, "requires_grad", False)) for item, is_state_input in zip(lifted, is_state)]
    stage_assignment.assign(local.module, input_stages, is_state, is_trained, stages)
    holders = [node for node in local.module.graph.nodes if node.op == "placeholder"]
    return {
        str(item.name): stage_of(node)
        for node, item, is_state_input in zip(holders, lifted, is_state)
        if is_state_input and stage_of(node) != ALL
    }


def note_common(local: LocalGraph, lifted: Sequence[Any]) -> None:
    """Mark Parameters that every stage stores, for later graphs."""
    holders = [node for node in local.module.graph.nodes if node.op == "placeholder"]
    for node, item in zip(holders, lifted):
        if isinstance(item, TensorBase) and hasattr(item, "name") and stage_of(node) == ALL:
            item.__dict__[EVERYWHERE] = True


def _check_segments(schedule: Schedule, stages: int, segments: int) -> None:
    """Raise ValueError if no stage runs as many segments of the network as `pipeline_segments` says."""
    turns = [len({block.hop for block in schedule.starts if block.stage == stage and block.kind == FORWARD}) for stage in range(stages)]
    if max(turns) != segments:
        raise ValueError(message(
            f"pipeline_segments={segments} with {stages} stages that run {', '.join(map(str, turns))} segments",
            f"a network whose Cells have the stages 0 to {stages * segments - 1}, in the order in which they are called",
        ))


def arranged(local: LocalGraph, stages: int) -> Pipeline:
    """Insert transfers into a graph whose operators have stages, and order it. Raises ValueError for a value that cannot be sent."""
    get = STORE.get
    shares = bool(get("auto_parallel.pipeline_result_broadcast"))
    homes: dict[int, int] = {}

    def everywhere(output_index: int, node: Node) -> bool:
        val = node.meta.get("val")
        small = isinstance(val, torch.Tensor) and val.numel() * val.element_size() <= SMALL
        is_shared = (shares or small) and not node.meta.get(node_metadata.GRADIENT)
        if not is_shared:
            homes[output_index] = stage_of(node)
        return is_shared

    micro_batch_dependencies.by_parts(local.module)
    draws = random_numbers.noted(local.module.graph)
    passing.put(local.module.graph, everywhere)
    segments = int(get("auto_parallel.pipeline_segments"))
    is_interleaved = segments > 1 or bool(get("auto_parallel.pipeline_interleave"))
    rule = step_order.Rule(str(get("auto_parallel.pipeline_scheduler")), is_interleaved, stages)
    local.module, schedule = step_order.ordered(local.module, rule)
    if segments > 1 and schedule is not None:
        _check_segments(schedule, stages, segments)
    random_numbers.put(local.module, draws)
    transfers = [node for node in local.module.graph.nodes if node.target is passed]
    return Pipeline(stages, transfers, schedule, homes)
