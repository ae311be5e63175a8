"""Torch tensors made from Python and NumPy data, with MindSpore's rules for the dtype."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message, with_type
from torchspore.engine.devices import device
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.number import Number, natural, number
from torchspore.engine.tensors.tensor import TensorBase, frame, outside, raw, wrap
from torchspore.engine.torch_internals import torch_private
from torchspore.translations import translate


def from_capsule(dlpack: Any) -> Any:
    """A Tensor in the memory of a DLPack capsule, or of an object with `__dlpack__`."""
    t = torch.utils.dlpack.from_dlpack(dlpack)
    if t.dtype not in dtypes.FROM_TORCH:
        raise TypeError(message(f"from_dlpack: numbers of the dtype {t.dtype}", "a dtype that MindSpore has"))
    return wrap(t)


def is_torch_tensor(value: Any) -> bool:
    """Return whether `value` is a torch tensor."""
    return isinstance(value, torch.Tensor)


def from_data(data: Any, dtype: Any = None) -> torch.Tensor:
    """A new torch tensor with a copy of `data`: a number, a nested list or tuple, a NumPy array or a Tensor.

    Python floats give float32, Python ints int64; NumPy data keeps its dtype. Raises TypeError for data that is not a number.
    """
    torch_dtype = None if dtype is None else dtypes.to_torch(dtype)
    if type(data) is Number:
        return natural(data) if torch_dtype is None else raw(data).to(torch_dtype)
    if isinstance(data, TensorBase):
        return raw(data).to(torch_dtype) if torch_dtype is not None and torch_dtype is not raw(data).dtype else raw(data).clone()
    if isinstance(data, (list, tuple)) and any(isinstance(item, TensorBase) for item in data):
        return _from_sequence(data, torch_dtype)                 # the device of the graph, if one is captured
    if isinstance(data, torch.Tensor) and (data.requires_grad or torch_private.is_transforming()):
        from torchspore.engine.tensors import torch_interop

        return torch_interop.enter(data).to(data.dtype if torch_dtype is None else torch_dtype, copy=True)
    around = frame()
    if around is not None:
        return around.literal(data, lambda values: _make(values, torch_dtype))
    return _make(data, torch_dtype)


def _make(data: Any, dtype: torch.dtype | None) -> torch.Tensor:
    if isinstance(data, (bool, int, float, complex)) and not isinstance(data, np.generic):
        natural = torch.float32 if isinstance(data, float) else torch.complex128 if isinstance(data, complex) else None
        return constant(data, device.current(), dtype or natural)
    if isinstance(data, (np.ndarray, np.generic)):
        return from_array(np.asarray(data), dtype)
    if isinstance(data, (list, tuple)):
        return _from_sequence(data, dtype)
    if isinstance(data, torch.Tensor):
        return data.detach().clone() if dtype is None else data.detach().to(dtype, copy=True)
    hint = translate("write {word}").format(word="Tensor([1.0, 2.0], mindspore.float32)")
    raise TypeError(message(f"Tensor({data!r:.40})", with_type("a number, a list, a tuple, a NumPy array or a Tensor", data), hint=hint))


def from_array(array: np.ndarray[Any, Any], dtype: torch.dtype | None = None, share: bool = False) -> torch.Tensor:
    """Return a torch tensor with the values of `array`; with `share` it uses the array's own memory on the host."""
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"Tensor of a NumPy array of dtype {array.dtype}: expected numbers or truth values. For Tensor, initializing tensor by numpy "
            f"array failed, because it has elements of {array.dtype.type}."
        )
    if any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    writable = array if array.flags.writeable or not share else array.copy()
    if not writable.flags.writeable:
        writable = writable.copy()
        share = True
    if writable.dtype.char == "Q":                 # NumPy makes it of numbers from 2^63 on; torch knows unsigned long alone
        writable = writable.view(np.dtype(np.uint64).char)
    t = torch.from_numpy(writable)
    where = device.current()
    ahead = where.type != "cpu" and not t.is_pinned()
    if dtype is not None and dtype is not t.dtype:
        return t.to(where, dtype, non_blocking=ahead)
    return t.to(where, non_blocking=ahead) if share else t.to(where, copy=True, memory_format=torch.contiguous_format, non_blocking=ahead)


