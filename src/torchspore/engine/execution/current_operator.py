"""The MindSpore operator that runs now: its name, the Cell that called it, the user's line; also in graphs and in backward passes.

A TorchDispatchMode asks a `Follower` for each kernel. The follower reads the frames of this thread: in PyNative mode the innermost operator
of the front end; in a graph the node whose line of generated code runs (`places` among its globals, which `eager_codegen` stores for graphs
that record their sources) or that is `interpreted`; in a backward pass the forward operator whose node autograd runs.
"""
from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from torchspore.base.frames import is_torchspore_file, is_user_file, with_slashes
from torchspore.context.store import STORE
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import backward_node, next_sequence_number, without_modes

marked: frozenset[int] = frozenset()
"""The Cells, by id, that nodes name as their Cell."""
followers = 0
"""The number of followers: while it is not 0, graphs record their sources and run at O0."""
GRAPH = "<captured graph>"
"""The file that the code of a graph claims to be from."""
GRADIENTS, ROOT = "Gradients", "Default"


def follow(is_on: bool) -> None:
    """Make graphs record their sources and run at O0, or stop; graphs that were captured before are captured again."""
    global followers
    followers += 1 if is_on else -1
    change_counters.calls_changed()


ends_of_calls: list[Callable[[], None]] = []
"""Called after each outermost call of a graph while there are followers."""


def report_end_of_call() -> None:
    """Call the functions in `ends_of_calls`, unless a gradient or a capture is still open."""
    if engine.frame() is None:
        for end_call in ends_of_calls:
            end_call()


def resume_following() -> None:
    """Make graphs record their sources again, because other Cells are marked."""
    change_counters.calls_changed()


@dataclass(frozen=True, eq=False)
class Position:
    """One call of an operator; two kernels of the same call have the same object."""

    operator: str
    """`MatMul`; `MatMulGrad` for its gradient."""
    scope: str
    """`Default/network-Net/fc-Dense`, in the backward pass `Gradients/Default/network-Net/fc-Dense/Grad_MatMul`."""
    number: int
    """The how-manieth call of this operator in this scope it is in this iteration, from 0 on."""
    iteration: int
    line: str
    """Return the user's `file:line`; empty if it is unknown."""
    is_gradient: bool = False
    in_graph: bool = False
    is_marked: bool = False
    """True if it runs, or its forward operator ran, in a Cell that is `marked`."""

    @property
    def name(self) -> str:
        """The full name with scope: `Default/network-Net/fc-Dense/MatMul-op0`."""
        return f"{self.scope}/{self.operator}-op{self.number}"


class Scopes:
    """The scopes of Cells: for each step from the outermost one the attribute and, if wanted, the class."""

    def __init__(self, with_classes: bool) -> None:
        self._with_classes = with_classes
        self._scopes: dict[int, str] = {}
        self._roots: list[Any] = []                # keeps the ids in `_scopes` from being used again

    def of(self, cells: Sequence[Any]) -> str:
        """Return the scope of the first of `cells`, which are nested, the innermost first."""
        if not cells:
            return ROOT
        if not any(cells[-1] is root for root in self._roots):
            self._roots.append(cells[-1])
            self._name(cells[-1])
        return self._scopes.get(id(cells[0])) or f"{ROOT}/{type(cells[0]).__name__}"

    def _name(self, root: Any) -> None:
        ancestors, seen = [(ROOT, root)], set[int]()
        while ancestors:                                # no look-up by dotted names: a program's own names may hold dots
            scope, cell = ancestors.pop()
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            self._scopes[id(cell)] = scope
            ancestors += [
                (f"{scope}/{name}" + (f"-{type(inner).__name__}" if self._with_classes else ""), inner)
                for name, inner in reversed(cell.__dict__["_cells"].items()) if inner is not None
            ]


class _Seen:
    """The state that the frames of a thread show, from the innermost outwards."""

    __slots__ = ("cell_frame", "cells", "engine", "graph", "graph_frame", "line", "operator", "operator_frame", "position", "root",
                 "root_frame")

    def __init__(self, frame: FrameType | None) -> None:
        self.cells: list[Any] = []
        self.cell_frame: FrameType | None = None
        self.operator = ""
        self.operator_frame: FrameType | None = None
        self.graph: dict[str, Any] | None = None
        self.graph_frame: Any = None
        """The state of one run of a graph: the frame of its code, or a substitute if its nodes are interpreted."""
        self.position = 0
        """How far that run is."""
        self.engine = False
        """True if a backward pass runs, inside of which nothing but its own operators was found."""
        self.line = ""
        self.root: Any = None
        self.root_frame: FrameType | None = None
        while frame is not None:
            self._look(frame, frame.f_code)
            frame = frame.f_back

    def _look(self, frame: FrameType, code: CodeType) -> None:
        if code.co_filename == GRAPH:
            if self.graph is None and not self.engine and not self.operator:
                namespaces = frame.f_globals.get("places", ())
                self.graph = namespaces[frame.f_lineno] if frame.f_lineno < len(namespaces) else {}
                self.graph_frame, self.position = frame, frame.f_lineno
        elif code is _INTERPRETED:
            if self.graph is None and not self.engine and not self.operator:
                (self.graph,) = positions_of([frame.f_locals["node"]])
                self.graph_frame, self.position = frame.f_locals["run"], frame.f_locals["position"]
        elif code is FRONT.cell_call:
            if not self.engine:
                self.cells.append(frame.f_locals["self"])
                self.cell_frame = self.cell_frame or frame
        elif not self.line and is_user_file(code.co_filename):
            self.line = f"{code.co_filename}:{frame.f_lineno}"
        elif self.graph is None and not self.operator and not self.engine:
            if code.co_name == _BACKWARD[0] and with_slashes(code.co_filename).endswith(_BACKWARD[1]):
                self.engine = True
            else:
                operator = FRONT.operator_of(frame)
                if operator is not None:
                    self.operator, self.operator_frame = operator, frame
        if _is_entry(code):
            self.root_frame = frame
            self.root = frame.f_locals.get("self", frame.f_locals.get("owner"))


