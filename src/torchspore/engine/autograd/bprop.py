"""Gradients of the user's own: a Cell's `bprop`, and hooks on the gradients that pass a Cell."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.autograd.grad_overrides import fitting
from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import apart, frame, is_recording, raw, tensors, transform, wrap
from torchspore.engine.tensors.torch_interop import entered

_EMPTY = CellType()


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
        output_gradients = [torch.zeros_like(o) if g is None else g for g, o in zip(gradients, outputs)]
        return (None, None, None, *ctx.gradient(inputs, outputs, output_gradients))


def with_gradient(call: Callable[..., Any], bprop: Callable[..., Any], net: str) -> Callable[..., Any]:
    """Return `call` with the gradient `bprop(*inputs, output, gradient_of_output)`, which returns one gradient for each input.

    A Cell with `internal_params` may return two values: that tuple, and a dict with the gradients of those Parameters. Raises RuntimeError
    for too few gradients, or for one that cannot be summed to the shape of its input. With `check_bprop` raises ValueError for any other
    shape, TypeError for another dtype, another number of gradients, or a value that is not a Tensor. `net` names the Cell.
    """

    def computed(*args: Any, **kwargs: Any) -> Any:
        weights = list(getattr(getattr(bprop, "__self__", None), "internal_params", ()))
        tensors_read = [*tensors(args), *weights]
        if not is_recording() or not any(raw(t).requires_grad for t in tensors_read):
            return call(*args, **kwargs)
        _check_parameters(bprop, len(args), net)
        structure: dict[str, Any] = {}

        def forward(*inputs: torch.Tensor) -> list[torch.Tensor]:
            result = entered(call(*_with(args, inputs), **kwargs))
            structure["result"] = transform(result, lambda t: wrap(raw(t).view_as(raw(t)) if any(raw(t) is i for i in inputs) else raw(t)))
            return [raw(t) for t in tensors(structure["result"])]

        def backward(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> list[Any]:
            result = _with(structure["result"], outputs)
            sens = _with(structure["result"], gradients)
            got = entered(bprop(*_with(args, inputs), result, sens))
            got = tree.listed(got)
            of_weights: dict[Any, Any] = {}
            if weights and len(got) == 2 and isinstance(got[1], dict):
                got, of_weights = tree.listed(got[0]), got[1]
            inputs = inputs[:len(inputs) - len(weights)]
            if STORE.get("check_bprop"):
                effects.report("check_bprop", Outcome.applied("gradients of a Cell's own bprop are checked"))
                _check(got, args, inputs, bprop, net)
            fitted = fitting(got, args, inputs, "construct", lambda sentence: _wrong(RuntimeError, bprop, net, sentence))
            return fitted + [raw(of_weights[w]) if w in of_weights else None for w in weights]

        outputs = apart(_Custom, forward, backward, structure, *[raw(t) for t in tensors_read])
        return _with(structure["result"], outputs)

    return computed


def _check_parameters(bprop: Callable[..., Any], count: int, net: str) -> None:
    """Raise TypeError if `bprop` does not take `count` inputs, the output and its gradient."""
    code = getattr(bprop, "__code__", None)
    if (code, count) in _CHECKED:
        return
    try:
        parameters = inspect.signature(bprop)
        parameters.bind(*range(count + 2))
    except TypeError:
        shown = ", ".join(parameters.parameters)
        if len(parameters.parameters) < 2:
            sentence = f"The function 'bprop' of Primitive or Cell requires at least 2 params 'out' and 'dout', but got only ({shown})"
        else:
            sentence = ("The params of function 'bprop' of Primitive or Cell requires the forward inputs as well as the 'out' and 'dout'. "
                        f"It is called with {count} inputs and these two, got ({shown})")
        raise _wrong(TypeError, bprop, net, sentence) from None
    except ValueError:                                          # a callable of C has no signature
        pass
    _CHECKED.add((code, count))


_CHECKED: set[tuple[Any, int]] = set()
"""The code of each function `bprop` that was checked, and the number of inputs."""


def _with(structure: Any, values: Sequence[torch.Tensor]) -> Any:
    """The nested structure with its Tensors replaced, in order, by ones on `values`."""
    remaining = iter(values)
    return transform(structure, lambda _: wrap(next(remaining)))


def _check(got: Sequence[Any], args: tuple[Any, ...], inputs: Sequence[torch.Tensor], bprop: Any, net: str) -> None:
    """`check_bprop`: one gradient for each argument, of its shape and dtype."""
    if len(got) != len(args):
        raise _wrong(TypeError, bprop, net, f"expected {len(args)} gradients, one for each argument of construct, got {len(got)}")
    remaining = iter(inputs)
    for index, (argument, gradient) in enumerate(zip(args, got)):
        argument_tensors = [next(remaining) for _ in tensors(argument)]
        gradient_tensors = list(tensors(gradient))
        if len(gradient_tensors) != len(argument_tensors):
            raise _wrong(TypeError, bprop, net, f"gradient {index} is {_kind(gradient)}, expected {_kind(argument)}")
        for g, t in zip((raw(f) for f in gradient_tensors), argument_tensors):
            if g.shape != t.shape:
                raise _wrong(ValueError, bprop, net, f"gradient {index} has the shape {tuple(g.shape)}, expected {tuple(t.shape)}")
            if g.dtype is not t.dtype:
                raise _wrong(TypeError, bprop, net, f"gradient {index} has the dtype {FROM_TORCH[g.dtype]}, expected {FROM_TORCH[t.dtype]}")


def _kind(value: Any) -> str:
    count = sum(1 for _ in tensors(value))
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {count} Tensors"
    return "a Tensor" if count else f"{value!r:.20} of type {type(value).__name__}"


def _wrong(kind: type[Exception], bprop: Callable[..., Any], net: str, sentence: str) -> Exception:
    code = getattr(bprop, "__code__", None)
    where = f"\n\nhint: bprop is at {code.co_filename}:{code.co_firstlineno}." if code is not None else ""
    error = kind(f"For user defined method 'bprop' of net {net!r}: {sentence}.{where}")
    error.final = True  # type: ignore[attr-defined]  # a graph can't be made of it, nor does PyNative know better
    return error


def watch_gradients(
    cell: Any, call: Callable[..., Any], after: Sequence[Callable[..., Any]], before: Sequence[Callable[..., Any]],
) -> Callable[..., Any]:
    """`call` with hooks on its gradients: `before(cell, grad_output)` first, `after(cell, grad_input, grad_output)` last."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        around = frame()
        if not is_recording() or around is None:
            return call(*args, **kwargs)
        if any(_can_keep(hook) for hook in (*after, *before)):
            around.acts_beside("calls a hook that may keep what it sees")
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

        result = entered(call(*_through(args, entering), **kwargs))
        return _through(result, leaving)

    return computed


def _can_keep(hook: Callable[..., Any]) -> bool:
    """Return whether a hook knows a list, dict or set to write to: a graph would pass fake tensors to it, in its trace alone."""
    code = getattr(hook, "__code__", None)
    cells = [cell.cell_contents for cell in getattr(hook, "__closure__", None) or () if cell != _EMPTY]
    names = [hook.__globals__.get(name) for name in code.co_names] if code is not None else []
    return any(isinstance(value, (list, dict, set)) for value in (*cells, *names))


def _through(structure: Any, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Any:
    """The structure, with `change` applied to the gradients of its Tensors on their way back."""
    differentiable = [t for t in tensors(structure) if is_differentiable(raw(t))]
    if not any(raw(t).requires_grad for t in differentiable):
        return structure

    def pass_through(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return [t.view_as(t) for t in inputs]

    def backward(inputs: Any, outputs: Any, gradients: Sequence[torch.Tensor]) -> list[Any]:
        return [raw(g) for g in change(tuple(wrap(g) for g in gradients))]

    outputs = dict(zip(map(id, differentiable), apart(_Custom, pass_through, backward, {}, *[raw(t) for t in differentiable])))
    return transform(structure, lambda t: wrap(outputs[id(t)]) if id(t) in outputs else t)
