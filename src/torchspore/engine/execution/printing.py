"""ops.Print: on the screen, or in the file that `print_file_path` names; in graphs an operator that keeps its position.

The output is a list of pieces: texts, numbers and Tensors. Graphs show Tensors in another form than PyNative mode, one line for each,
including those in lists and tuples. While a graph runs that may still fail, its prints wait: PyNative mode would run the call again.
"""
from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from torchspore.base.frames import user_line
from torchspore.context.effects import Outcome
from torchspore.engine.execution.print_file import MOST, PrintFile
from torchspore.engine.tensors import creation, tree
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors
from torchspore.engine.tensors.tensor_text import plain, shown
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.engine.torch_internals.torch_private import no_transforms, outside_of_transforms
from torchspore.translations import translate

Piece = tuple[str, Any]
"""("text", a text), ("number", a Python number) or ("tensor", a torch tensor)."""
_waiting = threading.local()


class _Output:
    """The destination of text that graphs print."""

    def __init__(self) -> None:
        self.file: PrintFile | None = None


_OUTPUT = _Output()


def select(path: str, most: int = MOST) -> Outcome:
    """Apply `print_file_path`; one call may write less than `most` bytes."""
    if _OUTPUT.file is not None:
        _OUTPUT.file.close()
    _OUTPUT.file = PrintFile(path, most) if path else None
    if not path:
        return Outcome.applied("ops.Print writes to the screen")
    return Outcome.applied(translate("ops.Print writes to {path}, and nothing to the screen").format(path=path))


# ---- called by the program

def print_values(values: Sequence[Any], captured: bool) -> None:
    """Prints the arguments of one call; `captured` says that a graph is being made, which will print them each time it runs."""
    if captured:
        tensors: list[torch.Tensor] = []
        layout = [_print_argument(value, tensors) for value in values]
        OPERATOR(tensors, json.dumps([user_line(), layout]))
        return
    with no_transforms():
        if _OUTPUT.file is not None and _OUTPUT.file.is_ready(line := user_line()):
            _OUTPUT.file.write([piece for value in values for piece in _printed_pieces(value)], line)
        else:
            for value in values:
                sys.stdout.write(_text(value) + "\n")
            sys.stdout.flush()


def _printed_pieces(value: Any) -> list[Piece]:
    """Return the pieces of a value, the Tensors with their present values."""
    tensors: list[torch.Tensor] = []
    pieces: list[Piece] = []
    _collect_pieces(_print_argument(value, tensors), tensors, pieces)
    return pieces


def _text(value: Any) -> str:
    """A value as PyNative mode prints it."""
    if not isinstance(value, TensorBase):
        return str(value)
    t = outside_of_transforms(raw(value)).detach()
    text, holding = shown(creation.array_of(t), str(FROM_TORCH[t.dtype])), getattr(t, "description", "")
    return f"{text[:-1]}, {holding})" if holding else text


# ---- in graphs

def _print_argument(value: Any, given: list[torch.Tensor]) -> Any:
    """Return an argument in the layout of a graph's print: ["tensor", position], ["text" or "number", value], or a list of them."""
    if isinstance(value, TensorBase):
        given.append(outside_of_transforms(raw(value).detach()))
        return ["tensor", len(given) - 1]
    if isinstance(value, (list, tuple, dict)) and any(True for _ in tensors(value)):
        return ["each", *[_print_argument(item, given) for item in (value.values() if isinstance(value, dict) else tree.listed(value))]]
    if isinstance(value, (bool, int, float)):
        return ["number", value]
    return ["text", str(tuple(value) if isinstance(value, list) else value)]


def _in_graph(values: list[torch.Tensor], layout: str) -> None:
    """Print `values`. `layout` (JSON) has the program's line, and the arguments with the positions of `values`. No pass moves a print."""
    pieces: list[Piece] = []
    line, entries = json.loads(layout)
    for entry in entries:
        _collect_pieces(entry, values, pieces)
    if _OUTPUT.file is not None and _OUTPUT.file.is_ready(line):
        pieces = [(kind, copy_if_waiting(value) if kind == "tensor" else value) for kind, value in pieces]
        deliver(lambda: _OUTPUT.file.write(pieces, line) if _OUTPUT.file is not None else None)
    else:
        say("".join(_as_graphs_print(kind, value) + "\n" for kind, value in pieces))


OPERATOR = define("print(Tensor[] values, str layout) -> ()", _in_graph, lambda values, layout: None)
OPERATORS: set[Any] = {OPERATOR}
"""Operators that print while a graph runs: they have an effect, keep their position, and fail for no values."""


def _collect_pieces(entry: list[Any], values: Sequence[torch.Tensor], pieces: list[Piece]) -> None:
    kind, *rest = entry
    if kind == "each":
        for item in rest:
            _collect_pieces(item, values, pieces)
    else:
        pieces.append((kind, values[rest[0]] if kind == "tensor" else rest[0]))


def copy_if_waiting(t: torch.Tensor) -> torch.Tensor:
    """Return `t`, or a copy if its print waits."""
    return _copied(t) if _is_waiting() else t


def _copied(t: torch.Tensor) -> torch.Tensor:
    return t.detach().clone()


def _as_graphs_print(kind: str, value: Any) -> str:
    if kind == "text":
        return str(value)
    if kind == "number":
        return plain(np.asarray(value), commas=False)
    values = creation.array_of(value)
    return shown(values, str(FROM_TORCH[value.dtype]), commas=False) if values.ndim else plain(values, commas=False)


def prints(module: torch.fx.GraphModule) -> bool:
    """Return whether a graph, or a branch or loop in it, prints."""
    for node in module.graph.nodes:
        if node.op == "call_function" and (node.target in OPERATORS or any(
            prints(item) for item in node.args if isinstance(item, torch.fx.GraphModule)
        )):
            return True
    return False


# ---- prints that wait

def say(text: str) -> None:
    """Write a text to the screen."""
    def write() -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    deliver(write)


def _is_waiting() -> bool:
    return getattr(_waiting, "held", None) is not None


def deliver(print_: Callable[[], None]) -> None:
    """Call `print_`; if the graph of this thread may still fail, after it has not."""
    waiting = getattr(_waiting, "held", None)
    if waiting is None:
        print_()
    else:
        waiting.append(print_)


def hold() -> None:
    """From now on what graphs of this thread print waits."""
    _waiting.held = []


def release() -> None:
    """Print the pending output, and clear it."""
    waiting, _waiting.held = getattr(_waiting, "held", None), None
    for print_ in waiting or ():
        print_()


def drop() -> None:
    """Discard the pending output: PyNative mode will print it."""
    _waiting.held = None
