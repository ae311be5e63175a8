"""The helpers that converted source calls as `_cf`: each does what Python does, but for a Tensor in a capture, where the graph decides."""
from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

import torch

from torchspore.base.frames import is_user_file
from torchspore.engine.execution.printing import print_values
from torchspore.engine.tensors.number import KINDS, Number, number
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors
from torchspore.graph.capture.capture import Capture
from torchspore.graph.capture.running_trace import current
from torchspore.graph.control_flow import branch, function_conversion, loop, support_binary
from torchspore.graph.control_flow.branch_join import NOTHING
from torchspore.graph.fx.control_flow import Check, Say, emit
from torchspore.graph.refusal import Refusal

__all__ = [
    "NOTHING", "and_", "call", "chain", "contains",
    "ended", "for_", "holds", "if_", "not_", "or_", "pick", "returned", "running", "truth", "unpack", "while_",
]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "is": operator.is_,
    "is not": operator.is_not, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}
_UNROLLED = 6
"""The maximum number of consecutive rounds in the graph that a Tensor may end; if there are more, the rest becomes a loop."""
_MANY = 24
"""The same for a `for` over a range, whose number may be needed as a Python number."""


def _decides(test: Any) -> bool:
    """Return whether the graph must decide by `test`: a Tensor of one element, in a capture."""
    return isinstance(test, TensorBase) and test._t.numel() == 1 and current() is not None


# ---- expressions

def if_(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], live: Iterable[str] = ()) -> Any:
    """`if`: calls one of the two; `live` are the names that they assign and that are read later."""
    if _decides(test):
        return branch.on_tensor(_around(), test, then, otherwise, live)
    return then() if test else otherwise()


pick = if_


def and_(first: Any, *others: Callable[[], Any]) -> Any:
    """`and`."""
    value = first
    for other in others:
        if _decides(value):
            value = branch.both(_around(), value, other, torch.logical_and)
        elif not value:
            return value
        else:
            value = other()
    return value


def or_(first: Any, *others: Callable[[], Any]) -> Any:
    """`or`."""
    value = first
    for other in others:
        if _decides(value):
            value = branch.both(_around(), value, other, torch.logical_or)
        elif value:
            return value
        else:
            value = other()
    return value


def not_(value: Any) -> Any:
    """`not`."""
    return Number(torch.logical_not(branch.scalar(value))) if _decides(value) else not value


def chain(signs: tuple[str, ...], first: Any, *others: Callable[[], Any]) -> Any:
    """`a < b < c`: each operand is computed once, and only if it matters."""
    second = others[0]()
    verdict = _COMPARE[signs[0]](first, second)
    if len(signs) == 1:
        return verdict
    return and_(verdict, lambda: chain(signs[1:], second, *others[1:]))


def contains(item: Any, container: Any) -> Any:
    """`in`: a Tensor equals a part of a list or tuple if shapes and all elements do, which the graph decides."""
    parts = container if isinstance(container, (list, tuple)) and current() is not None else ()
    if not parts or not any(isinstance(part, TensorBase) for part in (item, *parts)):
        return item in container
    if any(part is item for part in parts):
        return True
    result: Any = False
    for part in parts:
        same = _is_equal(item, part)
        if same is True:
            return True
        result = same if result is False else result if same is False else Number(torch.logical_or(raw(result), raw(same)))
    return result


def _is_equal(first: Any, second: Any) -> Any:
    if isinstance(first, TensorBase) and isinstance(second, TensorBase):
        return Number((raw(first) == raw(second)).all()) if first._t.shape == second._t.shape else False
    tensor, other = (first, second) if isinstance(first, TensorBase) else (second, first)
    if isinstance(tensor, TensorBase):
        return Number((raw(tensor) == other).all()) if isinstance(other, (bool, int, float)) and tensor._t.numel() == 1 else False
    return first == second


def unpack(value: Any, pattern: tuple[Any, ...]) -> Any:
    """The elements of `value` for the names of `pattern` (`syntax.target_pattern`): MindSpore's graphs ignore further elements."""
    is_tensor: Any = isinstance(value, TensorBase) and raw(value).ndim
    if (is_tensor or isinstance(value, (tuple, list, str))) and len(value) > len(pattern):
        value = value[:len(pattern)]
    if any(pattern) and isinstance(value, (tuple, list)):
        return [item if part is None else unpack(item, part) for item, part in zip(value, pattern)] + list(value[len(pattern):])
    return value


def running(code: Any) -> Any:
    """Return whether a loop goes on after a round that ended with `code`."""
    return code if isinstance(code, bool) else code == 0


