"""Gradients: a frame in which chosen Tensors represent leaves of torch.autograd. Nested transforms keep the outer graph.

Parameters require no grad outside of it. Assignments are written back when a transform ends: gradients use the values that were read.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.blackbox import marks
from torchspore.context.store import STORE
from torchspore.engine.autograd import backward_pass, gradient_errors, integer_gradients
from torchspore.engine.autograd.gradient_listeners import LISTENERS, GradientListener
from torchspore.engine.autograd.leaves import leaf_of, new_leaves
from torchspore.engine.execution import thread_state
from torchspore.engine.execution.training_start import TRAINING_START
from torchspore.engine.formulas import row_gradients as rows_module
from torchspore.engine.memory import offload
from torchspore.engine.tensors import torch_aliases
from torchspore.engine.tensors.in_place_versions import Extent, Versions, base_of
from torchspore.engine.tensors.tensor import Frame, TensorBase, frame, is_recording, raw, tensors, transform, wrap
from torchspore.engine.tensors.torch_interop import entered
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.no_grad import NoGrad, recording_gradients

tape_gradients: Callable[..., Any] = backward_pass.compute_gradients
"""Computes gradients; `graph.control_flow.gradient_presence` replaces it by a function that handles branches and loops in a graph."""


class GradFrame(Frame):
    """Hands out leaves for the Tensors that gradients are wanted of."""

    records = True
    _block: integer_gradients.Block | None = None
    _versions: Versions | None = None                 # from the first write on
    _watch: torch_aliases.Watch | None = None

    def __init__(self) -> None:
        self._values: dict[int, torch.Tensor] = {}
        self._frozen: dict[int, torch.Tensor] = {}
        """With `heeds_flags`: substitutes of Parameters with `requires_grad=False`, by their ids; reads are detached from them."""
        self.heeds_flags = False
        self._weights: list[TensorBase] = []          # keeps the ids in `_values` from being used again
        self._modified: dict[int, TensorBase] = {}
        self._attributes: list[tuple[Any, str]] = []
        self.taken: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        """By id of a weight's leaf the indices and the rows that were taken of it as leaves by themselves."""
        self.cut: dict[int, tuple[GradientListener, torch.Tensor]] = {}
        """By the ids of weights whose gradients are split among processes: their leaves, and the listener that created each leaf."""

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
        GradFrame.begin_block(self)
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


