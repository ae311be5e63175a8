"""Tensor methods from operators: those in the operators' declarations, and those with arguments that differ from the function's."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from torchspore.base.frames import line_prefix
from torchspore.base.text import message, short
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.devices import device
from torchspore.engine.execution import thread_state
from torchspore.engine.native import operators as native_operators
from torchspore.engine.native.operators import with_short_path
from torchspore.engine.tensors import creation as create
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import TensorBase, modify, raw, wrap
from torchspore.mindspore.common import unsupported
from torchspore.mindspore.common.storage import UntypedStorage
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.ops.arrays import array, creation, indexing, selection
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import OPERATORS
from torchspore.mindspore.ops.declaration.explain import replaced
from torchspore.mindspore.ops.declaration.extremes import Extremes
from torchspore.mindspore.ops.elementwise import activation, arithmetic, binary, unary
from torchspore.mindspore.ops.linear_algebra import matrices, matrix_products, products
from torchspore.mindspore.ops.reductions import extremes, reduction
from torchspore.mindspore.ops.tensor_methods import in_place, method_forms
from torchspore.mindspore.ops.tensor_methods.method_forms import spelled


def attach() -> None:
    """Add the operators and methods to Tensor. Called once, when `ops` is imported."""
    for name, function in arithmetic.DUNDERS.items():
        setattr(Tensor, name, function)
    Tensor.__getitem__ = with_short_path(indexing.getitem, "x[]")  # type: ignore[attr-defined]
    Tensor.__setitem__ = indexing.setitem  # type: ignore[attr-defined]
    for operator in OPERATORS.values():
        for name in operator.methods:
            setattr(Tensor, name, operator.function)
    for name, function in {**_METHODS, **method_forms.METHODS, **in_place.METHODS}.items():
        # Since Python 3.13 a property has a __name__, but no __qualname__ to set.
        if not isinstance(function, property) and getattr(function, "__name__", "").startswith("_"):
            for part in (function, getattr(function, "in_python", function)):
                part.__qualname__ = f"Tensor.{name}"           # Python's errors for a wrong call begin with it
        setattr(Tensor, name, function)
    unsupported.mark(Tensor)
    native_operators.configure(TensorBase, Tensor, Number, vars(engine), engine.thread_state)


def _astype(self: Any, dtype: Any, copy: bool = True) -> Any:
    """Cast to another dtype; with `copy` False, return the Tensor itself if it already has that dtype."""
    try:
        to = dtypes.to_torch(dtype) if isinstance(dtype, dtypes.Type) else dtypes.of_cast(dtype)
        return self if not copy and self._t.dtype is to else wrap(integer_gradients.cast(raw(self), to, copy))
    except Exception as error:
        raise replaced(error, _astype, "Tensor.astype", (dtype,), {}) from None


_TO = "to(dtype=None, non_blocking=False, copy=False), to(device=None, dtype=None, ..) or to(other, ..)"


def _to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Convert to the dtype and device in the arguments, or to those of `other`. `copy` makes a copy."""
    first, second = (*args, None, None)[:2]
    names: tuple[str, ...] = ("device", "dtype", "non_blocking", "copy")
    if isinstance(first, TensorBase):
        names = ("other", "non_blocking", "copy")
    elif isinstance(first, dtypes.Type) or (first is None and isinstance(second, bool)):
        names = ("dtype", "non_blocking", "copy")
    arguments = {**kwargs, **dict(zip(names, args))}
    argument_types: dict[str, type] = {"device": str, "dtype": dtypes.Type, "other": TensorBase, "non_blocking": bool, "copy": bool}
    if len(args) > len(names) or len(arguments) < len(args) + len(kwargs):
        raise TypeError(message(f"Tensor.to({', '.join(map(short, args))})", _TO))
    for name, value in arguments.items():
        if name not in argument_types or not (isinstance(value, argument_types[name]) or (value is None and name in ("device", "dtype"))):
            raise TypeError(message(f"Tensor.to({name}={short(value)})", _TO))
    other = arguments.get("other")
    dtype = other.dtype if other is not None else arguments.get("dtype")
    cast = _astype(self, self.dtype if dtype is None else dtype, arguments.get("copy", False))
    if other is None and arguments.get("device") is None:
        return cast
    return _moved(cast, other if other is not None else arguments["device"], arguments.get("non_blocking", False))


