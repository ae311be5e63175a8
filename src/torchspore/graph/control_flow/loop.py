"""A loop on a Tensor inside a capture: one round is captured as a graph, and the values that it changes are the loop's state."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.engine.autograd.grad import is_differentiating
from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number, is_plain, number
from torchspore.engine.tensors.tensor import TensorBase, raw
from torchspore.engine.tensors.tree import like
from torchspore.graph.capture.ambiguous_tensors import mark, mark_numbers
from torchspore.graph.capture.capture import Capture
from torchspore.graph.capture.profile_hook import quiet
from torchspore.graph.control_flow.assemble import Assembly, Shape
from torchspore.graph.control_flow.branch import derivative, leave, scalar, scattered
from torchspore.graph.control_flow.branch_join import NOTHING, Mismatch, Source, filled
from torchspore.graph.control_flow.loop_state import Retry, Slot, State
from torchspore.graph.control_flow.mutable_state import UNBOUND, Attribute, Local, MutableState, WrittenTensor
from torchspore.graph.control_flow.subgraph import Outcome, SubgraphCapture, is_live_in, memory_of, origin
from torchspore.graph.fx.control_flow import Flag, Gradients, Record, as_tensor, emit, flag_like, meta_tensor_like
from torchspore.graph.refusal import Kind, Refusal
from torchspore.translations import translate

_ROUNDS = 12
"""The maximum number of times that a body is captured again because more of its state varies."""


@dataclass(eq=False)
class Loop(Record):
    """A loop; `body` takes state and inputs and gives state, whether to go on, and gradients of state and inputs."""

    body: torch.fx.GraphModule
    shape: Shape
    count: int
    line: str | None = None
    back: LoopBack | None = None

    def graphs(self) -> list[torch.fx.GraphModule]:
        return [self.body]

    @property
    def of_state(self) -> list[int]:
        """Return the positions of the state that have gradients."""
        return [i for i in self.shape.input_indices if i < self.count]

    @property
    def of_inputs(self) -> list[int]:
        """Return the positions, among state and inputs, of the inputs that have gradients."""
        return [i for i in self.shape.input_indices if i >= self.count]

    def gradient(self, inputs: Sequence[torch.Tensor], gradients: list[torch.Tensor], flags: list[Flag]) -> Gradients:
        if self.back is None:
            metas = [self.shape.inputs[i] for i in self.shape.input_indices]
            self.back = LoopBack([*metas, *[flag_like() for _ in metas]], self)
        return scattered(emit(self.back, [*inputs, *gradients, *map(as_tensor, flags)]), self.shape.input_indices, len(inputs), 1)


@dataclass(eq=False)
class LoopBack(Record):
    """The gradient of a loop."""

    of: Loop
    second: LoopBackSecond | None = None

    def gradient(self, inputs: Sequence[torch.Tensor], gradients: list[torch.Tensor], flags: list[Flag]) -> Gradients:
        shape = self.of.shape
        if self.second is None:
            taken = shape.derived()
            second = derivative(self.of.body, taken, len(shape.outputs))
            ends = [shape.outputs[i] for i in shape.seeds]
            metas = [*self.metas[:len(shape.input_indices)], *ends]
            self.second = LoopBackSecond([*metas, *[flag_like() for _ in metas]], self, second)
        input_indices = [*shape.input_indices, *range(len(shape.inputs), len(shape.inputs) + len(shape.seeds))]
        return scattered(emit(self.second, [*inputs, *gradients, *map(as_tensor, flags)]), input_indices, len(inputs), 1)


@dataclass(eq=False)
class LoopBackSecond(Record):
    """The gradient of the gradient of a loop."""

    of: LoopBack
    second: torch.fx.GraphModule

    def gradient(self, inputs: Sequence[torch.Tensor], gradients: list[torch.Tensor], flags: list[Flag]) -> Gradients:
        raise Refusal("takes a gradient of third order through a loop on a Tensor; graphs support two orders", self.of.of.line)


def on_tensor(
    around: Capture, go_on: Any, test: Callable[[], Any], body: Callable[[], Any], live: Iterable[str],
) -> tuple[Any, Any]:
    """The loop from here on, with `go_on` the first test; gives how it ended, as the body says it."""
    with quiet():
        return _Tracing(around, test, body, set(live)).run(go_on)


class _Tracing:
    """The capture of one loop."""

    def __init__(self, around: Capture, test: Callable[[], Any], body: Callable[[], Any], live: set[str]) -> None:
        self._around, self._live, self._line = around, live, user_line()
        self._test, self._body = test, body
        self._state = State()
        self._carried: dict[Any, tuple[Any, Any, Any]] = {}          # key -> (position, earlier value, structure)
        self._lost: dict[Any, tuple[Local, Any]] = {}
        self._unknown: list[tuple[torch.Tensor, BaseException]] = []

    def run(self, go_on: Any) -> tuple[Any, Any]:
        for _ in range(_ROUNDS):
            outcome = self._round()
            if self._is_settled(outcome):
                break
        else:
            raise Refusal("has a loop whose state does not settle", self._line)
        continues, (code, value) = outcome.value
        exit_structure = self._exit(code, value, outcome)
        results = self._emit(scalar(go_on), continues, outcome)
        mark(results, (slot.is_shared for slot in self._state.slots))
        mark_numbers(results, (slot.may_be_number for slot in self._state.slots))
        for key, (location, _, structure) in self._carried.items():
            if not isinstance(location, WrittenTensor) or key in outcome.changes:
                leave(location, filled(structure, results))
        self._note_results(results)
        for base, reason in self._unknown:
            around = engine.frame()
            assert around is not None
            around.forget(base, reason)
        for key, (location, _, _) in outcome.changes.items():
            if isinstance(location, Local) and key not in self._carried:
                if location.name in self._live:
                    self._around.watch.lost.setdefault(
                        location.name,
                        Refusal(
                            translate("reads {name!r} after a loop on a Tensor that may run zero times and has no value for it before")
                            .format(name=location.name),
                            self._line,
                            Kind.UNBOUND,
                        ),
                    )
                location.set(UNBOUND)
        return filled(exit_structure, results)

    # ---- one round

    def _step(self) -> Any:
        from torchspore.graph.control_flow.runtime_helpers import and_, running

        code, value = self._body()
        go_on = self._test() if is_plain(code) and running(code) else and_(running(code), self._test)
        return go_on, (code, value)

    def _round(self) -> Outcome:
        part = SubgraphCapture(self._around)
        starts: list[TensorBase] = [slot.start for slot in self._state.slots if slot.is_read]
        part.force(starts)
        part.lose(self._unknown)
        self._note_starts()
        for location, _, structure in self._carried.values():
            met = self._state.met(structure)
            if isinstance(location, WrittenTensor):
                part.give(location.tensor, met)
            elif isinstance(location, Attribute):
                location.put(met)
            else:
                location.set(met)
        for local, _ in self._lost.values():
            local.set(UNBOUND)
        try:
            outcome = part.trace(self._step, MutableState((self._test, self._body)))  # type: ignore[arg-type]
        finally:
            self._put_back()
        if outcome.raised is not None:
            raise Refusal(translate("raises {error}").format(error=type(outcome.raised).__name__), self._line, Kind.RAISES)
        return outcome

    def _put_back(self) -> None:
        for location, before, _ in self._carried.values():
            if isinstance(location, Attribute):
                location.put(before)
            elif not isinstance(location, WrittenTensor):
                location.set(before)
        for local, before in self._lost.values():
            local.set(before)

    def _is_settled(self, outcome: Outcome) -> bool:
        """Return whether the state that was assumed is the state that came out; widens it where not."""
        settled = True
        for key, (location, before, now) in outcome.changes.items():
            if key in self._carried or key in self._lost or not self._counts(location, before):
                continue
            settled = False
            try:
                count = len(self._state.slots)
                self._carried[key] = (location, before, self._state.enter(before, now, outcome))
                for slot in self._state.slots[count:]:
                    slot.has_name = not isinstance(location, WrittenTensor)
            except Mismatch as mismatch:
                self._give_up(key, location, before, mismatch)
        if not settled:
            return False
        for key, (location, before, structure) in list(self._carried.items()):
            after = outcome.changes[key][2] if key in outcome.changes else self._state.met(structure)
            try:
                self._state.match(structure, after, outcome)
            except Retry:
                settled = False
                if not self._has_slots(structure):
                    self._carried[key] = (location, before, self._state.enter(before, after, outcome))
                else:
                    self._widen(key, location, before, structure, after, outcome)
            except Mismatch as mismatch:
                settled = False
                del self._carried[key]
                self._give_up(key, location, before, mismatch)
        return settled and self._aliases_are_settled(outcome)

    # ---- which memory may be the same

    def _note_starts(self) -> None:
        """Record which memory the state shares in the first round."""
        if is_differentiating():
            slots = self._state.slots
            self._note([[] if slot.before is None or not slot.has_name else memory_of(Outcome(), slot.before) for slot in slots])

    def _note(self, memory: list[list[torch.Tensor]]) -> bool:
        """Record which memory each slot may share, by slot. Return whether any of that is new.

        Two slots may share memory that a round created: then only the pair of slots is recorded, because the next capture of the body
        creates that memory again.
        """
        starts, add = [slot.start._t for slot in self._state.slots], self._around.watch.aliases.add
        is_new = False
        for i, here in enumerate(memory):
            for base in here:
                if is_live_in(self._around, base) and not any(base is start for start in starts):
                    is_new |= add(starts[i], base, self._line)
            for j, there in enumerate(memory[:i]):
                if any(first is two for first in here for two in there):
                    is_new |= add(starts[i], starts[j], self._line)
        return is_new

    def _aliases_are_settled(self, outcome: Outcome) -> bool:
        """Return whether nothing turned out that the next round has to know: what its state may show, and what is not known any more."""
        is_new = is_differentiating() and self._note([self._memory_after_round(slot, outcome) for slot in self._state.slots])
        for base, reason in outcome.unknown:
            if not any(base is other for other, _ in self._unknown):
                self._unknown.append((base, reason))
                is_new = True
        lost = {id(base) for base, _ in self._unknown}
        self._carried = {
            key: entry for key, entry in self._carried.items()
            if not (isinstance(entry[0], WrittenTensor) and id(origin(entry[0].tensor)) in lost)
        }
        return not is_new

    @staticmethod
    def _memory_after_round(slot: Slot, outcome: Outcome) -> list[torch.Tensor]:
        if slot.then is None or not slot.has_name or isinstance(slot.then, Number):
            return []
        return memory_of(outcome, slot.then)

    def _note_results(self, results: list[torch.Tensor]) -> None:
        """Record which memory the state may share after the loop."""
        starts = {id(slot.start._t): t for slot, t in zip(self._state.slots, results)}
        add = self._around.watch.aliases.add
        for slot, t in zip(self._state.slots, results):
            for base, _ in self._around.aliases(slot.start._t):
                add(t, starts.get(id(base), base), self._line)

    def _widen(self, key: Any, location: Any, before: Any, structure: Any, after: Any, outcome: Outcome) -> None:
        """Add slots for values that seemed constant inside a structure that has slots."""
        self._carried[key] = (location, before, self._merged(structure, before, after, outcome))

    def _merged(self, structure: Any, before: Any, after: Any, outcome: Outcome) -> Any:
        from torchspore.graph.control_flow.branch_join import JoinedTensor

        if isinstance(structure, JoinedTensor):
            return structure
        if isinstance(structure, (list, tuple)):
            return like(structure, [self._merged(s, b, a, outcome) for s, b, a in zip(structure, before, after)])
        if isinstance(structure, dict):
            return like(structure, [self._merged(s, before[k], after[k], outcome) for k, s in structure.items()])
        return self._state.enter(before, after, outcome)

    def _has_slots(self, structure: Any) -> bool:
        from torchspore.graph.control_flow.branch_join import JoinedTensor

        if isinstance(structure, JoinedTensor):
            return True
        if isinstance(structure, (list, tuple)):
            return any(self._has_slots(item) for item in structure)
        return isinstance(structure, dict) and any(self._has_slots(item) for item in structure.values())

    def _counts(self, location: Any, before: Any) -> bool:
        """Return whether what a round leaves there matters for the next one or afterwards."""
        if isinstance(location, Local):
            return before is not UNBOUND and (location.foreign or location.name in self._live)
        return before is not UNBOUND

    def _give_up(self, key: Any, location: Any, before: Any, mismatch: Mismatch) -> None:
        text = translate("gives {variable} two kinds of value in a loop that a Tensor ends:\n{mismatch}")
        reason = Refusal(text.format(variable=location, mismatch=mismatch), self._line, Kind.TWO_KINDS)
        if not isinstance(location, Local):
            raise reason from None
        self._around.watch.lost[location.name] = reason
        self._lost[key] = (location, before)

    # ---- the result

    def _exit(self, code: Any, value: Any, outcome: Outcome) -> tuple[Any, Any]:
        """The structure of how the loop ended."""
        if is_plain(code) and code in (True, 0):
            return code, NOTHING
        if "_exit" not in self._live:
            return True, NOTHING
        exit_slot = self._state._add(number(True if isinstance(code, bool) else 0), False)
        self._state.match(exit_slot, code, outcome)
        return exit_slot, self._state.result(value, outcome) if value is not NOTHING else NOTHING

    def _emit(self, go_on: torch.Tensor, continues: Any, outcome: Outcome) -> list[torch.Tensor]:
        slots = self._state.slots
        count = len(slots)
        inputs = [raw(slot.start) for slot in slots]
        positions = {outcome.homes[id(slot.start)]: i for i, slot in enumerate(slots) if id(slot.start) in outcome.homes}
        at: list[int | None] = []
        for i, t in enumerate(outcome.inputs):
            if i in positions:
                at.append(positions[i])
            else:
                at.append(_position(inputs, t, count))
        sources = [slot.after for slot in slots]
        for source in sources:
            if source.outside is not None:
                _position(inputs, source.outside, count)
        last, meta = _verdict(continues, outcome)
        recording = is_differentiating() and any(t.requires_grad for t in inputs)
        metas = [meta_tensor_like(t) for t in inputs[:count]]
        of_state = [i for i in range(count) if recording and is_differentiable(inputs[i])]
        of_inputs = [i for i in range(count, len(inputs)) if recording and inputs[i].requires_grad]
        shape = Shape(inputs, [*metas, meta], of_state, [*of_state, *of_inputs], outcome.custom_gradient)
        body = Assembly(outcome, shape, at).run([*sources, last], [False] * (count + 1))
        shape.inputs = [meta_tensor_like(t) for t in inputs]
        return emit(Loop(metas, body, shape, count, self._line), [go_on, *inputs])


def _position(inputs: list[torch.Tensor], t: torch.Tensor, first: int) -> int:
    """Return the index of `t` among the inputs after the state; add it if it is missing."""
    for i in range(first, len(inputs)):
        if inputs[i] is t:
            return i
    inputs.append(t)
    return len(inputs) - 1


def _verdict(continues: Any, outcome: Outcome) -> tuple[Source, torch.Tensor]:
    """Return the value of a round that says whether another follows."""
    if not isinstance(continues, TensorBase):
        flag_meta = torch.empty((), dtype=torch.bool, device="meta")
        flag_meta.at = torch.device("cpu")  # type: ignore[attr-defined]
        return Source(value=bool(continues)), flag_meta
    index = outcome.outs.get(id(continues))
    if index is None:
        t = raw(continues)
        return Source(outside=t), meta_tensor_like(t)
    return Source(index=index), outcome.metas[index]
