"""`mindspore.ops.composite.multitype_ops`: the operators of Python as MultitypeFuncGraphs, in which packages register functions.

MindSpore's compiler reads them for `x + y`. Here Python calls the methods of the operands in both modes: an entry that a package adds has
an effect where the graph itself is called. The types of the entries were read from MindSpore 2.10.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from torchspore.mindspore.ops.program.composite import MultitypeFuncGraph

_SCALARS = "Number Number, Tensor Tensor, Number Tensor, Tensor Number"
_SEQUENCES = "Tuple Tensor, Tensor Tuple, List Tensor, Tensor List"
_COMPARED = f"{_SCALARS}, String String, Tuple Tuple, List List"
_EQUAL = (
    f"Bool Bool, {_COMPARED}, TypeType TypeType, None None, String None, None String, Number None, None Number, Tuple None, None Tuple, "
    "List None, None List, Tensor None, None Tensor"
)
_CONTAINED = (
    "Number Tuple, Number List, String String, String Tuple, String List, String Dictionary, Number Dictionary, Tuple Dictionary, "
    "Tensor Dictionary, Tensor List, Tensor Tuple, TypeType List, TypeType Tuple"
)
_SPARSE = "CSRTensor CSRTensor, COOTensor COOTensor, COOTensor Tensor, Tensor COOTensor"
_ITEMS = (
    "Tuple Number, Tuple Slice, Tuple Tensor, List Number, List Slice, Dictionary String, Dictionary Number, Dictionary Tuple, "
    "Dictionary Tensor, String Number, Tensor Number, Tensor None, Tensor Slice, Tensor Tensor, Tensor Ellipsis, Tensor List, Tensor Tuple"
)
_VALUES = ("Number", "Tensor", "Tuple", "List")
_TENSOR_INDEXES = ("Tensor", "Tuple", "Slice", "Number", "Ellipsis", "None", "List")


def _graph(name: str, types: str, function: Callable[..., Any]) -> MultitypeFuncGraph:
    """Create the graph of an operator, with the same function for all types."""
    graph = MultitypeFuncGraph(name)
    for names in types.split(", "):
        graph.register(*names.split())(function)
    return graph


def _contains(item: Any, container: Any) -> bool:
    return item in container


def _lacks(item: Any, container: Any) -> bool:
    return item not in container


def _set_item(data: Any, index: Any, value: Any) -> Any:
    """Write a value into a Tensor, list or dict, and return it."""
    data[index] = value
    return data


add = _graph(
    "add", f"{_SCALARS}, {_SEQUENCES}, String String, List List, Tuple Tuple, RowTensor Tensor, {_SPARSE}", operator.add,
)
sub = _graph("sub", f"{_SCALARS}, {_SEQUENCES}, {_SPARSE}", operator.sub)
mul = _graph(
    "mul",
    f"{_SCALARS}, Number String, String Number, List Number, Number List, Tuple Number, Number Tuple, {_SEQUENCES}, "
    "CSRTensor Tensor, Tensor CSRTensor, COOTensor Tensor, Tensor COOTensor", operator.mul,
)
div = _graph("div", f"CSRTensor Tensor, COOTensor Tensor, {_SCALARS}, {_SEQUENCES}", operator.truediv)
floordiv = _graph("floordiv", f"{_SCALARS}, {_SEQUENCES}", operator.floordiv)
mod = _graph("mod", f"{_SCALARS}, {_SEQUENCES}", operator.mod)
pow_ = _graph("pow", f"{_SCALARS}, {_SEQUENCES}", operator.pow)               # tuples and lists until 2.2
bitwise_and = _graph("bitwise_and", _SCALARS, operator.and_)
bitwise_or = _graph("bitwise_or", _SCALARS, operator.or_)
bitwise_xor = _graph("bitwise_xor", _SCALARS, operator.xor)
left_shift = _graph("left_shift", "Number Number", operator.lshift)
right_shift = _graph("right_shift", "Number Number", operator.rshift)
negative = _graph("negative", "Number, Tensor, CSRTensor, COOTensor", operator.neg)
uadd = _graph("uadd", "Number, Tensor", operator.pos)
invert = _graph("invert", "Number, Tensor", operator.invert)
logical_not = _graph("logical_not", "Number, String, None, Tensor, Tuple, List", operator.not_)
equal = _graph("equal", _EQUAL, operator.eq)
not_equal = _graph("not_equal", _EQUAL, operator.ne)
less = _graph("less", _COMPARED, operator.lt)
less_equal = _graph("less_equal", _COMPARED, operator.le)
greater = _graph("greater", _COMPARED, operator.gt)
greater_equal = _graph("greater_equal", _COMPARED, operator.ge)
in_ = _graph("in", _CONTAINED, _contains)
not_in_ = _graph("not_in", _CONTAINED, _lacks)
getitem = _graph("getitem", _ITEMS, operator.getitem)
setitem = _graph("setitem", ", ".join([
    *(f"List Number {value}" for value in ("String", *_VALUES)), *(f"List Slice {value}" for value in _VALUES),
    *(f"Dictionary {key} {value}" for key in ("String", "Number", "Tuple", "Tensor") for value in (*_VALUES, "Dictionary")),
    *(f"Tensor {index} {value}" for index in _TENSOR_INDEXES for value in _VALUES),
]), _set_item)

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "div", "equal", "floordiv", "getitem", "greater", "greater_equal", "in_", "invert",
    "left_shift", "less", "less_equal", "logical_not", "mod", "mul", "negative", "not_equal", "not_in_", "pow_", "right_shift", "setitem",
    "sub", "uadd",
]
