"""The loss of each training step, in any kind of loop, for the report of a run; nothing is installed unless a report is requested."""
from __future__ import annotations

import functools
import threading
from typing import Any

import torch

from torchspore.engine.autograd import grad
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, frame
from torchspore.engine.torch_internals import node_metadata
from torchspore.observe.function_patches import Replaced

_MOST_WAITING = 64


class _Local(threading.local):
    depth = 0
    value: torch.Tensor | None = None
    updated = False


class Losses:
    """Follows a program from `begin` to `end`.

    A step's loss is the value of which the last gradient before an optimizer was taken, or the result of a Cell that calls an optimizer
    itself; in a graph, which is one call, the result of a graph that contains an optimizer.
    """

    def __init__(self) -> None:
        self.values: list[float] = []
        self._waiting: list[torch.Tensor] = []
        self._local, self._replaced = _Local(), Replaced()
        self._updates: dict[int, tuple[Any, bool]] = {}

    def begin(self) -> None:
        """Follows from now on."""
        from torchspore.graph.specialization.compiled_graph import Graph

        if FRONT.cell is not None:
            self._replaced.put(FRONT.cell, "__call__", self._cell)
        self._replaced.put(Graph, "run", self._graph)
        self._replaced.put_everywhere("differentiate", grad.differentiate, self._gradient)

    def end(self) -> list[float]:
        """Follows no longer; gives the losses of all steps."""
        self._replaced.restore()
        self._read()
        return self.values

    def _cell(self, plain: Any) -> Any:
        local = self._local

        @functools.wraps(plain)
        def call(cell: Any, *args: Any, **kwargs: Any) -> Any:
            if _is_traced():
                return plain(cell, *args, **kwargs)
            local.depth += 1
            if local.depth == 1:
                local.updated = False
            try:
                out = plain(cell, *args, **kwargs)
            finally:
                local.depth -= 1
            if FRONT.optimizer is not None and isinstance(cell, FRONT.optimizer):
                local.updated = True
            if not local.depth and local.updated:
                self._keep(local.value if isinstance(cell, FRONT.optimizer or ()) else _scalar(out))
                local.value, local.updated = None, False
            return out

        return call

    def _graph(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def run(graph: Any, flat: Any) -> Any:
            out = plain(graph, flat)
            if self._has_update(graph) and not self._local.updated:
                value = _scalar(out)
                if value is not None:
                    self._keep(value)
                elif self._local.value is not None:        # an optimizer that is a graph by itself
                    self._keep(self._local.value)
                    self._local.value = None
                self._local.updated = False
            elif isinstance(out, tuple) and (value := _scalar(out)) is not None:
                self._local.value = value                  # a loss with its gradients, which an optimizer takes
            return out

        return run

    def _gradient(self, plain: Any) -> Any:
        @functools.wraps(plain)
        def differentiate(*args: Any, **kwargs: Any) -> Any:
            result = plain(*args, **kwargs)
            if not _is_traced():
                value = _scalar(result[0])
                self._local.value = value if value is not None else self._local.value
            return result

        return differentiate

    def _has_update(self, graph: Any) -> bool:
        update = self._updates.get(id(graph))
        if update is None or update[0] is not graph:
            has = any(node.meta.get(node_metadata.OPTIMIZER) for node in graph.module.graph.nodes)
            update = self._updates[id(graph)] = (graph, has)
        return update[1]

    def _keep(self, value: torch.Tensor | None) -> None:
        if value is not None:
            self._waiting.append(value)
            if len(self._waiting) >= _MOST_WAITING:
                self._read()

    def _read(self) -> None:
        """Brings the losses that wait on a device here, many at a time."""
        waiting, self._waiting = self._waiting, []
        self.values += [float(value) for value in waiting]


def _is_traced() -> bool:
    around = frame()
    return around is not None and around.traces


def _scalar(out: Any) -> torch.Tensor | None:
    """Return a copy of the first Tensor among results if it is one number; None otherwise."""
    first = next(iter(tree.leaves(out)), None)
    if not isinstance(first, TensorBase) or first._t.numel() != 1 or not first._t.is_floating_point():
        return None
    return first._t.detach().clone()
