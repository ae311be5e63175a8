"""Operators that may refuse the values of their inputs, draw random numbers or print."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import printing
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import is_operator

_FAILING = (
    "index", "gather", "scatter", "embedding", "take", "put", "nll_loss", "cross_entropy", "one_hot", "bincount", "multinomial",
    "bernoulli", "normal", "poisson", "binomial", "binary_cross_entropy", "multi_margin", "multilabel", "ctc", "cholesky",
    "inverse", "linalg", "solve", "svd", "eig", "repeat_interleave", "segment", "masked_scatter", "histc", "assert",
    "unique", "remainder", "fmod", "div", "pow", "random", "uniform", "exponential", "geometric", "log_normal", "cauchy",
    "quantile", "searchsorted", "bucketize", "range", "unpool", "histogram", "orgqr", "ormqr", "lu_unpack",
)
"""Parts of the names of operators that look at values and may refuse them; a division of integers is one."""
_OF_INTEGERS = ("remainder", "fmod", "div", "pow")
_PURE = frozenset({"getitem"})


def is_printing(node: Node) -> bool:
    """Return whether an operator prints."""
    return node.target is printing.say or node.target in printing.OPERATORS


Nested = Mapping[Node, list[Node]]
"""The result of `modules.nested_nodes`."""


def values_of(node: Node) -> list[Any]:
    """Return the fake tensors of a node's results."""
    value = node.meta.get("val")
    return tree.listed(value)


def all_nodes(node: Node, nested: Nested) -> Iterator[Node]:
    """Yield an operator and the operators in its branches and loops."""
    yield node
    for inner in nested[node]:
        yield from all_nodes(inner, nested)


def may_fail(node: Node, nested: Nested) -> bool:
    """Return whether an operator may refuse the values of its inputs, or stands for something unknown."""
    if node.op != "call_function" or is_printing(node):
        return False
    if is_operator(node.target):
        name = node.target._opname
        if node.target.namespace != "aten":
            return True
        if is_random(node, nested) and not any(isinstance(operand, Node) for operand in node.args[1:]):
            return name == "multinomial" or not name.endswith("_")   # what is drawn into a tensor with numbers that are known
        if any(part in name for part in _OF_INTEGERS):
            return not any(isinstance(v, torch.Tensor) and v.is_floating_point() for v in values_of(node))
        return any(part in name for part in _FAILING) and name not in ("arange", "normal_functional")
    if getattr(node.target, "__name__", "") in _PURE:
        return False
    inner = nested[node]
    return not inner or any(may_fail(other, nested) for other in inner)


def is_random(node: Node, nested: Nested) -> bool:
    """Return whether an operator, or one in a branch or loop, draws random numbers."""
    return any(
        part.op == "call_function" and is_operator(part.target) and torch.Tag.nondeterministic_seeded in part.target.tags
        for part in all_nodes(node, nested)
    )


def devices_of_random_operators(nodes: list[Node], nested: Nested) -> set[torch.device]:
    """Return the devices on which these operators draw random numbers."""
    return {
        value.device for node in nodes if is_random(node, nested) for value in values_of(node) if isinstance(value, torch.Tensor)
    }
