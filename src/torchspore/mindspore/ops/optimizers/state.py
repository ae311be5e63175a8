"""Writes to Parameters, ordering, detached values."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.execution.precision import as_stored
from torchspore.engine.tensors import creation
from torchspore.engine.tensors.tensor import TensorBase, raw, transform, wrap, write
from torchspore.mindspore.ops.declaration.declare import explaining, op
from torchspore.mindspore.ops.declaration.explain import explain
from torchspore.mindspore.ops.declaration.promote import check_stored_dtype


def _values(variable: TensorBase, value: Any) -> torch.Tensor:
    source = raw(value) if isinstance(value, TensorBase) else creation.from_data(value)
    layout = getattr(variable._t, "sharded_layout", None)
    if source.shape != variable._t.shape and (layout is None or tuple(source.shape) != layout.shape):      # a full value: one part is used
        raise ValueError(f"expected a value of the variable's shape {tuple(variable._t.shape)}, got {tuple(source.shape)}.")
    check_stored_dtype(variable._t.dtype, source if isinstance(value, TensorBase) else value)
    return source.to(variable._t.dtype)


@op(primitive="Assign", raw_arguments=True)
def assign(variable: Any, value: Any) -> Any:
    """Assign the values of `value`, which has the same shape, to `variable`; return the variable.

    Raises ValueError if the shapes differ.
    """
    try:
        write(variable, _values(variable, value))
    except (RuntimeError, ValueError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise explain(assign, (variable, value), {}, error) from None
    return variable


@op(primitive="AssignAdd", raw_arguments=True)
def assign_add(variable: Any, value: Any) -> Any:
    """Add `value` to `variable` in place; return the variable."""
    return _change(assign_add, variable, value, torch.add)


@op(primitive="AssignSub", raw_arguments=True)
def assign_sub(variable: Any, value: Any) -> Any:
    """Subtract `value` from `variable` in place; return the variable."""
    return _change(assign_sub, variable, value, torch.sub)


def _change(function: Any, variable: Any, value: Any, compute: Any) -> Any:
    try:
        other = raw(value) if isinstance(value, TensorBase) else value
        check_stored_dtype(variable._t.dtype, other)
        write(variable, compute(raw(as_stored(variable)), other).to(variable._t.dtype))
    except (RuntimeError, ValueError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise explain(function, (variable, value), {}, error) from None
    return variable


@op(primitive="Depend", raw_arguments=True)
def depend(value: Any, expr: Any) -> Any:
    """Return `value`; Python has already evaluated `expr`.

    An overflow status (`ops.NPUAllocFloatStatus`) records whether a Tensor in `expr` contains NaN or infinity; eight int32 may be a status
    of `NPUGetFloatStatusV2`, and then refer to the Tensors to search.
    """
    if getattr(value, "is_float_status", False):
        from torchspore.mindspore.ops.program.reporting import looked

        return looked(value, expr)
    if isinstance(value, TensorBase) and value._t.dtype is torch.int32 and value._t.shape == (8,) and not value.__parameter__:
        from torchspore.mindspore.ops.program.reporting import remembering

        return remembering(value, expr)
    return value


@op(raw_arguments=True, primitive="StopGradient")
@explaining
def stop_gradient(value: Any) -> Any:
    """Detach the values from the autograd graph; also inside tuples and lists."""
    return transform(value, lambda tensor: wrap(raw(tensor).detach()))


