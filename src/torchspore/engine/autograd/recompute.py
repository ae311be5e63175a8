"""Recomputation: the values of a region are discarded and computed again when the backward pass needs them.

While the region runs, torch.autograd stores a number in place of each value. The backward pass requests values by their numbers, and the
first request runs the region again, with its earlier inputs, Parameters and random numbers. Writes of the second run stay inside it. In a
captured graph the second run consists of ordinary operators, after a `later` that no pass crosses, so that they stay directly before the
backward operators that need them and are not merged with the first run.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from torchspore.context import effects
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.execution.thread_state import in_pynative
from torchspore.engine.memory import saved_tensors
from torchspore.engine.random import generators
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import Frame, TensorBase, is_recording, raw, tensors, transform, wrap
from torchspore.engine.tensors.torch_interop import entered
from torchspore.engine.torch_internals.torch_private import disable_proxy_modes_tracing, proxy_of, track, without_modes

_MISSING = object()
_SMALL = 65536
"""Elements of a Parameter without gradient that is copied when a region reads it."""
Contexts = Callable[[], tuple[Any, Any]]


def recomputed(call: Callable[..., Any], name: str, contexts: Contexts | None = None) -> Callable[..., Any]:
    """`call`, whose values are computed again for a gradient. `contexts` gives two contexts, for the first and for the second run.

    Raises RuntimeError in the backward pass where the second run computes something else; `name` says whose call it is.
    """

    def computed(*args: Any, **kwargs: Any) -> Any:
        if not is_recording():
            return call(*args, **kwargs)
        return _Region(call, args, kwargs, name, contexts).first()

    return computed


# ---- operators of captured graphs, which PyNative calls too


def later(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the values themselves. In a graph, their users are computed after the backward pass has begun."""
    return values


def random_state(device: str) -> torch.Tensor:
    """The state of the device's random numbers, as bytes."""
    return generators.current_state(device)


def swap_state(state: torch.Tensor, device: str) -> torch.Tensor:
    """Set the state of the device's random numbers; return the previous state."""
    before = random_state(device)
    generators.go_on_from(state, device)
    return before


SECOND_RUN: frozenset[Callable[..., Any]] = frozenset((later, random_state, swap_state))
"""The functions with which a graph marks the second run of a region. Exchanges between processes may move across them."""


# ---- a region


class _Stop(BaseException):
    """Ends a second run as soon as it has computed all that was kept."""


