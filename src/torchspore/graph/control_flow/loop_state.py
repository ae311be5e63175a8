"""The state of a loop of the graph: which names, containers and attributes a round changes, and how each round hands them to the next."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from torchspore.engine.autograd.grad import is_differentiating
from torchspore.engine.tensors.in_place_versions import renamed
from torchspore.engine.tensors.number import KINDS, Number, is_plain, number
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap
from torchspore.engine.tensors.tree import like
from torchspore.graph.capture.ambiguous_tensors import mark, mark_numbers, may_be_number, may_be_parameter
from torchspore.graph.control_flow.branch_join import NOTHING, JoinedTensor, Mismatch, Source, from_outside, holds, is_equal, sides
from torchspore.graph.control_flow.subgraph import Outcome
from torchspore.graph.fx.control_flow import meta_tensor_like


class Retry(Exception):
    """More of the state turned out to vary: the body is to be captured once more."""


@dataclass
class Slot:
    """A tensor of the state: the value that the program reads in a round, and where it is after the round."""

    start: TensorBase
    """A separate Tensor or Number with the value before the first round."""
    after: Source = field(default_factory=Source)
    is_read: bool = True
    is_shared: bool = False
    """True if the program's value may be a Parameter itself."""
    may_be_number: bool = False
    """It may be a Python number where the graph has a Tensor."""
    has_name: bool = True
    """The program names it; it is not the values of a Tensor that is written in place."""
    before: TensorBase | None = None
    """The Tensor that the program names there before the first round."""
    then: TensorBase | None = None
    """The one that it names there after a round."""


