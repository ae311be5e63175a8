"""Recorded forward passes, so that a gradient that is requested next does not compute them again.

`loss = net(x); grads = GradOperation(get_by_list=True)(net, weights)(x)` is a training step in MindSpore 1.x, and MindSpore runs `net` once
for it: in PyNative mode if `set_grad()` has declared that gradients of `net` are needed, inside a graph always. Batch norm thus updates its
averages once, and dropout draws once. A call of such a Cell is recorded like the inside of a gradient transform. The first gradient of the
same Cell uses the record if the inputs are the same objects and nothing has changed since. In case of doubt the pass runs again.
"""
from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from torchspore.context.store import STORE
from torchspore.engine.autograd import gradient_hooks
from torchspore.engine.autograd.grad import differentiate, follow
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.autograd.gradient_listeners import LISTENERS
from torchspore.engine.autograd.integer_gradients import is_integer
from torchspore.engine.autograd.leaves import is_differentiable, new_leaf
from torchspore.engine.autograd.recorded_forward import Beginning
from torchspore.engine.execution import thread_state
from torchspore.engine.memory import offload
from torchspore.engine.random import random_state
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.dtypes import Type
from torchspore.engine.tensors.tensor import Frame, TensorBase, frame, raw, tensors, transform, wrap
from torchspore.engine.tensors.torch_interop import entered
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.no_grad import recording_gradients
from torchspore.graph.refusal import Refusal

FORWARDS = "_forward_"
"""The attribute of a Cell in which its last recorded calls wait for a gradient; copies of the Cell leave it out."""

MOST = 2
"""So many calls of one Cell wait at most: each holds all that its backward pass needs."""

_COVERED = "_covered_"
"""The attribute of a Cell that counts the gradients which its records held; -1 once one did not."""
_SURE = 3
"""After so many a Cell's calls are no longer kept from their beginning on, which costs a hundredth of a small step."""

