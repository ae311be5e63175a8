"""Gradients of calls: leaves of torch.autograd represent the chosen Tensors (`gradient_frame`). Nested transforms keep the outer graph.

Parameters require no grad outside of it. Assignments are written back when a transform ends: gradients use the values that were read.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.engine.autograd import backward_pass, gradient_errors, integer_gradients
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.autograd.gradient_listeners import LISTENERS
from torchspore.engine.autograd.leaves import leaf_of, new_leaves
from torchspore.engine.execution import thread_state
from torchspore.engine.execution.training_start import TRAINING_START
from torchspore.engine.formulas import row_gradients as rows_module
from torchspore.engine.memory import offload
from torchspore.engine.native import operators
from torchspore.engine.tensors import torch_aliases
from torchspore.engine.tensors.tensor import TensorBase, frame, is_recording, raw, tensors, transform, wrap
from torchspore.engine.tensors.torch_interop import entered
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.no_grad import NoGrad, recording_gradients
from torchspore.engine.torch_internals.torch_private import set_grad_enabled

tape_gradients: Callable[..., Any] = backward_pass.compute_gradients
"""Computes gradients; `graph.control_flow.gradient_presence` replaces it by a function that handles branches and loops in a graph."""

_leaf_gradients = operators.short_path("leaf_gradients")


def taken_rows(table: torch.Tensor, indices: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
    """Return the rows of `table` at `indices` (n,). If `table` is a weight of this thread's gradient transform, its gradient has only them.

    `values` are the rows, if another process stores the table.
    """
    around = frame()
    rows = around.rows(table, indices, values) if isinstance(around, GradFrame) else None
    if rows is not None:
        return rows
    return table.index_select(0, indices.long()) if values is None else values


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
    if sens is None and not keywords and frame() is None:                  # most calls
        if (results := _differentiate_outermost(function, arguments, positions, weights, has_aux)) is not None:
            return results
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
            frame_.offer_rows(leaves.values())
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


def _differentiate_outermost(
    function: Callable[..., Any], arguments: Sequence[Any], positions: Sequence[int | str], weights: Sequence[TensorBase], has_aux: bool,
) -> tuple[Any, list[Any], list[Any]] | None:
    """Return what `differentiate` returns for a call outside of all frames; None if its gradients need more than leaves of Tensors."""
    local = thread_state.local
    if LISTENERS or TRAINING_START.hook is not None or torch.is_inference_mode_enabled():
        return None
    if STORE.graph_mode or local.in_pynative or local.breaks or STORE.get("memory_offload"):
        return None
    inputs = [arguments[position] for position in positions]        # type: ignore[index]
    requested = [*inputs, *weights] if inputs else weights
    leaves = new_leaves(requested)
    if leaves is None or len(leaves) < len(requested):              # a Tensor that occurs twice has a gradient for each position
        return None
    count, gradient_frame = len(inputs), GradFrame()
    gradient_frame.heeds_flags = True
    gradient_frame.substitute_all(requested, leaves)
    gradient_frame.offer_rows(islice(leaves.values(), count, None))
    was_recording = torch.is_grad_enabled()
    set_grad_enabled(True)
    try:
        with gradient_frame:
            result = function(*arguments)
            if not isinstance(result, TensorBase):
                result = entered(result)
            differentiated = result[0] if has_aux else result
            gradients = _gradients_of_leaves(differentiated, leaves, gradient_frame)
            if gradients is None:
                listed = list(leaves.values())
                by_position, by_weight = follow(differentiated, listed[:count], listed[count:], gradient_frame, None, False)
            else:
                by_position, by_weight = gradients[:count], gradients[count:]
        set_grad_enabled(False)
        gradient_frame.finish(result, False)
    finally:
        set_grad_enabled(was_recording)
    return result, by_position, by_weight


def _gradients_of_leaves(result: Any, leaves: dict[int, torch.Tensor], gradient_frame: GradFrame) -> list[Any] | None:
    """Return the gradients of a loss by all leaves in one call of C++; None for other results, and where other code takes part."""
    if _leaf_gradients is None or not isinstance(result, TensorBase) or torch_aliases.open_watches:
        return None
    if not gradient_frame.has_first_leaves() or backward_pass.is_observed():
        return None
    try:
        gradients: list[Any] | None = _leaf_gradients(raw(result), leaves)
    except RuntimeError as cause:
        raise gradient_errors.translated(cause) from None
    return gradients


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
