"""The frame of a gradient: chosen Tensors represent leaves of torch.autograd in it, and writes are versions until it ends."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from torchspore.blackbox import marks
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.autograd.gradient_listeners import GradientListener
from torchspore.engine.tensors import torch_aliases
from torchspore.engine.tensors.in_place_versions import Extent, Versions, base_of
from torchspore.engine.tensors.tensor import Frame, TensorBase, is_recording, raw, tensors, thread_state, wrap


class GradFrame(Frame):
    """Hands out leaves for the Tensors that gradients are wanted of."""

    records = True
    _block: integer_gradients.Block | None = None
    _versions: Versions | None = None                 # from the first write on
    _watch: torch_aliases.Watch | None = None
    _taken: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] | None = None
    _tables: Iterable[torch.Tensor] = ()
    """The leaves of weights of which rows may be taken."""

    def __init__(self) -> None:
        self._values: dict[int, torch.Tensor] = {}
        self._frozen: dict[int, torch.Tensor] = {}
        """With `heeds_flags`: substitutes of Parameters with `requires_grad=False`, by their ids; reads are detached from them."""
        self.heeds_flags = False
        self._weights: list[TensorBase] = []          # keeps the ids in `_values` from being used again
        self._modified: dict[int, TensorBase] = {}
        self._attributes: list[tuple[Any, str]] = []
        self.cut: dict[int, tuple[GradientListener, torch.Tensor]] = {}
        """By the ids of weights whose gradients are split among processes: their leaves, and the listener that created each leaf."""

    @property
    def taken(self) -> dict[int, list[tuple[torch.Tensor, torch.Tensor]]]:
        """By id of a weight's leaf the indices and the rows that were taken of it as leaves by themselves."""
        if self._taken is None:
            self._taken = {id(leaf): [] for leaf in self._tables if leaf.ndim}
        return self._taken

    def offer_rows(self, leaves: Iterable[torch.Tensor]) -> None:
        """Let operators take rows of these leaves of weights."""
        self._tables = leaves

    def has_rows(self) -> bool:
        """Return whether rows of a weight were taken."""
        return self._taken is not None and any(self._taken.values())

    def substitute(self, tensor: TensorBase, leaf: torch.Tensor) -> None:
        """From now on `leaf` is computed with where `tensor` is read."""
        is_parameter = getattr(tensor, "__parameter__", False)          # packages set the attribute on their Tensors too
        is_frozen = self.heeds_flags and is_parameter and tensor.__dict__.get("_requires_grad") is False
        (self._frozen if is_frozen else self._values)[id(tensor)] = leaf
        self.lookup = None if is_frozen else self.lookup
        self._weights.append(tensor)

    def substitute_all(self, weights: Sequence[TensorBase], leaves: dict[int, torch.Tensor]) -> None:
        """Call `substitute` for all `weights`, none of which has `requires_grad=False`."""
        self._values.update(leaves)
        self._weights.extend(weights)

    def flag_set(self, parameter: TensorBase, requires_grad: bool) -> None:
        if self.heeds_flags:
            before, after = (self._frozen, self._values) if requires_grad else (self._values, self._frozen)
            if id(parameter) in before:
                after[id(parameter)] = before.pop(id(parameter))
                self.lookup = None

    def leaf_ids(self) -> set[int]:
        """Return the ids of the torch tensors that this frame hands out for Tensors."""
        return {id(value) for value in (*self._values.values(), *self._frozen.values())}

    def frozen_leaf_ids(self) -> set[int]:
        """Return the ids of the leaves that have no gradient, because their Parameters have `requires_grad=False` now."""
        return {id(leaf) for leaf in self._frozen.values()}

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        value = self._values.get(id(tensor))
        if value is None:
            if self._frozen and id(tensor) in self._frozen:
                value = self._frozen[id(tensor)]
                return (value if self._versions is None else self._present(value)).detach()
            if self.outer is None and not self.cut and self.__class__ is GradFrame:
                value = tensor._t                       # the most frequent case takes no further call
            else:
                value = self.initial_value(tensor)
        return value if self._versions is None else self._present(value)

    def _present(self, value: torch.Tensor) -> torch.Tensor:
        """Return the present value of memory, after the first write."""
        assert self._versions is not None
        return self._versions.read(value) if self._watch is None else self._watch.read(value, self._versions)

    def initial_value(self, tensor: TensorBase) -> torch.Tensor:
        """Return the value at the beginning of the frame of `tensor`, which has no substitute yet."""
        return self._cut(tensor) if self.cut and id(tensor) in self.cut else super().resolve(tensor)

    def _cut(self, tensor: TensorBase) -> torch.Tensor:
        """Return a substitute that is created at its first use, so that its gradient is reduced as soon as it exists."""
        listener, leaf = self.cut[id(tensor)]
        value = listener.replace_weight(tensor, leaf, Frame.resolve(self, tensor))
        self.substitute(tensor, value)
        return value

    def begin_part(self) -> None:
        """Create new substitutes for weights whose gradients are split, so that the sum so far is split separately."""
        for key in self.cut:
            if key not in self._modified:
                self._values.pop(key, None)

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        before = raw(tensor)
        value = value.expand(before.shape).to(before.dtype)
        if getattr(tensor, "__parameter__", False):
            value = integer_gradients.assigned(before, value.detach().clone())
        elif value._base is None and not value.requires_grad:
            value = value.clone()
        versions, memory = self._begin_write(tensor), self._memory(tensor)
        versions.replace(memory, torch_aliases.lend(value, versions, base_of(memory)))
        self._end_write(tensor)

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        versions = self._begin_write(tensor)
        if getattr(tensor, "__parameter__", False):
            before = raw(tensor)
            value = before.detach().clone()
            with torch.no_grad():
                change(value)
            versions.replace(self._memory(tensor), integer_gradients.assigned(before, value))
        else:
            versions.change(self._memory(tensor), change)
        self._end_write(tensor)

    def _memory(self, tensor: TensorBase) -> torch.Tensor:
        """The torch tensor that writes into `tensor` go to."""
        value = self._substitute_of(tensor)
        return self.initial_value(tensor) if value is None else value

    def _substitute_of(self, tensor: TensorBase) -> torch.Tensor | None:
        value = self._values.get(id(tensor))
        return self._frozen.get(id(tensor)) if value is None else value

    def _begin_write(self, tensor: TensorBase) -> Versions:
        self._modified[id(tensor)] = tensor
        self._weights.append(tensor)
        if self._versions is None:
            self.lookup, self._versions, self._watch = None, Versions(), torch_aliases.Watch()
        if self._watch is not None:
            self._watch.begin_write(self, base_of(self._memory(tensor)), self._versions)
        return self._versions

    def _end_write(self, tensor: TensorBase) -> None:
        """Forgets the memory that may be the same, as a branch or loop of a graph decides."""
        assert self._versions is not None
        if self.settles:
            return
        around = self.outer
        while around is not None and not around.is_part:
            around = around.outer
        for other, reason in self.aliases(self.origin(base_of(self._memory(tensor)))):
            if around is not None:
                raise reason                   # inside of a branch the other memory has another name
            self._versions.forget(other, reason)

    def origin(self, base: torch.Tensor) -> torch.Tensor:
        return super().origin(base if self._versions is None else self._versions.origin(base))

    def extent(self, t: torch.Tensor) -> Extent:
        if self.outer is None:
            return super().extent(t)
        base = base_of(t)
        key, start = self.outer.extent(base if self._versions is None else self._versions.origin(base))
        return key, start + t.storage_offset() - base.storage_offset()

    def forget(self, base: torch.Tensor, reason: BaseException) -> None:
        if self._versions is None:
            self.lookup, self._versions = None, Versions()
        self._versions.forget(base, reason)

    def known_out(self, tensor: TensorBase) -> Any:
        if self._versions is not None and self._versions.has(base_of(self._memory(tensor))):
            return None
        return super().known_out(tensor)

    def rebind(self, tensor: TensorBase, t: torch.Tensor) -> None:
        self._values.pop(id(tensor), None)
        self._frozen.pop(id(tensor), None)
        self._modified.pop(id(tensor), None)
        super().rebind(tensor, t)

    def host(self, tensor: TensorBase) -> torch.Tensor:
        value = self._substitute_of(tensor)
        if value is None:
            value = super().host(tensor)
        return value if self._versions is None else self._present(value)

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        if any(True for _ in tensors(value)):
            self._attributes.append((owner, name))
        super().attribute_set(owner, name, value)

    def rows(self, leaf: torch.Tensor, indices: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor | None:
        """Return the rows of a weight at `indices` (n,) with a separate gradient; None if `leaf` is not a weight of this transform.

        `values` are the rows, if the weight's own tensor does not contain them.
        """
        rows_taken = self.taken.get(id(leaf))
        if rows_taken is None:
            return None
        rows = (leaf.detach().index_select(0, indices.long()) if values is None else values.detach()).requires_grad_()
        rows_taken.append((indices, rows))
        return rows

    def __enter__(self) -> None:
        if thread_state.frame is not None or integer_gradients.is_in_block():
            GradFrame.begin_block(self)                # the outermost block begins with the first cast to integers
        super().__enter__()
        if self.__class__ is GradFrame and not (self.cut or self._frozen or self._versions):
            self.look_up_in(self._values)

    def look_up_in(self, values: dict[int, torch.Tensor]) -> None:
        """Let operators read the substitutes from `values`, by the ids of Tensors, until one of them writes, if nothing else is needed."""
        if self.outer is None and self.rules is None and not marks.is_enabled:
            self.lookup = values.get

    def __exit__(self, *error: Any) -> None:
        try:
            if self._watch is not None:
                self._watch.close()
        finally:
            self.lookup = None
            super().__exit__(*error)
            block, self._block = self._block, None
            if block is not None:
                block.__exit__(*error)
        if error[0] is not None and self.__class__ is GradFrame and issubclass(error[0], Exception):
            with torch.set_grad_enabled(nested := is_recording()):
                self.finish((), nested)                    # the program may catch the error

    def begin_block(self) -> None:
        self._block = integer_gradients.Block()
        self._block.__enter__()

    def has_first_leaves(self) -> bool:
        """Return whether gradients are those of the leaves at the beginning: no `requires_grad` became False, and no rows were taken."""
        return not self._frozen and not self.has_rows()

    def finish(self, result: Any, nested: bool) -> None:
        """Write assigned values back and, in the outermost transform, detach what leaves it from the graph."""
        if self._versions is not None:
            self._write_back(self._versions, nested)
        if not nested:
            cut(result)
            for owner, name in self._attributes:
                cut(getattr(owner, name, None))

    def write_base(self, owner: TensorBase, value: torch.Tensor) -> None:
        """Write the last value of `owner` around this frame."""
        Frame.write(self, owner, value)

    def _write_back(self, versions: Versions, nested: bool) -> None:
        owners = {id(leaf): tensor for tensor in self._weights if (leaf := self._substitute_of(tensor)) is not None}
        owners.update({id(t): tensor for tensor in self._modified.values() if base_of(t := self._memory(tensor)) is t})
        around = self.outer if self.outer is not None else self
        around.settles = True
        try:
            for base, value in list(versions.written()):
                owner = owners.get(id(base))
                self.write_base(wrap(base) if owner is None else owner, value if nested else value.detach())
        finally:
            around.settles = False
        for base, reason in versions.unknown():
            owner = owners.get(id(base))
            Frame.forget(self, base if owner is None else base_of(Frame.resolve(self, owner)), reason)


def cut(value: Any) -> None:
    """Detaches every Tensor in `value` from the graph that made it."""
    for tensor in (value,) if isinstance(value, TensorBase) else tensors(value):
        if tensor._t.requires_grad or integer_gradients.shadow(tensor._t) is not None:
            tensor._t = tensor._t.detach()

