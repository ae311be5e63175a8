"""Compares a search with the program's own strategies: the cheaper of both counts, and the report about it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import Node

from torchspore.base.user_threads import garbage_collection_paused
from torchspore.context.store import STORE
from torchspore.distributed.shard import strategy_marker
from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.machine_model import Machine, machine
from torchspore.distributed.shard.search import chosen_strategies, costs, strategy_search
from torchspore.distributed.shard.search.costs import Cost
from torchspore.distributed.shard.search.strategy_search import Problem, Tally
from torchspore.engine.core.device_layout import Layout
from torchspore.engine.core.device_mesh import Mesh
from torchspore.engine.core.sharded_layout import sharded_layout_of
from torchspore.engine.core.tensor import TensorBase

if TYPE_CHECKING:
    from torchspore.distributed.shard.sharded_capture import Attempt, ShardedCapture

MODE = "auto_parallel.search_mode"


@dataclass(frozen=True)
class Searched:
    """The result of a search."""

    mode: str
    machine: Machine
    tally: Tally
    plain: Cost
    """Of the program's own strategies; without any, of plain data parallel."""
    search_cost: Cost
    is_better: bool

    def describe(self) -> str:
        """For people."""
        speed = self.machine.describe_exchanges()
        if self.mode == strategy_search.PROPAGATION:
            return f"the program's strategies are spread: {_describe_cost(self.search_cost)} at {speed}"
        tally = self.tally
        looked = f"{tally.choices:,} choices on {tally.grids} grids, {tally.compared} graphs compared"
        guessed = f", {tally.guessed} guessed" if tally.guessed else ""
        both = (
            f"{_describe_cost(self.search_cost)}, where data parallel with the program's own strategies takes {_describe_cost(self.plain)}"
        )
        if not self.is_better:
            both = f"nothing beats data parallel with the program's own strategies, {_describe_cost(self.plain)}"
        return f"{looked}{guessed}: {both} at {speed}"


def _describe_cost(cost: Cost) -> str:
    return cost.describe(f" ({cost.received:,} bytes in {cost.messages} exchanges)")


@garbage_collection_paused()              # a search creates no cycles, and a collection visits all graphs of the process
def better(
    sharded_capture: ShardedCapture, module: torch.fx.GraphModule, lifted: Sequence[Any], base: Mesh, plain: Attempt,
) -> tuple[Attempt, Searched]:
    """The attempt that costs least, `plain` where nothing costs less."""
    mode = strategy_search.PROPAGATION if STORE.get("auto_parallel.sharding_propagation") else str(STORE.get(MODE))
    assumed_machine = machine()
    before = costs.of(plain.local, assumed_machine)
    tally = Tally()
    if mode == strategy_search.PROPAGATION:
        return plain, Searched(mode, assumed_machine, tally, before, before, False)
    problem = _problem(sharded_capture, module, lifted, base, plain.local)
    best, least = plain, before
    for price in strategy_search.PRICES:
        for candidate in strategy_search.candidates(problem, assumed_machine, mode, tally, price)[:_compared(module)]:
            attempt = sharded_capture.attempt(module, lifted, candidate.mesh, candidate.plan)
            tally.compared += 1
            cost = costs.of(attempt.local, assumed_machine)
            if cost.order() < least.order():
                best, least = attempt, cost
        if not least.excess:
            break
    if best is not plain:
        sharded_capture.strategies.update(chosen_strategies.strategies(sharded_capture, best.local, lifted))
    return best, Searched(mode, assumed_machine, tally, before, least, best is not plain)


def _compared(module: torch.fx.GraphModule) -> int:
    """How many plans become local graphs: of a great graph the best alone."""
    return strategy_search.COMPARED if len(module.graph.nodes) < 3000 else 1


def _problem(
    sharded_capture: ShardedCapture, module: torch.fx.GraphModule, lifted: Sequence[Any], base: Mesh, plain: LocalGraph
) -> Problem:
    holders = [node for node in module.graph.nodes if node.op == "placeholder"]
    free = {
        node
        for node, item in zip(holders, lifted)
        if isinstance(item, TensorBase)
        and hasattr(item, "name")
        and sharded_layout_of(item) is None
        and strategy_marker.first_mark(node) is None
        and str(item.name) not in sharded_capture.stored_layouts
        and "_planned" not in item.__dict__
    }

    def fixed(mesh: Mesh) -> dict[Node, Layout]:
        return {node: layout for node, layout in sharded_capture.inputs(module, lifted, mesh).items() if node not in free}

    def marked(mesh: Mesh) -> dict[Node, Layout]:
        marked = [node for node in module.graph.nodes if node.target is strategy_marker.laid]
        return {node: strategy_marker.layout_in(mesh, str(node.args[1])) for node in marked}

    exchanges = bool(STORE.get("auto_parallel.enable_alltoall"))
    return Problem(module, base, fixed, marked, sharded_capture.keeps, exchanges, plain=plain)
