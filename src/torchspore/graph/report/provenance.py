"""The sources of a graph's nodes, which `debug_level=DEBUG` and `save_graphs` record: the user's line, the calls to it, the Cell.

Each node gets these entries in `meta`: "line" (`file:line`), "columns" (first and last, from Python 3.11 on), "stack" (such lines,
outermost first), "scope" (`Default/blocks-CellList/0-Block`), "called" (the MindSpore operator that ran it, `MatMul`) and "call" (the
number of the call). A node of the backward pass has those of its forward operator, which torch.autograd gives the same number, and
"gradient" is True in it.
"""
from __future__ import annotations

import itertools
import sys
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import torch

from torchspore.base.context_values import during
from torchspore.base.frames import is_user_file
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.autograd.cell_offload import is_inside_offloaded
from torchspore.engine.execution import current_operator
from torchspore.engine.front_end import FRONT
from torchspore.engine.memory import offload
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import backward_node, next_sequence_number
from torchspore.graph.report import stages

ENTRIES = (node_metadata.LINE, node_metadata.COLUMNS, node_metadata.STACK, node_metadata.SCOPE, node_metadata.CALLED, node_metadata.CALL,
           node_metadata.GRADIENT, node_metadata.MARKED, node_metadata.PRIMITIVE,
           node_metadata.STAGE, node_metadata.PART, node_metadata.OFFLOADED)
"""The entries of `meta` that a node takes over when it replaces another."""

_DEBUG_OUTCOME = Outcome.applied("DEBUG: graphs and refusals keep the user's lines, the calls that led there and the Cells")
_DROPPED = Outcome.applied("RELEASE: graphs keep no lines and no Cells")
_INNERMOST = Outcome.applied(
    "RELEASE: graphs keep the user's innermost line and the Cells, because another switch shows them; DEBUG also keeps the calls that led "
    "there"
)
_WITH_CLASSES = Outcome.applied("scopes name the class of each Cell: Default/fc-Dense")
_WITHOUT_CLASSES = Outcome.applied("scopes name attributes alone: Default/fc")
_NO_SCOPES = Outcome.no_effect("scopes are recorded if save_graphs or debug_level=DEBUG requests them")


class _Requests:
    """The switch that makes all graphs record their origin."""

    def __init__(self) -> None:
        self.records_all = False


_REQUESTS = _Requests()
_debug_levels: ContextVar[bool | None] = ContextVar("torchspore_debug_level", default=None)
_part: ContextVar[tuple[int, ...]] = ContextVar("torchspore_part", default=())
_stages: ContextVar[int | None] = ContextVar("torchspore_stages", default=None)


def keeps_lines() -> bool:
    """Return whether graphs and refusals made now keep where they come from."""
    level = _debug_levels.get()
    return bool(STORE.get("debug_level")) if level is None else level


def keep_all() -> None:
    """Make all graphs that are captured from now on record their sources: a profiler or a summary will show them."""
    _REQUESTS.records_all = True


def debug_level_of(is_debug: bool) -> AbstractContextManager[None]:
    """Use a Cell's `debug_level` in the block."""
    return during(_debug_levels, is_debug)


def of_part(number: int) -> AbstractContextManager[None]:
    """Mark that the block computes this part of a batch, inside of the enclosing part."""
    return during(_part, (*_part.get(), number))


def of_stages(count: int) -> AbstractContextManager[None]:
    """Set for the block that the graphs have `count` pipeline stages, where the Cells were written for `pipeline_stages`."""
    return during(_stages, count)


def attach(tracer: Any, is_needed: bool = False) -> None:
    """Make the tracer record the source of each node, if that is requested, or needed to split the graph."""
    keeps_calls = keeps_lines()
    is_followed = stages.now.get() is not None or current_operator.followers > 0
    is_recorded = keeps_calls or is_needed or _REQUESTS.records_all or offload.is_requested_by_cell() or is_followed
    if keeps_calls or STORE.source("debug_level")[0] != "default":
        effects.report("debug_level", _DEBUG_OUTCOME if keeps_calls else _INNERMOST if is_recorded else _DROPPED)
    with_classes = bool(STORE.get("reserve_class_name_in_scope"))
    if STORE.source("reserve_class_name_in_scope")[0] != "default":
        effects.report("reserve_class_name_in_scope", (_WITH_CLASSES if with_classes else _WITHOUT_CLASSES) if is_recorded else _NO_SCOPES)
    if not is_recorded:
        return
    create, notes = tracer.create_node, _Notes(with_classes, is_needed, keeps_calls)

    def noting(kind: str, *arguments: Any, **keywords: Any) -> Any:
        node = create(kind, *arguments, **keywords)
        if kind == "call_function":
            node.meta.update(notes.of_node())
        return node

    tracer.create_node = noting


