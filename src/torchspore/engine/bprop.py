"""Gradients of the user's own: a Cell's `bprop`, and hooks on the gradients that pass a Cell."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.engine.grad import is_differentiable, is_recording
from torchspore.engine.tensor import TensorBase, raw, tensors, transform, wrap


class _Custom(torch.autograd.Function):
    """The one generic function with a gradient from outside; classes made on the fly can't be traced."""

    @staticmethod
    def forward(ctx: Any, call: Callable[..., Any], gradient: Callable[..., Any], state: dict[str, Any], *inputs: torch.Tensor) -> Any:
        ctx.gradient, ctx.state = gradient, state
        outputs = call(*inputs)
        ctx.save_for_backward(*inputs, *outputs)
        ctx.count = len(inputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        inputs, outputs = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        given = [torch.zeros_like(o) if g is None else g for g, o in zip(gradients, outputs)]
        return (None, None, None, *ctx.gradient(inputs, outputs, given))


def with_gradient(call: Callable[..., Any], bprop: Callable[..., Any]) -> Callable[..., Any]:
    """`call` whose gradient is `bprop(*inputs, output, gradient_of_output)`, which gives one gradient for each input.

    Raises TypeError where it gives another number of them.
    """

    def computed(*args: Any, **kwargs: Any) -> Any:
        found = list(tensors(args))
        if not is_recording() or not any(raw(t).requires_grad for t in found):
            return call(*args, **kwargs)
        structure: dict[str, Any] = {}

        def forward(*inputs: torch.Tensor) -> list[torch.Tensor]:
            result = call(*_with(args, inputs), **kwargs)
            structure["result"] = transform(result, lambda t: wrap(raw(t).view_as(raw(t)) if any(raw(t) is i for i in inputs) else raw(t)))
            return [raw(t) for t in tensors(structure["result"])]

        def backward(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> list[Any]:
            result = _with(structure["result"], outputs)
            sens = _with(structure["result"], gradients)
            got = bprop(*_with(args, inputs), result, sens)
            return _gradients(got, args, inputs)

        outputs = _Custom.apply(forward, backward, structure, *[raw(t) for t in found])
        return _with(structure["result"], outputs)

    return computed


def _with(structure: Any, values: Sequence[torch.Tensor]) -> Any:
    """The nested structure with its Tensors replaced, in order, by ones on `values`."""
    given = iter(values)
    return transform(structure, lambda _: wrap(next(given)))


def _gradients(got: Any, args: tuple[Any, ...], inputs: Sequence[torch.Tensor]) -> list[Any]:
    if isinstance(got, TensorBase):
        got = (got,)
    if not isinstance(got, (tuple, list)) or len(got) < len(args):
        count = len(got) if isinstance(got, (tuple, list)) else 1
        raise TypeError(f"bprop: expected {len(args)} gradients, one for each input of construct, got {count}.")
    flat: list[Any] = []
    for argument, gradient in zip(args, got):
        own = list(tensors(argument))
        given = list(tensors(gradient)) if own else []
        flat += [raw(g) for g in given] + [None] * (len(own) - len(given))
    return [g if g is not None and is_differentiable(i) else None for g, i in zip(flat, inputs)]


def watch_gradients(
    cell: Any, call: Callable[..., Any], after: Sequence[Callable[..., Any]], before: Sequence[Callable[..., Any]],
) -> Callable[..., Any]:
    """`call` with hooks on its gradients: `before(cell, grad_output)` first, `after(cell, grad_input, grad_output)` last."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        if not is_recording():
            return call(*args, **kwargs)
        passed: dict[str, Any] = {}

        def entering(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            for hook in after:
                got = hook(cell, gradients, passed.get("output", ()))
                if got is not None:
                    gradients = got if isinstance(got, tuple) else (got,)
            return gradients

        def leaving(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            for hook in before:
                got = hook(cell, gradients)
                if got is not None:
                    gradients = got if isinstance(got, tuple) else (got,)
            passed["output"] = gradients
            return gradients

        result = call(*_through(args, entering), **kwargs)
        return _through(result, leaving)

    return computed


def _through(structure: Any, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Any:
    """The structure, with `change` applied to the gradients of its Tensors on their way back."""
    found = [t for t in tensors(structure) if is_differentiable(raw(t))]
    if not any(raw(t).requires_grad for t in found):
        return structure

    def same(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return [t.view_as(t) for t in inputs]

    def backward(inputs: Any, outputs: Any, gradients: Sequence[torch.Tensor]) -> list[Any]:
        return [raw(g) for g in change(tuple(wrap(g) for g in gradients))]

    outputs = dict(zip(map(id, found), _Custom.apply(same, backward, {}, *[raw(t) for t in found])))
    return transform(structure, lambda t: wrap(outputs[id(t)]) if id(t) in outputs else t)
