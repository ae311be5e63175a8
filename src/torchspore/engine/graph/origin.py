"""Where the nodes of a graph come from, which `debug_level=DEBUG` keeps: the user's line, the calls that led there, the Cell.

Each node gets three entries in `meta`: "line" (`file:line`), "stack" (such lines, outermost first) and "scope"
(`Default/blocks-CellList/0-Block`). A node of the backward pass has those of the forward operator that it belongs to, found by the
number that torch.autograd gives to both, and "backward" is True in it.
"""
from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

import torch

from torchspore.base.frames import is_users
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.private import backward_node, next_sequence_number

_KEPT = Outcome.applied("DEBUG: graphs and refusals keep the user's lines, the calls that led there and the Cells")
_DROPPED = Outcome.applied("RELEASE: graphs keep no lines and no Cells")
_calls: CodeType | None = None


def cells_run(code: CodeType) -> None:
    """Says which code calls a Cell's construct, with the Cell as `self`; called once by the front end."""
    global _calls
    _calls = code


def is_kept() -> bool:
    """Whether graphs captured now keep where their nodes come from."""
    return bool(STORE.get("debug_level"))


def attach(tracer: Any) -> None:
    """Makes the tracer note where each node comes from, if that is asked for."""
    if STORE.source("debug_level")[0] != "default":
        effects.report("debug_level", _KEPT if is_kept() else _DROPPED)
    if not is_kept():
        return
    create, notes = tracer.create_node, _Notes()

    def noting(kind: str, *arguments: Any, **keywords: Any) -> Any:
        node = create(kind, *arguments, **keywords)
        if kind == "call_function":
            node.meta.update(notes.of_node())
        return node

    tracer.create_node = noting


def stack_of(frame: FrameType | None) -> list[str]:
    """The user's lines from a frame outwards, outermost first."""
    lines = []
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return lines[::-1]


class _Notes:
    """What is known of the operators of one trace."""

    def __init__(self) -> None:
        self._by_number: dict[int, dict[str, Any]] = {}
        self._scopes: dict[int, str] = {}
        self._roots: list[Any] = []

    def of_node(self) -> dict[str, Any]:
        """The entries for the node that is being made."""
        around = backward_node()
        if around is not None:
            found = self._by_number.get(around._sequence_nr())
            if found is not None:
                return {**found, "backward": True}
        stack = stack_of(sys._getframe(2))
        found = {"line": stack[-1] if stack else "", "stack": stack, "scope": self._scope(sys._getframe(2))}
        if torch.is_grad_enabled():
            # An operator's node of the backward pass is made just before it runs, and what follows without one has no number of its own.
            self._by_number.setdefault(next_sequence_number() - 1, found)
        return found

    def _scope(self, frame: FrameType | None) -> str:
        cells: list[Any] = []
        while frame is not None:
            if frame.f_code is _calls:
                cells.append(frame.f_locals["self"])
            frame = frame.f_back
        if not cells:
            return "Default"
        if not any(cells[-1] is root for root in self._roots):
            self._roots.append(cells[-1])
            self._name(cells[-1])
        return self._scopes.get(id(cells[0])) or f"Default/{type(cells[0]).__name__}"

    def _name(self, root: Any) -> None:
        """Gives every Cell under `root` its scope: for each step the attribute and the class."""
        self._scopes[id(root)] = "Default"
        for name, cell in root.cells_and_names():
            if name:
                outer = root.get_sub_cell(name.rpartition(".")[0])
                self._scopes[id(cell)] = f"{self._scopes[id(outer)]}/{name.rpartition('.')[2]}-{type(cell).__name__}"
