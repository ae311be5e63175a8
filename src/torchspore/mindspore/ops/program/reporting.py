"""Operators with side effects: prints, assertions, dumps, summaries, gradient hooks, overflow status."""
from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchspore.base.arguments import is_int
from torchspore.base.files import atomic_file
from torchspore.base.text import message, with_type
from torchspore.engine.autograd.bprop import with_gradient
from torchspore.engine.devices import device
from torchspore.engine.execution import printing
from torchspore.engine.tensors import creation
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, modify, raw, tensors, wrap
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.declaration.declare import explaining, op
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.observe import summaries

T = torch.Tensor


@op(primitive="Print", raw_arguments=True)
@explaining
def print_(*input_x: Any) -> None:
    """Prints each argument on separate lines, a Tensor with its shape, dtype and values.

    If `print_file_path` is set, the lines go to that file instead of the screen.
    """
    printing.print_values(input_x, running_trace.is_tracing())


class Assert(Primitive):
    """Raises RuntimeError if a condition is false, after printing the first `summarize` elements of Tensors."""

    def __init__(self, summarize: int = 3) -> None:
        super().__init__("Assert")
        if not is_int(summarize):
            raise TypeError(message(f"Assert(summarize={summarize!r})", with_type("an int", summarize)))
        self.add_prim_attr("summarize", summarize)

    def __call__(self, condition: Any, input_data: Any) -> None:
        if not isinstance(input_data, (tuple, list)):
            raise TypeError(f"Assert: expected a tuple or list of Tensors, got {type(input_data).__name__}.")
        running_trace.ends_trace("calls Assert", Kind.OTHER)
        if bool(creation.host(condition).all()) if isinstance(condition, TensorBase) else condition:
            return
        builtins.print("For 'Assert' condition is false.")
        for tensor in input_data:
            builtins.print(f"input data: {creation.to_numpy(tensor).reshape(-1)[: self.attrs['summarize']]}", flush=True)
        raise RuntimeError("Assert: the condition is false.")


_dumps = itertools.count()


def _dump(file: str, tensor: Any, mode: str) -> None:
    if mode not in ("in", "out"):
        raise ValueError(f"{mode!r}: expected 'in' or 'out'.")
    if not isinstance(file, str) or not file:
        raise TypeError(f"expected the name of a file, got {file!r}.")
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"expected a Tensor, got {type(tensor).__name__}.")
    stem = file.removesuffix(".npy") + ("_in" if mode == "in" else "")
    if running_trace.is_tracing():
        _DUMP(raw(tensor).detach(), stem)
    else:
        _write_dump(creation.to_numpy(tensor), stem, str(tensor.dtype).lower())  # type: ignore[attr-defined]


def _write_dump(values: np.ndarray[Any, Any], stem: str, dtype: str) -> None:
    with atomic_file(Path(f"{stem}_{dtype}_{next(_dumps)}.npy"), mode=0o400) as out:
        np.save(out, values)


def _dump_in_graph(x: T, stem: str) -> None:
    """Writes a Tensor of a graph to a file each time that the graph runs."""
    tensor = wrap(printing.copy_if_waiting(x))
    printing.deliver(lambda: _write_dump(creation.to_numpy(tensor), stem, str(tensor.dtype).lower()))


_DUMP: Any = define("dump(Tensor x, str stem) -> ()", _dump_in_graph, lambda *_: None)
printing.OPERATORS.add(_DUMP)


@op(raw_arguments=True)
@explaining
def tensordump(file_name: str, tensor: Any, mode: str = "out") -> None:
    """Write the values to `file_name`_dtype_number.npy, with _in before the dtype if `mode` is 'in'."""
    _dump(file_name, tensor, mode)


@op(primitive="TensorDump", init=("input_output",), raw_arguments=True)
@explaining
def _tensor_dump(file: str, input_x: Any, input_output: str = "out") -> None:
    """Write the values to `file`_dtype_number.npy, with _in before the dtype if `input_output` is 'in'."""
    _dump(file, input_x, input_output)


_ANY = range(1, 65)


def _summary(primitive: str, ranks: Sequence[int], doc: str) -> Callable[..., None]:
    """Build a summary operator for Tensors with the numbers of axes in `ranks`; outside a SummaryRecord it has no effect."""

    def body(name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"expected a text as the name, got {name!r}.")
        if not name:
            raise ValueError("expected a name, got ''.")
        if not isinstance(value, TensorBase):
            raise TypeError(f"expected a Tensor as the value, got {type(value).__name__}.")
        if value._t.ndim not in ranks:
            expected_axes = "1 axis or more" if ranks is _ANY else " or ".join(map(str, ranks)) + " axes"
            raise ValueError(f"expected {expected_axes}, got shape {tuple(value._t.shape)}.")
        summaries.keep(primitive.removesuffix("Summary").lower(), name, value)

    body.__name__ = body.__qualname__ = f"_{primitive}"
    body.__doc__ = doc
    return op(primitive=primitive, raw_arguments=True)(explaining(body))


_scalar_summary = _summary("ScalarSummary", (0, 1), "Stores a number under a name in a SummaryRecord; no effect outside one.")
_tensor_summary = _summary("TensorSummary", _ANY, "Stores a Tensor under a name in a SummaryRecord; no effect outside one.")
_image_summary = _summary("ImageSummary", (4,), "Stores images (N, C, H, W) under a name in a SummaryRecord; no effect outside one.")
_histogram_summary = _summary("HistogramSummary", _ANY, "Stores a histogram under a name in a SummaryRecord; no effect outside one.")