def _moved(tensor: Any, to: Any, ahead: bool) -> Any:
    """Move a Tensor to the device of another one or to a named device; during a capture it stays on its device."""
    values = raw(tensor)
    target_device = raw(to).device if isinstance(to, TensorBase) else device.resolve_device("Tensor.to", to)
    if type(values) is not torch.Tensor or values.device == target_device:
        return tensor
    # An asynchronous copy to the host would expose memory before it is written, so only copies to the device may be asynchronous.
    return wrap(values.to(target_device, non_blocking=ahead and target_device.type != "cpu"))


def _caster(dtype: dtypes.Type) -> Any:
    def method(self: Any) -> Any:
        return _astype(self, dtype)

    method.__doc__ = f"The values as {dtype!r}."
    return method


def _reshape(self: Any, *shape: Any) -> Any:
    """The same elements in another shape, from one tuple or ints."""
    if not engine.active:
        try:
            return wrap(self._t.reshape(*shape))
        except (AttributeError, RuntimeError, TypeError):                          # raised again, and explained, below
            pass
    try:
        return array.reshape(self, sizes(shape))
    except Exception as error:
        raise replaced(error, _reshape, "Tensor.reshape", shape, {}) from None


def _expand(self: Any, *shape: Any) -> Any:
    """Broadcast to a shape; -1 keeps a length."""
    try:
        return array.broadcast_to(self, sizes(shape))
    except Exception as error:
        raise replaced(error, _expand, "Tensor.expand", shape, {}) from None


