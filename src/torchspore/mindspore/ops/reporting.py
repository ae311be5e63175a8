"""Operators that act beside computing: prints, assertions, dumps, summaries, hooks on gradients, the status of overflows."""
from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchspore.base.files import atomic_file
from torchspore.engine.autograd.bprop import with_gradient
from torchspore.engine.core import creation, device, printing
from torchspore.engine.core.dtypes import FROM_TORCH
from torchspore.engine.core.tensor import TensorBase, modify, raw, tensors, wrap
from torchspore.graph.capture import trace_guard_hooks
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.declare import explaining, op
from torchspore.mindspore.ops.primitive import Primitive
from torchspore.observe import summaries

T = torch.Tensor


@op(primitive="Print", raw_arguments=True)
@explaining
def print_(*input_x: Any) -> None:
    """Prints each argument on lines of its own, a Tensor with its shape, dtype and values.

    Where `print_file_path` is set they go into that file instead of onto the screen.
    """
    printing.print_values(input_x, trace_guard_hooks.is_tracing())


class Assert(Primitive):
    """Raises RuntimeError where a condition is false, after it has printed the first `summarize` elements of Tensors."""

    def __init__(self, summarize: int = 3) -> None:
        super().__init__("Assert")
        if not isinstance(summarize, int) or isinstance(summarize, bool):
            raise TypeError(f"Assert(summarize={summarize!r}): expected an int, got {type(summarize).__name__}.")
        self.add_prim_attr("summarize", summarize)

    def __call__(self, condition: Any, input_data: Any) -> None:
        if not isinstance(input_data, (tuple, list)):
            raise TypeError(f"Assert: expected a tuple or list of Tensors, got {type(input_data).__name__}.")
        trace_guard_hooks.ends_trace("calls Assert", Kind.OTHER)
        if bool(creation.host(condition).all()) if isinstance(condition, TensorBase) else condition:
            return
        builtins.print("For 'Assert' condition is false.")
        for one in input_data:
            builtins.print(f"input data: {creation.to_numpy(one).reshape(-1)[: self.attrs['summarize']]}", flush=True)
        raise RuntimeError("Assert: the condition is false.")


_dumps = itertools.count()


def _dump(file: str, tensor: Any, mode: str) -> None:
    if mode not in ("in", "out"):
        raise ValueError(f"{mode!r}: expected 'in' or 'out'.")
    if not isinstance(file, str) or not file:
        raise TypeError(f"expected the name of a file, got {file!r}.")
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"expected a Tensor, got {type(tensor).__name__}.")
    trace_guard_hooks.ends_trace("writes a file", Kind.OTHER)
    stem = file.removesuffix(".npy") + ("_in" if mode == "in" else "")
    path = Path(f"{stem}_{str(tensor.dtype).lower()}_{next(_dumps)}.npy")  # type: ignore[attr-defined]
    with atomic_file(path, mode=0o400) as out:
        np.save(out, creation.to_numpy(tensor))


@op(raw_arguments=True)
@explaining
def tensordump(file_name: str, tensor: Any, mode: str = "out") -> None:
    """Writes the values to `file_name`_dtype_number.npy, with _in before the dtype where `mode` is 'in'."""
    _dump(file_name, tensor, mode)


@op(primitive="TensorDump", init=("input_output",), raw_arguments=True)
@explaining
def _tensor_dump(file: str, input_x: Any, input_output: str = "out") -> None:
    """Writes the values to `file`_dtype_number.npy, with _in before the dtype where `input_output` is 'in'."""
    _dump(file, input_x, input_output)


_ANY = range(1, 65)


def _summary(primitive: str, ranks: Sequence[int], doc: str) -> Callable[..., None]:
    """Makes a summary operator for Tensors of as many axes as `ranks` allows; outside of a SummaryRecord it does nothing."""

    def body(name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"expected a text as the name, got {name!r}.")
        if not name:
            raise ValueError("expected a name, got ''.")
        if not isinstance(value, TensorBase):
            raise TypeError(f"expected a Tensor as the value, got {type(value).__name__}.")
        if value._t.ndim not in ranks:
            wanted = "1 axis or more" if ranks is _ANY else " or ".join(map(str, ranks)) + " axes"
            raise ValueError(f"expected {wanted}, got shape {tuple(value._t.shape)}.")
        summaries.keep(primitive.removesuffix("Summary").lower(), name, value)

    body.__name__ = body.__qualname__ = f"_{primitive}"
    body.__doc__ = doc
    return op(primitive=primitive, raw_arguments=True)(explaining(body))


_scalar_summary = _summary("ScalarSummary", (0, 1), "Keeps a number under a name in a SummaryRecord; outside of one does nothing.")
_tensor_summary = _summary("TensorSummary", _ANY, "Keeps a Tensor under a name in a SummaryRecord; outside of one does nothing.")
_image_summary = _summary("ImageSummary", (4,), "Keeps images (N, C, H, W) under a name in a SummaryRecord; outside of one does nothing.")
_histogram_summary = _summary("HistogramSummary", _ANY, "Keeps a histogram under a name in a SummaryRecord; outside of one does nothing.")