def truth(test: Any) -> Any:
    """The test of an `if` that has to stay Python's."""
    if _decides(test):
        raise Refusal("leaves a `try`, `with` or `match` block by an `if` that a Tensor decides")
    return test


def holds(test: Any, build_message: Callable[[], Any] | None) -> Any:
    """The test of an `assert`; one on a Tensor is made when the graph runs."""
    if not _decides(test):
        return test
    emit(Check([], f"AssertionError: {build_message() if build_message is not None else ''}"), [raw(test)])
    return True


# ---- loops

def while_(test: Callable[[], Any], body: Callable[[], Any], live: Iterable[str] = ()) -> tuple[Any, Any]:
    """`while`: gives how it ended, as the body says it (see build.leave)."""
    outcome: tuple[Any, Any] = (True, NOTHING)
    open_rounds = 0
    while True:
        go_on = test()
        if _decides(go_on) or (go_on and open_rounds == _UNROLLED):
            return _graph_loop(outcome, go_on, test, body, live)
        if not go_on:
            return outcome
        outcome = _round(outcome, body, live)
        if isinstance(outcome[0], TensorBase):
            open_rounds += 1
        elif not running(outcome[0]):
            return outcome


def _graph_loop(
    outcome: tuple[Any, Any], go_on: Any, _cf_test: Callable[[], Any], _cf_body: Callable[[], Any], live: Iterable[str],
) -> tuple[Any, Any]:
    """The rest of a loop as one of the graph; Python has run the first rounds, and a Tensor may have ended it there."""
    if not _decides(outcome[0]):
        return loop.on_tensor(_around(), go_on, _cf_test, _cf_body, live)

    def rest() -> tuple[Any, Any]:
        go_on = _cf_test()
        return loop.on_tensor(_around(), go_on if _decides(go_on) else number(bool(go_on)), _cf_test, _cf_body, live)

    return if_(running(outcome[0]), rest, lambda: outcome, live)


def _around() -> Capture:
    around = current()
    assert around is not None
    return around


def for_(iterable: Any, set_: Callable[[Any], Any], body: Callable[[], Any], live: Iterable[str] = ()) -> tuple[Any, Any]:
    """`for`: as `while_`."""
    if isinstance(iterable, TensorRange):
        return _count(iterable, set_, body, live)
    outcome: tuple[Any, Any] = (True, NOTHING)
    for position, item in enumerate(iterable):
        if isinstance(iterable, range) and _decides(outcome[0]) and len(iterable) - position > _MANY:
            return _rest_of_range(outcome, iterable[position:], set_, body, live)
        outcome = _round(outcome, _with(set_, item, body), live)
        if not isinstance(outcome[0], TensorBase) and not running(outcome[0]):
            return outcome
    return outcome


def _rest_of_range(
    outcome: tuple[Any, Any], span: range, _cf_set: Callable[[Any], Any], _cf_body: Callable[[], Any], live: Iterable[str],
) -> tuple[Any, Any]:
    """The rounds of a long loop that a Tensor may have ended: one loop of the graph."""
    def rest() -> tuple[Any, Any]:
        return _count(TensorRange(number(span.start), span.stop, span.step), _cf_set, _cf_body, live)

    return if_(running(outcome[0]), rest, lambda: outcome, live)


def _with(_cf_set: Callable[[Any], Any], _cf_item: Any, _cf_body: Callable[[], Any]) -> Callable[[], Any]:
    def step() -> Any:
        _cf_set(_cf_item)
        return _cf_body()

    return step


def _round(outcome: tuple[Any, Any], body: Callable[[], Any], live: Iterable[str]) -> tuple[Any, Any]:
    """One more round of a loop that Python counts; where a Tensor may have ended it, the graph decides whether it runs."""
    if not _decides(outcome[0]):
        return body()
    return if_(running(outcome[0]), body, lambda: outcome, live)


class TensorRange:
    """`range` with a bound that is a Tensor."""

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step


def range_(*bounds: Any) -> Any:
    """`range`."""
    if not any(_decides(bound) for bound in bounds):
        return range(*bounds)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if isinstance(step, TensorBase) or not step:
        raise Refusal("counts with a step that is a Tensor")
    return TensorRange(_integer(start), _integer(stop), step)


def _integer(value: Any) -> Any:
    if not isinstance(value, TensorBase):
        return operator.index(value)
    t = raw(value)
    if t.dtype.is_floating_point or t.dtype.is_complex:
        raise TypeError("range: expected integers, got a Tensor of floating-point numbers.")
    return Number(t.reshape(()).to(torch.int64))


