"""Gradients by integer Tensors, which MindSpore has and torch.autograd lacks: `grad(lambda x: x * 2)` of an int32 x is 2.

While a gradient by integers is requested, each integer tensor that depends on them has a *shadow*: the same numbers in float64, computed by
the same functions and recorded by torch.autograd. The program's values are unchanged. Where integers become floating-point numbers, the
result's gradient continues into the shadow, truncated to integers, as in MindSpore's Cast. Operators without a gradient (an index, a
comparison, a division that rounds) have no shadow. The same holds for casts of floating-point numbers to integers or bools: `grad(lambda x:
x - x.astype(int32))` is 0 in MindSpore. Casts inside an operator have no effect here.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchspore.engine.formulas import clamping
from torchspore.engine.tensors.tensor import TensorBase, frame, raw, wrap

_SHADOW = "torchspore_shadow"
_INTEGER_DTYPES = frozenset({
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
})
_ALL = frozenset((
    "T _to_copy abs add addmm alias amax amin baddbmm bfloat16 bmm broadcast_tensors broadcast_to cat chunk clamp clamp_max "
    "clamp_min clone concat concatenate contiguous cos cumprod cumsum detach diag diag_embed diagonal div divide dot double "
    "dstack einsum exp expand expand_as flatten flip fliplr flipud float fmod half hstack kron lerp linear log log_softmax mT "
    "matmul matrix_power max maximum mean min minimum mm movedim mul multiply mv narrow neg negative outer permute pow prod "
    "ravel relu remainder repeat repeat_interleave reshape reshape_as roll rot90 rsub sigmoid sign sin slice softmax split "
    "split_with_sizes sqrt square squeeze stack sub subtract sum sum_to_size swapaxes swapdims t tan tanh tensor_split "
    "tensordot tile to trace transpose tril triu true_divide truediv type type_as unbind unflatten unfold unsqueeze "
    "unsqueeze_copy view view_as vstack"
).split())
"""Functions that are followed with all that they are given."""
_INTEGER_CASTS = frozenset(("int", "long", "short"))
"""Functions that give the same numbers in another dtype of integers."""
_FIRST = frozenset("embedding gather getitem index index_select masked_fill masked_select select sort take take_along_dim topk".split())
"""Functions of which only the first argument is followed: the others say where."""
_BUT_FIRST = frozenset({"where"})
_DIVISIONS = frozenset(("div", "divide", "true_divide", "truediv"))
"""Functions that take integers for floating-point numbers without a cast: MindSpore gives their gradients as float32."""


def _clamp(x: torch.Tensor, min: Any = None, max: Any = None) -> torch.Tensor:
    return clamping.clamp(x, min, max)


_FORMULAS: dict[str, Callable[..., torch.Tensor]] = {"clamp": _clamp}
"""Functions whose gradient of real numbers differs between torch and MindSpore."""


class NeedsReverse(BaseException):
    """A cast to integers was met in forward differentiation, where gradients can't go through it: the other way round they can."""


class _Local(threading.local):
    is_forward = False
    is_followed = False
    has_divided = False
    block: ExitStack | Block | None = None


_local = _Local()


def is_integer(t: torch.Tensor) -> bool:
    """Return whether `t` is of whole numbers or truth values."""
    return t.dtype in _INTEGER_DTYPES


def leaf(t: torch.Tensor) -> torch.Tensor:
    """A tensor of the same integers, by which a gradient may be asked for."""
    shadow_value = t.view_as(t)
    outer = shadow(t)
    setattr(shadow_value, _SHADOW, t.to(torch.float64).requires_grad_() if outer is None else outer.view_as(outer))
    return shadow_value


def shadow(t: torch.Tensor) -> torch.Tensor | None:
    """Return the shadow of `t` in the record of gradients; None if there is none."""
    return getattr(t, _SHADOW, None)


def recorded(t: torch.Tensor) -> torch.Tensor:
    """Return the tensor whose gradient torch.autograd computes for `t`: its shadow, or itself."""
    shadow_value = shadow(t)
    return t if shadow_value is None else shadow_value


