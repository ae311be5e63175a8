"""`mindspore.ops`: operators as functions and as primitives."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.ops import (
    activation,
    arithmetic,
    array,
    composite,
    conv,
    conv_primitives,
    creation,
    ctc,
    declare,
    dropouts,
    elementwise,
    layer_math,
    linear_algebra,
    loss,
    methods,
    more_losses,
    normalization,
    pads,
    pooling,
    rearrange,
    recurrent,
    reduction,
    resize,
    selection,
    sparse,
    state,
)
from torchspore.mindspore.ops.composite import HyperMap, Map, MultitypeFuncGraph, Partial, clip_by_global_norm, clip_by_norm, partial
from torchspore.mindspore.ops.declare import OPERATORS
from torchspore.mindspore.ops.gradient import GradOperation, get_grad, grad, value_and_grad
from torchspore.mindspore.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, prim_attr_register

ALIASES = {
    "tensor_add": "add", "multiply": "mul", "divide": "div",
    "tensor_mul": "mul", "tensor_sub": "sub", "tensor_pow": "pow", "tensor_exp": "exp", "tensor_gt": "greater", "tensor_lt": "less",
    "tensor_ge": "greater_equal", "tensor_le": "less_equal", "gt": "greater", "lt": "less", "ge": "greater_equal", "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal", "tensor_floordiv": "floor_divide", "absolute": "abs",
    "negative": "neg", "arccos": "acos", "arctan": "atan", "moveaxis": "movedim",
}
"""Second names of operators."""

PRIMITIVE_ALIASES = {"FastGelu": "FastGeLU", "RealDiv": "Div", "Gelu": "GeLU", "TensorAdd": "Add"}
"""Second names of primitives."""


def _names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for operator in OPERATORS.values():
        if not operator.name.startswith("_"):
            found[operator.name] = operator.function
        if operator.primitive is not None:
            found[operator.primitive.__name__] = operator.primitive
    found.update({alias: found[name] for alias, name in ALIASES.items() if name in found})
    found.update({alias: found[name] for alias, name in PRIMITIVE_ALIASES.items() if name in found})
    return found


globals().update(_names())
methods.attach()
__all__ = sorted({
    *_names(), "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "Partial", "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer",
    "clip_by_global_norm", "clip_by_norm", "get_grad", "grad", "partial", "prim_attr_register", "value_and_grad",
})
