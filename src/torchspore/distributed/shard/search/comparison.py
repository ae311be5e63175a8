"""Compares a search with the program's strategies; the cheaper one is used and reported."""
from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import Node

from torchspore.base.garbage_collection import garbage_collection_paused
from torchspore.context import plan_request
from torchspore.context.store import STORE
from torchspore.distributed.shard import strategy_marker
from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.machine_model import Machine, machine
from torchspore.distributed.shard.plan import Plan
from torchspore.distributed.shard.search import alternatives, chosen_strategies, costs, strategy_search
from torchspore.distributed.shard.search.alternatives import Sufficient
from torchspore.distributed.shard.search.costs import Cost
from torchspore.distributed.shard.search.strategy_search import Problem, Tally
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.split_layouts.sharded_layout import sharded_layout_of
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.translations import translatable, translate

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
    rows: tuple[Compared, ...] = ()
    """The plans that were compared, the program's first."""
    sufficient: Sufficient | str = ""
    """The devices that would suffice if no plan fits into the memory of these, or why that is unknown; only for `torchspore plan`."""

    def describe(self) -> str:
        """Return the description for the user."""
        speed = self.machine.describe_exchanges()
        if self.mode == strategy_search.PROPAGATION:
            text = translate("the program's strategies are spread: {cost} at {speed}")
            return text.format(cost=_describe_cost(self.search_cost), speed=speed)
        tally = self.tally
        looked = translate("{choices:,} choices on {grids} grids, {compared} graphs compared").format(
            choices=tally.choices, grids=tally.grids, compared=tally.compared)
        guessed = translate(", {count} guessed").format(count=tally.guessed) if tally.guessed else ""
        text = translate(
            "{looked}: {cost}, where data parallel with the program's own strategies takes {plain} at {speed}") if self.is_better else (
            translate("{looked}: nothing beats data parallel with the program's own strategies, {plain} at {speed}"))
        return text.format(looked=looked + guessed, cost=_describe_cost(self.search_cost), plain=_describe_cost(self.plain), speed=speed)


def _describe_cost(cost: Cost) -> str:
    return cost.describe(translate(" ({size:,} bytes in {count} exchanges)").format(size=cost.received, count=cost.messages))


@dataclass(frozen=True)
class Compared:
    """A plan that a search compared."""

    name: str
    """The program's own plan, or a searched one."""
    mesh: Mesh
    cost: Cost
    is_taken: bool = False


PROGRAM, SEARCHED = translatable("the program's strategies"), translatable("searched")


class _Comparison:
    """The plans of a search as local graphs, and the cheapest of them."""

    def __init__(self, sharded_capture: ShardedCapture, module: torch.fx.GraphModule, lifted: Sequence[Any], plain: Attempt,
                 search: strategy_search.Search, assumed_machine: Machine) -> None:
        self._capture, self._module, self._lifted, self._search, self._machine = sharded_capture, module, lifted, search, assumed_machine
        self.best, self.least = plain, costs.of(plain.local, assumed_machine)
        self._best_plan: tuple[Mesh, Plan | None] = plain.local.mesh, None
        self.rows = [Compared(PROGRAM, plain.local.mesh, self.least)]
        self._attempts: dict[Any, bool] = {}
        """By plan whether it fits into a device."""

    def compare_at(self, price: float) -> bool:
        """Write the best plans at a price of memory as local graphs; return whether one fits into a device."""
        fits = False
        for candidate in self._search.candidates(price)[:_compared(self._module)]:
            key = candidate.mesh.sizes, tuple(map(tuple, candidate.chosen))
            if key not in self._attempts:
                self._attempts[key] = self._attempt(candidate)
            fits = fits or self._attempts[key]
        return fits

    def _attempt(self, candidate: strategy_search.Candidate) -> bool:
        attempt = self._capture.attempt(self._module, self._lifted, candidate.mesh, candidate.plan)
        self._search.tally.compared += 1
        cost = costs.of(attempt.local, self._machine)
        self.rows.append(Compared(SEARCHED, candidate.mesh, cost))
        if cost.order() < self.least.order():
            self.best, self.least, self._best_plan = attempt, cost, (candidate.mesh, candidate.plan)
        return not cost.excess

    def with_optimizer_switched(self) -> Compared:
        """Return the best plan with the other value of `enable_parallel_optimizer`."""
        capture, (mesh, plan) = copy.copy(self._capture), self._best_plan
        capture.splits_optimizer = not capture.splits_optimizer
        is_free = plan is None and not any(node.target is strategy_marker.laid for node in self._module.graph.nodes)
        attempt = capture.attempt(self._module, self._lifted, mesh, plan, is_free=is_free)
        name = SEARCHED if plan is not None else PROGRAM
        name = f"{translate(name)}, enable_parallel_optimizer={capture.splits_optimizer}"
        return Compared(name, mesh, costs.of(attempt.local, self._machine))


