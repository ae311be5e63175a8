"""`inter_op_parallel_num`: independent operators of a graph run at the same time, each lane of them in a thread of its own."""
from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.graph import log
from torchspore.engine.graph.levels import boost, choices, measure, straight, tell
from torchspore.engine.graph.levels.fingerprint import fingerprint
from torchspore.engine.graph.levels.parallel import Parallel
from torchspore.engine.graph.levels.settings import Settings
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.order import dependencies
from torchspore.engine.graph.saved import stages

HANDOVER = 30e-6
"""Seconds: about what it costs that one lane waits for a value of another one."""
WORTH = 0.95
"""Lanes are taken where they need at most this share of the time: less is noise."""


@dataclass
class Plan:
    """Which lane each node runs in, and the seconds that all of it and the graph without lanes should take."""

    place: dict[Node, int] = field(default_factory=dict)
    seconds: float = 0.0
    alone: float = 0.0


def beside(code: Code, module: torch.fx.GraphModule, inputs: measure.Inputs, settings: Settings) -> Code:
    """The code of a graph, in lanes where that is faster: if `inter_op_parallel_num` asks for them, and at O2, which tries all there is."""
    threads = torch.get_num_threads()
    wanted = settings.lanes or (threads if settings.level == "O2" else 1)
    if wanted < 2:
        return code
    graph, count = stages.graph_of(code), min(wanted, threads)
    why = (
        "the kernels have one thread (runtime_num_threads)" if count < 2 else
        "deterministic is ON: with other numbers of threads sums have other bits" if settings.deterministic else
        "lanes are for graphs that run as they were captured" if graph is None or _inputs(graph) != _inputs(module) else
        "operators on a GPU run one after the other" if not boost.is_on_cpu(graph) else None
    )
    found = _if_faster(graph, inputs, settings, count) if why is None and graph is not None else None
    if settings.lanes and found is None:
        tell.no_lanes(why or "no graph has operators that gain by running at the same time: they are small, or wait for each other")
    elif settings.lanes:
        tell.lanes(f"graphs run in up to {count} lanes with {threads // count} of {threads} threads each, where that is faster")
    return code if found is None else found


def _if_faster(module: torch.fx.GraphModule, inputs: measure.Inputs, settings: Settings, count: int) -> Code | None:
    """`compile`, unless lanes were found to be slower for an equal graph before."""
    key = fingerprint(module, settings, f"{count} lanes")
    if choices.find(key) == "one line":
        return None
    found = compile(module, inputs, count)
    choices.keep(key, "one line" if found is None else "lanes")
    return found


def compile(module: torch.fx.GraphModule, inputs: measure.Inputs, count: int) -> Code | None:
    """Code that runs the graph in up to `count` lanes; None where that is not faster.

    The kernels of a lane use their share of the threads that the kernels of one operator after the other use.
    """
    threads = max(1, torch.get_num_threads() // count)
    found = plan(module, inputs, count, threads)
    lanes = len(set(found.place.values()))
    told = f"{lanes} lanes take {found.seconds * 1e3:.3f} ms by the plan, one {found.alone * 1e3:.3f} ms"
    if lanes < 2 or found.seconds > WORTH * found.alone:
        log.event("lanes", f"{told}: operators run one after the other")
        return None
    parallel = Parallel(module, found.place, threads)

    def code(*tensors: torch.Tensor) -> list[Any]:
        return parallel.run(*tensors)

    alone, in_lanes = _best(straight.compile(module), inputs), _best(code, inputs)
    is_worth = in_lanes < WORTH * alone
    log.event("lanes", f"{told}; measured {in_lanes * 1e3:.3f} and {alone * 1e3:.3f} ms: {'lanes are' if is_worth else 'one is'} kept")
    return stages.shown(code, module) if is_worth else None


def _inputs(module: torch.fx.GraphModule) -> int:
    return sum(node.op == "placeholder" for node in module.graph.nodes)


def _best(code: Code, inputs: measure.Inputs) -> float:
    """The least seconds of a run. Runs follow each other: for a while after a kernel with several threads these keep the cores busy."""
    with measure.undisturbed():
        own = [measure.copy(t) for t in inputs()]
        return min(measure.seconds({"": code}, own).values())


def plan(module: torch.fx.GraphModule, inputs: measure.Inputs, count: int, threads: int) -> Plan:
    """Each node, in the order of the graph, goes to the lane where it can start first (list scheduling, Graham 1969)."""
    alone, seconds = _seconds(module, inputs, torch.get_num_threads()), _seconds(module, inputs, threads)
    before, _ = dependencies(list(module.graph.nodes))
    free, ends, found = [0.0] * count, dict[Node, float](), Plan(alone=sum(alone.values()))
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        starts = [max([at, *_ready(node, lane, before, ends, found.place)]) for lane, at in enumerate(free)]
        lane = min(range(count), key=starts.__getitem__)
        found.place[node], ends[node] = lane, starts[lane] + seconds[node]
        free[lane] = ends[node]
    found.seconds = max(free)
    return found


def _ready(node: Node, lane: int, before: Mapping[Node, list[Node]], ends: Mapping[Node, float], place: Mapping[Node, int]) -> list[float]:
    """When what `node` waits for is there, seen from a lane."""
    return [ends[item] + HANDOVER * (place[item] != lane) for item in before[node] if item in ends]


def _seconds(module: torch.fx.GraphModule, inputs: measure.Inputs, threads: int) -> dict[Node, float]:
    """What each operator takes the second time, on copies of the inputs and with so many threads."""
    clock, usual = _Clock(module), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with measure.undisturbed():
            for _ in range(2):
                clock.run(*[measure.copy(t) for t in inputs()])
    except (RuntimeError, IndexError, ValueError) as error:
        raise measure.Unrunnable(str(error).partition("\n")[0]) from None
    finally:
        torch.set_num_threads(usual)
    return clock.seconds


class _Clock(torch.fx.Interpreter):
    """Runs a graph node by node and keeps what each took."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.seconds: dict[Node, float] = {}

    def run_node(self, n: Node) -> Any:
        started = time.perf_counter()
        found = super().run_node(n)
        self.seconds[n] = time.perf_counter() - started
        return found
