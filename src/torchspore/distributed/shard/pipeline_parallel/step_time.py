"""Predicts the time of a step with stages on an assumed machine by simulating its order with a clock."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard import memory_model
from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.pipeline_parallel import stage_graph
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.distributed.shard.search import costs
from torchspore.distributed.shard.search.costs import Cost


def of(local: LocalGraph, stages: int, machine: Machine) -> Cost:
    """Return the cost of a step: seconds until its last stage is done, and the largest computation, communication and memory.

    Transfers between stages overlap with the computation of both; a stage that needs the value waits.
    """
    clock = _Clock(local, stages, machine)
    for node in local.module.graph.nodes:
        clock.run(node)
    peak_bytes = max(_peak_bytes(local, stage, stages) for stage in range(stages))
    excess = max(0.0, peak_bytes / machine.capacity - 1)
    return Cost(max(clock.received), max(clock.messages), max(clock.computing), peak_bytes, max(clock.free), max(clock.sending), excess)


class _Clock:
    """Records when each stage is free, and when values exist."""

    def __init__(self, local: LocalGraph, stages: int, machine: Machine) -> None:
        self.local, self.machine, self.every = local, machine, range(stages)
        self.free = [0.0 for _ in self.every]
        self.received, self.messages = [0 for _ in self.every], [0 for _ in self.every]
        self.computing, self.sending = [0.0 for _ in self.every], [0.0 for _ in self.every]
        self.there: dict[tuple[Node, int], float] = {}
        self.links: dict[tuple[int, int], float] = {}

    def run(self, node: Node) -> None:
        """Run a node on each stage that has it."""
        if node.op in ("placeholder", "output"):
            return
        if node.target is nodes.passed:
            self._pass(node)
            return
        own = stage_of(node)
        sent = costs.received(node, self.local) if node.target in nodes.SENDING else None
        seconds = costs.computing(node, self.machine) if sent is None else self.machine.transfer_seconds(sent)
        for stage in self.every if own == ALL else (own,):
            self.free[stage] = self._start(node.all_input_nodes, stage) + seconds
            self.there[node, stage] = self.free[stage]
            if sent is None:
                self.computing[stage] += seconds
            else:
                self._count_exchange(stage, sent, seconds)

    def _start(self, needed: Sequence[Node], stage: int) -> float:
        return max((self.free[stage], *(self.there.get((item, stage), 0.0) for item in needed)))

    def _pass(self, node: Node) -> None:
        """Run a transfer, which begins when the value exists and the link is free."""
        item: Any = node.args[0]
        transfer: Any = node.args[1:]
        source, target = transfer
        size = costs.touched([node.meta["val"]])
        begun = self.there.get((item, source), 0.0)
        self.there[node, source] = begun
        for other in self.every if target == ALL else (target,):
            if other == source:
                continue
            self.links[source, other] = max(begun, self.links.get((source, other), 0.0)) + size / self.machine.bandwidth
            self.there[node, other] = self.links[source, other] + self.machine.latency
            self._count_exchange(other, size, self.machine.latency + size / self.machine.bandwidth)

    def _count_exchange(self, stage: int, size: int, seconds: float) -> None:
        """Add an exchange that a device of the stage receives."""
        self.received[stage] += size
        self.messages[stage] += 1
        self.sending[stage] += seconds


def _peak_bytes(local: LocalGraph, stage: int, stages: int) -> int:
    """Return the peak bytes of a device of the stage."""
    stage_graph_of_local = local if stages == 1 else replace(local, module=stage_graph.of_stage(local.module, stage, stages))
    read = [node for node in stage_graph_of_local.module.graph.nodes if node.op == "placeholder" and node.users]
    return costs.touched([node.meta.get("val") for node in read]) + sum(memory_model.peak(stage_graph_of_local.module).values())
