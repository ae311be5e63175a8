"""The primitives of MindSpore's `_sequence_ops` and `_scalar_ops`: Python's tuples, lists and numbers inside a program."""
from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.engine.tensors.tensor import TensorBase, raw, wrap
from torchspore.mindspore.ops.arrays import array, creation
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import explaining, op


def _python(primitive: str, names: str, compute: Callable[..., Any], doc: str) -> None:
    """Build the primitive of Python values with the arguments `names`."""

    def body(*values: Any) -> Any:
        return compute(*values)

    body.__name__ = body.__qualname__ = f"_{primitive.lower()}_of_python"
    body.__doc__ = doc
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names.split()]
    )
    op(primitive=primitive, raw_arguments=True)(explaining(body))


def _is_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal; Tensors by their dtypes, shapes and elements."""
    if isinstance(a, TensorBase) or isinstance(b, TensorBase):
        if not (isinstance(a, TensorBase) and isinstance(b, TensorBase)):
            return False
        x, y = raw(a), raw(b)
        return x.dtype == y.dtype and torch.equal(x, y)
    return bool(a == b)


def _sequence(value: Any) -> Sequence[Any]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"expected a tuple or list, got {type(value).__name__}.")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, TensorBase):
        raise TypeError("expected a Python number, got a Tensor.\n\nhint: write Tensor.item().")
    return value


def _added(first: Any, second: Any) -> Any:
    if type(_sequence(first)) is not type(_sequence(second)):
        raise TypeError(f"expected two tuples or two lists, got {type(first).__name__} and {type(second).__name__}.")
    return first + second


def _index(sequence: Any, target: Any, start: Any = None, end: Any = None) -> int:
    values = _sequence(sequence)
    for at in range(*slice(start, end).indices(len(values))):
        if _is_equal(values[at], target):
            return at
    raise ValueError(f"expected a target that is among the {len(values)} elements.")


@op(primitive="SequenceIndex", raw_arguments=True)
@explaining
def _sequence_index(sequence: Any, target: Any, start: Any = None, end: Any = None) -> int:
    """Return the index of the first element equal to `target`, in [start, end). Raises ValueError if there is none."""
    return _index(sequence, target, start, end)


_python("SequenceAdd", "input_1 input_2", _added, "The concatenation of two tuples or lists.")
_python("SequenceMul", "sequence scalar", lambda x, n: _sequence(x) * operator.index(n), "A tuple or list, repeated.")
_python("SequenceCount", "sequence target", lambda x, y: sum(_is_equal(value, y) for value in _sequence(x)), "The count of `target`.")
_python("InSequence", "element input_data", lambda x, y: any(_is_equal(x, value) for value in _sequence(y)), "Tests for an element.")
_python("SequenceSlice", "seq start stop step", lambda x, a, b, c: _sequence(x)[a:b:c], "A slice of a tuple or list.")
_python("SequenceMax", "sequence", lambda x: max(_sequence(x)), "The largest element.")
_python("SequenceMin", "sequence", lambda x: min(_sequence(x)), "The smallest element.")
_python("sequence_len", "sequence", lambda x: len(_sequence(x)), "The number of elements.")
for _kind, _type in (("tuple", "tuples"), ("list", "lists")):
    for _suffix, _compare, _sign in (
        ("greater_than", operator.gt, ">"), ("greater_equal", operator.ge, ">="), ("lt", operator.lt, "<"), ("le", operator.le, "<="),
    ):
        _python(f"{_kind}_{_suffix}", "x y", _compare, f"Tests x {_sign} y for two {_type}, as Python orders them.")
    _python(f"_{_kind}_equal", "x y", operator.eq, f"Tests whether two {_type} are equal.")
_python("_shape_mul", "shape", math.prod, "The product of the lengths of a shape.")
_python("SequenceAddOffset", "shape_0 shape_1", lambda x, _: [0, len(_sequence(x))], "Where each of two joined sequences begins.")
_python("ListAppend", "input_data target", lambda x, y: [*_sequence(x), y], "A copy of a list with an element appended.")


def _inserted(values: Any, at: int, target: Any) -> list[Any]:
    result = list(_sequence(values))
    result.insert(operator.index(at), target)
    return result


def _set_slice(values: Any, target: Any, start: int, stop: int, step: int) -> Any:
    result = list(_sequence(values))
    result[start:stop:step] = _sequence(target)
    return type(values)(result)


_python("ListInsert", "input_data index target", _inserted, "A copy of a list with an element inserted.")
_python("SequenceSliceSetItem", "seq target start stop step", _set_slice, "A tuple or list with a slice replaced.")


def _zeros(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_zeros, value))
    return creation.zeros_like(value) if isinstance(value, TensorBase) else type(value)(0)


_python("SequenceZerosLike", "sequence", _zeros, "Zeros in place of all elements.")


def _sum(values: Any) -> Any:
    first, *rest = _sequence(values)
    for tensor in rest:
        first = first + tensor
    return first


_python("SequenceAddN", "inputs", _sum, "The sum of the Tensors of a tuple or list.")


@op(primitive="SequenceStack", init=("axis",), raw_arguments=True)
@explaining
def _sequence_stack(x: Any, axis: int = 0) -> Any:
    """The Tensors of a tuple or list, stacked along a new axis."""
    return array.stack(x, axis)


def _tensor(values: Any, dtype: Any, kinds: tuple[type, ...]) -> Any:
    if not isinstance(values, kinds):
        raise TypeError(f"expected a {kinds[0].__name__}, got {type(values).__name__}.")
    guessed = torch.float32 if any(isinstance(value, float) for value in values) else torch.int64
    return wrap(torch.tensor(list(values), dtype=guessed if dtype is None else as_dtype(dtype)))


def _elements(x: Any) -> Any:
    if not isinstance(x, TensorBase):
        raise TypeError(f"expected a Tensor, got {type(x).__name__}.")
    return raw(x).tolist()


@op(primitive="TupleToTensor", raw_arguments=True)
@explaining
def _tuple_to_tensor(x: Any, dtype: Any = None) -> Any:
    """The numbers of a tuple as a Tensor: float32 if one is real, else int64."""
    return _tensor(x, dtype, (tuple,))


@op(primitive="ListToTensor", raw_arguments=True)
@explaining
def _list_to_tensor(x: Any, dtype: Any = None) -> Any:
    """The numbers of a list as a Tensor: float32 if one is real, else int64."""
    return _tensor(x, dtype, (list,))


_python("TensorToList", "input_tensor", _elements, "The elements of a Tensor as a list of numbers.")
_python("TensorToScalar", "input_tensor", _elements, "The number in a Tensor without axes.")


def _scalar(primitive: str, compute: Callable[..., Any], doc: str, names: str = "x y") -> None:
    _python(primitive, names, lambda *values: compute(*map(_number, values)), doc)


for _primitive, _compute, _doc in (
    ("ScalarAdd", operator.add, "x + y."), ("ScalarSub", operator.sub, "x - y."), ("ScalarMul", operator.mul, "x * y."),
    ("ScalarDiv", operator.truediv, "x / y."), ("ScalarFloorDiv", operator.floordiv, "x // y."), ("ScalarMod", operator.mod, "x % y."),
    ("ScalarPow", operator.pow, "x ** y."), ("ScalarEq", operator.eq, "x == y."), ("ScalarGe", operator.ge, "x >= y."),
    ("ScalarGt", operator.gt, "x > y."), ("ScalarLe", operator.le, "x <= y."), ("ScalarLt", operator.lt, "x < y."),
    ("ScalarMax", max, "The larger number."), ("ScalarMin", min, "The smaller number."),
    ("bit_and", operator.and_, "x & y."), ("bit_or", operator.or_, "x | y."),
):
    _scalar(_primitive, _compute, _doc)
for _primitive, _compute, _doc in (
    ("ScalarUadd", operator.pos, "+x."), ("ScalarUsub", operator.neg, "-x."), ("ScalarLog", math.log, "The natural logarithm."),
    ("ScalarBool", bool, "Tests whether x is not 0."),
):
    _scalar(_primitive, _compute, _doc, "x")