class _Region:
    """A call of a region: its initial state, and the values of its second run while the backward pass requests them."""

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str, contexts: Contexts | None,
    ) -> None:
        self._call, self._args, self._kwargs, self._name = call, args, kwargs, name
        self._contexts = contexts() if contexts is not None else (nullcontext(), nullcontext())
        self._inputs = [(t, raw(t)) for t in tensors((args, kwargs))]
        self._device = self._inputs[0][1].device.type if self._inputs else "cpu"
        self._frame = engine.frame()
        self._saved_bytes = 0
        self._lent: list[tuple[TensorBase, Any, bool, saved_tensors.Tape]] = []
        self._values: dict[int, torch.Tensor] = {}

    def first(self) -> Any:
        """Runs the region and keeps numbers for values."""
        self._state = self._ask(random_state, self._device)
        self._states_of_torch = generators.states_of_torch(self._device) if _tracer(self._frame) is None else []
        self._followed = integer_gradients.is_following()
        self._seen = First()
        with self._contexts[0], self._seen.open(), saved_tensors_hooks(self._keep, self._give):
            result = self._run()
        tape = saved_tensors.current()
        if tape is not None:
            self._lend(tape)
        return result

    def _run(self) -> Any:
        """The call. Outside of a capture no part of it becomes a graph: a first and a second run as one would keep other values."""
        if _tracer(self._frame) is None:
            return entered(in_pynative(self._call, self._args, self._kwargs))
        return entered(self._call(*self._args, **self._kwargs))

    def _lend(self, tape: saved_tensors.Tape) -> None:
        """Leave the inputs to the enclosing tape, which moves them out of memory; the second run has empty placeholders for them."""
        inputs_by_id = {id(tensor): t for tensor, t in self._inputs}
        placeholders: dict[int, TensorBase] = {}

        def placeholder(tensor: TensorBase) -> TensorBase:
            if id(tensor) not in placeholders:
                # Another tensor of its kind: the call may read its shape.
                placeholders[id(tensor)] = wrap(inputs_by_id[id(tensor)].new_empty(0))
            return placeholders[id(tensor)]

        if any(type(tensor).__dict__.get("__parameter__") for tensor, _ in self._inputs):
            return
        self._args, self._kwargs = transform(self._args, placeholder), transform(self._kwargs, placeholder)
        self._lent = [(placeholders[key], tape.keep(t), t.requires_grad, tape) for key, t in inputs_by_id.items() if key in placeholders]
        self._inputs = []

    def _keep(self, _: torch.Tensor) -> int:
        self._saved_bytes += 1
        return self._saved_bytes - 1

    def _give(self, number: int) -> torch.Tensor:
        if number not in self._values:
            self._recompute()
        return self._values.pop(number)

    def _recompute(self) -> None:
        """Runs the region a second time, for its values."""
        before = self._ask(swap_state, self._state, self._device)
        try:
            integers, continuing = integer_gradients.anew(self._followed), generators.torch_continuing_from(self._states_of_torch)
            with torch.enable_grad(), continuing, self._contexts[1], self._seen.attributes_as_before(), self._recompute_frame(), integers, (
                saved_tensors_hooks(self._collect, self._refuse)
            ):
                self._values = {}
                self._run()
        except _Stop:
            pass
        finally:
            self._ask(swap_state, before, self._device)
        if len(self._values) < self._saved_bytes:
            raise RuntimeError(
                f"recompute: {self._name} computed {len(self._values)} values for the backward pass when it ran again, "
            f"{self._saved_bytes} before."
                "\n\nhint: its results may depend on its inputs and Parameters only."
            )
        effects.note(
            "recomputation", f"{self._name}: {self._saved_bytes} values of each call are not stored; the backward pass computes them again"
        )

    def _collect(self, t: torch.Tensor) -> int:
        number = len(self._values)
        self._values[number] = t.detach()
        if number == self._saved_bytes - 1:
            raise _Stop
        return number

    def _refuse(self, _: int) -> torch.Tensor:
        raise RuntimeError(f"recompute: {self._name} computes a gradient while it runs again.")

    @contextmanager
    def _recompute_frame(self) -> Iterator[None]:
        """Open a frame with the inputs and Parameters of the first run, inside the frames that were open around it."""
        back = [(tensor, tape.give(value).detach().requires_grad_(needs_gradient)) for tensor, value, needs_gradient, tape in self._lent]
        empty = [(tensor, tensor._t) for tensor, _ in back]
        for tensor, t in back:
            tensor._t = t
        recomputed_inputs = [*self._inputs, *back, *self._seen.parameters()]
        later_ones = self._ask(later, *[t for _, t in recomputed_inputs], *self._seen.draws)
        recomputing = RecomputeFrame(later_ones[len(recomputed_inputs):])
        for (tensor, t), value in zip(recomputed_inputs, later_ones):
            recomputing.substitute(tensor, (
                value.detach().requires_grad_(t.requires_grad) if _has_gradient(t)
                else value if integer_gradients.shadow(t) is None else integer_gradients.leaf(value)
            ))
        around, engine.thread_state.frame = engine.thread_state.frame, self._frame
        try:
            with recomputing.open():
                yield
        finally:
            engine.thread_state.frame = around
            for tensor, t in empty:
                tensor._t = t

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return operator_call(self._frame, self._device, function, *arguments)


