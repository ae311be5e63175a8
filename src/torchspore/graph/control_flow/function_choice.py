"""A function that a Tensor selects from a list, such as a Cell of a CellList."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import TensorBase, raw
from torchspore.graph.capture.running_trace import current
from torchspore.graph.control_flow import runtime_helpers
from torchspore.graph.fx.control_flow import Check, emit
from torchspore.graph.refusal import Kind, Refusal


def picked(functions: Sequence[Callable[..., Any]], index: TensorBase) -> Callable[..., Any] | None:
    """Return a function that calls the function that `index`, of one integer, picks when the graph runs; None outside of a capture."""
    around = current()
    if around is None:
        return None
    if around.watch.converter is None:
        refusal = Refusal("picks a Cell by a Tensor", kind=Kind.READS_VALUES)
        refusal.needs_values = True
        raise refusal
    return Picked(functions, index)


class Picked:
    """Calls one of several functions; there is nothing else that it can do."""

    def __init__(self, functions: Sequence[Callable[..., Any]], index: TensorBase) -> None:
        self._functions = list(functions)
        t, count = raw(index).reshape(()), len(self._functions)
        inside = (t >= -count) & (t < count)
        emit(Check([], f"IndexError: a Tensor picks a Cell that is not there: there are {count}."), [inside])
        self._index = Number(t.long() % count)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self._functions, 0, self._index, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        raise Refusal(f"reads {name!r} of a Cell that a Tensor picks, which can only be called", kind=Kind.READS_VALUES)


def _call(_cf_functions: list[Callable[..., Any]], _cf_choice: int, _cf_index: Any, _cf_args: tuple[Any, ...], _cf_keywords: Any) -> Any:
    _cf_function = _cf_functions[_cf_choice]
    if _cf_choice == len(_cf_functions) - 1:
        return _cf_function(*_cf_args, **_cf_keywords)
    return runtime_helpers.if_(
        _cf_index == _cf_choice, lambda: _cf_function(*_cf_args, **_cf_keywords),
        lambda: _call(_cf_functions, _cf_choice + 1, _cf_index, _cf_args, _cf_keywords),
    )