_BACKWARD = ("_engine_run_backward", "torch/autograd/graph.py")
_entries: dict[CodeType, bool] = {}


def _is_entry(code: CodeType) -> bool:
    """Return whether it is the code that a call of a Cell, or of what `jit` made, comes in by."""
    entry_kind = _entries.get(code)
    if entry_kind is None:
        file = with_slashes(code.co_filename) if is_torchspore_file(code.co_filename) else ""
        entry_kind = _entries[code] = (code.co_name == "call" and file.endswith("/torchspore/graph/dispatch.py")) or (
            code.co_name == "__call__" and file.endswith("/mindspore/nn/cell.py"))
    return entry_kind


class Follower:
    """Names the operators that run in the threads which ask it, and counts iterations.

    An iteration ends with the step of an optimizer; in a program without an optimizer, at the next call of the same outermost Cell.
    """

    def __init__(self, began: Callable[[int], None] = lambda iteration: None) -> None:
        """`began` receives the number of each new iteration before its first operator."""
        self.iteration = 0
        self._began = began
        self._with_classes = True
        self._scopes = Scopes(True)
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._forward: dict[int, tuple[Any, str, str, str, bool]] = {}
        self._last: Position | None = None
        self._last_call: Any = None
        self._last_frames: tuple[Any, Any] = (None, None)   # as long as they live, no other frame has their identity
        self._last_position = 0
        self._roots: list[Any] = []
        self._updated = False
        self._trains = False

    def now(self, kernel: str, depth: int = 1) -> Position | None:
        """Return the operator that runs torch's kernel of this name, `add` or `_fused_adam_`; None outside of operators, such as at a
        Tensor's creation.

        `depth` is the number of frames between the caller's and the frame that runs the kernel.
        """
        if kernel in ASIDE:
            return None
        seen = _Seen(sys._getframe(depth + 1))
        self._follow_root(seen)
        if seen.graph is not None:
            graph_state = self._of_graph(seen)
        else:
            graph_state = self._of_backward(seen) if seen.engine else self._of_frames(seen, kernel)
        if not graph_state:
            return None
        call, operator, scope, line, is_gradient, is_marked = graph_state
        if call is None or call != self._last_call or self._is_next_round(seen):
            number = self._numbers[scope, operator]
            self._numbers[scope, operator] += 1
            self._last = Position(operator, scope, number, self.iteration, line, is_gradient, seen.graph is not None, is_marked)
        self._last_call = call
        self._last_frames = (call, seen.graph_frame)
        self._last_position = seen.position
        return self._last

    def anew(self, position: Position) -> Position:
        """Return the position for further kernels of a call that seemed to be complete: it counts as another call."""
        number = self._numbers[position.scope, position.operator]
        self._numbers[position.scope, position.operator] += 1
        self._last = dataclasses.replace(position, number=number)
        return self._last

    def _is_next_round(self, seen: _Seen) -> bool:
        """Return whether a graph, or the body of a loop in it, runs anew."""
        return seen.graph_frame is not None and (
            seen.graph_frame is not self._last_frames[1] or seen.position <= self._last_position)

    def _of_graph(self, seen: _Seen) -> tuple[Any, ...]:
        meta = seen.graph or {}
        operator, scope = meta.get(node_metadata.CALLED) or "", meta.get(node_metadata.SCOPE) or ROOT
        line = meta.get(node_metadata.LINE) or ""
        if not operator:
            kernel = str(meta.get(KERNEL, ""))
            if kernel not in _ALONE and not meta.get(node_metadata.OPTIMIZER):
                return ()
            operator = spelled(kernel)
        self._note_optimizer(bool(meta.get(node_metadata.OPTIMIZER)))
        is_gradient = bool(meta.get(node_metadata.GRADIENT) or meta.get(node_metadata.BACKWARD))
        call = (seen.graph_frame, meta.get(node_metadata.CALL), is_gradient)
        named = _gradient_of(operator, scope) if is_gradient else (operator, scope)
        return call, *named, line, is_gradient, bool(meta.get(node_metadata.MARKED))

    def _of_backward(self, seen: _Seen) -> tuple[Any, ...]:
        node = backward_node()
        recorded = self._forward.get(node._sequence_nr()) if node is not None else None
        if recorded is not None:
            call, operator, scope, line, is_marked = recorded
            return (call, "gradient"), *_gradient_of(operator, scope), line, True, is_marked
        if node is None or "Accumulate" in node.name():
            return None, "AddN", f"{GRADIENTS}/{ROOT}", seen.line, True, False
        return (id(node), "gradient"), *_gradient_of(node.name().partition("Backward")[0].rpartition("::")[2], ROOT), seen.line, True, False

    def _of_frames(self, seen: _Seen, kernel: str) -> tuple[Any, ...]:
        innermost = seen.cells[0] if seen.cells else None
        is_update = FRONT.optimizer is not None and isinstance(innermost, FRONT.optimizer)
        self._note_optimizer(is_update)
        operator, call = seen.operator, seen.operator_frame
        if not operator:
            if innermost is None:
                return ()
            operator, call = (type(innermost).__name__, seen.cell_frame) if is_update else (spelled(kernel), None)
            if not is_update and kernel not in _ALONE:
                return ()
        scope, is_marked = self._scopes.of(seen.cells), is_inside_marked(seen.cells)
        number = next_sequence_number() - 1
        if number not in self._forward:
            self._forward[number] = (call, operator, scope, seen.line, is_marked)
        return call, operator, scope, seen.line, False, is_marked

    # ---- iterations

    def _note_optimizer(self, updates: bool) -> None:
        if updates:
            self._updated = self._trains = True

    def _follow_root(self, seen: _Seen) -> None:
        if seen.root_frame is None or any(frame is seen.root_frame for _, frame in self._roots):
            return
        is_repeated = any(root is seen.root for root, _ in self._roots)
        if self._updated or (is_repeated and not self._trains):
            self.iteration += 1
            self._numbers.clear()
            self._forward.clear()
            self._roots.clear()
            self._updated = False
            self._last_call = None
            self._began(self.iteration)
        self._roots.append((seen.root, seen.root_frame))
        has_class_names = bool(STORE.get("reserve_class_name_in_scope"))
        if has_class_names is not self._with_classes:
            self._with_classes, self._scopes = has_class_names, Scopes(has_class_names)


