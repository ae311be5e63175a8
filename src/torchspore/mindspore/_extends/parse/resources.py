"""`mindspore._extends.parse.resources`: the table that maps Python's operators to MindSpore's functions.

MindSpore's compiler reads the table. Here Python calls the methods of the operands in both modes, so that an entry that a package replaces
has no effect on `x + y`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.mindspore._extends.parse import trope
from torchspore.mindspore.ops.program import multitype_ops

convert_object_map: dict[Any, Callable[..., Any]] = {
    trope.add: multitype_ops.add, trope.sub: multitype_ops.sub, trope.mul: multitype_ops.mul, trope.truediv: multitype_ops.div,
    trope.getitem: multitype_ops.getitem, trope.setitem: multitype_ops.setitem, trope.floordiv: multitype_ops.floordiv,
    trope.mod: multitype_ops.mod, trope.pow: multitype_ops.pow_, trope.matmul: trope.matmul, trope.lshift: multitype_ops.left_shift,
    trope.rshift: multitype_ops.right_shift, trope.and_: multitype_ops.bitwise_and, trope.or_: multitype_ops.bitwise_or,
    trope.xor: multitype_ops.bitwise_xor, trope.pos: multitype_ops.uadd, trope.neg: multitype_ops.negative,
    trope.invert: multitype_ops.invert, trope.not_: multitype_ops.logical_not, trope.eq: multitype_ops.equal,
    trope.ne: multitype_ops.not_equal, trope.lt: multitype_ops.less, trope.gt: multitype_ops.greater, trope.le: multitype_ops.less_equal,
    trope.ge: multitype_ops.greater_equal, trope.is_: trope.is_, trope.is_not: trope.is_not, trope.contains: multitype_ops.in_,
    trope.not_contains: multitype_ops.not_in_,
    **{function: function for function in (
        trope.abs, trope.round, trope.len, trope.map, trope.filter, trope.zip, trope.enumerate, trope.isinstance, trope.max, trope.min,
        trope.sum, trope.getattr, trope.hasattr, trope.iter, trope.next, trope.range, trope.print,
    )},
}

__all__ = ["convert_object_map"]
