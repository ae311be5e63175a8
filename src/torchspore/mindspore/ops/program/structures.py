"""Python values inside a program: numbers, tuples, lists, dicts and strings, as MindSpore's graphs compute with them."""
from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.engine.devices import device
from torchspore.engine.tensors import dtypes, structured_types
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.ops.declaration.arguments import as_dtype, sizes
from torchspore.mindspore.ops.declaration.declare import explaining, op

T = torch.Tensor


@op(primitive="ScalarToTensor")
def scalar_to_tensor(input_x: Any, dtype: Any = torch.float32) -> T:
    """A Python number as a Tensor without axes, float32 unless `dtype` says otherwise. Raises TypeError for other values."""
    if not isinstance(input_x, (bool, int, float)):
        raise TypeError(f"expected a number, got {type(input_x).__name__}.")
    return constant(input_x, device.current(), as_dtype(dtype))


@op(primitive="ScalarToArray")
def scalar_to_array(input_x: Any) -> T:
    """A Python number as a Tensor without axes, int64 or float32 by the number's type. Raises TypeError for other values."""
    if not isinstance(input_x, (bool, int, float)):
        raise TypeError(f"expected a number, got {type(input_x).__name__}.")
    return constant(input_x, device.current(), torch.float32 if isinstance(input_x, float) else None)


@op()
def array_to_scalar(input_x: T) -> Any:
    """The only number of a Tensor, as a Python number."""
    return input_x.item()


@op(raw_arguments=True)
@explaining
def make_range(*limits: int) -> tuple[int, ...]:
    """The ints of Python's `range(start, limit, step)` as a tuple.

    >>> ops.make_range(3)
    (0, 1, 2)
    """
    return tuple(builtins.range(*limits))