def cast_gradient(t: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor | None:
    """Return a gradient by `t` in the dtype of `t`; a gradient by integers is differentiable as far as a record exists."""
    if gradient is None or shadow(t) is None:
        return gradient
    gradient_value = gradient.detach().to(torch.float32 if _local.has_divided else t.dtype)
    if gradient.requires_grad:
        setattr(gradient_value, _SHADOW, gradient)
    return gradient_value


def cast(t: torch.Tensor, dtype: torch.dtype, copy: bool = False) -> torch.Tensor:
    """Return `t` in another dtype. The gradient of integer or bool results continues into `t`, truncated to integers."""
    cast = t.to(dtype, copy=copy)
    if _local.is_forward and dtype in _INTEGER_DTYPES and t.dtype not in _INTEGER_DTYPES:
        raise NeedsReverse
    if dtype in _INTEGER_DTYPES and t.requires_grad and torch.is_grad_enabled() and _block_around() is not None:
        around = frame()
        if around is not None:
            around.follows_integers()
        begin()
        behind = _Carry.apply(cast.to(torch.float64), t, dtype)
        setattr(cast, _SHADOW, behind)
    return cast


def without_gradient(tensor: Any) -> Any:
    """Return a Tensor of positions, such as the indices of a sparse Tensor, without gradient; any other value unchanged."""
    if not _local.is_followed or not isinstance(tensor, TensorBase) or shadow(raw(tensor)) is None:
        return tensor
    return wrap(raw(tensor).detach())


@contextmanager
def forward() -> Iterator[None]:
    """A block of forward differentiation."""
    outer, _local.is_forward = _local.is_forward, True
    try:
        yield
    finally:
        _local.is_forward = outer


class Block:
    """A block in which shadows may be needed; `begin` begins them, and they end with it."""

    __slots__ = ("_before", "_mode")

    def __enter__(self) -> None:
        self._before = _local.block, _local.is_followed, _local.has_divided
        self._mode: TorchFunctionMode | None = None
        _local.block, _local.has_divided = self, False

    def enter_context(self, mode: TorchFunctionMode) -> None:
        """Enter a mode of torch until the end of the block."""
        mode.__enter__()
        self._mode = mode

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        outer, was_followed, had_divided = self._before
        began = _local.is_followed and not was_followed
        _local.block, _local.is_followed, _local.has_divided = outer, was_followed, had_divided
        if self._mode is not None:
            self._mode.__exit__(kind, error, trace)
        if began and kind is None:
            begin()                                    # what came out of the block has shadows


def is_following() -> bool:
    """Return whether shadows are computed in this thread."""
    return _local.is_followed


@contextmanager
def anew(was_followed: bool) -> Iterator[None]:
    """Run a block inside the backward pass, where torch disables modes, in the modes of the block that it repeats."""
    outer = _local.is_followed, _local.block, _local.has_divided
    try:
        with ExitStack() as stack:
            _local.is_followed, _local.block = False, stack
            if was_followed:
                begin()
            yield
    finally:
        _local.is_followed, _local.block, _local.has_divided = outer


def begin() -> None:
    """From now on, to the end of the block, what follows from tensors with shadows has shadows."""
    if not _local.is_followed and (block := _block_around()) is not None:
        _local.is_followed = True
        block.enter_context(_Shadows())


def _block_around() -> ExitStack | Block | None:
    """Return the innermost block of this thread. A frame may begin it now."""
    if _local.block is None and (around := frame()) is not None:
        around.begin_block()
    return _local.block


class _Carry(torch.autograd.Function):
    """Returns the values of one tensor with the gradient of another, which is cast to an integer dtype on its way."""

    generate_vmap_rule = True

    @staticmethod
    def forward(numbers: torch.Tensor, behind: torch.Tensor, kind: torch.dtype | None) -> torch.Tensor:
        return numbers.view_as(numbers)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.behind, ctx.kind = inputs[1].dtype, inputs[2]

    @staticmethod
    def backward(ctx: Any, sens: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        real = sens.real if sens.is_complex() else sens
        if ctx.kind is None:
            return sens, real.to(ctx.behind), None
        full = real.detach().to(ctx.kind).to(ctx.behind)
        return sens, _Carry.apply(full, real, ctx.kind) if real.requires_grad else full, None


class _Shadows(TorchFunctionMode):
    """Computes the shadow of each result together with the result."""

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if "out" in kwargs or not _is_followed((args, kwargs)):
            return result
        name = _name_of(function)
        shadow_value = None
        divides = name in _DIVISIONS and kwargs.get("rounding_mode") is None
        cuts = not divides and _is_real(result)        # MindSpore casts integers before it computes with real numbers
        if name in _INTEGER_CASTS:
            shadow_value = _shadowed(args[0], False)
        elif name in _ALL or name in _FIRST or name in _BUT_FIRST:
            followed = args[:1] if name in _FIRST else args
            try:
                shadowed = _shadowed(followed, cuts) if name not in _BUT_FIRST else (args[0], *_shadowed(args[1:], cuts))
                shadow_value = _FORMULAS.get(name, function)(*shadowed, *args[len(followed):], **_shadowed(kwargs, cuts))
            except (RuntimeError, TypeError, IndexError, ValueError):
                shadow_value = None                       # float64 has no such function: integers have no gradient there
        _local.has_divided = _local.has_divided or divides
        return _joined(result, shadow_value)


def _is_real(result: Any) -> bool:
    if isinstance(result, torch.Tensor):
        return result.dtype not in _INTEGER_DTYPES
    return isinstance(result, (list, tuple)) and any(map(_is_real, result))


def _name_of(function: Callable[..., Any]) -> str:
    """Return the plain name of a function, method, aten operator or augmented operator: `mul`; empty for operators that write in place."""
    name: str = getattr(function, "_opname", None) or getattr(function, "__name__", None) or ""
    if name == "__get__":                          # of an attribute: T
        return getattr(getattr(function, "__self__", None), "__name__", "")
    if name.startswith("__"):
        inner = name.strip("_")
        return inner if inner in _ALL or inner in _FIRST else inner[1:] if inner[:1] == "r" else ""
    return "" if name.endswith("_") else name


def _is_followed(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return getattr(value, _SHADOW, None) is not None
    if isinstance(value, (list, tuple)):
        return any(map(_is_followed, value))
    return any(map(_is_followed, value.values())) if isinstance(value, dict) else False


def _shadowed(value: Any, cuts: bool) -> Any:
    """Return the arguments with shadows, other values without their gradient, and integer dtypes as float64.

    If `cuts` is set, the gradient of each shadow is cast to the integers' dtype on its way.
    """
    if isinstance(value, torch.Tensor):
        shadow_value = shadow(value)
        if shadow_value is None:
            return value.detach()
        return _Carry.apply(shadow_value.detach(), shadow_value, value.dtype) if cuts else shadow_value
    if isinstance(value, torch.dtype):
        return torch.float64 if value in _INTEGER_DTYPES else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_shadowed(item, cuts) for item in value)
    return {key: _shadowed(item, cuts) for key, item in value.items()} if isinstance(value, dict) else value


def _joined(result: Any, shadows: Any) -> Any:
    """Connect the result to the computation on shadows."""
    if isinstance(result, torch.Tensor):
        if not isinstance(shadows, torch.Tensor) or shadows.shape != result.shape or not shadows.requires_grad:
            if is_integer(result) and shadow(result) is not None:
                delattr(result, _SHADOW)           # written in place by an operator without a gradient
            return result
        if is_integer(result):
            setattr(result, _SHADOW, shadows)
            return result
        if result.dtype.is_floating_point or result.dtype.is_complex:
            return _Carry.apply(result, shadows, None)
        return result
    if isinstance(result, (list, tuple)):
        parts = list(shadows) if isinstance(shadows, (list, tuple)) and len(shadows) == len(result) else [None] * len(result)
        joined = [_joined(item, part) for item, part in zip(result, parts)]
        return type(result)(*joined) if hasattr(result, "_fields") else type(result)(joined)
    return result
