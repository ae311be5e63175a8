"""`inter_op_parallel_num`: independent operators of a graph run at the same time, each lane of them in a separate thread."""
from __future__ import annotations

import builtins
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base import event_log
from torchspore.base.forks import at_fork
from torchspore.engine.torch_internals.interpreter import Interpreter
from torchspore.engine.torch_internals.no_grad import NoGrad
from torchspore.graph.backend import eager_codegen, inference, measurement
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.fingerprint import fingerprint
from torchspore.graph.fx.order import dependencies
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Settings
from torchspore.translations import translatable, translate

Job = Callable[[], None]


class Worker(threading.Thread):
    """Runs jobs one after the other; its kernels use `threads` threads."""

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(name=name, daemon=True)
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._threads = threads
        self._is_ready = threading.Event()
        self.start()
        self._is_ready.wait()

    def give(self, job: Job) -> None:
        """Run `job` after the earlier jobs; a job raises nothing."""
        self._jobs.put(job)

    def run(self) -> None:
        torch.set_num_threads(self._threads)     # OpenMP keeps this for each thread by itself
        self._is_ready.set()
        while True:
            job = self._jobs.get()
            job()
            del job                              # it holds the tensors of the call


_workers: dict[int, list[Worker]] = {}
_lock = threading.Lock()


def worker_pool(count: int, threads: int) -> list[Worker]:
    """`count` workers whose kernels use `threads` threads each."""
    idle = _workers.get(threads, [])
    if len(idle) < count:
        with _lock:
            idle = _workers.setdefault(threads, [])
            before = torch.get_num_threads()
            while len(idle) < count:
                idle.append(Worker(f"torchspore lane {len(idle) + 1}", threads))
            torch.set_num_threads(before)        # MKL has one number for all threads, and a worker has set it
    return idle[:count]


def _forget() -> None:
    """A forked process has none of these threads."""
    _workers.clear()


at_fork(after_in_child=_forget)


Lock = threading.Lock


class Parallel:
    """Runs each lane of a graph in a separate thread; the first lane in the caller's.

    A lock represents each value that another lane waits for: acquired at the start, released by the lane that computes the value, acquired
    again by the lane that reads it. A call during another thread's call runs without lanes.
    """

    def __init__(self, module: torch.fx.GraphModule, lane_of: Mapping[Node, int], threads: int) -> None:
        """`lane_of` says for each node which lane it runs in, from 0 on."""
        self._module, self._threads = module, threads
        self._count = max(lane_of.values()) + 1
        self._lanes = _Writer(module, lane_of).lanes()
        self._results = next(iter(reversed(module.graph.nodes))).args[0]
        self._inputs = {node: at for at, node in enumerate(node for node in module.graph.nodes if node.op == "placeholder")}
        self._busy = threading.Lock()
        self._alone: eager_codegen.Code | None = None
        self._arm()

    def _arm(self) -> None:
        """Holds all locks."""
        self._locks = [[threading.Lock() for _ in range(count)] for _, count in self._lanes]
        self._done = [threading.Lock() for _ in self._lanes[1:]]
        for lock in (*self._done, *(lock for node_locks in self._locks for lock in node_locks)):
            lock.acquire()

    def run(self, *inputs: Any) -> list[Any]:
        """The results of the graph."""
        if not self._busy.acquire(blocking=False):
            if self._alone is None:
                self._alone = eager_codegen.compile(self._module)
            return self._alone(*inputs)
        try:
            return self._run(inputs)
        finally:
            self._busy.release()

    def _run(self, inputs: tuple[Any, ...]) -> list[Any]:
        workers, usual = worker_pool(self._count - 1, self._threads), torch.get_num_threads()
        out: dict[Node, Any] = {}
        box: dict[Any, Any] = {}
        failed: list[BaseException] = []
        for at, worker in enumerate(workers):
            worker.give(lambda at=at: self._lane(at + 1, inputs, box, out, failed))  # type: ignore[misc]
        torch.set_num_threads(self._threads)
        try:
            self._lane(0, inputs, box, out, failed)
        finally:
            for done in self._done:
                done.acquire()
            torch.set_num_threads(usual)
        if failed:
            self._arm()
            raise failed[0]
        return [inputs[self._inputs[item]] if item in self._inputs else out.get(item, item) for item in self._results]

    def _lane(self, at: int, inputs: tuple[Any, ...], box: dict[Any, Any], out: dict[Node, Any], failed: list[BaseException]) -> None:
        """Run one lane; if it fails, release the others, so that they end too."""
        try:
            self._lanes[at][0](inputs, box, out, self._locks)
        except BaseException as error:
            failed.append(error)
            for lock in self._locks[at]:
                if lock.locked():
                    lock.release()
        finally:
            if at:
                self._done[at - 1].release()