CHANGED_AT = "_changed_at_"
"""The attribute of a Cell that says at which of all changes of Cells it was changed last."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), Type)
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class _Local(threading.local):
    in_step = False                # inside of a Cell of `set_grad()` that takes gradients itself


_local = _Local()


class Forward(GradFrame):
    """A recorded call of a Cell: the frame while it runs, and afterwards the values that a gradient needs."""

    def __init__(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.heeds_flags = not thread_state.follows_graph_rules()
        self.args, self.kwargs = args, kwargs
        self._tensors: list[TensorBase] = list(tensors((args, kwargs)))
        self._home = cell.__dict__
        self._leaves: dict[int, torch.Tensor] = {}
        self._read: dict[int, TensorBase] = {}
        self._is_over = False
        self._beginning = _beginning(self._tensors) if self._home.get(_COVERED, 0) < _SURE else None
        self._thread = threading.get_ident()

    # ---- while it runs

    def initial_value(self, tensor: TensorBase) -> torch.Tensor:
        t = tensor._t if self.outer is None else self.outer.resolve(tensor)
        if t.requires_grad or self._is_over:
            return t
        # Values without a gradient may come from outside: they are compared again before the record is used.
        self._read[id(tensor)] = tensor
        if getattr(tensor, "__parameter__", False) and tensor.requires_grad and is_differentiable(t):  # type: ignore[attr-defined]
            leaf = marked = self._leaf(tensor, new_leaf(t))
            for listener in LISTENERS:
                marked = listener.mark_leaf(tensor, marked)
            if marked is not leaf:
                self.substitute(tensor, marked)
            return marked
        return t

    def _leaf(self, tensor: TensorBase, leaf: torch.Tensor) -> torch.Tensor:
        self._leaves[id(tensor)] = gradient_hooks.follow(tensor, leaf)
        self.substitute(tensor, leaf)
        if leaf.requires_grad and leaf.ndim:
            self.taken[id(leaf)] = []
        return leaf

    def run(self, call: Callable[..., Any]) -> Any:
        """Calls and records."""
        with recording_gradients():
            for tensor in self._tensors:
                if id(tensor) not in self._leaves:
                    t = raw(tensor)
                    self._leaf(tensor, new_leaf(t) if is_differentiable(t) else t)
            self.inputs = list(self._leaves)
            try:
                with self._beginning.open() if self._beginning is not None else nullcontext(), self.open(), offload.offload_saved_tensors():
                    result = entered(self.callee(call)(*self.args, **self.kwargs))
                    self.result = transform(result, lambda t: wrap(raw(t)))
            except BaseException:
                with torch.no_grad():
                    self.finish((), False)
                raise
        with torch.no_grad():
            self.finish(result, False)
        self._remember()
        return result

    # ---- whether it may be used

    def _remember(self) -> None:
        """Store what must be unchanged when the record is used."""
        self._is_over = True
        self._counts = _counts()
        self._changes = change_counters.cells
        self._states = [(t, now := raw(t), now._version) for t in (*self._tensors, *self._read.values(), *tensors(self.result))]
        is_real = frame() is None
        # NumPy may write into a Tensor whose memory it shares, which no version counts.
        self._copies = [(t, t._t.clone()) for t in self._tensors if is_real and t._t.device.type == "cpu"]

    def holds(self) -> bool:
        """Return whether no Tensor that the call read or wrote has been written to since."""
        return self._counts == _counts() and all(raw(t) is now and now._version == version for t, now, version in self._states)

    def runs_alongside(self, later: Forward) -> None:
        """Called for a later call of the Cell: writes to the same state (averages, counts) do not invalidate this record."""
        both = self._modified.keys() & later._modified.keys()
        self._states = [(t, now := raw(t), now._version) if id(t) in both else (t, *state) for t, *state in self._states]

    def serves(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether a call of `cell` with these arguments would compute what is recorded, and change what it changed."""
        return (
            self._thread == threading.get_ident()
            and _are_equal(self.args, args)
            and _are_equal(self.kwargs, kwargs)
            and self.holds()
            and all(_have_equal_bits(t._t, copy) for t, copy in self._copies)
            and not self._has_changed(cell)
        )

    def _has_changed(self, cell: Any) -> bool:
        """Return whether an attribute of the Cell, or of one inside it, was set since."""
        return self._changes != change_counters.cells and hasattr(cell, "cells_and_names") and any(
            inner.__dict__.get(CHANGED_AT, -1) > self._changes for _, inner in cell.cells_and_names()
        )

    def covers(self, positions: Sequence[int | str], weights: Sequence[TensorBase]) -> bool:
        """Return whether the gradients by these inputs and weights can be had from the record."""
        tensor_ids = [id(t) for t in self._tensors]
        if positions and len(set(tensor_ids)) < len(tensor_ids):     # one Tensor in two positions has a gradient for each
            return False
        if any(is_integer(raw(t)) for position in positions for t in tensors(self._argument(position))):
            return False                                   # gradients by integers are not recorded unless they are asked for
        has_no_gradient = [self.heeds_flags and not getattr(w, "requires_grad", True) for w in weights]
        return all(id(w) not in tensor_ids and (is_frozen or id(w) in self._leaves or id(w) not in self._read)
                   for w, is_frozen in zip(weights, has_no_gradient))

    # ---- its use

    def gradients(
        self, positions: Sequence[int | str], weights: Sequence[TensorBase], sens: Any, has_aux: bool,
    ) -> tuple[Any, list[Any], list[Any]] | None:
        """(The result, gradients by position, gradients by weight), as `differentiate` gives them.

        None where the backward pass needs a value that the forward pass has assigned to since it read it.
        """
        inputs = [self._of_argument(self._argument(position)) for position in positions]
        for tensor in (*self._tensors, *weights):
            if getattr(tensor, "__parameter__", False):
                self.flag_set(tensor, tensor.requires_grad)  # type: ignore[attr-defined]
        with recording_gradients():
            leaves = [self._leaves[id(w)] if id(w) in self._leaves else new_leaf(raw(w)) for w in weights]
            try:
                with self.open():
                    gradients = follow(self.result[0] if has_aux else self.result, inputs, leaves, self, sens, False)
            except RuntimeError as error:
                if "modified by an inplace operation" in str(error):
                    return None
                raise
        return (transform(self.result, lambda t: wrap(t._t.detach())), *gradients)

    def was_enough(self) -> None:
        """Counts a gradient that the record held."""
        count = self._home.get(_COVERED, 0)
        if 0 <= count < _SURE:
            self._home[_COVERED] = count + 1

    def rerun(self) -> AbstractContextManager[None]:
        """Return how to run a forward pass without a record again, as if it had not run yet."""
        self._home[_COVERED] = -1
        return self._beginning.rerun() if self._beginning is not None else nullcontext()

    def _argument(self, position: int | str) -> Any:
        return self.args[position] if isinstance(position, int) else self.kwargs[position]

    def _of_argument(self, argument: Any) -> Any:
        leaves = tuple(self._leaves[id(t)] for t in tensors(argument))
        return leaves[0] if isinstance(argument, TensorBase) else leaves or None

    def takes_gradients(self) -> None:
        """Called when the Cell takes a gradient itself: it is a training step, whose gradient is not requested."""
        self._home["_is_step_"] = True


