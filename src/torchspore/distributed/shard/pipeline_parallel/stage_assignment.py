"""Assigns each operator of a step to a stage.

An operator in a Cell with a `pipeline_stage` belongs to that stage, with its gradient. With `pipeline_segments` these are virtual stages:
stage s runs the virtual stages s, s + pipeline_stages, s + 2 pipeline_stages and so on. The stages of other nodes follow from the readers
of a Parameter, the memory that a node writes, the operands of an operator, and the operator whose gradient it is. Operators that need no
stage (splitting the batch, a step counter) run on each stage.
"""
from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.distributed.shard.alias_conflicts import nodes_written_by
from torchspore.distributed.shard.pipeline_parallel import branches, list_operators
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners

ALL = -1
"""The mark of what runs on each stage."""
_FEW = 16
"""The largest number of elements that each stage may store if nothing writes them."""
_MOST = 8
"""The maximum number of passes that assign stages, until nothing changes."""


class _Assigner:
    """Stages of the nodes of one graph."""

    def __init__(
        self, graph: torch.fx.Graph, input_stages: Sequence[int | None], is_state: Sequence[bool], is_trained: Sequence[bool], count: int,
    ) -> None:
        self.graph, self.count = graph, count
        self.segments = int(STORE.get("auto_parallel.pipeline_segments"))
        self.owners = owners(graph)
        self.stages: dict[Node, int] = {}
        self.calls: dict[Any, int] = {}                        # of the operators of mindspore that no Cell gives a stage
        self.fixed: set[Node] = set()
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self.states = {node for node, is_state_input in zip(inputs, is_state) if is_state_input}
        self.trained = {node for node, is_trained_input in zip(inputs, is_trained) if is_trained_input}
        for node, stage in zip(inputs, input_stages):
            if stage is not None:
                self._fix(node, stage)
        for node in graph.nodes:
            if node.op == "call_function" and node_metadata.STAGE in node.meta:
                self._fix(node, node.meta[node_metadata.STAGE])
        self.late = _behind_gradients(graph)
        self.written = {self.owners[item] for node in graph.nodes for item in nodes_written_by(node)}

    def _fix(self, node: Node, stage: int) -> None:
        self.fixed.add(node)
        if stage == ALL:
            return
        virtual_stages = self.count * self.segments
        if not 0 <= stage < virtual_stages:
            line = node.meta.get(node_metadata.LINE, "")
            segments = f", pipeline_segments={self.segments}" if self.segments > 1 else ""
            raise ValueError(message(
                f"{line}: pipeline_stage = {stage} with pipeline_stages={self.count}{segments}", f"a stage from 0 to {virtual_stages - 1}",
            ))
        self.stages[node] = stage % self.count

    def run(self) -> dict[Node, int]:
        """The stage of every node."""
        self._follow(with_optimizer=False)
        for node in self.states - self.fixed:
            reached = self._readers(node)
            if len(reached) == 1 or (reached and not self._is_common(node)):
                self.stages[node] = min(reached)
        for _ in range(_MOST):
            before = dict(self.stages)
            self._follow(with_optimizer=True)
            if self.stages == before:
                break
        return {node: self.stages.get(node, ALL) for node in self.graph.nodes}

    def _is_common(self, state: Node) -> bool:
        """Return whether each stage stores a value: a few numbers that the step does not write (a learning rate), or that all stages write
        alike."""
        val = state.meta.get("val")
        if state in self.written:
            return any(node_metadata.STAGE in node.meta and node.meta[node_metadata.STAGE] == ALL for node in state.users)
        return state not in self.trained and isinstance(val, torch.Tensor) and val.numel() <= _FEW

    def _readers(self, state: Node) -> set[int]:
        """Return the stages that read a Parameter, also through operators without a stage."""
        targets: set[int] = set()
        seen, open_ = {state}, [state]
        while open_:
            for user in open_.pop().users:
                if user in seen or user.meta.get(node_metadata.OPTIMIZER) or user.op == "output" or self._is_mixed(user):
                    continue
                seen.add(user)
                if user in self.stages:
                    targets.add(self.stages[user])
                else:
                    open_.append(user)
        return targets

    def _follow(self, with_optimizer: bool) -> None:
        """Visit all nodes once, in order."""
        for node in self.graph.nodes:
            if node.op != "call_function" or (node.meta.get(node_metadata.OPTIMIZER) and not with_optimizer):
                continue
            written_owners = {self.owners[item] for item in nodes_written_by(node)}
            if node not in self.fixed:
                found = self._stage(node, written_owners)
                if found is not None:
                    self.stages[node] = found
            stage = self.stages.get(node)
            if stage is not None and not self._is_mixed(node):
                for owner in written_owners - self.fixed:
                    if self.stages.setdefault(owner, stage) != stage and owner.op != "placeholder":
                        self.stages[owner] = stage

    def _is_mixed(self, node: Node) -> bool:
        """Return whether a node is a branch or loop on values of several stages, which says nothing about the other nodes."""
        if is_operator(node.target) or node in self.fixed:
            return False
        return len({self.stages[item] for item in node.all_input_nodes if item in self.stages}) > 1

    def _stage(self, node: Node, written_owners: Iterable[Node]) -> int | None:
        """Return the stage of a node that no Cell determines."""
        if node.target is operator.getitem:
            return self.stages.get(node.args[0])  # type: ignore[arg-type]
        owner_stages = [self.stages[owner] for owner in written_owners if owner in self.stages]
        if owner_stages:
            return min(owner_stages)
        input_stages = {self.stages[item] for item in node.all_input_nodes if item in self.stages}
        call = None if node.meta.get(node_metadata.OPTIMIZER) else node.meta.get(node_metadata.CALL)
        if node.meta.get(node_metadata.GRADIENT):
            return self.calls.get(call, min(input_stages, default=None))
        if input_stages and node in self.late:
            return self._heaviest(node)
        if input_stages and call is not None:
            self.calls[call] = max(*input_stages, self.calls.get(call, 0))
            return self.calls[call]
        if not input_stages and is_operator(node.target) and torch.Tag.nondeterministic_seeded in node.target.tags:
            return min(self._readers(node), default=0)          # all stages would draw, and from then on otherwise than the others
        if not input_stages:
            return None
        return min(input_stages) if node.meta.get(node_metadata.OPTIMIZER) else max(input_stages)

    def _heaviest(self, node: Node) -> int:
        """Return the stage of most inputs of a node; among equal counts the last stage."""
        weights: dict[int, int] = {}
        for item in node.all_input_nodes:
            if item in self.stages:
                weights[self.stages[item]] = weights.get(self.stages[item], 0) + _bytes(item)
        return max(weights, key=lambda stage: (weights[stage], stage))


