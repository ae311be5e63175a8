"""Arithmetic by rules: values that are there already, or are cheaper to have another way. Each rule has a name by which it is left out.

All rules give the same numbers, most of them the same bits: `add_zero` may turn -0.0 into 0.0 back and forth, `mul_powers_of_two` differs
where a number between falls below the least or above the greatest of its dtype.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.graph.fx.aliasing import changing, leaves, root
from torchspore.graph.fx.modules import change_inner
from torchspore.graph.passes.cleanup import drop_dead

_aten = torch.ops.aten
Replacement = Node | tuple[Any, ...] | None
"""A node that stands for the value, or (operator, arguments ...) to compute it by; None where the rule has nothing to say."""
_ADD, _SUB, _MUL, _DIV, _NEG = _aten.add.Tensor, _aten.sub.Tensor, _aten.mul.Tensor, _aten.div.Tensor, _aten.neg.default
_RESHAPES = {_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default}


def simplified(module: torch.fx.GraphModule, rules: Collection[str]) -> torch.fx.GraphModule:
    """With every value that one of these rules knows a cheaper way for computed that way."""
    change_inner(module, lambda inner: _changed(inner, rules))
    return _changed(module, rules)


def _changed(module: torch.fx.GraphModule, rules: Collection[str]) -> torch.fx.GraphModule:
    moving = changing(module)
    for node in list(module.graph.nodes):
        if node.op != "call_function" or root(node) in moving or any(root(item) in moving for item in node.all_input_nodes):
            continue
        for name, rule in RULES.items():
            replacement = rule(node) if name in rules else None
            if (
                replacement is not None
                and not any(root(item) in moving for item in _nodes(replacement))
                and _take(module, node, replacement)
            ):
                break
    return drop_dead(module)


def _nodes(replacement: Node | tuple[Any, ...]) -> list[Node]:
    return [item for item in (replacement if isinstance(replacement, tuple) else (replacement,)) if isinstance(item, Node)]


def _take(module: torch.fx.GraphModule, node: Node, replacement: Node | tuple[Any, ...]) -> bool:
    """Puts what a rule found in the node's place, where that has the same form; whether it did."""
    if isinstance(replacement, tuple):
        with module.graph.inserting_before(node):
            new = module.graph.call_function(replacement[0], replacement[1:])
        new.meta = dict(node.meta)
    elif _form(replacement) != _form(node) or leaves(node):
        return False                              # a result has memory of its own: the program may write into it
    else:
        new = replacement
    node.replace_all_uses_with(new)
    module.graph.erase_node(node)
    return True


def _form(node: Node) -> Any:
    value = node.meta.get("val")
    return (value.shape, value.stride(), value.dtype, value.device) if isinstance(value, torch.Tensor) else node


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_real(value: Any) -> bool:
    """Return whether it is a tensor of floating point, where arithmetic goes by IEEE's rules."""
    value_meta = value.meta.get("val") if isinstance(value, Node) else None
    return isinstance(value_meta, torch.Tensor) and value_meta.is_floating_point()


def _is_power_of_two(number: float | None) -> bool:
    return number is not None and number != 0 and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5 and abs(number) < 2**60 \
        and abs(number) > 2**-60


def _operands(node: Node, *targets: Any) -> tuple[Any, Any] | None:
    """The two operands of a node of one of these operators that has nothing else said (no alpha, no rounding)."""
    return (node.args[0], node.args[1]) if node.target in targets and len(node.args) == 2 and not node.kwargs else None


def _inner(value: Any, *targets: Any) -> Any:
    """The first operand of a value that one of these operators computes."""
    return value.args[0] if isinstance(value, Node) and value.target in targets and not value.kwargs else None


# ---- the rules

def _add_zero(node: Node) -> Replacement:
    pair = _operands(node, _ADD, _SUB)
    return pair[0] if pair and _number(pair[1]) == 0 else None


def _mul_by_unit(node: Node) -> Replacement:
    pair = _operands(node, _MUL, _DIV)
    return pair[0] if pair and _number(pair[1]) == 1 else None