def operator_call(around: Frame | None, device: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls one of the functions above; while a graph is captured by a frame `around`, as an operator of it."""
    tracer = _tracer(around)
    if tracer is None:
        return function(*arguments)
    with without_modes():
        size = random_state(device).numel()
    with disable_proxy_modes_tracing(), torch.no_grad():
        result: Any = tuple(t.view_as(t) for t in arguments) if function is later else torch.empty(size, dtype=torch.uint8)
    proxies = [proxy_of(a, tracer) if isinstance(a, torch.Tensor) else a for a in arguments]
    track(result, tracer.create_proxy("call_function", function, tuple(proxies), {}), tracer)
    return result


def _has_gradient(t: torch.Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def _tracer(frame: Frame | None) -> Any:
    """The tracer of the capture around a frame."""
    while frame is not None:
        tracer = getattr(frame, "tracer", None)
        if tracer is not None:
            return tracer
        frame = frame.outer
    return None


class First(Frame):
    """Remembers, in a region's first run, the Parameters that it read and the attributes that it was about to write."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[TensorBase, torch.Tensor, torch.Tensor | None, int]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.draws: list[torch.Tensor] = []
        """The states of operators' own generators before each draw."""

    def draw(self, draw: Callable[[], Any], redraw: Callable[[torch.Tensor], Any]) -> Any:
        """Store the state for the second run."""
        values, state = super().draw(draw, redraw)
        self.draws.append(state)
        return values, state

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        t = super().resolve(tensor)
        if type(tensor).__dict__.get("__parameter__") and id(tensor) not in self._read:
            # An operator may write into what needs no gradient, as batch norm does into its running values.
            copy = t.clone() if not t.requires_grad and t.numel() <= _SMALL else None
            self._read[id(tensor)] = (tensor, t, copy, t._version)
        return t

    def parameters(self) -> Iterator[tuple[TensorBase, torch.Tensor]]:
        """Return the Parameters that were read, with their values at that time; a large one that was written to gets a copy of its present
        values."""
        for tensor, t, copy, version in self._read.values():
            # Batch norm's writes are not counted as versions, so that a copy is always the one to take.
            yield tensor, copy if copy is not None else t if t._version == version else t.clone()

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        self._attributes.setdefault((id(owner), name), (owner, name, owner.__dict__.get(name, _MISSING)))
        super().attribute_set(owner, name, value)

    @contextmanager
    def attributes_as_before(self) -> Iterator[None]:
        """Restore the attributes of the time before the first run, and at the end the present ones."""
        now = [(owner, name, owner.__dict__.get(name, _MISSING)) for owner, name, _ in self._attributes.values()]
        _assign(list(self._attributes.values()))
        try:
            yield
        finally:
            _assign(now)


def _assign(values: Sequence[tuple[Any, str, Any]]) -> None:
    for owner, name, value in values:
        if value is _MISSING:
            owner.__dict__.pop(name, None)
        else:
            owner.__dict__[name] = value


class RecomputeFrame(Frame):
    """Returns a region's initial state during its second run; the region alone sees what the run writes."""

    def __init__(self, draws: Sequence[torch.Tensor] = ()) -> None:
        self._values: dict[int, torch.Tensor] = {}
        self._saved_bytes: list[TensorBase] = []
        self._draws = iter(draws)

    def draw(self, draw: Callable[[], Any], redraw: Callable[[torch.Tensor], Any]) -> Any:
        """Return the values of the first run. Raises RuntimeError if that drew fewer."""
        state = next(self._draws, None)
        if state is None:
            raise RuntimeError("recompute: a region draws more random numbers when it runs again than before.")
        return redraw(state), state

    def substitute(self, tensor: TensorBase, t: torch.Tensor) -> None:
        """From now on `t` is what `tensor` holds."""
        self._values[id(tensor)] = t
        self._saved_bytes.append(tensor)

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        value = self._values.get(id(tensor))
        return value if value is not None else super().resolve(tensor)

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        before = self.resolve(tensor)
        self.substitute(tensor, value.expand(before.shape).to(before.dtype))

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        value = self.resolve(tensor).clone()
        change(value)
        self.substitute(tensor, value)

    def rebind(self, tensor: TensorBase, t: torch.Tensor) -> None:
        self.substitute(tensor, t)
