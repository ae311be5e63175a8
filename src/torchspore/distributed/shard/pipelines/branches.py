"""A branch whose memory belongs to several stages (a step that is skipped on overflow): one branch for each stage.

One more branch, which all stages run after the others, writes state of every stage, such as a counter. The others compute with a copy of
it, so they see the program's value, and no stage writes it twice.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.distributed.shard.pipelines.dead_code import prune
from torchspore.engine.core import node_metadata
from torchspore.graph.control import execution
from torchspore.graph.fx.aliasing import changing

_DONE = "is_of_one_stage"
Assign = Callable[[torch.fx.GraphModule, Sequence[int | None], Sequence[bool]], None]


def parted(graph: torch.fx.Graph, stages: Mapping[Node, int], everywhere: int, assign: Assign) -> bool:
    """Takes such branches apart; says whether there were any. Raises ValueError where the graphs of one pass values between stages."""
    changed = False
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not execution.branch or _DONE in node.meta:
            continue
        given: Any = node.args
        known = [stages.get(item, everywhere) for item in given[1]]
        if len(set(known) - {everywhere}) > 1:
            _Parting(graph, node, known, everywhere, assign).run()
            changed = True
    return changed


class _Parting:
    """One branch that becomes several."""

    def __init__(self, graph: torch.fx.Graph, node: Node, known: list[int], everywhere: int, assign: Assign) -> None:
        self.graph, self.node, self.known, self.everywhere = graph, node, known, everywhere
        given: Any = node.args
        self.test, self.inputs, *self.sides = given
        for side in (*self.sides, *self.sides):                # facts that one side shows about an input hold for the other too
            assign(side, [None if stage == everywhere else stage for stage in self.known], [False] * len(known))
            holders = [one for one in side.graph.nodes if one.op == "placeholder"]
            self.known = [_stage(one, everywhere) for one in holders]
        for side in self.sides:
            self._check(side)
        outs = [_results(side) for side in self.sides]
        self.homes = [max(_stage(one, everywhere), _stage(other, everywhere)) for one, other in zip(*outs)]

    def _check(self, side: torch.fx.GraphModule) -> None:
        for node in side.graph.nodes:
            own = _stage(node, self.everywhere)
            for item in node.all_input_nodes if node.op != "output" else ():
                if _stage(item, self.everywhere) not in (own, self.everywhere):
                    line = node.meta.get(node_metadata.LINE) or self.node.meta.get(node_metadata.LINE, "")
                    raise ValueError(f"{line}: " + message(
                        f"a branch in which pipeline stage {own} needs what stage {_stage(item, self.everywhere)} makes",
                        "branches of one stage", hint="compute it before the branch",
                    ))

    def run(self) -> None:
        users = {user.args[1]: user for user in self.node.users}
        common = {at for side in self.sides for at in self._written(side) if self.known[at] == self.everywhere}
        for stage in [*sorted(set(self.known) - {self.everywhere}), self.everywhere]:
            wanted = [at for at, home in enumerate(self.homes) if home == stage]
            if stage == self.everywhere and not common and not wanted:
                continue
            made = self._branch(stage, wanted, common)
            for new, old in enumerate(wanted):
                if old in users:
                    with self.graph.inserting_before(users[old]):
                        taken = self.graph.call_function(users[old].target, (made, new))  # type: ignore[arg-type]
                        taken.meta = dict(users[old].meta)
                    users[old].replace_all_uses_with(taken)
                    self.graph.erase_node(users[old])
        self.graph.erase_node(self.node)

    def _branch(self, stage: int, wanted: list[int], common: set[int]) -> Node:
        """The branch of one stage."""
        kept = [at for at, home in enumerate(self.known) if home in (stage, self.everywhere)]
        copied = set() if stage == self.everywhere else common
        sides = [_of_stage(side, stage, self.everywhere, kept, wanted, copied) for side in self.sides]
        used = _without_unused(sides)
        with self.graph.inserting_before(self.node):
            args: Any = (self.test, [self.inputs[at] for place, at in enumerate(kept) if place in used], *sides)
            made = self.graph.call_function(execution.branch, args)
        vals: Any = self.node.meta.get("val") or ()
        made.meta = {**self.node.meta, "val": [vals[at] for at in wanted], node_metadata.STAGE: stage, _DONE: True}
        return made

    def _written(self, side: torch.fx.GraphModule) -> list[int]:
        """The places of the inputs that a graph writes."""
        found = changing(side)
        return [at for at, node in enumerate(one for one in side.graph.nodes if one.op == "placeholder") if node in found]


def _of_stage(
    side: torch.fx.GraphModule, stage: int, everywhere: int, kept: list[int], wanted: list[int], copied: set[int],
) -> torch.fx.GraphModule:
    """One graph of a branch with what a stage computes; inputs in `copied` are written as copies."""
    graph, copies = torch.fx.Graph(), dict[Node, Node]()
    holders = [node for node in side.graph.nodes if node.op == "placeholder"]
    for at in kept:
        copies[holders[at]] = graph.node_copy(holders[at])
    for at in copied:
        made = graph.call_function(torch.ops.aten.clone.default, (copies[holders[at]],))
        made.meta = dict(holders[at].meta)
        copies[holders[at]] = made
    for node in side.graph.nodes:
        if node.op not in ("placeholder", "output") and _stage(node, everywhere) in (stage, everywhere):
            copies[node] = graph.node_copy(node, lambda item: copies[item])
    outs = _results(side)
    graph.output([copies[outs[at]] if isinstance(outs[at], Node) else outs[at] for at in wanted])
    module = torch.fx.GraphModule(side, graph)
    prune(module)
    return module


def _without_unused(sides: list[torch.fx.GraphModule]) -> set[int]:
    """Takes out inputs that no side reads; gives the places of the others."""
    holders = [[node for node in side.graph.nodes if node.op == "placeholder"] for side in sides]
    used = {at for at, pair in enumerate(zip(*holders)) if any(node.users for node in pair)}
    for own in holders:
        for at, node in enumerate(own):
            if at not in used:
                node.graph.erase_node(node)
    for side in sides:
        side.recompile()
    return used


def _results(side: torch.fx.GraphModule) -> Any:
    return side.graph.output_node().args[0]


def _stage(node: Any, everywhere: int) -> int:
    return int(node.meta.get(node_metadata.RUNS_IN, everywhere)) if isinstance(node, Node) else everywhere