def gradients(
    function: Any, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], positions: Sequence[int | str],
    weights: Sequence[TensorBase], sens: Any = None, has_aux: bool = False,
) -> tuple[Any, list[Any], list[Any]]:
    """Return the result of `differentiate(call, ...)`, from the last forward pass of `function` if its record can be used."""
    around = frame()
    if around is None and FORWARDS not in getattr(function, "__dict__", ()):                # nearly all calls
        return differentiate(call, args, kwargs, positions, weights, sens, has_aux)
    if isinstance(around, Forward):
        around.takes_gradients()
    forward = _stored_forward(around, function, tuple(args), kwargs)
    if forward is not None:
        if not forward.covers(positions, weights):
            with forward.rerun():
                return differentiate(call, args, kwargs, positions, weights, sens, has_aux)
        forward.was_enough()
        gradients = forward.gradients(positions, weights, sens, has_aux)
        if gradients is not None:
            return gradients
    return differentiate(call, args, kwargs, positions, weights, sens, has_aux)


def _beginning(tensors_in: list[TensorBase]) -> Beginning | None:
    """Return how a call began whose record may be unusable: it has integer inputs, or one Tensor twice (see `Forward.covers`)."""
    needs_beginning = len(set(map(id, tensors_in))) < len(tensors_in) or any(is_integer(raw(t)) for t in tensors_in)
    return Beginning(raw(tensors_in[0]).device.type) if needs_beginning else None


