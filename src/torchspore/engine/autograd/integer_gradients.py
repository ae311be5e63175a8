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
from torchspore.engine.tensors import in_place_versions
from torchspore.engine.tensors.in_place_versions import base_of
from torchspore.engine.tensors.tensor import TensorBase, frame, raw, wrap

_SHADOW, _DIVIDED = "torchspore_shadow", "torchspore_divided"
"""Attributes of an integer tensor: its shadow, and True once it was divided by a Python number."""
_INTEGER_DTYPES = frozenset({
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
})
_ALL = frozenset((
    "T _to_copy _unsafe_view abs add addmm alias amax amin baddbmm bfloat16 bmm broadcast_tensors broadcast_to cat chunk clamp clamp_max "
    "clamp_min clone concat concatenate contiguous cos cumprod cumsum detach diag diag_embed diagonal div divide dot double "
    "dstack einsum exp expand expand_as flatten flip fliplr flipud float fmod half hstack kron lerp linear log log_softmax mT "
    "matmul matrix_power max maximum mean min minimum mm movedim mul multiply mv neg negative outer permute pow prod "
    "ravel relu remainder repeat reshape reshape_as roll rot90 rsub sigmoid sign sin slice softmax split "
    "split_with_sizes sqrt square squeeze stack sub subtract sum sum_to_size swapaxes swapdims t tan tanh "
    "tensordot tile to trace transpose tril triu true_divide truediv type type_as unbind unflatten unfold unsqueeze "
    "unsqueeze_copy view view_as vstack"
).split())
"""Functions that are followed with all that they are given."""
_INTEGER_CASTS = frozenset(("int", "long", "short"))
"""Functions that give the same numbers in another dtype of integers."""
_FIRST = frozenset((
    "embedding gather getitem index index_select masked_select narrow repeat_interleave select sort take take_along_dim tensor_split topk"
).split())
"""Functions of which only the first argument is followed: the others say where."""
_BUT_FIRST = frozenset({"where"})
_WRITTEN = {
    "copy": 1, "diagonal_scatter": 1, "fill": 1, "index_add": 3, "index_copy": 3, "index_fill": 3, "index_put": 2, "masked_fill": 2,
    "masked_scatter": 2, "put": 2, "scatter": 3, "scatter_add": 3, "select_scatter": 1, "setitem": 2, "slice_scatter": 1,
}
"""Functions that write one argument into the first, and the position of that argument; the others say where."""
_VALUES = frozenset(("src", "source", "tensor", "value", "values"))
"""The names of the arguments that those functions write."""
_IN_PLACE_OPERATORS = frozenset("iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor".split())
_DIVISIONS = frozenset(("div", "divide", "true_divide", "truediv"))
"""Functions that divide integers by Python numbers without a cast: MindSpore gives the gradients of such integers as float32."""


def _clamp(x: torch.Tensor, min: Any = None, max: Any = None) -> torch.Tensor:
    return clamping.clamp(x, min, max)


_FORMULAS: dict[str, Callable[..., torch.Tensor]] = {"clamp": _clamp}
"""Functions whose gradient of real numbers differs between torch and MindSpore."""


class NeedsReverse(BaseException):
    """A cast to integers was met in forward differentiation, where gradients can't go through it: the other way round they can."""


class _Local(threading.local):
    is_forward = False
    is_followed = False
    block: ExitStack | Block | None = None


_local = _Local()


def is_integer(t: torch.Tensor) -> bool:
    """Return whether `t` is of whole numbers or truth values."""
    return t.dtype in _INTEGER_DTYPES


def leaf(t: torch.Tensor) -> torch.Tensor:
    """A tensor of the same integers, by which a gradient may be asked for."""
    leaf_value = t.detach()
    outer = shadow(t)
    setattr(leaf_value, _SHADOW, t.to(torch.float64).requires_grad_() if outer is None else outer.view_as(outer))
    return leaf_value