class State:
    """All slots of a loop."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []

    def enter(self, before: Any, after: Any, part: Outcome) -> Any:
        """The structure `before` with slots where a round makes it differ from `after`. Raises Mismatch."""
        if before is after or before is NOTHING or isinstance(before, JoinedTensor):
            return before
        if is_plain(before) and is_plain(after):
            if type(before) is type(after) and (before == after or before != before):
                return before
            if type(before) is not type(after):          # an int where no round runs, else a float: Tensors take them differently
                raise Mismatch(_rounds(before, after))
            return self._add(number(before))
        if isinstance(after, TensorBase) and is_plain(before):
            return self._from_number(before, after, part)
        if isinstance(before, Number):
            return self._add(Number(alias(raw(before))))
        if isinstance(before, TensorBase):
            state_tensor = self._add(wrap(alias(raw(before))), is_shared=may_be_parameter(before), is_number=may_be_number(before))
            self.slots[state_tensor.index].before = before
            return state_tensor
        if type(before) is type(after) and isinstance(before, (list, tuple)) and len(before) == len(after):
            return like(before, [self.enter(x, y, part) for x, y in zip(before, after)])
        if isinstance(before, dict) and type(before) is type(after) and list(before) == list(after):
            return like(before, [self.enter(value, after[key], part) for key, value in before.items()])
        if is_equal(before, after):
            return before
        raise Mismatch(_rounds(before, after))

    def _from_number(self, before: Any, after: TensorBase, part: Outcome) -> JoinedTensor:
        meta = meta_of(part, after)
        if meta.ndim:
            raise Mismatch(_rounds(before, after))
        if isinstance(after, Number):
            kind: Any = KINDS[meta.dtype]
            if type(before) is not kind:
                raise Mismatch(_rounds(before, after))
            return self._add(Number(torch.full((), before, dtype=meta.dtype)))
        if not holds(meta.dtype, before):
            raise Mismatch(_rounds(before, after))
        start = torch.full((), before, dtype=meta.dtype, device=meta.at)  # type: ignore[attr-defined]
        return self._add(wrap(start), is_number=True)

    def _add(self, start: TensorBase, is_read: bool = True, is_shared: bool = False, is_number: bool = False) -> JoinedTensor:
        mark([start._t], [is_shared])
        mark_numbers([start._t], [is_number])
        self.slots.append(Slot(start, is_read=is_read, is_shared=is_shared, may_be_number=is_number))
        return JoinedTensor(len(self.slots) - 1, isinstance(start, Number))

    # ---- after a round

    def match(self, structure: Any, after: Any, part: Outcome) -> None:
        """Record where each slot of `structure` is after a round. Raises Again if a constant varies, or Mismatch."""
        if isinstance(structure, JoinedTensor):
            self._match_slot(self.slots[structure.index], after, part)
        elif structure is after:
            return
        elif isinstance(structure, (list, tuple)) and type(structure) is type(after) and len(structure) == len(after):
            for x, y in zip(structure, after):
                self.match(x, y, part)
        elif isinstance(structure, dict) and type(structure) is type(after) and list(structure) == list(after):
            for key, value in structure.items():
                self.match(value, after[key], part)
        elif is_plain(structure) and type(structure) is type(after) and structure == after:
            return
        elif isinstance(structure, TensorBase) or isinstance(after, TensorBase) or (is_plain(structure) and is_plain(after)):
            raise Retry
        elif not is_equal(structure, after):
            raise Mismatch(_rounds(structure, after))

    def _match_slot(self, slot: Slot, after: Any, part: Outcome) -> None:
        start = slot.start
        meta = meta_tensor_like(raw(start))
        if isinstance(after, TensorBase):
            found = meta_of(part, after)
            if isinstance(start, Number) and not isinstance(after, Number) and found.ndim == 0:
                slot.start, slot.may_be_number = wrap(raw(start).to(found.dtype)), True
                mark_numbers([slot.start._t], [True])
                raise Retry
            if found.shape != meta.shape or found.dtype is not meta.dtype:
                raise Mismatch(_rounds(start, after))
            index = part.outs.get(id(after))
            if may_be_parameter(after) and not slot.is_shared and not isinstance(start, Number):
                slot.is_shared = True
                mark([start._t], [True])
                if slot.is_read:
                    raise Retry
            self._match_mark(slot, may_be_number(after) and not isinstance(start, Number))
            slot.after = Source(index=index) if index is not None else from_outside(part, after)
            slot.then = after
        elif is_plain(after) and isinstance(start, Number) and type(after) is not KINDS[meta.dtype]:
            raise Mismatch(_rounds(start, after))
        elif is_plain(after) and not meta.ndim and holds(meta.dtype, after):
            self._match_mark(slot, not isinstance(start, Number))
            slot.after = Source(value=after, is_fixed=isinstance(start, Number))
        else:
            raise Mismatch(_rounds(start, after))

    @staticmethod
    def _match_mark(slot: Slot, may_be: bool) -> None:
        """Record that a round may return a Python number where the slot has a Tensor."""
        if may_be and not slot.may_be_number:
            slot.may_be_number = True
            mark_numbers([slot.start._t], [True])
            if slot.is_read:
                raise Retry

    def met(self, structure: Any) -> Any:
        """Return the values that the program sees in a round: the slots' own Tensors at their positions."""
        if isinstance(structure, JoinedTensor):
            return self.slots[structure.index].start
        if isinstance(structure, (tuple, list)):
            return like(structure, [self.met(item) for item in structure])
        if isinstance(structure, dict):
            return like(structure, [self.met(item) for item in structure.values()])
        return structure

    def result(self, value: Any, part: Outcome) -> Any:
        """Return slots for the result of a `return` inside the loop, which does not exist before the first round."""
        from torchspore.engine.tensors.tensor import transform

        def state_of(tensor: TensorBase) -> JoinedTensor:
            meta = meta_of(part, tensor)
            zeros = torch.zeros(meta.shape, dtype=meta.dtype, device=meta.at)  # type: ignore[attr-defined]
            state_tensor = self._add(Number(zeros) if isinstance(tensor, Number) else wrap(zeros), False)
            self._match_slot(self.slots[state_tensor.index], tensor, part)
            return state_tensor

        return transform(value, state_of)


def alias(t: torch.Tensor) -> torch.Tensor:
    """`t` under another name, which costs nothing when the graph runs."""
    if is_differentiating():
        return renamed(t)                       # a write into it is not a write into `t`: it is `t` in the first round alone
    return torch.ops.aten.alias.default(t)


def meta_of(part: Outcome, tensor: TensorBase) -> torch.Tensor:
    """Shape, dtype and device of a Tensor that a part gives."""
    index = part.outs.get(id(tensor))
    return part.metas[index] if index is not None else meta_tensor_like(raw(tensor))


def _rounds(before: Any, after: Any) -> str:
    lines = sides(before, after).splitlines()
    return f"  before a round: {lines[0].split(':', 1)[1].strip()}\n  after it:       {lines[1].split(':', 1)[1].strip()}"
