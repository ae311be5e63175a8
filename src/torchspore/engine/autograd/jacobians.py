"""Jacobians and products with them by gradients alone: for functions that take gradients, which torch.func does not see through."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.engine.autograd import grad
from torchspore.engine.autograd.backward_pass import compute_gradients
from torchspore.engine.autograd.grad import check_is_seen, enter_inputs, tensors_of
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors.tensor import is_recording, raw, tensors
from torchspore.engine.tensors.torch_interop import entered
from torchspore.engine.torch_internals.no_grad import recording_gradients

T = torch.Tensor
Compute = Callable[[list[T], list[T], bool], Any]
"""Combines the outputs and the leaves of a call; the flag says whether an outer transform differentiates it."""


def product(function: Callable[..., Any], arguments: Sequence[Any], tangents: Sequence[T], has_aux: bool = False) -> tuple[Any, list[T]]:
    """Return the result of a call, and for each Tensor in it the product of its Jacobian with `tangents`, one for each Tensor argument.

    The product with the transpose is linear in its factor, so that its gradient by that factor is the product with the Jacobian.
    """
    def pushed(outputs: list[T], leaves: list[T], nested: bool) -> list[T]:
        jacobian_rows = [torch.zeros_like(o) for o in outputs]
        at = [index for index, o in enumerate(outputs) if o.requires_grad]
        moving = [(leaf, tangent.to(leaf.dtype)) for leaf, tangent in zip(leaves, tangents) if leaf.requires_grad]
        if not at or not moving:
            return jacobian_rows
        seeds = [torch.zeros_like(outputs[index]).requires_grad_() for index in at]
        pulled = compute_gradients([outputs[index] for index in at], [leaf for leaf, _ in moving], seeds, create_graph=True)
        total = [(g * tangent).sum() for g, (_, tangent) in zip(pulled, moving) if g is not None and g.requires_grad]
        if total:
            for index, g in zip(at, compute_gradients([sum(total[1:], total[0])], seeds, [None], create_graph=nested)):
                jacobian_rows[index] = jacobian_rows[index] if g is None else g
        return jacobian_rows

    return _called(function, arguments, range(len(arguments)), has_aux, pushed)


def rows(
    function: Callable[..., Any], arguments: Sequence[Any], positions: Sequence[int], has_aux: bool = False,
) -> tuple[Any, list[list[T]]]:
    """The result of a call, and for each Tensor in it its Jacobian by each of the Tensors at `positions`."""
    def by_rows(outputs: list[T], leaves: list[T], nested: bool) -> list[list[T]]:
        return [_rows(output, leaves, nested) for output in outputs]

    return _called(function, arguments, positions, has_aux, by_rows)


def _rows(output: T, leaves: list[T], nested: bool) -> list[T]:
    each: list[list[T]] = []
    for index in range(output.numel()):
        seed = torch.zeros_like(output)
        seed.view(-1)[index] = 1
        at = [leaf for leaf in leaves if leaf.requires_grad]
        got = iter(grad.tape_gradients([output], at, [seed], retain_graph=True, create_graph=nested)
                   if output.requires_grad and at else [None for _ in at])
        tangents = [next(got) if leaf.requires_grad else None for leaf in leaves]
        each.append([torch.zeros_like(leaf) if g is None else g for g, leaf in zip(tangents, leaves)])
    return [
        torch.stack(column).reshape(*output.shape, *leaf.shape) if column else leaf.new_zeros((*output.shape, *leaf.shape))
        for leaf, column in zip(leaves, [list(parts) for parts in zip(*each)] or [[] for _ in leaves])
    ]


def _called(function: Callable[..., Any], arguments: Sequence[Any], positions: Sequence[int], has_aux: bool, compute: Compute) -> Any:
    """(The result of the call, what `compute` makes of it); the call runs once."""
    check_is_seen()
    nested, gradient_frame = is_recording(), GradFrame()
    gradient_frame.heeds_flags = not thread_state.follows_graph_rules()
    new_arguments, taken, leaves = list(arguments), dict[int, T](), list[T]()
    with recording_gradients():
        for position in positions:
            new_arguments[position], structure = enter_inputs(new_arguments[position], gradient_frame, taken)
            leaves += tensors_of(structure)
        with gradient_frame.open():
            result = entered(gradient_frame.callee(function)(*new_arguments))
            computed = compute([raw(t) for t in tensors(result[0] if has_aux else result)], leaves, nested)
        with torch.set_grad_enabled(nested):
            gradient_frame.finish(result, nested)
    return result, computed