class InsertGradientOf(Primitive):
    """Returns its argument; `f` is called with its gradient, and the result replaces the gradient."""

    def __init__(self, f: Callable[[Any], Any]) -> None:
        super().__init__("InsertGradientOf")
        if not callable(f):
            raise TypeError(f"InsertGradientOf({f!r:.40}): expected a function of a gradient.")
        self.add_prim_attr("f", f)

    def __call__(self, input_x: Any) -> Any:
        return _with_hook(self.attrs["f"], input_x)


class HookBackward(Primitive):
    """Returns its argument; `hook_fn` is called with its gradient in a tuple, and may return another gradient."""

    def __init__(self, hook_fn: Callable[[Any], Any], cell_id: str = "") -> None:
        super().__init__("HookBackward")
        if not callable(hook_fn):
            raise TypeError(f"HookBackward({hook_fn!r:.40}): expected a function of a gradient.")
        if cell_id:
            raise ValueError(f"HookBackward(cell_id={cell_id!r}): expected '', because names of Cells cannot be chosen.")
        self.add_prim_attr("cell_id", cell_id)
        self.hook_fn = hook_fn

    def __call__(self, input: Any) -> Any:
        def hook(gradient: Any) -> Any:
            new_gradient = self.hook_fn((gradient,))
            return gradient if new_gradient is None else new_gradient[0] if isinstance(new_gradient, tuple) else new_gradient

        return _with_hook(hook, input)


def _with_hook(hook: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, TensorBase):
        raise TypeError(f"expected a Tensor, got {type(value).__name__}.")
    return with_gradient(lambda x: wrap(raw(x).view_as(raw(x))), lambda _, __, sens: (hook(sens),), "InsertGradientOf")(value)


@op(primitive="FloatStatus")
def _float_status(x: T) -> T:
    """Test whether an element is NaN or infinite: 1 or 0 in shape (1,), float32."""
    return (~torch.isfinite(x).all()).to(torch.float32).reshape(1)


@op(primitive="NPUAllocFloatStatus", raw_arguments=True)
def _npu_alloc_float_status() -> Any:
    """A status of eight zeros, float32. Tensors that it depends on (`ops.depend`) are searched for NaN and infinity."""
    return _status(wrap(torch.zeros(8, device=device.current())), False)


@op(primitive="NPUClearFloatStatus", raw_arguments=True)
@explaining
def _npu_clear_float_status(x: Any) -> Any:
    """Set a status to zeros; return zeros."""
    modify(x, lambda t: t.zero_())
    return _status(wrap(torch.zeros_like(raw(x))), False)


@op(primitive="NPUGetFloatStatus", raw_arguments=True)
@explaining
def _npu_get_float_status(x: Any) -> Any:
    """Return a status whose sum is above 0 if a Tensor that it depends on was NaN or infinite.

    Ascend processors have a register of overflows. Other devices have none, so a status covers only the Tensors that it depends on. Raises
    ValueError if there are none.
    """
    if not getattr(x, "has_looked", False):
        raise ValueError(_DEPENDS_ON_NOTHING)
    return x


@op(primitive="NPUClearFloatStatusV2")
def _npu_clear_float_status_v2(x: torch.Tensor) -> torch.Tensor:
    """Eight zeros, int32, because there is no register to clear. `x` is eight int32."""
    _check_eight(x)
    return torch.zeros_like(x)


@op(primitive="NPUGetFloatStatusV2", raw_arguments=True)
@explaining
def _npu_get_float_status_v2(x: Any) -> Any:
    """Eight int32: ones if a Tensor that `x` depends on (`ops.depend`) contains NaN or infinity, else zeros."""
    _check_eight(raw(x))
    if not hasattr(x, "looks_through"):
        raise ValueError(_DEPENDS_ON_NOTHING)
    is_over = torch.zeros((), dtype=torch.bool, device=raw(x).device)
    for tensor in x.looks_through:
        is_over = is_over | ~torch.isfinite(raw(tensor)).all()
    return wrap(is_over.to(torch.int32).repeat(8))


_DEPENDS_ON_NOTHING = (
    "expected a status that depends on a value: only its dependencies are searched for NaN and infinity."
    "\n\nhint: write status = ops.depend(status, gradients) before, or use ops.FloatStatus()(gradient)."
)


def _check_eight(x: torch.Tensor) -> None:
    if x.dtype is not torch.int32:
        raise TypeError(f"expected a status of int32, got {FROM_TORCH[x.dtype]}.")
    if x.shape != (8,):
        raise ValueError(f"expected a status of shape (8,), got {tuple(x.shape)}.")


def remembering(status: Any, expr: Any) -> Any:
    """Return the status, which then also refers to the Tensors in `expr` that may contain NaN or infinity."""
    numeric = [tensor for tensor in tensors(expr) if raw(tensor).is_floating_point() or raw(tensor).is_complex()]
    new_status = wrap(raw(status))
    new_status.looks_through = [*getattr(status, "looks_through", ()), *numeric]
    return new_status


def _status(status: Any, has_looked: bool) -> Any:
    status.is_float_status, status.has_looked = True, has_looked
    return status


def looked(status: Any, expr: Any) -> Any:
    """Return a status that also reports whether a Tensor in `expr` contains NaN or infinity."""
    flags = raw(status)
    for tensor in tensors(expr):
        t = raw(tensor)
        if (t.is_floating_point() or t.is_complex()) and not getattr(tensor, "is_float_status", False):
            flags = torch.maximum(flags, (~torch.isfinite(t).all()).to(flags.dtype))
    return _status(wrap(flags), True)