class _Writer:
    """Writes the Python text of the lanes."""

    def __init__(self, module: torch.fx.GraphModule, lane_of: Mapping[Node, int]) -> None:
        self._module, self._lane_of = module, lane_of
        nodes = list(module.graph.nodes)
        self._nodes = [node for node in nodes if node in lane_of]
        self._before, _ = dependencies(nodes)
        self._names = {node: f"v{at}" for at, node in enumerate(nodes)}
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._results = {item for item in nodes[-1].args[0] if isinstance(item, Node)}
        self._width = max(lane_of.values()) + 1
        self._freed: dict[tuple[Node, int], int] = {}                   # the lock that a node's lane frees after it, for another lane
        self._waits: dict[Node, list[Node]] = defaultdict(list)         # the events that a node's lane waits for before it
        self._readers: dict[Node, set[int]] = defaultdict(set)          # other lanes that read a node's value
        self._settle()

    def _settle(self) -> None:
        """Determine which lane waits where. A lane that has waited for a node has also waited for all earlier nodes of that lane."""
        order = {node: at for at, node in enumerate(self._nodes)}
        seen: dict[tuple[int, int], int] = {}
        counts: dict[int, int] = defaultdict(int)
        for node in self._nodes:
            lane = self._lane_of[node]
            last: dict[int, Node] = {}
            for item in self._before[node]:
                other = self._lane_of.get(item, lane)
                if other != lane and (other not in last or order[item] > order[last[other]]):
                    last[other] = item
            for other, item in last.items():
                if order[item] > seen.get((lane, other), -1):
                    seen[lane, other] = order[item]
                    self._waits[node].append(item)
                    self._freed[item, lane] = counts[other]
                    counts[other] += 1
            for item in node.all_input_nodes:
                if self._lane_of.get(item, lane) != lane:
                    self._readers[item].add(lane)
        self._counts = counts

    def lanes(self) -> list[tuple[Callable[..., None], int]]:
        """For each lane its function (inputs, box, out, locks), and how many locks it frees."""
        return [(self._function(lane), self._counts[lane]) for lane in range(self._width)]

    def _function(self, lane: int) -> Callable[..., None]:
        bound: dict[str, Any] = {"__name__": __name__, "no_grad": NoGrad}
        nodes = [node for node in self._nodes if self._lane_of[node] == lane]
        gone = self._last_uses(nodes)
        lines = [line for node in nodes for line in self._lines(node, lane, bound, gone.get(node, []))]
        arguments = ", ".join(self._names[node] for node in self._inputs)
        taken = f"({arguments},) = inputs" if arguments else "pass"
        text = "def run(inputs, box, out, locks):\n    with no_grad():\n        " + "\n        ".join([taken, *lines]) + "\n"
        exec(builtins.compile(text, f"<lane {lane} of a captured graph>", "exec"), bound)
        return bound["run"]

    def _lines(self, node: Node, lane: int, bound: dict[str, Any], gone: list[Node]) -> list[str]:
        name, arguments = self._names[node], []
        for item in self._waits[node]:
            arguments.append(f"locks[{self._lane_of[item]}][{self._freed[item, lane]}].acquire()")
        for item in node.all_input_nodes:
            if self._lane_of.get(item, lane) != lane and (item, lane) not in self._taken:
                self._taken.add((item, lane))
                arguments.append(f"{self._names[item]} = box.pop(({self._names[item]!r}, {lane}))")
        arguments += eager_codegen.lines_of(self._module, node, self._names, bound, [])
        if node in self._results:
            bound[name + "n"] = node
            arguments.append(f"out[{name}n] = {name}")
        arguments += [f"box[{name!r}, {other}] = {name}" for other in self._readers[node]]
        freed = [self._freed[node, other] for other in range(self._width) if (node, other) in self._freed]
        arguments += [f"locks[{lane}][{number}].release()" for number in freed]
        return [*arguments, *([f"{' = '.join(self._names[item] for item in gone)} = None"] if gone else [])]

    def _last_uses(self, nodes: list[Node]) -> dict[Node, list[Node]]:
        """For each node of a lane the values that the lane does not need after it."""
        self._taken: set[tuple[Node, int]] = set()
        seen: set[Node] = set()
        dependencies: dict[Node, list[Node]] = {}
        for node in reversed(nodes):
            for item in (node, *node.all_input_nodes):
                if item not in seen and item.op != "placeholder":
                    seen.add(item)
                    dependencies.setdefault(node, []).append(item)
        return dependencies


