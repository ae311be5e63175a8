"""Algebraic rules that replace a value by an existing or cheaper one. Options enable and disable each rule by its name.

All rules give equal numbers, most of them equal bits. Exceptions: `add_zero` may change the sign of a zero, and `mul_powers_of_two` differs
if an intermediate number underflows or overflows its dtype.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.graph.fx.aliasing import is_result, mutated_owners, owner_of
from torchspore.graph.fx.modules import transform_inner
from torchspore.graph.passes.cleanup import drop_dead

_aten = torch.ops.aten
Replacement = Node | tuple[Any, ...] | None
"""An existing node with the same value, or (operator, argument, ...) that computes it; None if the rule does not apply."""
_ADD, _SUB, _MUL, _DIV, _NEG = _aten.add.Tensor, _aten.sub.Tensor, _aten.mul.Tensor, _aten.div.Tensor, _aten.neg.default
_RESHAPES = {_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default}


def simplify(module: torch.fx.GraphModule, rules: Collection[str]) -> torch.fx.GraphModule:
    """Apply these rules to the graph and its inner graphs, in place."""
    transform_inner(module, lambda inner: _simplify_graph(inner, rules))
    return _simplify_graph(module, rules)


def _simplify_graph(module: torch.fx.GraphModule, rules: Collection[str]) -> torch.fx.GraphModule:
    mutated = mutated_owners(module)
    for node in list(module.graph.nodes):
        if node.op != "call_function" or owner_of(node) in mutated or any(owner_of(item) in mutated for item in node.all_input_nodes):
            continue
        for name, rule in RULES.items():
            replacement = rule(node) if name in rules else None
            if (
                replacement is not None
                and not any(owner_of(item) in mutated for item in _nodes(replacement))
                and _replace(module, node, replacement)
            ):
                break
    return drop_dead(module)


def _nodes(replacement: Node | tuple[Any, ...]) -> list[Node]:
    return [item for item in (replacement if isinstance(replacement, tuple) else (replacement,)) if isinstance(item, Node)]


def _replace(module: torch.fx.GraphModule, node: Node, replacement: Node | tuple[Any, ...]) -> bool:
    """Replace a node by the result of a rule, if both have the same format. Return whether the node was replaced."""
    if isinstance(replacement, tuple):
        with module.graph.inserting_before(node):
            new = module.graph.call_function(replacement[0], replacement[1:])
        new.meta = dict(node.meta)
    elif _format(replacement) != _format(node) or is_result(node):
        return False                              # a result of the graph has separate memory, because the program may write into it
    else:
        new = replacement
    node.replace_all_uses_with(new)
    module.graph.erase_node(node)
    return True


def _format(node: Node) -> Any:
    value = node.meta.get("val")
    return (value.shape, value.stride(), value.dtype, value.device) if isinstance(value, torch.Tensor) else node


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_floating_point(value: Any) -> bool:
    """Return whether it is a floating-point tensor, whose arithmetic follows IEEE 754."""
    value_meta = value.meta.get("val") if isinstance(value, Node) else None
    return isinstance(value_meta, torch.Tensor) and value_meta.is_floating_point()


def _is_power_of_two(number: float | None) -> bool:
    return number is not None and number != 0 and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5 and abs(number) < 2**60 \
        and abs(number) > 2**-60


def _operands(node: Node, *targets: Any) -> tuple[Any, Any] | None:
    """Return the two operands if the node calls one of these operators without further arguments (alpha, rounding mode)."""
    return (node.args[0], node.args[1]) if node.target in targets and len(node.args) == 2 and not node.kwargs else None


def _inner(value: Any, *targets: Any) -> Any:
    """Return the first operand if one of these operators computes the value."""
    return value.args[0] if isinstance(value, Node) and value.target in targets and not value.kwargs else None


# ---- the rules

def _add_zero(node: Node) -> Replacement:
    pair = _operands(node, _ADD, _SUB)
    return pair[0] if pair and _number(pair[1]) == 0 else None


def _mul_by_1(node: Node) -> Replacement:
    pair = _operands(node, _MUL, _DIV)
    return pair[0] if pair and _number(pair[1]) == 1 else None


def _mul_by_minus_1(node: Node) -> Replacement:
    pair = _operands(node, _MUL, _DIV)
    return (_NEG, pair[0]) if pair and _number(pair[1]) == -1 and _format(pair[0]) == _format(node) else None


def _neg_neg(node: Node) -> Replacement:
    return _inner(_inner(node, _NEG), _NEG)


def _add_neg(node: Node) -> Replacement:
    pair = _operands(node, _ADD, _SUB)
    if pair is None or not all(map(_is_floating_point, pair)):
        return None
    negated = _inner(pair[1], _NEG)
    return (_SUB if node.target is _ADD else _ADD, pair[0], negated) if negated is not None else None


def _pow_by_1(node: Node) -> Replacement:
    pair = _operands(node, _aten.pow.Tensor_Scalar)
    return pair[0] if pair and _number(pair[1]) == 1 else None


def _pow_two(node: Node) -> Replacement:
    pair = _operands(node, _aten.pow.Tensor_Scalar)
    return (_MUL, pair[0], pair[0]) if pair and _number(pair[1]) == 2 and _format(pair[0]) == _format(node) else None


def _div_power_of_two(node: Node) -> Replacement:
    pair = _operands(node, _DIV)
    if pair and _is_floating_point(pair[0]) and _is_power_of_two(_number(pair[1])):
        return (_MUL, pair[0], 1 / float(pair[1]))
    return None


def _mul_powers_of_two(node: Node) -> Replacement:
    pair = _operands(node, _MUL)
    inner = _operands(pair[0], _MUL) if pair and isinstance(pair[0], Node) else None
    if pair and inner and _is_floating_point(inner[0]) and _is_power_of_two(_number(pair[1])) and _is_power_of_two(_number(inner[1])):
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
    if not isinstance(value, torch.Tensor) or not value.is_contiguous() or owner_of(node) is node:
        return None
    return (_aten.view.default, first, node.args[1])


RULES: dict[str, Callable[[Node], Replacement]] = {
    "add_zero": _add_zero,
    "mul_one": _mul_by_1,
    "mul_minus_one": _mul_by_minus_1,
    "neg_neg": _neg_neg,
    "add_neg": _add_neg,
    "pow_one": _pow_by_1,
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
"""The rules by name; `public_names/kernels.py` describes them."""
