"""Gradients by Tensors of integers, which MindSpore has and torch.autograd has not: `grad(lambda x: x * 2)` of an int32 x is 2.

While a gradient by integers is wanted, each integer tensor that follows from them has a *shadow*: the same numbers in float64, computed by
the same functions, with torch.autograd's record. What the program sees stays as it is; where integers become floating-point numbers,
the result's gradient goes on into the shadow, cut to whole numbers, as MindSpore's Cast does. What has no gradient (an index, a
comparison, a division that rounds) has no shadow.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_SHADOW = "torchspore_shadow"
_INTEGERS = frozenset({
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
})
_ALL = frozenset((
    "abs add addmm alias amax amin baddbmm bmm broadcast_tensors broadcast_to cat chunk clamp clamp_max clamp_min clone concat concatenate "
    "contiguous cumprod cumsum detach diag diag_embed diagonal div divide dot dstack einsum expand expand_as flatten flip fliplr flipud float "
    "double half bfloat16 hstack ravel kron lerp linear matmul matrix_power max maximum mean min minimum mm movedim mul multiply mv "
    "narrow neg negative outer permute pow prod repeat repeat_interleave reshape reshape_as roll rot90 rsub sign slice split "
    "split_with_sizes sqrt square squeeze stack sub subtract sum swapaxes swapdims sum_to_size t tensor_split tensordot tile to _to_copy trace "
    "transpose tril triu true_divide truediv type type_as unbind unflatten unfold unsqueeze unsqueeze_copy view view_as vstack where exp log "
    "sin cos tan tanh sigmoid relu softmax log_softmax T mT"
).split())
"""Functions that are followed with all that they are given."""
_SAME = frozenset(("int", "long", "short"))
"""Functions that give the same numbers in another dtype of integers."""
_FIRST = frozenset("gather getitem index_select index masked_fill masked_select select take take_along_dim embedding topk sort".split())
"""Functions of which only the first argument is followed: the others say where."""


class _Local(threading.local):
    is_followed = False


_local = _Local()


def is_integer(t: torch.Tensor) -> bool:
    """Whether `t` is of whole numbers, truth values not counted."""
    return t.dtype in _INTEGERS


def leaf(t: torch.Tensor) -> torch.Tensor:
    """A tensor of the same integers, by which a gradient may be asked for."""
    made = t.view_as(t)
    outer = shadow(t)
    setattr(made, _SHADOW, t.to(torch.float64).requires_grad_() if outer is None else outer.view_as(outer))
    return made


def shadow(t: torch.Tensor) -> torch.Tensor | None:
    """What stands for `t` in the record of gradients; None where nothing does."""
    return getattr(t, _SHADOW, None)


def recorded(t: torch.Tensor) -> torch.Tensor:
    """The tensor to ask torch.autograd about `t`: its shadow, or itself."""
    found = shadow(t)
    return t if found is None else found


def as_given(t: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor | None:
    """A gradient by `t` in the dtype that `t` has; one of integers is followed too, as far as a record goes on."""
    if gradient is None or shadow(t) is None:
        return gradient
    made = gradient.detach().to(t.dtype)
    if gradient.requires_grad:
        setattr(made, _SHADOW, gradient)
    return made


@contextmanager
def following(wanted: list[torch.Tensor]) -> Iterator[None]:
    """A block in which what follows from integers among `wanted` is recorded."""
    if _local.is_followed or not any(shadow(t) is not None for t in wanted):
        yield
        return
    _local.is_followed = True
    try:
        with _Shadows():
            yield
    finally:
        _local.is_followed = False


class _Carry(torch.autograd.Function):
    """The numbers of one tensor with the gradient of another, which are whole numbers."""

    generate_vmap_rule = True

    @staticmethod
    def forward(numbers: torch.Tensor, behind: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        return numbers.view_as(numbers)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.behind, ctx.kind = inputs[1].dtype, inputs[2]

    @staticmethod
    def backward(ctx: Any, sens: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        whole = (sens.real if sens.is_complex() else sens).to(ctx.behind).trunc()
        return sens, whole, None


class _Shadows(TorchFunctionMode):
    """Computes the shadow of each result beside the result."""

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if not _is_followed((args, kwargs)):
            return result
        name = _name_of(function)
        found = None
        if name in _SAME:
            found = _shadowed(args[0])
        elif name in _FIRST or name in _ALL:
            followed = args if name in _ALL else args[:1]
            try:
                found = function(*_shadowed(followed), *args[len(followed):], **_shadowed(kwargs))
            except (RuntimeError, TypeError, IndexError, ValueError):
                found = None                       # float64 has no such function: integers have no gradient there
        return _joined(result, found)


def _name_of(function: Callable[..., Any]) -> str:
    """The plain name of a function, a method, an operator of aten's or an augmented one: `mul`; empty for what writes in place."""
    name = getattr(function, "_opname", None) or getattr(function, "__name__", "")
    if name == "__get__":                          # of an attribute: T
        return getattr(getattr(function, "__self__", None), "__name__", "")
    if name.startswith("__"):
        inner = name.strip("_")
        return inner if inner in _ALL | _FIRST else inner[1:] if inner[:1] == "r" else ""
    return "" if name.endswith("_") else name


def _is_followed(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return getattr(value, _SHADOW, None) is not None
    if isinstance(value, (list, tuple)):
        return any(map(_is_followed, value))
    return any(map(_is_followed, value.values())) if isinstance(value, dict) else False


def _shadowed(value: Any) -> Any:
    """The same arguments with shadows, what else there is without its own gradient, and dtypes of integers as float64."""
    if isinstance(value, torch.Tensor):
        found = shadow(value)
        return value.detach() if found is None else found
    if isinstance(value, torch.dtype):
        return torch.float64 if value in _INTEGERS else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_shadowed, value))
    return {key: _shadowed(one) for key, one in value.items()} if isinstance(value, dict) else value


def _joined(result: Any, found: Any) -> Any:
    """The result, tied to what was computed of shadows."""
    if isinstance(result, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.shape != result.shape or not found.requires_grad:
            if is_integer(result) and shadow(result) is not None:
                delattr(result, _SHADOW)           # written in place by what has no gradient
            return result
        if is_integer(result):
            setattr(result, _SHADOW, found)
            return result
        if result.dtype.is_floating_point or result.dtype.is_complex:
            return _Carry.apply(result, found, result.dtype)  # type: ignore[no-untyped-call]
        return result
    if isinstance(result, (list, tuple)):
        parts = list(found) if isinstance(found, (list, tuple)) and len(found) == len(result) else [None] * len(result)
        joined = [_joined(one, part) for one, part in zip(result, parts)]
        return type(result)(*joined) if hasattr(result, "_fields") else type(result)(joined)
    return result