def _count(span: TensorRange, _cf_set: Callable[[Any], Any], _cf_body: Callable[[], Any], live: Iterable[str]) -> tuple[Any, Any]:
    position, _cf_stop, _cf_step = span.start, span.stop, span.step

    def test() -> Any:
        return position < _cf_stop if _cf_step > 0 else position > _cf_stop

    def body() -> Any:
        nonlocal position
        _cf_set(position)
        position = position + _cf_step
        return _cf_body()

    return while_(test, body, (*live, "position"))


def returned(outcome: tuple[Any, Any]) -> Any:
    """Return whether a loop was left by a return."""
    return outcome[0] == 2


def ended(outcome: tuple[Any, Any]) -> Any:
    """Return whether a loop came to its end, so that its `else` runs."""
    return running(outcome[0])


# ---- calls

def call(function: Any) -> Any:
    """Return the function to call for `function`: the converted form of a user's function, anything else unchanged."""
    if function is builtins.print:  # while a capture watches, another function than at other times
        return say
    function = support_binary.readable(function)
    kind = type(function)
    if kind is FunctionType:
        is_convertible = is_user_file(function.__code__.co_filename) or getattr(function, "converts", False)
        return function_conversion.converted(function) if is_convertible else function
    if kind is MethodType:
        if isinstance(function.__self__, TensorBase) and function.__name__ == "item":
            return item(function.__self__)
        inner = function.__func__
        is_convertible = type(inner) is FunctionType and is_user_file(inner.__code__.co_filename)
        return function_conversion.bound(function) if is_convertible else function
    if kind is functools.partial:
        return functools.partial(call(function.func), *function.args, **function.keywords)
    try:
        return _BUILTINS.get(function, function)
    except TypeError:
        return function


def say(*values: Any, sep: str | None = " ", end: str | None = "\n", **others: Any) -> None:
    """`print`, at each run of the graph: Tensors in the form of MindSpore's graphs, one value per line.

    Values that are known at compile time are printed at compile time if the syntax level allows it.
    """
    around = current()
    has_tensors = any(True for _ in tensors(values))
    if around is not None and has_tensors and not others and sep == " " and end == "\n":
        print_values(values, True)
        return
    if around is None or not around.watch.says or others or has_tensors:
        print(*values, sep=sep, end=end, **others)
        return
    text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
    emit(Say([], text), [])


def to_float(*values: Any) -> Any:
    """`float`."""
    return _number(values[0], torch.float64) if len(values) == 1 and _decides(values[0]) else float(*values)


def kind_of(*values: Any, **others: Any) -> Any:
    """`type`: of a number that the graph computes the Python type."""
    return KINDS[values[0]._t.dtype] if len(values) == 1 and type(values[0]) is Number else type(*values, **others)


def to_int(*values: Any, **others: Any) -> Any:
    """`int`."""
    return _number(values[0], torch.int64) if len(values) == 1 and not others and _decides(values[0]) else int(*values, **others)


def to_bool(*values: Any) -> Any:
    """`bool`."""
    return _number(values[0], torch.bool) if len(values) == 1 and _decides(values[0]) else bool(*values)


def _number(value: TensorBase, dtype: torch.dtype) -> Number:
    t = raw(value).detach()
    if t.dtype.is_complex:
        raise TypeError("expected a real number, got a complex Tensor.")
    return Number(t.reshape(()).to(dtype))


def item(tensor: TensorBase) -> Callable[[], Any]:
    """`tensor.item`."""
    dtype = tensor._t.dtype
    if not _decides(tensor) or dtype.is_complex:
        return tensor.item  # type: ignore[attr-defined]
    kind = torch.float64 if dtype.is_floating_point else torch.bool if dtype is torch.bool else torch.int64
    return lambda: _number(tensor, kind)


def largest(*values: Any, **others: Any) -> Any:
    """`max`."""
    return _extreme(max, operator.gt, values, others)


def smallest(*values: Any, **others: Any) -> Any:
    """`min`."""
    return _extreme(min, operator.lt, values, others)


def _extreme(builtin: Callable[..., Any], beats: Callable[[Any, Any], Any], values: tuple[Any, ...], others: dict[str, Any]) -> Any:
    items = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    if others or len(items) < 2 or not any(_decides(item) for item in items):
        return builtin(*values, **others)
    best = items[0]
    for item in items[1:]:
        best = if_(beats(item, best), lambda item=item: item, lambda best=best: best)  # type: ignore[misc]
    return best


_BUILTINS: dict[Any, Any] = {max: largest, min: smallest, range: range_, int: to_int, float: to_float, bool: to_bool, type: kind_of}