def _bytes(node: Node) -> int:
    return sum(t.numel() * t.element_size() for t in tree.leaves([node.meta.get("val")]) if isinstance(t, torch.Tensor))


def _behind_gradients(graph: torch.fx.Graph) -> set[Node]:
    """Return nodes that read gradients before the optimizer does: a scale, a norm of all gradients, clipping.

    An operator on all gradients becomes one operator for each gradient, on the stage of that gradient.
    """
    trained_nodes: set[Node] = set()
    for node in graph.nodes:
        if node.op == "call_function" and not node.meta.get(node_metadata.GRADIENT) and not node.meta.get(node_metadata.OPTIMIZER):
            if any(item.meta.get(node_metadata.GRADIENT) or item in trained_nodes for item in node.all_input_nodes):
                trained_nodes.add(node)
    return trained_nodes


def assign(
    module: torch.fx.GraphModule, input_stages: Sequence[int | None], is_state: Sequence[bool], is_trained: Sequence[bool], count: int,
) -> None:
    """Store the stage that runs each node, or ALL, in its metadata (`node_metadata.RUNS_IN`).

    `input_stages` has the stages of inputs that have one, `is_state` marks inputs that the program stores (Parameters), `is_trained` those
    that an optimizer may write in another graph. Operators on lists, and branches, whose items belong to several stages become one for each
    stage. Raises ValueError for a stage that does not exist, or if an operator of one stage writes a value of another.
    """
    def inner(side: torch.fx.GraphModule, stages: Sequence[int | None], states: Sequence[bool]) -> None:
        assign(side, stages, states, states, count)

    stages_by_node = _Assigner(module.graph, input_stages, is_state, is_trained, count).run()
    while list_operators.parted(module.graph, stages_by_node, ALL) or branches.parted(module.graph, stages_by_node, ALL, inner):
        stages_by_node = _Assigner(module.graph, input_stages, is_state, is_trained, count).run()
    root = owners(module.graph)
    for node in module.graph.nodes:
        for item in nodes_written_by(node):
            holder = stages_by_node[root[item]]
            if holder != stages_by_node[node]:
                line, name = node.meta.get(node_metadata.LINE, ""), getattr(node.target, "_opname", node.target)
                whose = "all stages keep" if holder == ALL else f"stage {holder} holds"
                raise ValueError(
                    message(f"{line}: {name} in pipeline stage {stages_by_node[node]} writes what {whose}", "writes within one stage")
                )
    for node, stage in stages_by_node.items():
        node.meta[node_metadata.RUNS_IN] = stage


def stage_of(node: Node) -> int:
    """Return the stage of a node that `assign` has seen, or of the node that took over its marks."""
    stage: Any = node.meta.get(node_metadata.RUNS_IN, ALL)
    return int(stage)
