"""Splits a branch whose memory belongs to several stages (a step that is skipped on overflow) into one branch for each stage.

One more branch, which all stages run after the others, writes state that every stage has, such as a counter. The other branches compute
with a copy of it, so they see the program's value, and no stage writes it twice.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.distributed.shard.pipeline_parallel.dead_code import prune
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.control_flow import execution
from torchspore.graph.fx.aliasing import mutated_owners

_DONE = "is_of_one_stage"
Assign = Callable[[torch.fx.GraphModule, Sequence[int | None], Sequence[bool]], None]


def parted(graph: torch.fx.Graph, stages: Mapping[Node, int], everywhere: int, assign: Assign) -> bool:
    """Split such branches; return whether there were any. Raises ValueError if the graphs of a branch pass values between stages."""
    changed = False
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not execution.branch or _DONE in node.meta:
            continue
        call_arguments: Any = node.args
        input_stages = [stages.get(item, everywhere) for item in call_arguments[1]]
        if len(set(input_stages) - {everywhere}) > 1:
            _Parting(graph, node, input_stages, everywhere, assign).run()
            changed = True
    return changed


class _Parting:
    """A branch that becomes several branches."""

    def __init__(self, graph: torch.fx.Graph, node: Node, input_stages: list[int], everywhere: int, assign: Assign) -> None:
        self.graph, self.node, self.input_stages, self.everywhere = graph, node, input_stages, everywhere
        call_arguments: Any = node.args
        self.test, self.inputs, *self.sides = call_arguments
        for side in (*self.sides, *self.sides):                # facts that one side shows about an input hold for the other too
            assign(side, [None if stage == everywhere else stage for stage in self.input_stages], [False] * len(input_stages))
            holders = [side_input for side_input in side.graph.nodes if side_input.op == "placeholder"]
            self.input_stages = [_stage(side_input, everywhere) for side_input in holders]
        for side in self.sides:
            self._check(side)
        outs = [_results(side) for side in self.sides]
        self.homes = [max(_stage(output, everywhere), _stage(other, everywhere)) for output, other in zip(*outs)]

    def _check(self, side: torch.fx.GraphModule) -> None:
        for node in side.graph.nodes:
            stage = _stage(node, self.everywhere)
            for item in node.all_input_nodes if node.op != "output" else ():
                if _stage(item, self.everywhere) not in (stage, self.everywhere):
                    line = node.meta.get(node_metadata.LINE) or self.node.meta.get(node_metadata.LINE, "")
                    raise ValueError(f"{line}: " + message(
                        f"a branch in which pipeline stage {stage} needs what stage {_stage(item, self.everywhere)} makes",
                        "branches of one stage", hint="compute it before the branch",
                    ))

    def run(self) -> None:
        users = {user.args[1]: user for user in self.node.users}
        common = {at for side in self.sides for at in self._written_inputs(side) if self.input_stages[at] == self.everywhere}
        for stage in [*sorted(set(self.input_stages) - {self.everywhere}), self.everywhere]:
            outputs = [at for at, home in enumerate(self.homes) if home == stage]
            if stage == self.everywhere and not common and not outputs:
                continue
            branch_node = self._branch(stage, outputs, common)
            for new, old in enumerate(outputs):
                if old in users:
                    with self.graph.inserting_before(users[old]):
                        taken = self.graph.call_function(users[old].target, (branch_node, new))  # type: ignore[arg-type]
                        taken.meta = dict(users[old].meta)
                    users[old].replace_all_uses_with(taken)
                    self.graph.erase_node(users[old])
        self.graph.erase_node(self.node)

    def _branch(self, stage: int, outputs: list[int], common: set[int]) -> Node:
        """Write the branch of one stage."""
        stage_inputs = [at for at, home in enumerate(self.input_stages) if home in (stage, self.everywhere)]
        copied = set() if stage == self.everywhere else common
        sides = [_of_stage(side, stage, self.everywhere, stage_inputs, outputs, copied) for side in self.sides]
        used = _without_unused(sides)
        with self.graph.inserting_before(self.node):
            args: Any = (self.test, [self.inputs[at] for position, at in enumerate(stage_inputs) if position in used], *sides)
            branch_node = self.graph.call_function(execution.branch, args)
        vals: Any = self.node.meta.get("val") or ()
        branch_node.meta = {**self.node.meta, "val": [vals[at] for at in outputs], node_metadata.STAGE: stage, _DONE: True}
        return branch_node

    def _written_inputs(self, side: torch.fx.GraphModule) -> list[int]:
        """Return the indexes of the inputs that a graph mutates."""
        changed = mutated_owners(side)
        return [
            at for at, node in enumerate(side_input for side_input in side.graph.nodes if side_input.op == "placeholder") if node in changed
        ]


def _of_stage(
    side: torch.fx.GraphModule, stage: int, everywhere: int, stage_inputs: list[int], outputs: list[int], copied: set[int],
) -> torch.fx.GraphModule:
    """Return a graph of a branch with the operators of one stage; inputs in `copied` are written as copies."""
    graph, copies = torch.fx.Graph(), dict[Node, Node]()
    holders = [node for node in side.graph.nodes if node.op == "placeholder"]
    for at in stage_inputs:
        copies[holders[at]] = graph.node_copy(holders[at])
    for at in copied:
        made = graph.call_function(torch.ops.aten.clone.default, (copies[holders[at]],))
        made.meta = dict(holders[at].meta)
        copies[holders[at]] = made
    for node in side.graph.nodes:
        if node.op not in ("placeholder", "output") and _stage(node, everywhere) in (stage, everywhere):
            copies[node] = graph.node_copy(node, lambda item: copies[item])
    outs = _results(side)
    graph.output([copies[outs[at]] if isinstance(outs[at], Node) else outs[at] for at in outputs])
    module = torch.fx.GraphModule(side, graph)
    prune(module)
    return module


def _without_unused(sides: list[torch.fx.GraphModule]) -> set[int]:
    """Remove inputs that neither side reads; return the indexes of the others."""
    holders = [[node for node in side.graph.nodes if node.op == "placeholder"] for side in sides]
    used = {at for at, pair in enumerate(zip(*holders)) if any(node.users for node in pair)}
    for holder in holders:
        for at, node in enumerate(holder):
            if at not in used:
                node.graph.erase_node(node)
    for side in sides:
        side.recompile()
    return used


def _results(side: torch.fx.GraphModule) -> Any:
    return side.graph.output_node().args[0]


def _stage(node: Any, everywhere: int) -> int:
    return int(node.meta.get(node_metadata.RUNS_IN, everywhere)) if isinstance(node, Node) else everywhere