def assigned(before: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the new value of a Parameter, also of integers: see `in_place_versions.assigned`."""
    shadow_value = shadow(before)
    if shadow_value is None:
        return in_place_versions.assigned(before, value)
    setattr(value, _SHADOW, value.to(torch.float64) + (shadow_value - shadow_value.detach()))
    return value


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
    if getattr(t, _DIVIDED, False):
        return gradient.to(torch.float32)
    gradient_value = gradient.detach().to(t.dtype)
    if gradient.requires_grad:
        setattr(gradient_value, _SHADOW, _Carry.apply(gradient_value.to(torch.float64), gradient, None))
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
        self._before = _local.block, _local.is_followed
        self._mode: TorchFunctionMode | None = None
        _local.block = self

    def enter_context(self, mode: TorchFunctionMode) -> None:
        """Enter a mode of torch until the end of the block."""
        mode.__enter__()
        self._mode = mode

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        outer, was_followed = self._before
        began = _local.is_followed and not was_followed
        _local.block, _local.is_followed = outer, was_followed
        if self._mode is not None:
            self._mode.__exit__(kind, error, trace)
        if began and kind is None:
            begin()                                    # what came out of the block has shadows


def is_in_block() -> bool:
    """Return whether this thread is in a block, which has begun."""
    return _local.block is not None


def is_following() -> bool:
    """Return whether shadows are computed in this thread."""
    return _local.is_followed


@contextmanager
def anew(was_followed: bool) -> Iterator[None]:
    """Run a block inside the backward pass, where torch disables modes, in the modes of the block that it repeats."""
    outer = _local.is_followed, _local.block
    try:
        with ExitStack() as stack:
            _local.is_followed, _local.block = False, stack
            if was_followed:
                begin()
            yield
    finally:
        _local.is_followed, _local.block = outer


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
        name, is_in_place = _name_of(function)
        if is_in_place and args and isinstance(args[0], torch.Tensor):
            return _write(function, name, args, kwargs)
        result = function(*args, **kwargs)
        if "out" in kwargs or not _is_followed((args, kwargs)):
            return result
        try:
            shadows = _shadows_of(function, name, args, kwargs, result)
        except (RuntimeError, TypeError, IndexError, ValueError):
            return result                              # float64 has no such function: integers have no gradient there
        return result if shadows is None else _joined(result, shadows)


def _shadows_of(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any,
) -> Any:
    """Return what continues the gradient of a result: the shadows of integers, and real numbers themselves; None if it has none."""
    if name in _INTEGER_CASTS:
        return _shadow_of(args[0])
    if name == "as_strided":
        return _strided(args[0], result)
    if not _is_known(name):
        return None
    dtype = _real_dtype(result)
    if dtype is None:
        converted, keywords = _mapped(name, args, kwargs, _shadow_of)
    else:                                              # MindSpore casts integers before it computes with real numbers
        cuts = not (name in _DIVISIONS and _divides_by_number(args, kwargs))
        converted, keywords = _mapped(name, args, kwargs, lambda value: _as_real(value, dtype, cuts))
    return _FORMULAS.get(name, function)(*converted, **keywords)


def _divides_by_number(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether these are the arguments of a division of a tensor and a Python number, and mark the tensor."""
    operands = (*args[:2], *kwargs.values())
    if kwargs.get("rounding_mode") is not None or all(isinstance(operand, torch.Tensor) for operand in operands):
        return False
    for operand in operands:
        if isinstance(operand, torch.Tensor):
            setattr(operand, _DIVIDED, True)
    return True


def _write(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function that writes into its first argument, and write the shadows of the values into the shadow of that memory."""
    t = args[0]
    memory = base_of(t)
    if not _is_followed((memory, args, kwargs)):
        return function(*args, **kwargs)
    if not is_integer(t):
        if _is_known(name):
            args, kwargs = _mapped(name, args, kwargs, lambda value: _as_real(value, t.dtype, True))
        return function(*args, **kwargs)
    target = _shadow_of_memory(t, memory)
    try:
        converted, keywords = _mapped(name, args, kwargs, _whole if name in _WRITTEN else _shadow_of) if _is_known(name) else ((), {})
    except (RuntimeError, TypeError, ValueError, OverflowError):
        converted = ()
    result = function(*args, **kwargs)
    try:
        if not converted:
            raise TypeError(name)
        function(target, *converted[1:], **keywords)
    except (RuntimeError, TypeError, IndexError, ValueError):
        if target.shape == t.shape:
            target.copy_(t.detach())                   # float64 has no such function: integers have no gradient there
        elif shadow(t) is not None:
            delattr(t, _SHADOW)
    return result


def _shadow_of_memory(t: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """Return the shadow of `t` as a part of the shadow of its memory, so that functions can write into it."""
    full = shadow(memory)
    if full is None or full.stride() != memory.stride():
        full = _laid_out(_shadow_of(memory), memory)
        setattr(memory, _SHADOW, full)
    if t is memory:
        return full
    part = _part(full, memory, t)
    setattr(t, _SHADOW, part)
    return part


def _strided(source: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return the shadow of `result`, which `as_strided` has taken of `source`."""
    return _part(_laid_out(_shadow_of(source), source), source, result)


def _part(full: torch.Tensor, memory: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Return the part of `full`, the shadow of `memory`, that `t` shows of `memory`."""
    return torch.as_strided(full, t.shape, t.stride(), full.storage_offset() + t.storage_offset() - memory.storage_offset())


def _laid_out(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return float64 values with the strides of `like`."""
    if values.stride() == like.stride() and values.dtype is torch.float64:
        return values
    return torch.empty_strided(like.shape, like.stride(), dtype=torch.float64, device=like.device).copy_(values)


def _real_dtype(result: Any) -> torch.dtype | None:
    """Return the dtype of the first tensor of real or complex numbers in a result; None if it has only integers."""
    if isinstance(result, torch.Tensor):
        return None if result.dtype in _INTEGER_DTYPES else result.dtype
    if isinstance(result, (list, tuple)):
        return next((dtype for item in result if (dtype := _real_dtype(item)) is not None), None)
    return None


def _is_known(name: str) -> bool:
    return name in _ALL or name in _FIRST or name in _BUT_FIRST or name in _WRITTEN


def _name_of(function: Callable[..., Any]) -> tuple[str, bool]:
    """Return the plain name of a function, method, aten operator or operator of Python, such as `mul`, and whether it writes in place."""
    name: str = getattr(function, "_opname", None) or getattr(function, "__name__", None) or ""
    if name == "__get__":                          # of an attribute: T
        return getattr(getattr(function, "__self__", None), "__name__", ""), False
    if name.startswith("__"):
        inner = name.strip("_")
        if inner in _IN_PLACE_OPERATORS:
            return inner[1:], True
        return inner if _is_known(inner) else inner[1:] if inner[:1] == "r" else "", inner == "setitem"
    return (name[:-1], True) if name.endswith("_") else (name, False)


def _is_followed(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return getattr(value, _SHADOW, None) is not None
    if isinstance(value, (list, tuple)):
        return any(map(_is_followed, value))
    return any(map(_is_followed, value.values())) if isinstance(value, dict) else False


def _mapped(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], convert: Callable[[Any], Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a function with `convert` of those that are followed."""
    if name in _FIRST:
        return (convert(args[0]), *args[1:]), kwargs
    if name in _BUT_FIRST:
        return (args[0], *map(convert, args[1:])), {key: convert(value) for key, value in kwargs.items()}
    if name in _WRITTEN:
        positions = (0, _WRITTEN[name])
        converted = tuple(convert(arg) if at in positions else arg for at, arg in enumerate(args))
        return converted, {key: convert(value) if key in _VALUES else value for key, value in kwargs.items()}
    return tuple(map(convert, args)), {key: convert(value) for key, value in kwargs.items()}


def _shadow_of(value: Any) -> Any:
    """Return the argument with shadows for integer tensors, other tensors without their gradient, and integer dtypes as float64."""
    if isinstance(value, torch.Tensor):
        shadow_value = shadow(value)
        if shadow_value is not None:
            return shadow_value
        return value.to(torch.float64) if is_integer(value) and value.dtype is not torch.bool else value.detach()
    if isinstance(value, torch.dtype):
        return torch.float64 if value in _INTEGER_DTYPES else value
    return _of_parts(value, _shadow_of)


def _whole(value: Any) -> Any:
    """Return the shadow of a value that is written into integers: real numbers lose their fraction."""
    if isinstance(value, torch.Tensor):
        return _shadow_of(value).to(torch.float64) if is_integer(value) else value.detach().trunc().to(torch.float64)
    return float(int(value)) if isinstance(value, float) else _of_parts(value, _whole)


def _as_real(value: Any, dtype: torch.dtype, cuts: bool) -> Any:
    """Return the argument with real numbers of `dtype` for integer tensors with shadows, in which their gradient continues.

    If `cuts` is set, the gradient is cast to the integers' dtype on its way.
    """
    if isinstance(value, torch.Tensor):
        shadow_value = shadow(value)
        if shadow_value is None:
            return value
        behind = _Carry.apply(shadow_value.detach(), shadow_value, value.dtype) if cuts else shadow_value
        return _Carry.apply(value.to(dtype), behind, None)
    return _of_parts(value, lambda item: _as_real(item, dtype, cuts))


def _of_parts(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(convert, value))
    return {key: convert(item) for key, item in value.items()} if isinstance(value, dict) else value


def _joined(result: Any, shadows: Any) -> Any:
    """Return the result with shadows for its integers, and with the real numbers among `shadows` in place of its own."""
    if isinstance(result, torch.Tensor):
        if not isinstance(shadows, torch.Tensor) or shadows.shape != result.shape or not shadows.requires_grad:
            return result
        if is_integer(result):
            setattr(result, _SHADOW, shadows)
            return result
        return shadows if shadows.dtype is result.dtype else result
    if isinstance(result, (list, tuple)):
        parts = list(shadows) if isinstance(shadows, (list, tuple)) and len(shadows) == len(result) else [None] * len(result)
        joined = [_joined(item, part) for item, part in zip(result, parts)]
        return type(result)(*joined) if hasattr(result, "_fields") else type(result)(joined)
    return result
