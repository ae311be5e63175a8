"""Captures one part of a branch or loop as a separate graph, inside the enclosing capture.

Values that the part reads from outside become inputs of its graph, read through the enclosing frames. Under a gradient transform the graph
also computes the gradients of its inputs from gradients of its results. Other changes of the part are undone and reported.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.frames import user_line
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.autograd.grad import is_differentiating
from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import torch_aliases
from torchspore.engine.tensors.in_place_versions import Extent, Versions, assigned, base_of, renamed
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors, wrap
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import (
    FakeTensor,
    current_trace,
    disable_proxy_modes_tracing,
    graph_of,
    lazy_graphs,
    pop_mode,
    push_mode,
    track,
    without_modes,
)
from torchspore.graph.capture import torch_draws
from torchspore.graph.capture.ambiguous_tensors import is_registered
from torchspore.graph.capture.capture import Capture, unbound_name
from torchspore.graph.capture.profile_hook import quiet
from torchspore.graph.capture.state import MISSING
from torchspore.graph.control_flow import gradient_presence
from torchspore.graph.control_flow.mutable_state import Attribute, Location, MutableState, WrittenTensor
from torchspore.graph.forward_cache import PartCalls
from torchspore.graph.fx.control_flow import Flag, as_tensor, meta_tensor_like
from torchspore.graph.fx.inputs import new_input
from torchspore.graph.passes.unused_errors import keep_errors
from torchspore.graph.refusal import Kind, Refusal, of_integers
from torchspore.graph.report import provenance

DEEPEST = 24
"""The maximum depth of nested branches and loops in one graph, including those of called functions. Deeper nesting is an infinite
recursion: both ways of a branch are captured, also the one on which a recursion continues."""


@dataclass
class Outcome:
    """The result of a part: its graph, its result, its changes; or the exception that it raised."""

    value: Any = None
    changes: dict[Any, tuple[Location, Any, Any]] = field(default_factory=dict)
    """By key of the position: (position, earlier value, the part's final value)."""
    module: torch.fx.GraphModule | None = None
    inputs: list[torch.Tensor] = field(default_factory=list)
    """The torch tensors of the frames around that the graph takes."""
    homes: dict[int, int] = field(default_factory=dict)
    """id(Tensor from outside) -> its index among `inputs`."""
    outs: dict[int, int] = field(default_factory=dict)
    """id(Tensor in the result or the changes) -> its index among the graph's outputs."""
    metas: list[torch.Tensor] = field(default_factory=list)
    """Fake tensors of the outputs, for shapes and dtypes."""
    seeds: list[int] = field(default_factory=list)
    """The outputs that have a gradient; the graph takes one tensor for each, after its inputs, and then the flags of these gradients."""
    input_indices: list[int] = field(default_factory=list)
    """The inputs whose gradients the graph gives after its outputs; the flags of these gradients follow."""
    raised: BaseException | None = None
    custom_gradient: str | None = None
    """The line of an operator with a custom gradient inside, which a gradient of second order would not use."""
    part: SubgraphCapture | None = None
    """The frame in which the part was captured."""
    shows: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    """id(Tensor in the result or the changes) -> the memory that it shows: of the frames around, or made here."""
    rewritten: dict[int, torch.Tensor] = field(default_factory=dict)
    """The memory of the frames around that was written, by id."""
    unknown: list[tuple[torch.Tensor, BaseException]] = field(default_factory=list)
    """The memory of the frames around whose values are not known any more, and why."""
    keep_alive: list[Any] = field(default_factory=list)


class SubgraphCapture(Capture):
    """The frame of one part."""

    is_part = True

    def __init__(self, around: Capture) -> None:
        super().__init__()
        self.forwards = None if around.forwards is None else PartCalls(around.forwards)
        self.watch, self.axes = around.watch, around.axes
        self._depth: int = around._depth + 1 if isinstance(around, SubgraphCapture) else 1
        if self._depth > DEEPEST:
            raise Refusal(f"nests branches and loops on Tensors, or numbers, over {DEEPEST} deep, as a function does that calls itself")
        self._records = is_differentiating()
        self._versions = Versions()
        self._write_backs: list[tuple[TensorBase, torch.Tensor]] = []      # (the placeholder of memory of an enclosing frame, that memory)
        self._attributes: dict[Any, tuple[Attribute, Any]] = {}
        self._input_indices: list[int] = []
        self._leaves: set[str] = set()
        self._inputs: list[torch.Tensor] = []
        self._modes: list[Any] = []
        self._state: dict[int, TensorBase] = {}
        self._renamed: list[tuple[TensorBase, TensorBase]] = []
        self._unknown_before: list[tuple[torch.Tensor, BaseException]] = []
        self._handed: dict[int, torch.Tensor | None] = {}              # what each of them had when the round began
        self._is_backward = False
        self._custom_gradient: str | None = None

    def force(self, state: list[TensorBase]) -> None:
        """Set which Tensors are the state of a loop: they have gradients from the second round on, if not before."""
        self._state = {id(tensor): tensor for tensor in state}

    def give(self, tensor: TensorBase, value: TensorBase) -> None:
        """Set the values of `tensor` at the beginning of the part."""
        self._renamed.append((tensor, value))

    def lose(self, unknown: list[tuple[torch.Tensor, BaseException]]) -> None:
        """Set which memory of the enclosing frames has unknown values at the beginning of the part."""
        self._unknown_before += unknown

    # ---- what operators meet

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        if self._is_mine(tensor._t):
            return self._versions.read(tensor._t)
        if self._write_backs or self._versions.has_any():
            t = self._outside(lambda: raw(tensor))
            key, start = self.outer.extent(t)  # type: ignore[union-attr]
            if self._versions.has(key):
                return self._versions.read(t, (key, start))
        return super().resolve(tensor)

    def _lift(self, source: Any, t: torch.Tensor) -> int:
        if isinstance(source, TensorBase):
            t = self._outside(lambda: raw(source))
            if self._records and integer_gradients.shadow(t) is not None:
                raise of_integers()
        with disable_proxy_modes_tracing(), torch.no_grad():
            fake = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
        track(fake, torch.fx.Proxy(self._placeholder(f"in{len(self._inputs)}"), self.tracer), self.tracer)
        if self._records and (t.requires_grad or (id(source) in self._state and is_differentiable(t))):
            fake = fake.detach().requires_grad_()
            self._leaves.add(next(iter(reversed(self.tracer.graph.nodes))).name)
            self._input_indices.append(len(self._inputs))
        self.lifted.append(source)
        self._inputs.append(t)
        self._fakes.append(fake)
        return len(self._fakes) - 1

    def _placeholder(self, name: str) -> Node:
        graph = self.tracer.graph
        with graph.inserting_after(self._last) if self._last is not None else graph.inserting_before(next(iter(graph.nodes), None)):
            self._last = new_input(graph, name)
        return self._last

    def literal(self, data: Any, make: Callable[[Any], torch.Tensor]) -> torch.Tensor:
        t = self._outside(lambda: self.outer.literal(data, make))  # type: ignore[union-attr]
        return self._fakes[self._lift(None, t)].clone()

    def _outside(self, function: Callable[[], Any]) -> Any:
        """Return the result of `function` in the frame and the trace around this part."""
        inner, engine.thread_state.frame = engine.thread_state.frame, self.outer
        try:
            with without_modes(), _modes(self._modes):
                return function()
        finally:
            engine.thread_state.frame = inner

    # ---- called by the program

    def follows_integers(self) -> None:
        if self._records:
            raise of_integers()

    def custom_gradient(self) -> None:
        if self._records and self._custom_gradient is None:
            self._custom_gradient = user_line() or "<unknown>"

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        if not self._records:
            super().write(tensor, value)
            return
        t, extent = self._begin_write(tensor)
        here = self._versions.read(t, extent)
        value = value.expand(here.shape).to(here.dtype)
        is_parameter = getattr(tensor, "__parameter__", False)
        self._versions.replace(t, assigned(here, value.detach().clone()) if is_parameter else value.clone(), extent)
        self._end_write(extent[0])

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        if not self._records:
            super().modify(tensor, change)
            return
        t, extent = self._begin_write(tensor)
        if getattr(tensor, "__parameter__", False):
            here = self._versions.read(t, extent)
            value = here.detach().clone()
            with torch.no_grad():
                change(value)
            self._versions.replace(t, assigned(here, value), extent)
        else:
            self._versions.change(t, change, extent)
        self._end_write(extent[0])

    def _begin_write(self, tensor: TensorBase) -> tuple[torch.Tensor, Extent]:
        """Return the torch tensor that is written, the memory that it shows and where it begins there.

        Memory of the frames around becomes an input.
        """
        if self._is_mine(tensor._t):
            base = base_of(tensor._t)
            if torch_aliases.is_shared(base):
                raise Refusal(torch_aliases.WRITES_SHARED)
            if any(base is fake for fake in self._fakes):
                raise Refusal("takes a view in one branch of an `if` or in a loop that depends on a Tensor, and writes in place into it")
            return tensor._t, (base, tensor._t.storage_offset() - base.storage_offset())
        t = self._outside(lambda: raw(tensor))
        if torch_aliases.is_shared(t):
            raise Refusal(torch_aliases.WRITES_SHARED)
        base = base_of(t)
        key, start = self.outer.extent(t)  # type: ignore[union-attr]
        if not self._versions.has(key):
            owner = self.watch.owner(key, tensor if t is base else wrap(base))
            self._begin(owner, key, super().resolve(owner))
        return t, (key, start)

    def _begin(self, owner: TensorBase, key: torch.Tensor, value: torch.Tensor) -> None:
        self._write_backs.append((owner, key))
        self._versions.begin(key, value)

    def _end_write(self, key: torch.Tensor) -> None:
        if self.settles:
            return
        for other, reason in self.aliases(key):
            self._versions.forget(other, reason)

    def origin(self, base: torch.Tensor) -> torch.Tensor:
        base = self._versions.origin(base)
        index = next((index for index, fake in enumerate(self._fakes) if fake is base), None)
        return super().origin(base if index is None else base_of(self._inputs[index]))     # an input is known by the enclosing value

    def extent(self, t: torch.Tensor) -> Extent:
        base = base_of(t)
        first = self._versions.origin(base)
        index = next((index for index, fake in enumerate(self._fakes) if fake is first), None)
        key, start = self.outer.extent(first if index is None else self._inputs[index])  # type: ignore[union-attr]
        return key, start + t.storage_offset() - base.storage_offset()

    def forget(self, base: torch.Tensor, reason: BaseException) -> None:
        self._versions.forget(base, reason)

    def known_out(self, tensor: TensorBase) -> Any:
        return None if self._records and self._is_mine(tensor._t) and self._versions.has(base_of(tensor._t)) else super().known_out(tensor)

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        if self._is_backward:
            raise self.watch.refuse(f"writes the attribute {name!r} of {type(owner).__name__} in a gradient", Kind.WRITES_ATTRIBUTE)
        if is_registered(value):
            raise Refusal(f"registers {name!r} as a part of {type(owner).__name__} on one way only", kind=Kind.WRITES_ATTRIBUTE)
        lifted = self.watch.lifted_number(owner, name)
        if id(owner) not in self.watch.born:
            # A value that is written on one way only keeps its earlier value on the other: that counts as a read.
            self.watch.read(owner.__dict__, name, owner.__dict__.get(name, MISSING), True)
        super().attribute_set(owner, name, value)
        location = Attribute(owner, name)
        if id(owner) not in self.watch.born:
            self._attributes.setdefault(location.key, (location, location.get() if lifted is None else lifted))

    # ---- the capture itself

    def trace(self, function: Callable[[], Any], state: MutableState) -> Outcome:
        """Capture `function()`; restore the state that it changes. Raises Refusal; an exception of the program is an outcome."""
        out = Outcome()
        forward: set[str] = set()

        def body() -> list[torch.Tensor]:
            self.tracer, self.mode = current_trace()
            torch_draws.refuse_in(self.tracer, self.watch)
            provenance.attach(self.tracer)
            with self.open():
                for base, reason in self._unknown_before:
                    self._versions.forget(base, reason)
                for tensor, value in self._renamed:
                    key = self.outer.origin(base_of(self._outside(lambda tensor=tensor: raw(tensor))))  # type: ignore[misc,union-attr]
                    self._begin(tensor, key, renamed(self.resolve(value)))
                    self._handed[id(tensor)] = self._versions.newest(key)
                with self.watch.heard():
                    out.value = function()
                results = self._finish(out, state)
                forward.update(node.name for node in self.tracer.graph.nodes)
                gradients = self._gradients(out, results)
            return [*results, *gradients]

        try:
            with quiet(), without_modes() as modes, lazy_graphs(True):
                self._modes = list(modes)
                out.module = keep_errors(graph_of(body))
        except Exception as error:
            if not _is_programs(error) or (isinstance(error, NameError) and unbound_name(error) in self.watch.lost):
                raise
            out.raised = error
        finally:
            state.restore()
            self._restore()
        if out.module is not None:
            for node in list(out.module.graph.nodes):
                if node.name not in forward and node.op != "output":
                    node.meta[node_metadata.BACKWARD] = True
                if node.name in self._leaves:  # a leaf is its input, in the graph as for gradients of higher order
                    node.replace_all_uses_with(node.args[0])
                    out.module.graph.erase_node(node)
        out.inputs, out.input_indices, out.custom_gradient = self._inputs, self._input_indices, self._custom_gradient
        out.homes, out.part = dict(self._input_index), self
        out.keep_alive += self.lifted
        return out

    def _restore(self) -> None:
        for location, before in self._attributes.values():
            location.put(before)

    def _finish(self, out: Outcome, places: MutableState) -> list[torch.Tensor]:
        """Record the changes and the results; return the torch tensors of all Tensors in them."""
        changes: list[tuple[Location, Any, Any]] = list(places.changes())
        changes += [(location, before, location.get()) for location, before in self._attributes.values() if location.get() is not before]
        changes += self._writes(out)
        out.changes = {location.key: (location, before, now) for location, before, now in changes}
        results: list[torch.Tensor] = []
        # The other way of a branch, or the next round, may still name a Tensor that was written here: its values are results too.
        named = [tensor for tensor in tensors([items(before) for _, before in places.before]) if self._is_rewritten(tensor)]
        state = [tensor for tensor in self._state.values() if self._is_rewritten(tensor)]
        for tensor in tensors([out.value, *[items(now) for _, _, now in changes], state, named]):
            if id(tensor) not in out.outs:
                t = self.resolve(tensor)
                out.outs[id(tensor)] = len(results)
                out.keep_alive.append(tensor)
                if self._records:
                    out.shows[id(tensor)] = self._memory_of(tensor)
                results.append(t)
        with disable_proxy_modes_tracing(), torch.no_grad():
            out.metas = [meta_tensor_like(t) for t in results]
        return results

    def _writes(self, out: Outcome) -> list[tuple[Location, Any, Any]]:
        """The changes of the values of Tensors of the frames around."""
        out.unknown = [(base, reason) for base, reason in self._versions.unknown() if is_live_in(self.outer, base)]
        lost = {id(base) for base, _ in out.unknown}
        changes: list[tuple[Location, Any, Any]] = []
        for owner, key in self._write_backs:
            newest = self._versions.newest(key)
            if newest is self._handed.get(id(owner), MISSING):
                continue
            out.rewritten[id(key)] = key
            if newest is not None and id(owner) not in self._state and id(key) not in lost:
                changes.append((WrittenTensor(owner), owner, wrap(newest)))
        return changes

    def _is_rewritten(self, tensor: TensorBase) -> bool:
        """Return whether `tensor`, of the frames around, shows memory that was written here to values that are known."""
        if not self._write_backs or self._is_mine(tensor._t):
            return False
        return self._versions.newest(self.outer.origin(base_of(self._outside(lambda: raw(tensor))))) is not None  # type: ignore[union-attr]

    def _memory_of(self, tensor: TensorBase) -> list[torch.Tensor]:
        """The memory that `tensor` shows, or may show."""
        base = self.origin(base_of(tensor._t if self._is_mine(tensor._t) else self._outside(lambda: raw(tensor))))
        return [base, *[other for other, _ in self.aliases(base)]]

    def _gradients(self, out: Outcome, results: list[torch.Tensor]) -> list[torch.Tensor]:
        if not self._records:
            return []
        out.seeds = [i for i, t in enumerate(results) if t.requires_grad and is_differentiable(t)]
        leaves = [self._fakes[i] for i in self._input_indices]
        if not out.seeds or not leaves:
            out.seeds = []
            return []
        seeds = [self._late_input(f"d{i}", results[i].shape, results[i].dtype, results[i].device) for i in out.seeds]
        flags: list[Flag] = [self._late_input(f"f{i}", (), torch.bool, torch.device("cpu")) for i in out.seeds]
        self._is_backward = True
        with self.watch.heard():           # the trace guard observes the program's code in a gradient (`bprop`, hooks) too
            got, flags = gradient_presence.gradients([results[i] for i in out.seeds], leaves, seeds, flags)
        self._is_backward = False
        return [*[torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, got)], *map(as_tensor, flags)]

    def _late_input(self, name: str, shape: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        with disable_proxy_modes_tracing(), torch.no_grad():
            fake = torch.empty(shape, dtype=dtype, device=device)
        track(fake, torch.fx.Proxy(self._placeholder(name), self.tracer), self.tracer)
        return fake


def is_live_in(frame: engine.Frame | None, base: torch.Tensor) -> bool:
    """True if memory belongs to `frame` or to a frame around it.

    The capture of a branch, and an earlier capture of a loop's body, have ended: nothing names the memory that they created.
    """
    while frame is not None and isinstance(base, FakeTensor):
        if isinstance(frame, Capture) and base.fake_mode is frame.mode:
            return True
        frame = frame.outer
    return not isinstance(base, FakeTensor)


def memory_of(side: Outcome, tensor: TensorBase) -> list[torch.Tensor]:
    """Return the memory that a resulting Tensor shares, or may share."""
    out = side.shows.get(id(tensor))
    if out is not None:
        return out
    base = origin(tensor)
    around = engine.frame()
    return [base, *[other for other, _ in around.aliases(base)]] if around is not None else [base]


def origin(tensor: TensorBase) -> torch.Tensor:
    """The memory that a Tensor of the frames of now shows."""
    base, around = base_of(raw(tensor)), engine.frame()
    return base if around is None else around.origin(base)


def trace(function: FunctionType | Callable[[], Any], around: Capture, state: MutableState) -> Outcome:
    """Captures `function()` as a part inside `around`."""
    return SubgraphCapture(around).trace(function, state)


def items(value: Any) -> Any:
    """Return the containers in which to look for Tensors: the items of a set too."""
    return list(value) if isinstance(value, set) else value


@contextmanager
def _modes(modes: list[Any]) -> Iterator[None]:
    """Runs its block under the dispatch modes that were in force around the part."""
    for mode in reversed(modes):
        push_mode(mode)
    try:
        yield
    finally:
        for _ in modes:
            pop_mode()


def _is_programs(error: Exception) -> bool:
    """Return whether the program itself raised `error`, by `raise` or by what it did with Python values; not an operator."""
    from torchspore.base.frames import is_user_file

    if getattr(error, "explained", False) or isinstance(error, Refusal):
        return False
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and is_user_file(step.tb_frame.f_code.co_filename)
