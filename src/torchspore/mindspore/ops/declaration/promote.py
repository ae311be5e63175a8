"""MindSpore's rules for operands of two dtypes, measured on 2.10 (tests/parity/promotion).

They are torch's rules with two exceptions: a 0-d Tensor counts like any other (0-d int64 + int32 is int64) except in `*` and `/`, and
uint16, uint32 and uint64 combine only with themselves and bool.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from torchspore.engine.devices import device
from torchspore.engine.formulas.half_precision import HALVES
from torchspore.engine.tensors import dtypes, tree
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.creation import constant, from_data
from torchspore.engine.tensors.number import Number, as_operand, decided
from torchspore.engine.tensors.tensor import TensorBase, unwrap
from torchspore.mindspore.ops.declaration.wide import WIDE, from_order, in_order, quotient, rest

_WIDENED = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}


_ORDERS = frozenset({torch.lt, torch.le, torch.gt, torch.ge})


def operand(value: Any) -> Any:
    """Return the torch tensor or Python number for one operand. Raises TypeError for other values."""
    if isinstance(value, (TensorBase, torch.Tensor)):
        return unwrap(value)
    if isinstance(value, (bool, int, float, complex, torch.SymInt, torch.SymFloat)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        has_tensors = any(isinstance(leaf, TensorBase) for leaf in tree.leaves(value))
        return from_data(value) if has_tensors else constant(value, device.current())
    hint = "\n\nhint: write Tensor(array) for a NumPy array." if isinstance(value, np.ndarray) else ""
    raise TypeError(f"expected Tensors or numbers, got {type(value).__name__}.{hint}")


def pair(x: Any, y: Any, family: str = "add") -> tuple[Any, Any]:
    """Convert two operands to the dtype in which MindSpore computes.

    `family` is 'add' (also `-`, `//`, `%`, `**`), 'mul', 'div', 'equal', 'compare' or 'shift': in 'mul' and
    'div' 0-d Tensors do not promote others.
    """
    a, b = operand(x), operand(y)
    if isinstance(x, Number) != isinstance(y, Number):
        a, b = (as_operand(x, b), b) if isinstance(x, Number) else (a, as_operand(y, a))
    if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
        a = constant(a, device.current())
    if is_wide(a, b):
        return _wide_pair(a, b, family)
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        if engine.active:
            decided(a, b, family)
        if isinstance(a, torch.Tensor):
            return _complex_if(isinstance(b, complex), a), _rounded(b, a.dtype)
        return _rounded(a, b.dtype), _complex_if(isinstance(a, complex), b)
    if a.dtype is b.dtype:
        return a, b
    if engine.active:
        decided(a, b, family)
    a, b = _complex_if(b.is_complex(), a), _complex_if(a.is_complex(), b)
    common = torch.promote_types(a.dtype, b.dtype)
    if common is torch.complex32 or (common.is_complex and torch.float16 in (a.dtype, b.dtype) and family in ("mul", "div")):
        raise mixed(a, b)
    return (a.to(common), b.to(common)) if family not in ("mul", "div") and (a.ndim == 0) != (b.ndim == 0) else (a, b)


def _complex_if(has_complex_operand: bool, t: torch.Tensor) -> torch.Tensor:
    """Return bfloat16 next to a complex operand as complex64: torch 2.15 would compute in bcomplex32, which MindSpore lacks."""
    return t.to(torch.complex64) if has_complex_operand and t.dtype is torch.bfloat16 else t


def _rounded(number: Any, dtype: torch.dtype) -> Any:
    """Return a number next to a Tensor of 16 bits as a number of its dtype; torch would compute with all digits of the number."""
    return _in_half(number, dtype) if dtype in HALVES and type(number) in (int, float) and number else number


@functools.lru_cache(1024, typed=True)
def _in_half(number: float, dtype: torch.dtype) -> float:
    """Round a number, by way of float32 or int64, as MindSpore casts it."""
    try:
        return float(torch.tensor(number).to(dtype))
    except (OverflowError, RuntimeError):                  # an int beyond int64: the operator refuses it
        return number


def _wide_pair(a: Any, b: Any, family: str) -> tuple[Any, Any]:
    """Convert two operands, one of which is uint16, uint32 or uint64."""
    wide, narrow_operand = (a, b) if is_wide(a) else (b, a)
    if isinstance(narrow_operand, torch.Tensor):
        if narrow_operand.dtype is wide.dtype:
            return a, b
        if narrow_operand.dtype is not torch.bool or family in ("mul", "div", "equal"):
            raise mixed(a, b)
        return a.to(wide.dtype), b.to(wide.dtype)
    if isinstance(narrow_operand, float) and family == "div":
        return tuple(v.to(torch.int64).to(torch.float32) if v is wide else v for v in (a, b))  # type: ignore[return-value]
    if isinstance(narrow_operand, bool) or (isinstance(narrow_operand, int) and family != "add"):
        number = constant(int(narrow_operand), wide.device, wide.dtype)
        return (a, number) if wide is a else (number, b)
    raise TypeError(
        f"expected one dtype, got {dtypes.FROM_TORCH[wide.dtype]} and the number {narrow_operand}."
        "\n\nhint: cast the Tensor, for example with astype(mindspore.int64)."
    )


def mixed(a: torch.Tensor, b: torch.Tensor) -> TypeError:
    """Return the error for two Tensors whose dtypes are not promoted."""
    left, right = dtypes.FROM_TORCH[a.dtype], dtypes.FROM_TORCH[b.dtype]
    return TypeError(f"expected one dtype, got {left} and {right}.\n\nhint: cast one of them, for example with astype(mindspore.float32).")


def check_stored_dtype(stored: torch.dtype, value: Any) -> None:
    """Raises TypeError if a Parameter of the dtype `stored` cannot take `value`, a tensor or a number, without narrowing it.

    These are MindSpore's rules for inputs that an operator writes: both dtypes together must promote to the stored one.
    """
    dtype = value.dtype if isinstance(value, torch.Tensor) else torch.float32 if isinstance(value, float) else stored
    halves = {stored, dtype} == {torch.float16, torch.bfloat16}
    is_number = not isinstance(value, torch.Tensor)
    if dtype is stored or halves or (is_number and (stored.is_floating_point or stored.is_complex)):
        return
    if stored in WIDE or dtype in WIDE or torch.promote_types(stored, dtype) is not stored:
        names = dtypes.FROM_TORCH[stored], "a float" if is_number else dtypes.FROM_TORCH[dtype]
        raise TypeError(f"Data type conversion is not supported for a 'Parameter': {names[0]} cannot take {names[1]} without narrowing it."
                        f"\n\nhint: cast the value, for example with astype(mindspore.{str(names[0]).lower()}).")


def check_not_narrowed(stored: torch.dtype, value: Any, name: str, is_size_free: bool = False) -> None:
    """Raises TypeError if a copy of a Tensor of the dtype `stored` takes the elements of the Tensor `value` only with losses.

    Integers do not take floats, truth values take nothing else. A smaller dtype of the same kind is refused too, unless `is_size_free`.
    A number is converted, as in MindSpore.
    """
    if not isinstance(value, torch.Tensor) or value.dtype is stored or stored in WIDE or value.dtype in WIDE:
        return
    is_free = is_size_free or {stored, value.dtype} == {torch.float16, torch.bfloat16}
    if torch.promote_types(stored, value.dtype) is not stored and not (is_free and torch.can_cast(value.dtype, stored)):
        names = dtypes.FROM_TORCH[stored], dtypes.FROM_TORCH[value.dtype]
        raise TypeError(f"expected {name} that {names[0]} can hold, got {names[1]}.\n\nhint: cast it, for example with "
                        f"astype(mindspore.{str(names[0]).lower()}).")


def alike(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two Tensors in the dtype that both are promoted to."""
    a, b = pair(a, b)
    common = torch.promote_types(a.dtype, b.dtype)
    return a.to(common), b.to(common)


