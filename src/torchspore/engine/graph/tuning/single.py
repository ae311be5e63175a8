"""job_type '2': the operators of a graph one by one. Each kind of product, convolution and group of neighbours is measured alone.

A *unit* is one operator or a group that may be one kernel; units that are alike are measured once, on made-up values of their shapes.
"""
from __future__ import annotations

import functools
import hashlib
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.graph import passes
from torchspore.engine.graph.kernels import grouping, making
from torchspore.engine.graph.kernels.operators import is_work
from torchspore.engine.graph.levels import fused, inductor, measure, straight
from torchspore.engine.graph.levels.fingerprint import signature
from torchspore.engine.graph.levels.settings import Settings
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.clusters import Cluster, joined, put_in, taken_out
from torchspore.engine.graph.passes.copy import copied
from torchspore.engine.graph.passes.dead import acts
from torchspore.engine.graph.passes.writes import writes
from torchspore.engine.graph.tuning import whole
from torchspore.engine.graph.tuning.trials import Gene, Plan, Trials
from torchspore.engine.private import without_modes

Module = torch.fx.GraphModule
SHORTEST = 20e-6
"""Seconds: units that take less stay as they are."""
SHARE = 0.01
"""Units that are alike and take a smaller share of the time of all stay as they are."""
_PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)


@dataclass
class Unit:
    """Units that are alike: one as a graph, where they are, and what they take in all, in seconds."""

    part: Module
    clusters: list[Cluster] = field(default_factory=list)
    seconds: float = 0.0


class Single:
    """A graph whose operators are tuned one by one."""

    def __init__(self, module: Module, inputs: measure.Inputs, settings: Settings) -> None:
        self.settings = settings
        self.module = passes.pool_channels_last(copied(module))
        fused.restride(self.module, inputs)

    def search(self, searches: list[Callable[[Trials], None]], seconds: float) -> tuple[Plan, int]:
        """The plan: for each kind of unit the plan that was fastest, where it is not the one that is there. And how many were tried."""
        units = self._units()
        for unit in units.values():
            unit.seconds = _seconds(straight.compile(unit.part), _values(unit.part)) * len(unit.clusters)
        total = sum(unit.seconds for unit in units.values())
        ends = time.monotonic() + seconds
        plan: Plan = {}
        tried = 0
        for name, unit in sorted(units.items(), key=lambda item: -item[1].seconds):
            if unit.seconds < max(SHARE * total, SHORTEST * len(unit.clusters)) or time.monotonic() > ends:
                continue
            trials = Trials(self._genes(unit), functools.partial(self._measured, unit, _values(unit.part)), ends - time.monotonic())
            for search in searches:
                search(trials)
            tried += len(trials.seconds)
            best, base = next(iter(trials.ranked()), None), trials.seconds.get(trials.told(trials.base))
            took = None if best is None else trials.seconds[trials.told(best)]
            if best is not None and took is not None and base is not None and took < 0.95 * base:
                plan[name] = trials.clean(best)
        return plan, tried

    def _units(self) -> dict[str, Unit]:
        found: dict[str, Unit] = {}
        taken: set[Node] = set()
        groups = grouping.groups(self.module, whole.flags_of({}, self.settings))
        for cluster in groups:
            taken |= set(cluster.nodes)
        singles = [joined(sorted([node, *items], key=_place(self.module))) for node, items in _alone(self.module, taken)]
        for cluster in [*groups, *singles]:
            part = taken_out(cluster)
            name = hashlib.sha256(signature(part).encode()).hexdigest()[:16]
            found.setdefault(name, Unit(part)).clusters.append(cluster)
        return found

    def _genes(self, unit: Unit) -> list[Gene]:
        genes = [Gene("threads", whole.threads())]
        if any(node.target in _PRODUCTS for node in unit.part.graph.nodes):
            genes.append(Gene("by", ("BLAS", "oneDNN")))
        elif len(unit.clusters[0].nodes) > 1 and inductor.is_there() and not _is_one(unit.clusters[0]):
            kernel = ("by", "kernel")
            genes += [Gene("by", ("operators", "kernel"), dear=("kernel",)), Gene("chunk", (512, 4096, 65536), kernel),
                      Gene("vector bits", (0, *whole.widths()), kernel), Gene("tiling", (True, False), kernel)]
        return genes

    def _measured(self, unit: Unit, inputs: list[torch.Tensor], plan: Plan) -> float | None:
        code = self._code(unit.part, plan)
        return None if code is None else _seconds(code, inputs)

    def _code(self, part: Module, plan: Plan) -> Code | None:
        """One unit under a plan."""
        with whole.on_threads(plan.get("threads")):
            if plan.get("by") == "kernel":
                code = inductor.kernel(part, "O0", making.options(whole.flags_of(plan, self.settings)), making.ASKED)
            else:
                changed = fused.with_onednn(part, lambda *operands: True) if plan.get("by") == "oneDNN" else None
                code = straight.compile(changed or part)
        return None if code is None else whole.with_threads(code, plan.get("threads"))

    def code(self, plan: Plan) -> Code | None:
        """The graph with each unit as the plan says; None where one can't be had."""
        kept: list[tuple[Cluster, Callable[..., Any]]] = []
        for name, unit in self._units().items():
            if name in plan:
                code = self._code(unit.part, plan[name])
                if code is None:
                    return None
                kept += [(cluster, code) for cluster in unit.clusters]
        module = put_in(self.module, kept) if kept else copied(self.module)
        return straight.compile(passes.overwrite(module))


def _place(module: Module) -> Callable[[Node], int]:
    return {node: place for place, node in enumerate(module.graph.nodes)}.__getitem__


def _alone(module: Module, taken: set[Node]) -> list[tuple[Node, list[Node]]]:
    """The operators outside of groups that compute and neither write nor draw random numbers, each with the choices of its results."""
    found = []
    for node in module.graph.nodes:
        if node.op != "call_function" or node in taken or not is_work(node) or acts(node) or writes(node):
            continue
        values = [item.meta.get("val") for item in (node, *node.all_input_nodes)]
        flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
        if all(v is None or (isinstance(v, torch.Tensor) and v.layout is torch.strided) for v in flat) and values[0] is not None:
            found.append((node, [user for user in node.users if user.target is operator.getitem]))
    return found


def _is_one(cluster: Cluster) -> bool:
    return sum(map(is_work, cluster.nodes)) < grouping.FEWEST


def _values(part: Module) -> list[torch.Tensor]:
    """Made-up inputs; whole numbers are 0, which is a place in every table."""
    found = []
    for node in part.graph.nodes:
        if node.op == "placeholder":
            fake = node.meta["val"]
            t = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
            found.append(t.uniform_(0.1, 1.1) if t.is_floating_point() else t.zero_())
    return found


def _seconds(code: Callable[..., Any], inputs: list[torch.Tensor]) -> float:
    with without_modes(), torch.no_grad():
        code(*inputs)
        return measure.seconds({"unit": code}, inputs)["unit"]