HANDOVER = 30e-6
"""Seconds: the approximate cost of a wait for a value of another lane."""
WORTH = 0.95
"""Lanes are taken where they need at most this share of the time: less is noise."""


@dataclass
class Plan:
    """The lane of each node, and the predicted seconds with and without lanes."""

    lane_of: dict[Node, int] = field(default_factory=dict)
    seconds: float = 0.0
    alone: float = 0.0


def run_in_lanes(code: Code, module: torch.fx.GraphModule, inputs: measurement.Inputs, settings: Settings) -> Code:
    """Return the code of a graph, in lanes if that is faster and `inter_op_parallel_num` requests them, or at O2, which tries all forms."""
    threads = torch.get_num_threads()
    lane_count = settings.lanes or (threads if settings.level == "O2" else 1)
    if lane_count < 2:
        return code
    graph, count = stages.graph_of(code), min(lane_count, threads)
    why = (
        translatable("the kernels have one thread (runtime_num_threads)") if count < 2 else
        translatable("deterministic is ON: with other numbers of threads sums have other bits") if settings.deterministic else
        translatable("lanes are for graphs that run as they were captured") if graph is None or _inputs(graph) != _inputs(module) else
        translatable("operators on a GPU run one after the other") if not inference.is_on_cpu(graph) else None
    )
    lanes_code = _if_faster(graph, inputs, settings, count) if why is None and graph is not None else None
    if settings.lanes and lanes_code is None:
        outcomes.no_lanes(
            why or translatable("no graph has operators that gain by running at the same time: they are small, or wait for each other"),
        )
    elif settings.lanes:
        text = translate("graphs run in up to {count} lanes with {share} of {threads} threads each, where that is faster")
        outcomes.lanes(text.format(count=count, share=threads // count, threads=threads))
    return code if lanes_code is None else lanes_code


def _if_faster(module: torch.fx.GraphModule, inputs: measurement.Inputs, settings: Settings, count: int) -> Code | None:
    """`compile`, unless lanes were found to be slower for an equal graph before."""
    key = fingerprint(module, settings, f"{count} lanes")
    if autotune_cache.find(key) == "one line":
        return None
    lanes_code = compile(module, inputs, count)
    autotune_cache.keep(key, "one line" if lanes_code is None else "lanes")
    return lanes_code


def compile(module: torch.fx.GraphModule, inputs: measurement.Inputs, count: int) -> Code | None:
    """Return code that runs the graph in up to `count` lanes; None if that is not faster.

    The kernels of a lane use their share of the threads that sequential kernels use.
    """
    threads = max(1, torch.get_num_threads() // count)
    lane_plan = plan(module, inputs, count, threads)
    lanes = len(set(lane_plan.lane_of.values()))
    description = f"{lanes} lanes take {lane_plan.seconds * 1e3:.3f} ms by the plan, one {lane_plan.alone * 1e3:.3f} ms"
    if lanes < 2 or lane_plan.seconds > WORTH * lane_plan.alone:
        event_log.event("lanes", f"{description}: operators run one after the other")
        return None
    parallel = Parallel(module, lane_plan.lane_of, threads)

    def code(*tensors: torch.Tensor) -> list[Any]:
        return parallel.run(*tensors)

    alone, in_lanes = _best("one line", eager_codegen.compile(module), inputs), _best("lanes", code, inputs)
    is_worth = in_lanes < WORTH * alone
    event_log.event("lanes", f"{description}; measured {in_lanes * 1e3:.3f} and {alone * 1e3:.3f} ms: "
                             f"{'lanes are' if is_worth else 'one is'} kept")
    return stages.shown(code, module) if is_worth else None


def _inputs(module: torch.fx.GraphModule) -> int:
    return sum(node.op == "placeholder" for node in module.graph.nodes)


def _best(name: str, code: Code, inputs: measurement.Inputs) -> float:
    """The least seconds of a run. Runs follow each other: for a while after a kernel with several threads these keep the cores busy."""
    with measurement.undisturbed():
        copies = [measurement.copy(t) for t in inputs()]
        return measurement.seconds({name: code}, copies)[name]


def plan(module: torch.fx.GraphModule, inputs: measurement.Inputs, count: int, threads: int) -> Plan:
    """Assign each node, in the order of the graph, to the lane where it can start first (list scheduling, Graham 1969)."""
    alone, seconds = _seconds(module, inputs, torch.get_num_threads()), _seconds(module, inputs, threads)
    before, _ = dependencies(list(module.graph.nodes))
    free, ends, lane_plan = [0.0] * count, dict[Node, float](), Plan(alone=sum(alone.values()))
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        starts = [max([at, *_ready(node, lane, before, ends, lane_plan.lane_of)]) for lane, at in enumerate(free)]
        lane = min(range(count), key=starts.__getitem__)
        lane_plan.lane_of[node], ends[node] = lane, starts[lane] + seconds[node]
        free[lane] = ends[node]
    lane_plan.seconds = max(free)
    return lane_plan


def _ready(
    node: Node, lane: int, before: Mapping[Node, list[Node]], ends: Mapping[Node, float], lane_of: Mapping[Node, int]
) -> list[float]:
    """Return when the operands of `node` are available to a lane."""
    return [ends[item] + HANDOVER * (lane_of[item] != lane) for item in before[node] if item in ends]


def _seconds(module: torch.fx.GraphModule, inputs: measurement.Inputs, threads: int) -> dict[Node, float]:
    """Return the seconds of each operator in its second run, on copies of the inputs and with `threads` threads."""
    clock, usual = _Clock(module), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with measurement.undisturbed():
            for _ in range(2):
                clock.run(*[measurement.copy(t) for t in inputs()])
    except (RuntimeError, IndexError, ValueError) as error:
        raise measurement.Unrunnable(str(error).partition("\n")[0]) from None
    finally:
        torch.set_num_threads(usual)
    return clock.seconds


class _Clock(Interpreter):
    """Runs a graph node by node and keeps what each took."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.seconds: dict[Node, float] = {}

    def run_node(self, n: Node) -> Any:
        started = measurement.now()
        result = super().run_node(n)
        self.seconds[n] = measurement.now() - started
        return result