_EXACTLY: dict[str, Any] = {
    "_larger": lambda a, b: from_order(torch.maximum(in_order(a), in_order(b))),
    "_smaller": lambda a, b: from_order(torch.minimum(in_order(a), in_order(b))),
    "_floor_divide": quotient, "truncate_divide": quotient, "remainder": rest, "fmod": rest,
}
"""Functions that replace these for two uint64, by name."""


def widened(function: Any, a: Any, b: Any) -> torch.Tensor:
    """Apply `function` to unsigned integers that torch cannot compute with: widen, compute, narrow."""
    wide = next(t.dtype for t in (a, b) if isinstance(t, torch.Tensor))
    if wide is torch.uint64:
        exact = _EXACTLY.get(getattr(function, "__name__", ""))
        if exact is not None:
            return exact(a, b)
        if function in _ORDERS:
            return function(in_order(a), in_order(b))
    to = _WIDENED[wide]
    out = function(*(t.to(to) if isinstance(t, torch.Tensor) else t for t in (a, b)))
    return out.to(wide) if out.dtype is to else out


def is_wide(a: Any, b: Any = None) -> bool:
    """Return whether an operand is uint16, uint32 or uint64."""
    return (isinstance(a, torch.Tensor) and a.dtype in WIDE) or (isinstance(b, torch.Tensor) and b.dtype in WIDE)