def _repeat(self: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each element `repeats` times along `axis`, or in the flat Tensor."""
    return array.repeat_interleave(self, repeats, axis)


_EXTREME_DEFAULTS: dict[str, Any] = {"axis": None, "keepdims": False, "initial": None, "where": True, "return_indices": False}


_BY_AXIS = frozenset({"initial", "keepdims", "return_indices", "where"})
"""Keywords of `max(axis=...)`: with one of them, a positional argument is an axis too."""


def _extreme(reduce: Any, pick: Any) -> Any:
    """`max` and `min`: a positional axis or `dim` returns values and indexes, `axis` only the values."""

    def by_axis(self: Any, axis: Any, keepdims: bool, initial: Any, where: Any, return_indices: bool) -> Any:
        mask = None if where is True else where
        if isinstance(axis, (int, np.integer)):
            values, indexes = pick(self, axis, keepdims, initial=initial, where=mask)
            return (values, indexes) if return_indices else values
        if return_indices and axis is None:
            return pick(self)                 # of the flat Tensor; other arguments are ignored
        return reduce(self, axis, keepdims, initial=initial, where=mask)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "dim" in kwargs or (args and isinstance(args[0], (int, np.integer)) and not kwargs.keys() & _BY_AXIS):
            named = "dim" in kwargs
            dim, keepdim = (*args, kwargs.pop("dim", None))[0], args[1] if len(args) > 1 else False
            extremes = pick(self, dim, kwargs.pop("keepdim", kwargs.pop("keepdims", keepdim)), **kwargs)
            return extremes if named else Extremes(extremes)
        arguments = dict(zip(("axis", "keepdims"), args)) | kwargs
        unknown = arguments.keys() - _EXTREME_DEFAULTS.keys()
        if unknown:
            raise TypeError(f"{line_prefix()}Tensor.{pick.__name__}({min(unknown)}=...): expected {', '.join(_EXTREME_DEFAULTS)}.")
        return by_axis(self, **(_EXTREME_DEFAULTS | arguments))

    method.__doc__ = reduce.__doc__
    return method


def _sum_along(self: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
    """The sum along `axis`; integers are summed in int64; `initial` is added. A bool as the second argument is `keepdims`."""
    if dtype is None:
        out = reduction.sum(self, axis, keepdims) if keepdims else reduction.sum(self) if axis is None else reduction.sum(self, axis)
        return out if initial is None else out + initial
    out = reduction.sum(self, axis, keepdims, dtype=dtype)
    return out if initial is None else _astype(out + initial, dtype)


@functools.wraps(_sum_along)
def _sum(self: Any, *args: Any, **kwargs: Any) -> Any:
    if not args and not kwargs and not engine.active and (t := raw(self)).dtype.is_floating_point:
        return wrap(t.sum())
    if kwargs:
        kwargs = {_SUM_KEYWORDS.get(key, key): value for key, value in kwargs.items()}
    if len(args) > 1 and isinstance(args[1], bool) and "keepdims" not in kwargs:       # sum(dim, keepdim, *, dtype)
        args, kwargs = (args[0], *args[2:]), {**kwargs, "keepdims": args[1]}
    return _sum_along(self, *args, **kwargs)


_SUM_KEYWORDS = {"dim": "axis", "keepdim": "keepdims"}


def _scaled(function: Any) -> Any:
    """`add` and `sub` with the factor `alpha` for the other operand."""

    @functools.wraps(function)
    def method(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        return function(self, other if alpha == 1 else arithmetic.mul(other, alpha) if isinstance(other, Tensor) else other * alpha)

    method.__doc__ = function.__doc__
    return method


def _subtract(self: Any, other: Any, alpha: Any = 1) -> Any:
    """self - alpha * other."""
    return _METHODS["sub"](self, other, alpha=alpha)


def _ptp(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest minus the smallest value along `axis`."""
    return extremes.amax(self, axis, keepdims) - extremes.amin(self, axis, keepdims)


def _fill(self: Any, value: Any) -> Any:
    """A Tensor of this shape and dtype, filled with `value`."""
    return wrap(create.filled(self.shape, value, self.dtype))


def _mean(self: Any, axis: Any = None, keep_dims: bool = False, *, dtype: Any = None) -> Any:
    """The mean along `axis`; the mean of integers is an integer."""
    return reduction.mean(self if dtype is None else _astype(self, dtype), axis, keep_dims)


def _transposed(self: Any) -> Any:
    """The axes in the reverse order."""
    if engine.active:
        return method_forms.METHODS["transpose"](self)
    t = raw(self)
    return wrap(t.permute(tuple(range(t.ndim - 1, -1, -1))))


def _copy(self: Any) -> Any:
    """A Tensor with the same values in new memory."""
    return wrap(raw(self).clone())


def _fill_in_place(self: Any, value: Any) -> Any:
    """Fill the Tensor with `value`; return it."""
    modify(self, lambda t: t.fill_(value.item() if isinstance(value, Tensor) else value))
    return self


def _copy_in_place(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy the values of `src` into this Tensor, in its dtype; return it."""
    engine.write(self, raw(src).to(self._t.dtype))
    return self


def _in_place(function: Any) -> Any:
    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        engine.write(self, dtypes.fitting(raw(function(self, *args, **kwargs)), self._t.dtype))
        return self

    vars(method).pop("gated", None)                # the assignment happens outside the operator's error handling
    method.__doc__ = f"`{function.__name__}` in place; returns this Tensor."
    return method


def _new_filled(value: Any) -> Any:
    def method(self: Any, size: Any, dtype: Any = None) -> Any:
        return wrap(create.filled(sizes(size), value, self.dtype if dtype is None else dtype))

    method.__name__ = "new_ones" if value else "new_zeros"
    method.__qualname__ = f"Tensor.{method.__name__}"
    method.__doc__ = f"A Tensor of `size` filled with {value}, with this one's dtype unless `dtype` says otherwise."
    return method


def _itemset(self: Any, *args: Any) -> Any:
    """Set the element at the other arguments to the last argument; return a new Tensor."""
    *index, value = args
    if not index and self.size != 1:
        raise IndexError(message(f"Tensor.itemset({short(value)}) of {self.size} elements", "an index, or a Tensor of one element"))
    copied = _copy(self)
    flat = copied.reshape(-1) if len(index) == 1 and isinstance(index[0], int) else copied
    flat[index[0] if len(index) == 1 else tuple(index) if index else ...] = value
    return copied


def _where(self: Any, condition: Any, y: Any) -> Any:
    """This Tensor where `condition` is true, else `y`."""
    return selection.where(condition, self, y)


_SMALL_INTEGERS = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8)


def _trace(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """The sum along the diagonal of two axes, `offset` positions above the main one, in `dtype` if it is set."""
    if offset == 0 and self.ndim == 2 and dtype is None:
        return matrix_products.trace(_astype(self, dtypes.int64) if self.dtype in _SMALL_INTEGERS else self)
    out = reduction.sum(array.diagonal(self, offset, axis1, axis2), -1)
    return out if dtype is None else _astype(out, dtype)


def _bernoulli(self: Any, p: Any = None, seed: int | None = None, *, generator: Any = None) -> Any:
    """1 with the probability in each element, else 0; in 1.x, with the probability `p` for all."""
    return in_place.bernoulli_ext(self, generator=generator) if p is None else creation.bernoulli(self, p, seed)


def _requires_grad(self: Any, requires_grad: bool = True) -> Any:
    """Store the flag; return the Tensor."""
    if thread_state.is_in_graph() or thread_state.is_in_jit():
        thread_state.refuse_in_module(f"requires_grad of Parameter {self.name!r}")
        raise RuntimeError("Failed to compile: the 'Parameter' object's method 'requires_grad_' is not supported in 'construct' or "
                           "function with @jit decorator.\n\nhint: call it outside of the graph, or use PYNATIVE_MODE without @jit.")
    self.requires_grad = requires_grad
    return self


_METHODS: dict[str, Any] = {
    "astype": _astype, "to": _to, "type": lambda self, dtype=None: str(self.dtype) if dtype is None else _astype(self, dtype),
    "float": _caster(dtypes.float32), "half": _caster(dtypes.float16), "double": _caster(dtypes.float64),
    "bfloat16": _caster(dtypes.bfloat16),
    "int": _caster(dtypes.int32), "long": _caster(dtypes.int64), "short": _caster(dtypes.int16), "byte": _caster(dtypes.uint8),
    "bool": _caster(dtypes.bool_),
    "type_as": lambda self, other: _astype(self, other.dtype),
    "reshape": with_short_path(_reshape, "x.reshape"), "expand": _expand, "repeat": _repeat,
    "view_as": lambda self, other: array.reshape(self, other.shape), "reshape_as": lambda self, other: array.reshape(self, other.shape),
    "max": with_short_path(_extreme(extremes.amax, extremes.max), "x.max"),
    "min": with_short_path(_extreme(extremes.amin, extremes.min), "x.min"),
    "sum": with_short_path(_sum, "sum"), "mean": with_short_path(spelled(_mean, dim="axis", keepdim="keep_dims"), "mean"),
    "fmod": arithmetic.fmod,
    "softmax": with_short_path(lambda self, axis=-1, dtype=None: activation.softmax(self, axis, dtype=dtype), "softmax"),
    "addr": lambda self, vec1, vec2, beta=1, alpha=1: products.addr(self, vec1, vec2, beta=beta, alpha=alpha),
    "approximate_equal": spelled(binary.approximate_equal, other="y"), "bernoulli": _bernoulli,
    "float_power": spelled(binary.float_power, other="exponent"), "ormqr": spelled(matrices.ormqr, input2="tau", input3="other"),
    "qr": spelled(matrices._qr_method, mode="some"), "trace": _trace,
    "ptp": _ptp, "fill": _fill, "untyped_storage": lambda self: UntypedStorage(self),
    "copy": _copy, "clone": _copy, "contiguous": lambda self: wrap(
        raw(self).contiguous()
    ), "detach": lambda self: wrap(raw(self).detach()),
    "add": _scaled(arithmetic.add), "sub": spelled(_scaled(arithmetic.sub), y="other"), "subtract": _subtract,
    "mul": arithmetic.mul, "multiply": spelled(arithmetic.mul, value="other"),
    "div": arithmetic.div, "divide": arithmetic.div, "true_divide": arithmetic.div, "pow": arithmetic.pow,
    "floor_divide": arithmetic.floor_divide,
    "maximum": arithmetic.maximum, "minimum": arithmetic.minimum,
    "eq": arithmetic.equal, "equal": arithmetic.equal, "ne": arithmetic.not_equal, "not_equal": arithmetic.not_equal,
    "lt": arithmetic.less, "less": arithmetic.less, "le": arithmetic.less_equal, "less_equal": arithmetic.less_equal,
    "gt": arithmetic.greater, "greater": arithmetic.greater, "ge": arithmetic.greater_equal, "greater_equal": arithmetic.greater_equal,
    "logical_and": arithmetic.logical_and, "logical_or": arithmetic.logical_or, "logical_xor": arithmetic.logical_xor,
    "__and__": arithmetic.bitwise_and, "__or__": arithmetic.bitwise_or, "__xor__": arithmetic.bitwise_xor,
    "__rand__": arithmetic.reflected(arithmetic.bitwise_and), "__ror__": arithmetic.reflected(arithmetic.bitwise_or),
    "__rxor__": arithmetic.reflected(arithmetic.bitwise_xor), "__pos__": lambda self: self,
    "bitwise_and": arithmetic.bitwise_and, "bitwise_or": arithmetic.bitwise_or, "bitwise_xor": arithmetic.bitwise_xor,
    "add_": _in_place(_scaled(arithmetic.add)), "sub_": _in_place(_scaled(arithmetic.sub)), "mul_": _in_place(arithmetic.mul),
    "div_": _in_place(arithmetic.div),
    "clamp_": _in_place(unary.clamp), "copy_": _copy_in_place,
    "fill_": _fill_in_place, "zero_": lambda self: _fill_in_place(self, 0),
    "new_zeros": _new_filled(0), "new_ones": _new_filled(1),
    "itemset": _itemset, "where": _where, "requires_grad_": _requires_grad, "value": lambda self: self,
    "T": property(with_short_path(_transposed, "x.T")), "mT": property(lambda self: array.swapaxes(self, -1, -2)),
}
