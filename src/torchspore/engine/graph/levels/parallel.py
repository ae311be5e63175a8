"""A graph as several straight lines of kernel calls that run at the same time and wait for each other's values."""
from __future__ import annotations

import builtins
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.graph.levels import pool, straight
from torchspore.engine.graph.passes.order import dependencies

Lock = threading.Lock


class Parallel:
    """Runs each lane of a graph in a thread of its own; the first lane in the caller's.

    A lock stands for each value that one lane waits for: held from the start, freed by the lane that computes the value, taken by the
    one that reads it. A call that comes while another thread is in one runs without lanes.
    """

    def __init__(self, module: torch.fx.GraphModule, place: Mapping[Node, int], threads: int) -> None:
        """`place` says for each node which lane it runs in, from 0 on."""
        self._module, self._threads = module, threads
        self._count = max(place.values()) + 1
        self._lanes = _Writer(module, place).lanes()
        self._results = next(iter(reversed(module.graph.nodes))).args[0]
        self._inputs = {node: at for at, node in enumerate(node for node in module.graph.nodes if node.op == "placeholder")}
        self._busy = threading.Lock()
        self._alone: straight.Code | None = None
        self._arm()

    def _arm(self) -> None:
        """Holds all locks."""
        self._locks = [[threading.Lock() for _ in range(count)] for _, count in self._lanes]
        self._done = [threading.Lock() for _ in self._lanes[1:]]
        for lock in (*self._done, *(lock for own in self._locks for lock in own)):
            lock.acquire()

    def run(self, *inputs: Any) -> list[Any]:
        """The results of the graph."""
        if not self._busy.acquire(blocking=False):
            if self._alone is None:
                self._alone = straight.compile(self._module)
            return self._alone(*inputs)
        try:
            return self._run(inputs)
        finally:
            self._busy.release()

    def _run(self, inputs: tuple[Any, ...]) -> list[Any]:
        workers, usual = pool.workers(self._count - 1, self._threads), torch.get_num_threads()
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
        """Runs one lane; where it fails the others are let go on, so that they end too."""
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

    def __init__(self, module: torch.fx.GraphModule, place: Mapping[Node, int]) -> None:
        self._module, self._place = module, place
        nodes = list(module.graph.nodes)
        self._nodes = [node for node in nodes if node in place]
        self._before, _ = dependencies(nodes)
        self._names = {node: f"v{at}" for at, node in enumerate(nodes)}
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._results = {item for item in nodes[-1].args[0] if isinstance(item, Node)}
        self._width = max(place.values()) + 1
        self._freed: dict[tuple[Node, int], int] = {}                   # the lock that a node's lane frees after it, for another lane
        self._waits: dict[Node, list[Node]] = defaultdict(list)         # what a node's lane waits for before it
        self._readers: dict[Node, set[int]] = defaultdict(set)          # other lanes that read a node's value
        self._settle()

    def _settle(self) -> None:
        """Finds out which lane waits where. Who has waited for a node has waited for all that ran before it in its lane."""
        order = {node: at for at, node in enumerate(self._nodes)}
        seen: dict[tuple[int, int], int] = {}
        counts: dict[int, int] = defaultdict(int)
        for node in self._nodes:
            lane = self._place[node]
            last: dict[int, Node] = {}
            for item in self._before[node]:
                other = self._place.get(item, lane)
                if other != lane and (other not in last or order[item] > order[last[other]]):
                    last[other] = item
            for other, item in last.items():
                if order[item] > seen.get((lane, other), -1):
                    seen[lane, other] = order[item]
                    self._waits[node].append(item)
                    self._freed[item, lane] = counts[other]
                    counts[other] += 1
            for item in node.all_input_nodes:
                if self._place.get(item, lane) != lane:
                    self._readers[item].add(lane)
        self._counts = counts

    def lanes(self) -> list[tuple[Callable[..., None], int]]:
        """For each lane its function (inputs, box, out, locks), and how many locks it frees."""
        return [(self._function(lane), self._counts[lane]) for lane in range(self._width)]

    def _function(self, lane: int) -> Callable[..., None]:
        bound: dict[str, Any] = {"__name__": __name__, "no_grad": torch.no_grad}
        nodes = [node for node in self._nodes if self._place[node] == lane]
        gone = self._last_uses(nodes)
        lines = [line for node in nodes for line in self._lines(node, lane, bound, gone.get(node, []))]
        arguments = ", ".join(self._names[node] for node in self._inputs)
        taken = f"({arguments},) = inputs" if arguments else "pass"
        text = "def run(inputs, box, out, locks):\n    with no_grad():\n        " + "\n        ".join([taken, *lines]) + "\n"
        exec(builtins.compile(text, f"<lane {lane} of a captured graph>", "exec"), bound)
        return bound["run"]

    def _lines(self, node: Node, lane: int, bound: dict[str, Any], gone: list[Node]) -> list[str]:
        name, found = self._names[node], []
        for item in self._waits[node]:
            found.append(f"locks[{self._place[item]}][{self._freed[item, lane]}].acquire()")
        for item in node.all_input_nodes:
            if self._place.get(item, lane) != lane and (item, lane) not in self._taken:
                self._taken.add((item, lane))
                found.append(f"{self._names[item]} = box.pop(({self._names[item]!r}, {lane}))")
        found += straight.lines_of(self._module, node, self._names, bound, [])
        if node in self._results:
            bound[name + "n"] = node
            found.append(f"out[{name}n] = {name}")
        found += [f"box[{name!r}, {other}] = {name}" for other in self._readers[node]]
        freed = [self._freed[node, other] for other in range(self._width) if (node, other) in self._freed]
        found += [f"locks[{lane}][{number}].release()" for number in freed]
        return [*found, *([f"{' = '.join(self._names[item] for item in gone)} = None"] if gone else [])]

    def _last_uses(self, nodes: list[Node]) -> dict[Node, list[Node]]:
        """For each node of a lane the values that the lane does not need after it."""
        self._taken: set[tuple[Node, int]] = set()
        seen: set[Node] = set()
        found: dict[Node, list[Node]] = {}
        for node in reversed(nodes):
            for item in (node, *node.all_input_nodes):
                if item not in seen and item.op != "placeholder":
                    seen.add(item)
                    found.setdefault(node, []).append(item)
        return found
