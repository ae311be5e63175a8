"""Functions that mark the program's position while a profiler is active; at other times the original functions are in place."""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from torchspore.engine.execution import precision
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import frame
from torchspore.observe.function_patches import Replaced
from torchspore.observe.profiling.annotations import CELL, COMPILE, DATA, GRAPH, OPERATOR, OPTIMIZER, mark


class _Local(threading.local):
    depth = 0
    root: Any = None


class Points:
    """The functions that are replaced between `begin` and `end`.

    `seen` counts the marks, about a third of the entries of a trace; `call_over` is called after each outermost call of a Cell. `graphs`
    are the graphs that ran, by the numbers in their marks.
    """

    def __init__(self, call_over: Callable[[], None], operators: bool = True) -> None:
        self.seen, self.graphs = 0, dict[int, Any]()
        self._call_over, self._operators = call_over, operators
        self._local = _Local()
        self._replaced = Replaced()
        self._names: dict[int, tuple[Any, str]] = {}

    def begin(self) -> None:
        """Install the marking functions."""
        from torchspore.graph.specialization import compilation, gradient_graphs
        from torchspore.graph.specialization.compiled_graph import Graph

        if FRONT.cell is not None:
            self._replaced.put(FRONT.cell, "__call__", self._cell)
        batches = FRONT.batches()
        if batches is not None:
            self._replaced.put(batches, "__next__", self._next)
        self._replaced.put(Graph, "run", self._graph)
        self._replaced.put(compilation, "capture", self._capture)
        for name in ("forward", "backward"):
            self._replaced.put(gradient_graphs.GraphFunction, name, self._half, static=True)
        if self._operators:
            self._replaced.put_everywhere("ruled", precision.ruled, self._ruled)
            engine.follow_operators(True)

    def end(self) -> None:
        """Restore the original functions."""
        if self._replaced and self._operators:
            engine.follow_operators(False)
        self._replaced.restore()

    def _cell(self, plain: Any) -> Any:
        local = self._local

        @functools.wraps(plain)
        def call(cell: Any, *args: Any, **kwargs: Any) -> Any:
            around = frame()
            if around is not None and around.traces:
                return plain(cell, *args, **kwargs)
            if local.depth == 0:
                local.root = cell
            local.depth += 1
            self.seen += 1
            try:
                with mark(self._name(cell)):
                    return plain(cell, *args, **kwargs)
            finally:
                local.depth -= 1
                if not local.depth:
                    local.root = None
                    self._call_over()

        return call

    def _name(self, cell: Any) -> str:
        """The mark of a Cell: its scope below the outermost one that runs, as graphs have it."""
        name = self._names.get(id(cell))
        if name is None or name[0] is not cell:
            root = self._local.root
            self._take_names(root)
            if id(cell) not in self._names:
                self._names[id(cell)] = (cell, self._marked(cell, f"Default/{type(cell).__name__}"))
            name = self._names[id(cell)]
        return name[1]

    def _take_names(self, root: Any) -> None:
        scopes = {id(root): "Default"}
        self._names[id(root)] = (root, self._marked(root, "Default"))
        for name, cell in root.cells_and_names():
            outer = root.get_sub_cell(name.rpartition(".")[0]) if name else None
            if outer is not None:
                scopes[id(cell)] = f"{scopes.get(id(outer), 'Default')}/{name.rpartition('.')[2]}-{type(cell).__name__}"
                self._names[id(cell)] = (cell, self._marked(cell, scopes[id(cell)]))

    @staticmethod
    def _marked(cell: Any, scope: str) -> str:
        if FRONT.optimizer is not None and isinstance(cell, FRONT.optimizer):
            return OPTIMIZER + (f"Default/optimizer-{type(cell).__name__}" if scope == "Default" else scope)
        return CELL + scope

    def _next(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def following(iterator: Any) -> Any:
            with mark(DATA):
                return plain(iterator)

        return following

    def _graph(self, plain: Any) -> Any:
        from torchspore.graph.report import stages

        @functools.wraps(plain)
        def run(graph: Any, flat: Any) -> Any:
            self.seen += graph.operators // 4 + 1          # fewer events than an operator of PyNative mode has
            with mark(self._numbered(stages.graph_of(graph.code) or graph.module)):
                return plain(graph, flat)

        return run

    def _capture(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def capture(*args: Any, **kwargs: Any) -> Any:
            with mark(COMPILE):
                return plain(*args, **kwargs)

        return capture

    def _half(self, plain: Any) -> Any:
        from torchspore.graph.report import stages

        @functools.wraps(plain)
        def half(context: Any, *args: Any) -> Any:
            code = args[0] if plain.__name__ == "forward" else getattr(context, "backward_code", None)
            module = stages.graph_of(code)
            self.seen += 10
            if module is None:
                return plain(context, *args)
            with mark(self._numbered(module)):
                return plain(context, *args)

        return half

    def _numbered(self, module: Any) -> str:
        self.graphs[id(module)] = module
        return f"{GRAPH}{id(module)}"

    def _ruled(self, plain: Any) -> Any:
        """Finds the body of an operator and marks its run."""

        def ruled(body: Any, name: str) -> Any:
            range_, around = plain(body, name), frame()
            if around is not None and around.traces:
                return range_
            self.seen += 1
            text = OPERATOR + name

            def marked(*args: Any, **kwargs: Any) -> Any:
                with mark(text):
                    return range_(*args, **kwargs)

            return marked

        return ruled