class InsertGradientOf(Primitive):
    """Gives its argument back; on its gradient `f` is called, and the gradient becomes what `f` gives."""

    def __init__(self, f: Callable[[Any], Any]) -> None:
        super().__init__("InsertGradientOf")
        if not callable(f):
            raise TypeError(f"InsertGradientOf({f!r:.40}): expected a function of a gradient.")
        self.add_prim_attr("f", f)

    def __call__(self, input_x: Any) -> Any:
        return _with_hook(self.attrs["f"], input_x)


class HookBackward(Primitive):
    """Gives its argument back; its gradient, in a tuple, is given to `hook_fn`, which may give another one."""

    def __init__(self, hook_fn: Callable[[Any], Any], cell_id: str = "") -> None:
        super().__init__("HookBackward")
        if not callable(hook_fn):
            raise TypeError(f"HookBackward({hook_fn!r:.40}): expected a function of a gradient.")
        if cell_id:
            raise ValueError(f"HookBackward(cell_id={cell_id!r}): expected '', since names of Cells can not be chosen.")
        self.add_prim_attr("cell_id", cell_id)
        self.hook_fn = hook_fn

    def __call__(self, input: Any) -> Any:
        def hook(gradient: Any) -> Any:
            found = self.hook_fn((gradient,))
            return gradient if found is None else found[0] if isinstance(found, tuple) else found

        return _with_hook(hook, input)


def _with_hook(hook: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, TensorBase):
        raise TypeError(f"expected a Tensor, got {type(value).__name__}.")
    return with_gradient(lambda x: wrap(raw(x).view_as(raw(x))), lambda _, __, sens: (hook(sens),), "InsertGradientOf")(value)


@op(primitive="FloatStatus")
def _float_status(x: T) -> T:
    """Whether an element is NaN or infinite: 1 or 0 in shape (1,), float32."""
    return (~torch.isfinite(x).all()).to(torch.float32).reshape(1)


@op(primitive="NPUAllocFloatStatus", raw_arguments=True)
def _npu_alloc_float_status() -> Any:
    """A status of eight zeros, float32. What it is made to depend on (`ops.depend`) is looked through for NaN and infinity."""
    return _status(wrap(torch.zeros(8, device=device.current())), False)


@op(primitive="NPUClearFloatStatus", raw_arguments=True)
@explaining
def _npu_clear_float_status(x: Any) -> Any:
    """Sets a status to zeros; gives zeros."""
    modify(x, lambda t: t.zero_())
    return _status(wrap(torch.zeros_like(raw(x))), False)


@op(primitive="NPUGetFloatStatus", raw_arguments=True)
@explaining
def _npu_get_float_status(x: Any) -> Any:
    """A status: its sum is above 0 where something that it was made to depend on was NaN or infinite.

    Ascend processors keep a register of overflows. There is none here, so that a status knows of what it depends on alone; where that
    is nothing this raises ValueError.
    """
    if not getattr(x, "has_looked", False):
        raise ValueError(_DEPENDS_ON_NOTHING)
    return x


@op(primitive="NPUClearFloatStatusV2")
def _npu_clear_float_status_v2(x: torch.Tensor) -> torch.Tensor:
    """Eight zeros, int32: there is no register that could be cleared. `x` is eight int32."""
    _check_eight(x)
    return torch.zeros_like(x)


@op(primitive="NPUGetFloatStatusV2", raw_arguments=True)
@explaining
def _npu_get_float_status_v2(x: Any) -> Any:
    """Eight int32: ones where something that `x` was made to depend on (`ops.depend`) holds NaN or infinity, else zeros."""
    _check_eight(raw(x))
    if not hasattr(x, "looks_through"):
        raise ValueError(_DEPENDS_ON_NOTHING)
    is_over = torch.zeros((), dtype=torch.bool, device=raw(x).device)
    for one in x.looks_through:
        is_over = is_over | ~torch.isfinite(raw(one)).all()
    return wrap(is_over.to(torch.int32).repeat(8))


_DEPENDS_ON_NOTHING = (
    "expected a status that depends on something: only what it depends on is looked through for NaN and infinity."
    "\n\nhint: write status = ops.depend(status, gradients) before, or use ops.FloatStatus()(gradient)."
)


def _check_eight(x: torch.Tensor) -> None:
    if x.dtype is not torch.int32:
        raise TypeError(f"expected a status of int32, got {FROM_TORCH[x.dtype]}.")
    if x.shape != (8,):
        raise ValueError(f"expected a status of shape (8,), got {tuple(x.shape)}.")


def remembering(status: Any, expr: Any) -> Any:
    """The same eight numbers, which also remember the Tensors in `expr` that may hold NaN or infinity."""
    found = [one for one in tensors(expr) if raw(one).is_floating_point() or raw(one).is_complex()]
    made = wrap(raw(status))
    made.looks_through = [*getattr(status, "looks_through", ()), *found]
    return made


def _status(made: Any, has_looked: bool) -> Any:
    made.is_float_status, made.has_looked = True, has_looked
    return made


def looked(status: Any, expr: Any) -> Any:
    """A status that also knows whether a Tensor in `expr` holds NaN or infinity."""
    found = raw(status)
    for one in tensors(expr):
        t = raw(one)
        if (t.is_floating_point() or t.is_complex()) and not getattr(one, "is_float_status", False):
            found = torch.maximum(found, (~torch.isfinite(t).all()).to(found.dtype))
    return _status(wrap(found), True)