def _compared_plans(
    sharded_capture: ShardedCapture, module: torch.fx.GraphModule, lifted: Sequence[Any], plain: Attempt, search: strategy_search.Search,
    assumed_machine: Machine,
) -> _Comparison:
    """Compare plans at the lowest price of memory at which one fits into a device, or at several prices if none fits."""
    comparison = _Comparison(sharded_capture, module, lifted, plain, search, assumed_machine)
    low, *others, high = strategy_search.PRICES
    if comparison.compare_at(low) or comparison.compare_at(others[0]):
        return comparison
    if not comparison.compare_at(high):                         # no price helps: one more shows which plan holds the least
        comparison.compare_at(others[len(others) // 2])
        return comparison
    for price in others[1:]:
        if comparison.compare_at(price):
            break
    return comparison


def _least_cost(
    sharded_capture: ShardedCapture, module: torch.fx.GraphModule, lifted: Sequence[Any], mode: str, assumed_machine: Machine,
) -> Cost:
    """Return the cost of the cheapest plan of a graph without strategies of the program."""
    plain = sharded_capture.attempt(module, lifted, sharded_capture.grid(module, lifted, True), is_free=True)
    problem = _problem(sharded_capture, module, lifted, sharded_capture.grid(module, lifted, False), plain.local)
    search = strategy_search.Search(problem, assumed_machine, mode, Tally())
    return _compared_plans(sharded_capture, module, lifted, plain, search, assumed_machine).least


@garbage_collection_paused()              # a search creates no cycles, and a collection visits all graphs of the process
def better(
    sharded_capture: ShardedCapture, module: torch.fx.GraphModule, lifted: Sequence[Any], base: Mesh, plain: Attempt,
) -> tuple[Attempt, Searched]:
    """Return the cheapest attempt; `plain` if none costs less."""
    mode = strategy_search.PROPAGATION if STORE.get("auto_parallel.sharding_propagation") else str(STORE.get(MODE))
    assumed_machine = machine()
    tally = Tally()
    if mode == strategy_search.PROPAGATION:
        before = costs.of(plain.local, assumed_machine)
        return plain, Searched(mode, assumed_machine, tally, before, before, False)
    search = strategy_search.Search(_problem(sharded_capture, module, lifted, base, plain.local), assumed_machine, mode, tally)
    comparison = _compared_plans(sharded_capture, module, lifted, plain, search, assumed_machine)
    best, least = comparison.best, comparison.least
    if best is not plain:
        sharded_capture.strategies.update(chosen_strategies.strategies(sharded_capture, best.local, lifted))
    rows = [replace(row, is_taken=row.cost is least) for row in comparison.rows]
    sufficient: Sufficient | str = ""
    if plan_request.pending is not None:
        rows.append(comparison.with_optimizer_switched())
        if least.excess:
            sufficient = alternatives.sufficient_devices(
                sharded_capture, module, lambda capture: _least_cost(capture, module, lifted, mode, assumed_machine),
            )
    return best, Searched(mode, assumed_machine, tally, rows[0].cost, least, best is not plain, tuple(rows), sufficient)


def _compared(module: torch.fx.GraphModule) -> int:
    """Return how many plans become local graphs: of a large graph only the best."""
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