def taken_rows(table: torch.Tensor, indices: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
    """Return the rows of `table` at `indices` (n,). If `table` is a weight of this thread's gradient transform, its gradient has only them.

    `values` are the rows, if another process stores the table.
    """
    around = frame()
    rows = around.rows(table, indices, values) if isinstance(around, GradFrame) else None
    if rows is not None:
        return rows
    return table.index_select(0, indices.long()) if values is None else values


def cut(value: Any) -> None:
    """Detaches every Tensor in `value` from the graph that made it."""
    for tensor in tensors(value):
        if tensor._t.requires_grad or integer_gradients.shadow(tensor._t) is not None:
            tensor._t = tensor._t.detach()


def is_differentiating() -> bool:
    """Return whether operators of this thread are recorded for a gradient: inside a gradient transform that nothing switches off."""
    return is_recording() and torch.is_grad_enabled()


class GradientInside(RuntimeError):
    """A gradient is taken inside of a transform of torch.func, which would see none of what our tape holds, and answer zeros."""


def check_is_seen() -> None:
    """Raises GradientInside inside of torch.func's transforms."""
    if torch_private.current_transform() is not None:
        raise GradientInside(message(
            "a gradient inside of this transform", "a function that takes none", hint="take gradients of gradients with mindspore.grad",
        ))


def differentiate(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    positions: Sequence[int | str],
    weights: Sequence[TensorBase],
    sens: Any = None,
    has_aux: bool = False,
) -> tuple[Any, list[Any], list[Any]]:
    """Calls `function(*arguments, **keywords)` and gives (its result, gradients by position, gradients by weight).

    A position is an index of `arguments` or a name in `keywords`; one whose argument is not a Tensor has no gradient (None). An input that
    the result does not depend on gets zeros. A result of several values, or one that is not scalar, is summed, or weighted by `sens`. With
    `has_aux` only the first value of the result is differentiated.
    """
    check_is_seen()
    nested = is_recording()
    if TRAINING_START.hook is not None and not nested and frame() is None:
        TRAINING_START.hook()
    frame_ = GradFrame()
    local = thread_state.local                     # thread_state.follows_graph_rules, without a call in each training step
    frame_.heeds_flags = not (STORE.graph_mode or local.in_pynative or local.breaks or (frame() is not None and thread_state.is_in_jit()))
    entered_arguments: dict[int | str, Any] = dict(enumerate(arguments))
    entered_arguments.update(keywords)
    with recording_gradients():
        leaves = _weight_leaves(frame_, weights, nested)
        if not nested:
            frame_.taken = {id(leaf): [] for leaf in leaves.values() if leaf.ndim}
        inputs: list[Any] = []
        taken = dict(leaves)
        if not frame_.heeds_flags:                 # in a graph, a Tensor that is also another argument has a gradient for each of them
            others = [value for position, value in entered_arguments.items() if position not in positions]
            taken.update((id(tensor), tensor._t) for tensor in tensors(others))
        for position in positions:
            entered_arguments[position], structure = enter_inputs(entered_arguments[position], frame_, taken)
            inputs.append(structure)
        observers = [] if nested else [listener.begin_pass(weights, [leaves[id(w)] for w in weights]) for listener in LISTENERS]
        targets = [leaf for structure in inputs for leaf in tensors_of(structure)] + list(leaves.values())
        saving = offload.offload_saved_tensors() if STORE.get("memory_offload") and not nested else nullcontext()
        with frame_.open(), saving:
            if any(integer_gradients.shadow(leaf) is not None for leaf in targets):
                integer_gradients.begin()
            if any(listener.must_replace_early() for listener, _ in frame_.cut.values()):
                for weight in weights:                    # in a branch or loop of a graph it would be created for that alone
                    raw(weight)
            values = list(entered_arguments.values())
            result = frame_.callee(function)(*values[:len(arguments)], **dict(zip(keywords, values[len(arguments):])))
            if not isinstance(result, TensorBase):
                result = entered(result)
            differentiated = result[0] if has_aux else result
            by_position, by_weight = follow(differentiated, inputs, [leaves[id(w)] for w in weights], frame_, sens, nested)
        with nullcontext() if nested else NoGrad():
            frame_.finish(result, nested)
    for observe in observers:
        if observe is not None:
            observe([g._t if isinstance(g, TensorBase) else None for g in by_weight])
    return result, by_position, by_weight


def _weight_leaves(frame: GradFrame, weights: Sequence[TensorBase], nested: bool) -> dict[int, torch.Tensor]:
    """Return the leaves of weights by the weights' ids, and make the frame compute with them."""
    for listener in () if nested else LISTENERS:
        frame.cut.update((id(w), (listener, leaf)) for w in weights if (leaf := listener.shard_leaf(w)) is not None)
    leaves = None if nested or LISTENERS else new_leaves(weights)
    if leaves is not None:
        frame.substitute_all(weights, leaves)
        return leaves
    leaves = {}
    for weight in weights:
        if id(weight) in frame.cut:
            leaves[id(weight)] = frame.cut[id(weight)][1]
            continue
        leaf = leaves[id(weight)] = leaf_of(weight)
        for listener in LISTENERS:
            leaf = listener.mark_leaf(weight, leaf)
        frame.substitute(weight, leaf)
    return leaves


def follow(
    result: Any, inputs: list[Any], leaves: list[torch.Tensor], frame_: GradFrame, sens: Any, nested: bool,
) -> tuple[list[Any], list[Any]]:
    """Return (gradients by position, gradients by weight) of values computed inside `frame_`: by its `inputs` and the weights' `leaves`."""
    taken, frozen = frame_.taken, frame_.frozen_leaf_ids()
    targets = [leaf for structure in inputs for leaf in tensors_of(structure)]
    if frozen:
        targets, leaves = ([leaf.detach() if id(leaf) in frozen else leaf for leaf in some] for some in (targets, leaves))
    targets += leaves
    rows = [row for leaf in leaves for _, row in taken.get(id(leaf), ())] if any(taken.values()) else []
    gradients = iter(_gradients(result, [*targets, *rows], sens, nested))
    return [_regroup(structure, gradients) for structure in inputs], _by_weight(leaves, taken, gradients)


def _by_weight(leaves: list[torch.Tensor], taken: dict[int, list[Any]], gradients: Iterator[torch.Tensor | None]) -> list[Any]:
    """The gradients of weights: of those whose rows alone were used the rows, of the others all."""
    if not any(taken.values()):
        return [wrap(torch.zeros_like(leaf) if gradient is None else gradient) for leaf, gradient in zip(leaves, gradients)]
    full_gradients = [next(gradients) for _ in leaves]
    by_weight: list[Any] = []
    for leaf, gradient in zip(leaves, full_gradients):
        indices = [at.reshape(-1) for at, _ in taken.get(id(leaf), ())]
        if not indices:
            by_weight.append(wrap(torch.zeros_like(leaf) if gradient is None else gradient))
            continue
        values = [torch.zeros_like(rows) if (g := next(gradients)) is None else g for _, rows in taken[id(leaf)]]
        at, value = (indices[0], values[0]) if len(indices) == 1 else (torch.cat(indices), torch.cat(values))
        if gradient is None:
            by_weight.append(rows_module.create(at, value, tuple(leaf.shape)))
        else:
            by_weight.append(wrap(gradient.index_add(0, at.long(), value)))
    return by_weight


def begin_part() -> None:
    """Called before each part of a batch, whose gradients are summed."""
    around = frame()
    while around is not None:
        if isinstance(around, GradFrame) and around.cut:
            around.begin_part()
            return
        around = around.outer


def enter_inputs(argument: Any, frame_: GradFrame, taken: dict[int, torch.Tensor]) -> tuple[Any, Any]:
    """Return the argument to call with and its leaves; a Tensor that occurs twice gets a second object with its own gradient."""
    leaves: list[torch.Tensor] = []

    def enter(tensor: TensorBase) -> TensorBase:
        leaf = leaf_of(tensor)
        leaves.append(leaf)
        if id(tensor) in taken:
            return wrap(leaf)
        taken[id(tensor)] = leaf
        frame_.substitute(tensor, leaf)
        return tensor

    entered = transform(argument, enter)
    if isinstance(argument, TensorBase):
        return entered, leaves[0]
    return entered, tuple(leaves) if isinstance(argument, (list, tuple)) and leaves else (leaves or None)


def tensors_of(structure: Any) -> list[torch.Tensor]:
    """The torch tensors that `enter_inputs` found for one argument."""
    return [] if structure is None else [structure] if isinstance(structure, torch.Tensor) else list(structure)


def _regroup(structure: Any, gradients: Any) -> Any:
    if structure is None:
        return None
    gradients_of_structure = [wrap(torch.zeros_like(leaf) if (g := next(gradients)) is None else g) for leaf in tensors_of(structure)]
    return gradients_of_structure[0] if isinstance(structure, torch.Tensor) else tuple(gradients_of_structure)


def _gradients(result: Any, targets: list[torch.Tensor], sens: Any, nested: bool) -> list[torch.Tensor | None]:
    """The gradient of each wanted value; None for one that the result does not depend on."""
    outputs = [integer_gradients.recorded(raw(tensor)) for tensor in tensors(result)]
    around = frame()
    # Branches and loops of a graph exist only inside of its capture, which is a frame around this one.
    is_outermost = around is None or around.outer is None
    seeds: list[torch.Tensor | None]
    if sens is None:
        # torch's check of a seed costs time; without a seed, a loss must be a real number.
        seeds = [None if is_outermost and o.ndim == 0 and o.is_floating_point() else torch.ones_like(o) for o in outputs]
    else:
        weights = backward_pass.seeds_of(result, sens)
        seeds = [s.to(o.dtype).expand(o.shape) if s.shape != o.shape else s.to(o.dtype) for s, o in zip(weights, outputs)]
    pairs = [(o, s) for o, s in zip(outputs, seeds) if o.requires_grad]
    sources = [integer_gradients.recorded(t) for t in targets]
    at = [t for t in sources if t.requires_grad]
    if not pairs or not at:
        return [None for _ in targets]
    compute = functools.partial(torch.autograd.grad, allow_unused=True) if is_outermost else tape_gradients
    try:
        aliases = torch_aliases.in_backward() if torch_aliases.open_watches else nullcontext()
        with backward_pass.in_callers_thread(any(s is not None for _, s in pairs)), aliases:
            is_number = is_outermost and not nested and len(pairs) == 1 and pairs[0][1] is None
            direct = torch_private.gradients_of_number(pairs[0][0], at) if is_number else None
            remaining = iter(compute([o for o, _ in pairs], at, [s for _, s in pairs], create_graph=nested) if direct is None else direct)
    except RuntimeError as cause:
        raise gradient_errors.translated(cause) from None
    return [integer_gradients.cast_gradient(t, next(remaining)) if s.requires_grad else None for t, s in zip(targets, sources)]
