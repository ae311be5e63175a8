"""Functions with a forward and a backward pass of the user's own: what `_Function.apply` does."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.base.text import message, with_hint
from torchspore.engine.autograd.grad_overrides import fitting
from torchspore.engine.tensors.tensor import TensorBase, apart, is_recording, raw, wrap
from torchspore.engine.tensors.torch_interop import entered

Tensors = list[torch.Tensor]


class _Step(torch.autograd.Function):
    """One call on torch's tape. `call` gives the outputs, `settings` is the program's context object."""

    @staticmethod
    def forward(ctx: Any, call: Callable[..., Any], gradient: Callable[..., Any], settings: Any, *inputs: torch.Tensor) -> Any:
        outputs, fixed = call(inputs)
        ctx.gradient = gradient
        ctx.mark_non_differentiable(*fixed)
        ctx.set_materialize_grads(bool(settings.materialize_grads))
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, None, *ctx.gradient(gradients))


def apply(context: Any, forward: Callable[..., Any], backward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`forward(*args, **kwargs)`, whose gradient is `backward(*gradients)`, one for each output, which gives one for each of `args`.

    `context.needs_input_grad` lists the arguments that need gradients, and the context describes the results: `non_differentiable`,
    `materialize_grads`. Raises RuntimeError for a forward that writes into an argument while a gradient is taken, and in the backward pass
    for too few gradients, and for one that does not fit its argument's shape.
    """
    is_recorded, args = is_recording(), entered(args)
    context.needs_input_grad = tuple(is_recorded and isinstance(a, TensorBase) and raw(a).requires_grad for a in args)
    if not any(context.needs_input_grad):
        with torch.no_grad():
            return forward(*args, **kwargs)
    positions = [position for position, argument in enumerate(args) if isinstance(argument, TensorBase)]
    results: dict[str, Any] = {}

    def call(inputs: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors]:
        arguments = list(args)
        for position, t in zip(positions, inputs):
            arguments[position] = wrap(t)
        versions = [t._version for t in inputs]
        result = entered(forward(*arguments, **kwargs))
        if context.dirty_tensors or versions != [t._version for t in inputs]:
            raise RuntimeError(message(
                f"{type(context).__name__}.forward writes into an argument while a gradient is taken", "a result in separate memory",
                hint="write into x.copy() and return that",
            ))
        results["result"] = result
        items = result if isinstance(result, tuple) else (result,)
        result_tensors = {id(item): _as_result(raw(item), inputs) for item in items if isinstance(item, TensorBase)}
        fixed = [result_tensors[id(t)] for t in context.non_differentiable or () if id(t) in result_tensors]
        return [result_tensors[id(item)] for item in items if isinstance(item, TensorBase)], fixed

    def gradient(gradients: Sequence[torch.Tensor | None]) -> list[Any]:
        each = iter(gradients)
        result = results["result"]
        items = result if isinstance(result, tuple) else (result,)
        given = [next(each) if isinstance(item, TensorBase) else None for item in items]
        got = entered(backward(*[None if g is None else wrap(g) for g in given]))
        tensor_arguments = [argument if isinstance(argument, TensorBase) else None for argument in args]
        return fitting(got if isinstance(got, (tuple, list)) else (got,), tensor_arguments, inputs, "forward", wrong)

    def wrong(sentence: str) -> Exception:
        return RuntimeError(with_hint(f"{type(context).__name__}.backward: {sentence}.", "give None for what needs none"))

    inputs = [raw(args[position]) for position in positions]
    outputs = iter(apart(_Step, call, gradient, context, *inputs))
    result = results["result"]
    if not isinstance(result, tuple):
        return wrap(next(outputs)) if isinstance(result, TensorBase) else result
    return tuple(wrap(next(outputs)) if isinstance(item, TensorBase) else item for item in result)


def _as_result(t: torch.Tensor, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the output as a separate tensor, so that a returned input is a step of the tape too."""
    return t.view_as(t) if any(t is i for i in inputs) else t