def constant(value: Any, where: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a number, or a list of numbers, as a tensor on a device, without waiting for the device.

    An accelerator fills in a number by itself. Host memory that is not pinned is copied before the call returns, so Python need not wait
    for the transfer.
    """
    if isinstance(value, np.ndarray):
        return from_array(value, dtype)
    if where.type == "cpu" or isinstance(value, torch.Tensor):
        return torch.as_tensor(value, dtype=dtype, device=where)
    if value.__class__ in (bool, int, float, complex):
        return torch.full((), value, dtype=dtype, device=where)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return torch.as_tensor(value, dtype=dtype, device=where)
    return torch.as_tensor(value, dtype=dtype).to(where, non_blocking=True)


def _unsupported(data: Any) -> str:
    return f"For Tensor, the input_data is {str(data)[:200]} that contain unsupported element."


def _from_sequence(data: Sequence[Any], dtype: torch.dtype | None) -> torch.Tensor:
    if any(type(item) is Number for item in data) and all(isinstance(item, (bool, int, float)) for item in data):
        return _from_numbers([raw(item if type(item) is Number else number(item)) for item in data], dtype)
    if any(isinstance(item, TensorBase) for item in data):
        if not all(isinstance(item, TensorBase) and type(item) is not Number for item in data):
            return _from_mixed(data, dtype)
        stacked = torch.stack([raw(item) for item in data])
        return stacked if dtype is None else stacked.to(dtype)
    try:
        array = np.array(data)
    except ValueError:
        text = f"Tensor({str(data)[:60]}): expected rows of equal length. {_unsupported(data)}"
        raise TypeError(text) from None
    if array.dtype == object:
        raise TypeError(f"Tensor({str(data)[:60]}): expected numbers or truth values. {_unsupported(data)}")
    if dtype is None and array.dtype == np.float64:
        dtype = torch.float32
    return from_array(array, dtype)


def _from_mixed(data: Sequence[Any], dtype: torch.dtype | None) -> torch.Tensor:
    """Stack Tensors and numbers, or lists of them. As for numbers alone, integers become int64 and floating-point numbers float32."""
    rows = [
        raw(item) if isinstance(item, TensorBase)
        else _from_sequence(item, None) if isinstance(item, (list, tuple)) else from_data(item, None)
        for item in data
    ]
    if any(row.shape != rows[0].shape for row in rows):
        shapes = ", ".join(str(tuple(row.shape)) for row in rows)
        raise TypeError(f"Tensor of a list: expected Tensors and numbers of one shape, got {shapes}.")
    common = functools.reduce(torch.promote_types, [row.dtype for row in rows])
    if common is not torch.bool and not common.is_complex:
        common = torch.float32 if common.is_floating_point else torch.int64
    return torch.stack([row.to(rows[0].device, dtype or common) for row in rows])


def _from_numbers(values: list[torch.Tensor], dtype: torch.dtype | None) -> torch.Tensor:
    """A vector of numbers some of which a graph computes."""
    common = functools.reduce(torch.promote_types, [t.dtype for t in values])
    return torch.stack([t.to(common) for t in values]).to(dtype or (torch.float32 if common is torch.float64 else common))


def filled(shape: Any, value: Any, dtype: Any) -> torch.Tensor:
    """A tensor of `shape` that holds `value` everywhere."""
    sizes = (int(shape),) if isinstance(shape, int) else tuple(length(s) for s in shape)
    return torch.full(sizes, value, dtype=dtypes.to_torch(dtype), device=device.current())


def from_filler(shape: Any, dtype: Any, fill: Callable[[np.ndarray[Any, Any]], Any]) -> torch.Tensor:
    """A tensor of `shape` whose values `fill(array)` writes on the host, into an array of zeros of the dtype; float32 for bfloat16."""
    torch_dtype = dtypes.to_torch(dtype)
    has_array = torch_dtype is not torch.bfloat16 and not (torch_dtype.itemsize == 1 and torch_dtype.is_floating_point)
    if frame() is not None:                        # a graph may be captured: values come into it as those of an array
        array = np.zeros(tuple(shape), torch.empty(0, dtype=torch_dtype).numpy().dtype if has_array else np.float32)
        with outside():
            fill(array)
        return from_data(array, dtype)
    values = torch.zeros(tuple(shape), dtype=torch_dtype if has_array else torch.float32, device="cpu")
    fill(values.numpy())
    return values.to(device.current(), torch_dtype)


def host(tensor: TensorBase) -> torch.Tensor:
    """Return the values of `tensor` on the host, detached from every graph.

    Raises ValueError while a graph is captured, and inside `vmap`, where a Tensor has different values for each row.
    """
    around = frame()
    t = tensor._t if around is None else around.host(tensor)
    if torch_private.is_wrapped(t):
        if torch_private.is_batched(t):
            line = user_line()
            raise ValueError(message(
                f"{line + ': ' if line else ''}reads the values of a Tensor inside of vmap",
                "operators on the Tensor itself, which has other values for each row",
                hint="use ops.where for a choice between rows, or print the Tensor, which shows all of them",
            ))
        with torch_private.no_transforms():
            return torch_private.outside_of_transforms(t).detach().cpu()
    return t.detach().cpu() if t.requires_grad or t.device.type != "cpu" else t


def to_print(tensor: TensorBase) -> np.ndarray[Any, Any]:
    """Return the values as a NumPy array for printing; inside of `vmap` those of all rows."""
    around = frame()
    t = tensor._t if around is None else around.host(tensor)
    if not torch_private.is_wrapped(t):
        return array_of(t)
    with torch_private.no_transforms():
        return array_of(torch_private.outside_of_transforms(t).detach())


def to_numpy(tensor: TensorBase) -> np.ndarray[Any, Any]:
    """The values as a NumPy array, on the host without a copy."""
    t = host(tensor)
    if not torch_private.is_transforming():
        return array_of(t)
    with torch_private.no_transforms():
        return array_of(t)


def array_of(t: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the values of a torch tensor as a NumPy array on the host, without a copy if it is there already; bfloat16 as float32."""
    if t.requires_grad or t.device.type != "cpu":
        t = t.detach().cpu()
    if t.is_conj() or t.is_neg():
        t = t.resolve_conj().resolve_neg()
    if t.dtype is torch.bfloat16 or (t.dtype.itemsize == 1 and t.dtype.is_floating_point):
        return t.to(torch.float32).numpy()
    return t.numpy()


def length(value: Any) -> int:
    """An axis length as an int; one that a graph leaves open stays a symbol."""
    return value if isinstance(value, torch.SymInt) else int(value)  # type: ignore[return-value]