KERNEL = "kernel"
"""Among the entries of a graph's line: the name of the kernel."""


def _gradient_of(operator: str, scope: str) -> tuple[str, str]:
    return operator + "Grad", f"{GRADIENTS}/{scope}/Grad_{operator}"


def is_inside_marked(cells: Sequence[Any]) -> bool:
    """Return whether one of the Cells is marked."""
    return bool(marked) and any(id(cell) in marked for cell in cells)


_ALONE = {"_to_copy": "Cast", "clone": "TensorMove", "copy_": "Assign", "cat": "Concat", "stack": "Stack"}
"""Kernels that front-end methods run by themselves, with the operators that MindSpore has for them."""
ASIDE = frozenset({"detach", "alias", "lift_fresh", "empty", "empty_strided", "_local_scalar_dense"})
"""Kernels that compute nothing."""


def spelled(kernel: str) -> str:
    """A kernel's name as operators are spelled: `native_layer_norm` as `NativeLayerNorm`."""
    return _ALONE.get(kernel) or "".join(part[:1].upper() + part[1:] for part in kernel.split("_"))


def positions_of(nodes: Sequence[Any]) -> list[dict[str, Any]]:
    """The entries for the lines of generated code, `nodes` saying which node of the graph each line is for (None for none)."""
    return [{} if node is None else {
        **{key: node.meta[key] for key in (*_ENTRIES, node_metadata.OPTIMIZER, node_metadata.REFUSING) if key in node.meta},
        KERNEL: getattr(node.target, "_opname", ""),
    } for node in nodes]


def interpreted(run: object, position: int, node: Any, target: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs a node of a graph for which there is not a generated code: the `position`-th of this run."""
    return target(*args, **kwargs)


_INTERPRETED = interpreted.__code__


def unseen() -> AbstractContextManager[Any]:
    """Hide the block from all followers: its computations are not operators of the program."""
    return without_modes() if followers else nullcontext()


def note_failure(error: Exception, node: Any) -> None:
    """Note on an error which node of a graph raised it, if generated code does not say it; the first note counts."""
    if failed_in(error) is None:
        setattr(error, _FAILED, positions_of([node])[0])


def failed_in(error: Exception) -> dict[str, Any] | None:
    """The entries of the node that raised an error, if that was noted."""
    return getattr(error, _FAILED, None)


_FAILED = "_failed_in"
_ENTRIES = (node_metadata.LINE, node_metadata.SCOPE, node_metadata.CALLED, node_metadata.CALL, node_metadata.GRADIENT,
            node_metadata.BACKWARD, node_metadata.MARKED)