def _mul_by_minus_unit(node: Node) -> Replacement:
    pair = _operands(node, _MUL, _DIV)
    return (_NEG, pair[0]) if pair and _number(pair[1]) == -1 and _form(pair[0]) == _form(node) else None


def _neg_neg(node: Node) -> Replacement:
    return _inner(_inner(node, _NEG), _NEG)


def _add_neg(node: Node) -> Replacement:
    pair = _operands(node, _ADD, _SUB)
    if pair is None or not all(map(_is_real, pair)):
        return None
    negated = _inner(pair[1], _NEG)
    return (_SUB if node.target is _ADD else _ADD, pair[0], negated) if negated is not None else None


def _pow_to_unit(node: Node) -> Replacement:
    pair = _operands(node, _aten.pow.Tensor_Scalar)
    return pair[0] if pair and _number(pair[1]) == 1 else None


def _pow_two(node: Node) -> Replacement:
    pair = _operands(node, _aten.pow.Tensor_Scalar)
    return (_MUL, pair[0], pair[0]) if pair and _number(pair[1]) == 2 and _form(pair[0]) == _form(node) else None


def _div_power_of_two(node: Node) -> Replacement:
    pair = _operands(node, _DIV)
    if pair and _is_real(pair[0]) and _is_power_of_two(_number(pair[1])):
        return (_MUL, pair[0], 1 / float(pair[1]))
    return None


def _mul_powers_of_two(node: Node) -> Replacement:
    pair = _operands(node, _MUL)
    inner = _operands(pair[0], _MUL) if pair and isinstance(pair[0], Node) else None
    if pair and inner and _is_real(inner[0]) and _is_power_of_two(_number(pair[1])) and _is_power_of_two(_number(inner[1])):
        return (_MUL, inner[0], float(inner[1]) * float(pair[1]))
    return None


def _relu_relu(node: Node) -> Replacement:
    inner = _inner(node, _aten.relu.default)
    return inner if _inner(inner, _aten.relu.default) is not None else None


def _abs_abs(node: Node) -> Replacement:
    inner = _inner(node, _aten.abs.default)
    if _inner(inner, _aten.abs.default) is not None:
        return inner
    negated = _inner(inner, _NEG)
    return (_aten.abs.default, negated) if negated is not None else None


def _where_equal_sides(node: Node) -> Replacement:
    return node.args[1] if node.target is _aten.where.self and node.args[1] is node.args[2] else None  # type: ignore[return-value]


def _cast_to_equal_dtype(node: Node) -> Replacement:
    if node.target is not _aten._to_copy.default or set(node.kwargs) - {"dtype"}:
        return None
    return node.args[0]  # type: ignore[return-value]


def _view_to_equal_shape(node: Node) -> Replacement:
    return node.args[0] if node.target in {*_RESHAPES, _aten.expand.default} else None  # type: ignore[return-value]


def _view_view(node: Node) -> Replacement:
    inner = _inner(node, *_RESHAPES)
    first = _inner(inner, _aten.view.default, _aten._unsafe_view.default)
    value = first.meta.get("val") if isinstance(first, Node) else None
    if not isinstance(value, torch.Tensor) or not value.is_contiguous() or root(node) is node:
        return None
    return (_aten.view.default, first, node.args[1])


RULES: dict[str, Callable[[Node], Replacement]] = {
    "add_zero": _add_zero,
    "mul_one": _mul_by_unit,
    "mul_minus_one": _mul_by_minus_unit,
    "neg_neg": _neg_neg,
    "add_neg": _add_neg,
    "pow_one": _pow_to_unit,
    "pow_two": _pow_two,
    "div_power_of_two": _div_power_of_two,
    "mul_powers_of_two": _mul_powers_of_two,
    "relu_relu": _relu_relu,
    "abs_abs": _abs_abs,
    "where_same": _where_equal_sides,
    "cast_same": _cast_to_equal_dtype,
    "view_same": _view_to_equal_shape,
    "view_view": _view_view,
}
"""The rules by their names, which `names/kernels.py` explains."""