def _taken(calls: list[Forward], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Forward | None:
    """The last of these calls that serves, which then waits no longer."""
    forward = next((candidate for candidate in reversed(calls) if candidate.serves(function, args, kwargs)), None)
    if forward is not None:
        calls.remove(forward)
    return forward


def _recorded(calls: list[Forward], cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
    """Run a call and store its record with earlier ones that are still valid."""
    forward = Forward(cell, args, kwargs)
    calls[:] = [earlier for earlier in calls[1 - MOST:] if earlier.holds()]
    result = forward.run(call)
    for earlier in calls:
        earlier.runs_alongside(forward)
    calls.append(forward)
    return result


def is_recorded_call(function: Any) -> bool:
    """Return whether a recorded call of `function` waits for its gradient, outside of everything."""
    return FORWARDS in getattr(function, "__dict__", ())


def _stored_forward(around: Frame | None, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Forward | None:
    """The recorded call of a Cell that serves, which is then no longer kept."""
    if around is None:
        attributes = getattr(function, "__dict__", {})
        waiting = attributes.get(FORWARDS, [])
        forward = _taken(waiting, function, args, kwargs)
        waiting[:] = [forward for forward in waiting if forward.holds()]
        if not waiting:
            attributes.pop(FORWARDS, None)
        return forward
    calls = around.forwards
    return calls.find_recorded(function, args, kwargs) if calls is not None else None


def recorder(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Callable[..., Any]], Any] | None:
    """Return the function that runs a recorded call of `cell`; None for nearly all calls."""
    around = frame()
    if around is not None:
        return around.forwards.met(cell, args, kwargs) if around.forwards is not None else None
    attributes = cell.__dict__
    waiting = attributes.pop(FORWARDS, [])
    if not attributes["requires_grad"] or _local.in_step or (thread_state.is_graph_mode() and not thread_state.local.breaks):
        return None
    if "_is_step_" in attributes or _has_transform(attributes):
        return lambda call: _step(call, args, kwargs)

    def run(call: Callable[..., Any]) -> Any:
        result = _recorded(waiting, cell, args, kwargs, call)
        attributes[FORWARDS] = waiting
        return result

    return run


def call_recorded(function: Any, args: tuple[Any, ...]) -> tuple[Any, Callable[..., Any], Callable[[], AbstractContextManager[None]]]:
    """Return `function(*args)`, the function whose gradients are those of this call, and the context in which to request them.

    In PyNative mode the first gradient uses the forward pass of this call; later ones run it again, as in MindSpore. Inside a graph or
    another gradient, every gradient runs it again from the state before this call: the same Parameters and random numbers.
    """
    if frame() is not None:
        beginning = Beginning(next((raw(tensor).device.type for tensor in tensors(args)), "cpu"))
        with beginning.open():
            result = entered(function(*args))
        return result, function, beginning.rerun
    if (thread_state.is_graph_mode() and not thread_state.local.breaks) or torch_private.is_transforming():
        return entered(function(*args)), function, nullcontext

    def recorded(*inputs: Any) -> Any:
        return function(*inputs)

    functools.update_wrapper(recorded, function if hasattr(function, "__name__") else type(function), updated=())
    calls: list[Forward] = []
    result = _recorded(calls, SimpleNamespace(), args, {}, function)
    setattr(recorded, FORWARDS, calls)
    return result, recorded, nullcontext


class Learned:
    """Of which Cells calls are recorded, by what earlier captures have seen. A Cell that is gone is forgotten: another may have its id."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], Any], bool]] = {}

    def of(self, cell: Any) -> bool:
        """Return whether calls of `cell` are recorded; `set_grad()` says so of one that nothing was learned of."""
        entry = self._entries.get(id(cell))
        return entry[1] if entry is not None and entry[0]() is cell else cell.__dict__["requires_grad"]

    def note(self, cell: Any, is_useful: bool) -> None:
        """Store the observation."""
        self._entries[id(cell)] = weakref.ref(cell), is_useful


class Calls:
    """The calls of Cells that one capture has met, and which of them it records.

    A call does not show whether its gradient is requested later. A capture therefore starts from what earlier captures observed
    (`Learned`), or from `set_grad()`. If that was wrong, the capture runs again.
    """

    def __init__(self, learned: Learned, may_learn: bool, is_piece: bool) -> None:
        """`is_piece` says that the rest of the call runs outside of this capture, where the gradient may be asked for."""
        self._learned, self._may_learn, self._is_piece = learned, may_learn, is_piece
        self._plain: dict[int, tuple[Any, Any]] = {}
        self._recorded: dict[int, list[Forward]] = {}
        self._idle: dict[int, Any] = {}
        self.in_parts: list[tuple[Any, Any]] = []
        """The calls and their arguments on one path of a branch, or in a loop, that a Tensor decides."""

    def met(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Callable[..., Any]], Any] | None:
        """Return the function that runs a recorded call of `cell`; None if the call is not recorded."""
        if not self._learned.of(cell):
            self._plain[id(cell)] = (args, kwargs)
            return None
        self._idle[id(cell)] = cell

        return lambda call: _recorded(self._recorded.setdefault(id(cell), []), cell, args, kwargs, call)

    def find_recorded(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Forward | None:
        """Return the recorded call of `cell` for these arguments. Raises a Refusal if the call with these arguments was not recorded."""
        forward = _taken(self._recorded.get(id(cell), []), cell, args, kwargs)
        if forward is None:
            self.refuse_outside(cell)
            self.refuse_shared(cell, args, kwargs)
        self._idle.pop(id(cell), None)
        if forward is None and self._may_learn and _are_equal(self._plain.get(id(cell)), (args, kwargs)):
            self._learned.note(cell, True)
            refusal = Refusal("requests the gradient of a call that was not recorded")
            refusal.is_unrecorded = True
            raise refusal
        return forward

    def refuse_outside(self, cell: Any) -> None:
        """Raises a Refusal where the gradient may use a call that was made before this part of a call: now, or when the graph runs."""
        if cell_is_trained(cell) and self._is_piece:
            raise Refusal("requests the gradient of a call outside of the graph")

    def refuse_shared(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises a Refusal where a gradient would use a call and a Tensor decides whether either is made: PyNative knows."""
        waiting = [(cell, (forward.args, forward.kwargs)) for forward in self._recorded.get(id(cell), [])]
        if cell_is_trained(cell) and any(
            waiting_cell is cell and _are_equal(call_arguments, (args, kwargs))
            for waiting_cell, call_arguments in (*waiting, *self.in_parts)
        ):
            raise Refusal("reads the gradient of a call whose gradients are only computed depending on a Tensor")

    def refuse_a_piece(self) -> None:
        """Raises a Refusal where the rest of the call runs outside of this graph."""
        if self._is_piece:
            raise Refusal("calls a Cell that is set_grad(), whose gradient may be requested outside of the graph")

    def learned(self) -> bool:
        """Return whether calls were recorded of Cells whose gradient was never asked for; they will not be again."""
        if self._idle:
            self.refuse_a_piece()
        for cell in self._idle.values():
            self._learned.note(cell, False)
        return bool(self._idle) and self._may_learn


class PartCalls:
    """The same for a branch or loop that a Tensor decides: its calls are noted, and none of them is recorded."""

    def __init__(self, around: Calls | PartCalls) -> None:
        self._around: Calls = around._around if isinstance(around, PartCalls) else around

    def met(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record a call whose gradient may be requested. Raises a Refusal if that may happen outside of the graph."""
        if cell_is_trained(cell):
            self._around.in_parts.append((cell, (args, kwargs)))
            self._around.refuse_a_piece()

    def find_recorded(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises a Refusal where PyNative would use a forward pass that was made before."""
        self._around.refuse_outside(cell)
        self._around.refuse_shared(cell, args, kwargs)


def cell_is_trained(cell: Any) -> bool:
    """Return whether `set_grad()` has said that gradients of `cell` are wanted."""
    return bool(getattr(cell, "__dict__", {}).get("requires_grad"))


def _has_transform(attributes: dict[str, Any]) -> bool:
    """Return whether a Cell holds what takes gradients: then it is a training step."""
    return any(getattr(type(value), "takes_gradients", False) for value in attributes.values())


def _step(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return whether a Cell is a training step with declared gradients. MindSpore computes those alone, and shares no forward pass in it.
    """
    with _inside_step():
        return call(*args, **kwargs)


@contextmanager
def _inside_step() -> Iterator[None]:
    before, _local.in_step = _local.in_step, True
    try:
        yield
    finally:
        _local.in_step = before


def _are_equal(first: Any, other: Any) -> bool:
    """Return whether two calls get the same arguments: the very same Tensors, and equal plain values."""
    if isinstance(first, TensorBase):
        return first is other
    if type(first) is not type(other):
        return False
    if isinstance(first, (list, tuple)):
        return len(first) == len(other) and all(map(_are_equal, first, other))
    if isinstance(first, dict):
        return first.keys() == other.keys() and all(_are_equal(first[key], other[key]) for key in first)
    return isinstance(first, _PLAIN) and bool(first == other)


def _have_equal_bits(first: torch.Tensor, other: torch.Tensor) -> bool:
    if first.is_complex():
        first, other = torch.view_as_real(first), torch.view_as_real(other)
    kind = _BITS[first.dtype.itemsize]
    return torch.equal(first.view(kind), other.view(kind))


def _counts() -> tuple[Any, ...]:
    """Return the state that makes every record void when it changes: the seed, options, hooks."""
    return random_state.SEED.seedings, STORE.snapshot(), change_counters.generation