def _number(name: str, compute: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Build a function of two Python numbers."""

    def body(x: Any, y: Any) -> Any:
        return compute(x, y)

    return _named(body, name, doc)


def _unary_number(name: str, compute: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Build a function of one Python number."""

    def body(x: Any) -> Any:
        return compute(x)

    return _named(body, name, doc)


def _quotients(x: Any, y: Any) -> tuple[int, ...]:
    if len(x) != len(y):
        raise ValueError(f"The size of inputs of 'tuple_div' operator must be the same, got {len(x)} and {len(y)}.")
    for number in (*x, *y):
        if not is_int(number):
            raise TypeError(f"The data type of inputs of 'tuple_div' operator should be an int64 number, got {number!r:.40}.")
    for a, b in zip(x, y):
        if b == 0:
            raise ValueError(f"The divisor value should not be 0, got {a} / 0.")
        if a % b:
            raise ValueError(f"The inputs of 'tuple_div' operator should be divisible, got {a} / {b}.")
    return tuple(a // b for a, b in zip(x, y))


def _structure(name: str, compute: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Build a function of tuples, lists, dicts and their elements."""

    def body(*arguments: Any) -> Any:
        return compute(*arguments)

    return _named(body, name, doc)


def _named(body: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return op(raw_arguments=True)(explaining(body))


scalar_add = _number("scalar_add", operator.add, "x + y of numbers.")
scalar_sub = _number("scalar_sub", operator.sub, "x - y of numbers.")
scalar_mul = _number("scalar_mul", operator.mul, "x * y of numbers.")
scalar_div = _number("scalar_div", operator.truediv, "x / y of numbers.")
scalar_floordiv = _number("scalar_floordiv", operator.floordiv, "x // y of numbers.")
scalar_mod = _number("scalar_mod", operator.mod, "x % y of numbers.")
scalar_pow = _number("scalar_pow", operator.pow, "x to the power y, of numbers.")
scalar_max = _number("scalar_max", builtins.max, "The larger of two numbers.")
scalar_min = _number("scalar_min", builtins.min, "The smaller of two numbers.")
scalar_eq = _number("scalar_eq", operator.eq, "Tests whether two numbers are equal.")
scalar_ne = _structure("scalar_ne", operator.ne, "Tests whether two numbers differ.")
scalar_gt = _number("scalar_gt", operator.gt, "Tests x > y for numbers.")
scalar_ge = _number("scalar_ge", operator.ge, "Tests x >= y for numbers.")
scalar_lt = _number("scalar_lt", operator.lt, "Tests x < y for numbers.")
scalar_le = _number("scalar_le", operator.le, "Tests x <= y for numbers.")
scalar_log = _unary_number("scalar_log", math.log, "The natural logarithm of a number.")
scalar_uadd = _unary_number("scalar_uadd", operator.pos, "A number itself.")
scalar_usub = _unary_number("scalar_usub", operator.neg, "The negative of a number.")
bool_and = _structure("bool_and", lambda x, y: x and y, "Logical and of two truth values.")
bool_or = _structure("bool_or", lambda x, y: x or y, "Logical or of two truth values.")
bool_not = _structure("bool_not", operator.not_, "Logical not of a truth value.")
bool_eq = _structure("bool_eq", operator.eq, "Tests whether two truth values are equal.")
string_eq = _structure("string_eq", operator.eq, "Tests whether two strings are equal.")
string_concat = _structure("string_concat", operator.add, "The concatenation of two strings.")
is_ = _structure("is_", operator.is_, "Tests whether both are one object.")
is_not = _structure("is_not", operator.is_not, "Tests whether the two are different objects.")
in_dict = _structure("in_dict", lambda key, table: key in table, "Tests whether a dict has the key.")
not_in_dict = _structure("not_in_dict", lambda key, table: key not in table, "Tests whether a dict lacks the key.")


def _replaced(sequence: Any, index: int, value: Any) -> Any:
    """A tuple or list with the element at `index` replaced."""
    items = list(sequence)
    items[index] = value
    return type(sequence)(items)


tuple_len = _structure("tuple_len", len, "The number of elements of a tuple.")
list_len = _structure("list_len", len, "The number of elements of a list.")
tuple_getitem = _structure("tuple_getitem", operator.getitem, "The element of a tuple at an index.")
list_getitem = _structure("list_getitem", operator.getitem, "The element of a list at an index.")
dict_getitem = _structure("dict_getitem", operator.getitem, "The value of a key in a dict.")
tuple_setitem = _structure("tuple_setitem", _replaced, "A tuple with the element at an index replaced.")
list_setitem = _structure("list_setitem", _replaced, "A list with the element at an index replaced.")
dict_setitem = _structure("dict_setitem", lambda table, key, value: {**table, key: value}, "A dict with the value of a key replaced.")
tuple_equal = _structure("tuple_equal", operator.eq, "Tests whether two tuples are equal.")
list_equal = _structure("list_equal", operator.eq, "Tests whether two lists are equal.")
tuple_reversed = _structure("tuple_reversed", lambda items: tuple(reversed(items)), "A tuple backwards.")
tuple_div = _structure("tuple_div", _quotients, "The quotients of two tuples of ints, element by element; each without a remainder.")
make_tuple = _structure("make_tuple", lambda *items: items, "The arguments as a tuple.")
make_list = _structure("make_list", lambda *items: list(items), "The arguments as a list.")
make_dict = _structure("make_dict", lambda keys, values: dict(zip(keys, values, strict=True)), "A dict of keys and values.")
make_slice = _structure("make_slice", builtins.slice, "A slice of start, stop and step.")
tail = _structure("tail", lambda items: items[1:], "A tuple or list without its first element.")
zip_operation = _structure("zip_operation", lambda *items: tuple(zip(*items)), "The first elements as a tuple, the second ones, and so on.")
switch = _structure("switch", lambda condition, first, second: first if condition else second, "The first of two values, or the second.")
switch_layer = _structure("switch_layer", lambda index, layers: layers[int(index)], "The Cell of a tuple at an index.")


@op(raw_arguments=True)
@explaining
def shape_mul(input_data: tuple[int, ...]) -> int:
    """The product of the lengths of a shape."""
    return math.prod(input_data)


@op(raw_arguments=True)
@explaining
def reduced_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """A shape with length 1 along `axis` (an int, a tuple, or () for all axes)."""
    axes = sizes(axis) or list(builtins.range(len(shape)))
    return tuple(1 if i in {a % len(shape) for a in axes} else s for i, s in enumerate(shape))


@op(raw_arguments=True)
@explaining
def broadcast_gradient_args(x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes along which two operands were broadcast: their gradients are summed over these."""
    rank = builtins.max(len(x_shape), len(y_shape))
    x, y = ((1,) * (rank - len(s)) + tuple(s) for s in (x_shape, y_shape))
    return (
        tuple(i for i, (a, b) in enumerate(zip(x, y)) if a == 1 and (b != 1 or i < rank - len(x_shape))),
        tuple(i for i, (a, b) in enumerate(zip(x, y)) if b == 1 and (a != 1 or i < rank - len(y_shape))),
    )


@op(raw_arguments=True)
def typeof(x: Any) -> Any:
    """Return the MindSpore type of a value, such as `Int64`, `Tensor[Float32]` or `Tuple[Tensor[Float32],String]`.

    The type of a Python object without a MindSpore type is External.
    """
    return structured_types.type_of(x, _sparse_types())


@functools.cache
def _sparse_types() -> dict[type, Any]:
    """Return, for each class of sparse Tensors, a function that describes an instance's type: the dtypes of its parts and its rank."""
    from torchspore.mindspore.common.sparse_tensor import COOTensor, CSRTensor

    def describe(kind: Any, sparse: Any, *parts: Any) -> Any:
        return kind(*(part.dtype for part in parts), *(dtypes.int64 for _ in sparse.shape))

    return {
        COOTensor: lambda t: describe(structured_types.COOTensorType, t, t.indices, t.values),
        CSRTensor: lambda t: describe(structured_types.CSRTensorType, t, t.indptr, t.indices, t.values),
    }


@op(raw_arguments=True)
def hastype(x: Any, dtype: Any) -> bool:
    """Return whether a number, or the elements of a Tensor, have this dtype."""
    return bool((dtypes.FROM_TORCH[x._t.dtype] if isinstance(x, TensorBase) else typeof(x)) == dtype)


@op(raw_arguments=True)
def isconstant(x: Any) -> bool:
    """Return whether a value is constant while a graph is compiled: every value except a Tensor."""
    return not isinstance(x, TensorBase)


@op(raw_arguments=True)
def is_tensor(obj: Any) -> bool:
    """Return whether `obj` is a Tensor."""
    return isinstance(obj, TensorBase)


@op()
def deepcopy(input_x: T) -> T:
    """A copy in new memory."""
    return input_x.clone()