def inherit(node: torch.fx.Node, old: torch.fx.Node) -> None:
    """Give a node that replaces `old` the source of `old`."""
    node.meta.update({entry: old.meta[entry] for entry in ENTRIES if entry in old.meta})


def stack_of(frame: FrameType | None) -> list[str]:
    """The user's lines from a frame outwards, outermost first."""
    lines = []
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return lines[::-1]


class _Notes:
    """What is known about the operators of one trace."""

    def __init__(self, with_classes: bool, is_split: bool, keeps_calls: bool) -> None:
        self._is_split, self._keeps_calls = is_split, keeps_calls
        self._scopes = current_operator.Scopes(with_classes)
        self._by_number: dict[int, dict[str, Any]] = {}
        self._operator: FrameType | None = None
        self._calls = 0

    def of_node(self) -> dict[str, Any]:
        """The entries for the node that is being made."""
        around = backward_node()
        if around is not None:
            recorded = self._by_number.get(around._sequence_nr())
            if recorded is not None:
                return {**recorded, node_metadata.GRADIENT: True}
        frame = sys._getframe(2)
        stack = stack_of(frame)
        runs, called = _operator(frame)
        cells, innermost = _cells(frame)
        if not called and cells and FRONT.optimizer is not None and isinstance(cells[0], FRONT.optimizer):
            called, runs = type(cells[0]).__name__, innermost      # its formula is kernels that are not operator's
        recorded = {
            node_metadata.LINE: stack[-1] if stack else "", node_metadata.COLUMNS: _columns(frame),
            node_metadata.STACK: stack if self._keeps_calls else stack[-1:], node_metadata.SCOPE: self._scopes.of(cells),
            node_metadata.CALLED: called, node_metadata.CALL: self._call(runs),
            **({node_metadata.MARKED: True} if current_operator.is_inside_marked(cells) else {}),
            **({node_metadata.OFFLOADED: True} if is_inside_offloaded(cells) else {}),
        }
        if self._is_split:
            recorded.update(_of_pipeline(cells))
        # An operator's node of the backward pass is made just before it runs, that of a torch.autograd.Function before the operators in it;
        # later nodes without a call have no number.
        self._by_number.setdefault(next_sequence_number() - 1, recorded)
        return recorded

    def _call(self, frame: FrameType | None) -> int:
        """Return a number for the operator call that runs in `frame`; a new number if none runs."""
        if frame is None or frame is not self._operator:
            self._operator = frame                 # while it is held, no other frame has its identity
            self._calls += 1
        return self._calls


def _of_pipeline(cells: list[Any]) -> dict[str, Any]:
    """The stage of the innermost Cell that has one, if the context has several stages, and the part of the batch."""
    count, most = _stages.get(), int(STORE.get("auto_parallel.pipeline_stages"))
    stage = next((cell.__dict__["pipeline_stage"] for cell in cells if "pipeline_stage" in cell.__dict__), None) if most > 1 else None
    if count is not None and count < most and isinstance(stage, int) and 0 <= stage < most:
        stage = stage * count // most
    stage_entry = {} if stage is None else {node_metadata.STAGE: stage}
    return {**stage_entry, node_metadata.PART: _part.get()} if _part.get() else stage_entry


def _cells(frame: FrameType | None) -> tuple[list[Any], FrameType | None]:
    """The Cells that run, the innermost first, and that one's frame."""
    cells: list[Any] = []
    innermost = None
    while frame is not None:
        if frame.f_code is FRONT.cell_call:
            cells.append(frame.f_locals["self"])
            innermost = innermost or frame
        frame = frame.f_back
    return cells, innermost


def _columns(frame: FrameType | None) -> tuple[int, int] | None:
    """Return the columns of the call in the user's innermost line; None if it spans lines or Python does not know."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not hasattr(frame.f_code, "co_positions"):
        return None
    first, last, start, end = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    return (start, end) if first is not None and first == last and start is not None and end is not None and start < end else None


def _operator(frame: FrameType | None) -> tuple[FrameType | None, str]:
    """Return the innermost running MindSpore operator and its frame; empty if none runs, as in an optimizer's kernel."""
    while frame is not None:
        operator = FRONT.operator_of(frame)
        if operator is not None:
            return frame, operator
        frame = frame.f_back
    return None, ""
