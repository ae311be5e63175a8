"""The functions that run branches and loops: plain functions that call compiled graphs.

A graph here is a function (*tensors) -> list of tensors. The `keeping` forms run forward parts whose outputs end with the values that the
gradient needs, and pass them on as one opaque value.
"""
from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base import tracebacks
from torchspore.engine.execution.printing import say as say

Code = Callable[..., list[Any]]
Tensors = list[torch.Tensor]


class Raised(RuntimeError):
    """A branch that raises was taken, or an assert failed: PyNative runs the call again and says it in the user's words."""

    def __init__(self, text: str, line: str = "") -> None:
        super().__init__(text)
        self.text, self.line = text, line

    def build_error(self) -> Exception:
        """Return the program's exception, for a graph that PyNative mode cannot run again, in its class if that is one of Python's.

        Its traceback ends at the line of the program.
        """
        name, _, reason = self.text.partition(": ")
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return tracebacks.raised_at(kind(reason) if reason else kind(), self.line)
        return tracebacks.raised_at(RuntimeError(self.text), self.line)


def branch(test: torch.Tensor, inputs: Tensors, then: Code, otherwise: Code) -> list[Any]:
    """The results of the graph that `test` picks."""
    return then(*inputs) if test.item() else otherwise(*inputs)


def branch_keeping(test: torch.Tensor, inputs: Tensors, then: Code, otherwise: Code, count: int) -> list[Any]:
    """The same; after the first `count` results comes one value for `branch_back`."""
    picked = bool(test.item())
    results = then(*inputs) if picked else otherwise(*inputs)
    return [*results[:count], (picked, results[count:])]


def branch_back(kept: tuple[bool, list[Any]], gradients: Tensors, then: Code, otherwise: Code) -> list[Any]:
    """The gradients of the inputs of a branch."""
    picked, saved = kept
    return then(*saved, *gradients) if picked else otherwise(*saved, *gradients)


def loop(test: torch.Tensor, state: Tensors, inputs: Tensors, body: Code) -> list[Any]:
    """Repeats `state, test = body(state, inputs)` while `test` is true."""
    go_on: Any = test
    while go_on.item():
        *state, go_on = body(*state, *inputs)
    return state


def loop_keeping(test: torch.Tensor, state: Tensors, inputs: Tensors, body: Code) -> list[Any]:
    """The same; after the state comes one value for `loop_back`, with what each round keeps."""
    count, go_on, history = len(state), test, []
    while go_on.item():
        results = body(*state, *inputs)
        state, go_on = results[:count], results[count]
        history.append(results[count + 1:])
    return [*state, history]


def loop_back(history: list[list[Any]], gradients: Tensors, inputs: Tensors, body: Code) -> list[Any]:
    """Return the gradients of the state and of `inputs`, those that have one, and their flags; `body` computes them for one round.

    `gradients` are those of the state, followed by their flags.
    """
    count = len(gradients) // 2
    gradients, flags = gradients[:count], gradients[count:]
    total: list[Any] = []
    total_flags: list[Any] = []
    for position, saved in enumerate(reversed(history)):
        results = body(*saved, *gradients, *flags)
        half = len(results) // 2
        gradients, more = results[:count], results[count:half]
        flags, more_flags = results[half:half + count], results[half + count:]
        if position == 0:
            total, total_flags = more, more_flags
            continue
        total_flags = _either(total_flags, more_flags)
        if position == 1:
            total = [torch.add(a, b) for a, b in zip(total, more)]
        else:
            for a, b in zip(total, more):
                a.add_(b)
    if not history:
        total, total_flags = [torch.zeros_like(t) for t in inputs], _absent(len(inputs))
    return [*gradients, *total, *flags, *total_flags]


def _either(some: list[Any], others: list[Any]) -> list[Any]:
    return [a if a is b else torch.logical_or(a, b) for a, b in zip(some, others)]


def _absent(count: int) -> list[Any]:
    """Flags of gradients that are not there."""
    return [torch.zeros((), dtype=torch.bool) for _ in range(count)]


def loop_back_second(
    test: torch.Tensor, state: Tensors, inputs: Tensors, ends: Tensors, output_gradients: Tensors, body: Code, back: Code, second: Code,
    positions: tuple[list[int], list[int]],
) -> list[Any]:
    """The gradients of `loop_back` by state, inputs and the gradients it was given, for gradients of its results; then their flags.

    `ends` are the gradients that it received and their flags, `output_gradients` those of its results. `back` (state, inputs, a,
    flags of a) -> (gradients of state and inputs, flags); `second` (state, inputs, a, flags of a, c, d, flags of c, flags of d) -> their
    gradients by a, state and inputs, and flags. `positions` are the positions of the state and inputs that have gradients.
    """
    many, every = len(positions[0]), len(positions[0]) + len(positions[1])
    go_on, states = test, []
    while go_on.item():
        states.append(state)
        *state, go_on = body(*state, *inputs)
    adjoints = [ends]
    for before in reversed(states):
        results = back(*before, *inputs, *adjoints[-1])
        adjoints.append([*results[:many], *results[every:every + many]])
    adjoints.reverse()
    dual, dual_flags, fixed, fixed_flags = (
        output_gradients[:many],
        output_gradients[every : every + many],
        output_gradients[many:every],
        output_gradients[every + many :],
    )
    direct = []
    total, total_flags = [torch.zeros_like(inputs[i]) for i in positions[1]], _absent(every - many)
    for before, adjoint in zip(states, adjoints[1:]):
        results = second(*before, *inputs, *adjoint, *dual, *fixed, *dual_flags, *fixed_flags)
        values, flags = results[:many + every], results[many + every:]
        dual, dual_flags = values[:many], flags[:many]
        direct.append((values[many:2 * many], flags[many:2 * many]))
        total, total_flags = [a + b for a, b in zip(total, values[2 * many:])], _either(total_flags, flags[2 * many:])
    tail, tail_flags = [torch.zeros_like(t) for t in ends[:many]], _absent(many)
    for before, (direct_gradients, direct_flags) in zip(reversed(states), reversed(direct)):
        results = back(*before, *inputs, *tail, *tail_flags)
        tail, tail_flags = [a + b for a, b in zip(direct_gradients, results)], _either(direct_flags, results[every:every + many])
        total = [a + b for a, b in zip(total, results[many:every])]
        total_flags = _either(total_flags, results[every + many:])
    return [*tail, *total, *dual, *tail_flags, *total_flags, *dual_flags]


def check(test: torch.Tensor, text: str, line: str = "") -> None:
    """Raise an error if an assert on a Tensor does not hold; `line` is its line in the program."""
    if not test.item():
        raise Raised(text, line)


def fail(text: str, line: str = "") -> None:
    """Raises: the branch does."""
    raise Raised(text, line)
