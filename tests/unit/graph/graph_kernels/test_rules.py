"""Arithmetic, equal values and cheap values: each pass before and after, with the same numbers, and what none of them touches."""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph.backend import eager_codegen, measurement
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.graph_kernels.rematerialize import recomputed
from torchspore.graph.passes.algebra import RULES, simplify
from torchspore.graph.passes.cleanup import drop_dead
from torchspore.graph.passes.common_subexpressions import common_subexpressions
from torchspore.graph.settings import Flags
from torchspore.public_names.kernels import EXPRESSIONS, OPERATORS, operator_name

X, Y = torch.randn(4, 4), torch.randn(4, 4)
X[0, :3] = torch.tensor([float("nan"), float("inf"), -0.0])
Function = Callable[[torch.Tensor, torch.Tensor], list[torch.Tensor]]


def traced(function: Function) -> torch.fx.GraphModule:
    return drop_dead(make_fx(function, tracing_mode="fake")(X.clone(), Y.clone()))


def names(module: torch.fx.GraphModule) -> list[str]:
    return [node.target._opname for node in module.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]


def run(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    copies = [measurement.copy(t) for t in (X, Y)]
    torch.manual_seed(0)
    return [*eager_codegen.compile(copy_module(module))(*copies), *copies]


def is_equal(before: torch.fx.GraphModule, after: torch.fx.GraphModule) -> bool:
    return all(torch.equal(a.nan_to_num(7), b.nan_to_num(7)) for a, b in zip(run(before), run(after), strict=True))


@pytest.mark.parametrize(("rule", "function", "left"), [
    ("add_zero", lambda x, y: [(x + 0).exp() - 0 + y], ["exp", "add"]),
    ("mul_one", lambda x, y: [(x * 1).exp() / 1 + y], ["exp", "add"]),
    ("mul_minus_one", lambda x, y: [x * -1 + y], ["neg", "add"]),
    ("neg_neg", lambda x, y: [torch.neg(torch.neg(x)) + y], ["add"]),
    ("add_neg", lambda x, y: [x + (-y)], ["sub"]),
    ("add_neg", lambda x, y: [x - (-y)], ["add"]),
    ("pow_one", lambda x, y: [x ** 1 + y], ["add"]),
    ("pow_two", lambda x, y: [x ** 2 + y], ["mul", "add"]),
    ("div_power_of_two", lambda x, y: [x / 4 + y / 3], ["mul", "div", "add"]),
    ("mul_powers_of_two", lambda x, y: [x * 2 * 0.25], ["mul"]),
    ("relu_relu", lambda x, y: [x.relu().relu() + y], ["relu", "add"]),
    ("abs_abs", lambda x, y: [(-x).abs().abs() + y], ["abs", "add"]),
    ("where_same", lambda x, y: [torch.where(x > 0, y, y) + x], ["add"]),
    ("cast_same", lambda x, y: [torch.ops.aten._to_copy(x, dtype=torch.float32) + y], ["add"]),
    ("view_same", lambda x, y: [x.exp().view(4, 4) + y.expand(4, 4)], ["exp", "add"]),
    ("view_view", lambda x, y: [x.exp().view(2, 8).view(16).view(4, 4) + y], ["exp", "view", "add"]),
])  # fmt: skip
def test_a_rule(rule: str, function: Function, left: list[str]) -> None:
    module = traced(function)
    before = copy_module(module)
    after = simplify(module, [rule] if rule != "abs_abs" else [rule, "neg_neg"])
    if rule == "view_view":
        after = drop_dead(after)
    assert names(after) == left and is_equal(before, after)
    assert names(simplify(copy_module(before), [name for name in RULES if name != rule])) != left


def test_every_rule_is_explained_and_no_other() -> None:
    assert set(RULES) == set(EXPRESSIONS)


@pytest.mark.parametrize("function", [
    lambda x, y: [x * 1],                                   # a result has memory of its own
    lambda x, y: [x.add_(1).mul_(2) * 1 + y, x + 0],        # what is written in between
    lambda x, y: [x * 0],                                   # nan and inf
    lambda x, y: [x - x],
    lambda x, y: [x * 3 * 5],                               # would be rounded otherwise
    lambda x, y: [x / 3],
    lambda x, y: [(x.to(torch.int32) * 1.0) + 1],           # another dtype comes out
    lambda x, y: [(y[:1] + 0) * 2 + torch.add(x, y, alpha=0)],
])  # fmt: skip
def test_what_rules_leave(function: Function) -> None:
    module = traced(function)
    before = copy_module(module)
    after = simplify(module, list(RULES))
    assert is_equal(before, after)
    assert all(out.data_ptr() not in (before_in.data_ptr(),) for before_in, out in zip(*fresh(after)))


def test_a_rule_sees_that_what_it_would_read_has_changed() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        negated = torch.neg(x)
        x.add_(y)
        return [torch.neg(negated) + 1]

    module = traced(function)
    before = copy_module(module)
    after = simplify(module, list(RULES))
    assert names(after).count("neg") == 2 and is_equal(before, after)


def fresh(module: torch.fx.GraphModule) -> tuple[list[torch.Tensor], list[Any]]:
    copies = [X.clone(), Y.clone()]
    return copies, eager_codegen.compile(copy_module(module))(*copies)


def test_equal_values_are_computed_once() -> None:
    module = traced(lambda x, y: [torch.exp(x + 1) + torch.exp(x + 1) * torch.exp(x + 1.0)])
    before = copy_module(module)
    after = common_subexpressions(module)
    assert names(after).count("exp") == 2 and names(after).count("add") == 3 and is_equal(before, after)   # 1 is not 1.0


@pytest.mark.parametrize(("function", "stays"), [
    (lambda x, y: [x + 1, x + 1], "add"),                              # two results: the program may write into one
    (lambda x, y: [torch.rand_like(x), torch.rand_like(x)], "rand_like"),
    (lambda x, y: [x.exp(), x.add_(1).exp() + 1], "exp"),              # memory that changes
    (lambda x, y: [x.exp().add_(1), x.exp()], "exp"),
])  # fmt: skip
def test_what_is_not_computed_once(function: Function, stays: str) -> None:
    module = traced(function)
    before = copy_module(module)
    after = common_subexpressions(module)
    assert names(after).count(stays) == 2 and is_equal(before, after)


def test_what_is_recomputed_on_purpose_stays() -> None:
    module = traced(lambda x, y: [x.exp() + y, x.exp() * y])
    next(node for node in reversed(module.graph.nodes) if "exp" in str(node.target)).meta["recomputed"] = True
    assert names(common_subexpressions(module)).count("exp") == 2


def cheap(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """`x + 1` is read by three kernels; two products lie between them."""
    shifted = x + 1
    first = torch.mm(torch.relu(y * 2), y) * shifted
    return [torch.mm(torch.relu(first), y) * shifted - shifted]


def test_cheap_values_are_computed_where_they_are_read() -> None:
    flags = Flags(2, recompute=True)
    module = traced(cheap)
    after = recomputed(module, flags)
    assert names(module).count("add") == 1 and names(after).count("add") == 2 and is_equal(module, after)
    dear = traced(lambda x, y: cheap(torch.exp(x), y))
    assert names(recomputed(dear, flags)) == names(dear)
    assert names(recomputed(module, Flags(2, recompute=True, smallest=1000))) == names(module)


def test_what_changes_is_not_computed_later() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        shifted = x + 1
        first = torch.mm(torch.relu(y * 2), y) * shifted
        x.mul_(3)
        return [torch.mm(torch.relu(first), y) * shifted - shifted]

    module = traced(function)
    after = recomputed(module, Flags(2, recompute=True))
    assert names(after).count("add") == 1 and is_equal(module, after)


def test_names_of_operators() -> None:
    assert [operator_name(name) for name in ("relu", "add", "_softmax", "mm")] == ["ReLU", "Add", "Softmax", "MatMul"]
    assert all(name[0].isupper() for name in OPERATORS)


LIMITED = 20
"""So many random graphs, each under limits of 2 and 4 operators a kernel."""


def random_graph(seed: int) -> Function:
    """A function of 5 to 25 operators: unary ones, binary ones and differences from a mean, each of any earlier value."""
    rng = random.Random(seed)
    unary = [torch.exp, torch.tanh, torch.relu, torch.sigmoid, torch.abs, torch.sin]
    binary = [torch.add, torch.mul, torch.sub, torch.maximum]
    plan = [(rng.random(), rng.randrange(60), rng.randrange(at + 2), rng.randrange(at + 2)) for at in range(rng.randint(5, 25))]

    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        values = [x, y]
        for kind, which, left, right in plan:
            if kind < 0.5:
                values.append(unary[which % len(unary)](values[left] * 0.5))
            elif kind < 0.85:
                values.append(binary[which % len(binary)](values[left], values[right]))
            else:
                values.append(values[left] - values[left].mean(-1, keepdim=True))
        return values[-3:]

    return function


@pytest.mark.parametrize("limit", [2, 4])
def test_values_are_recomputed_under_every_limit(limit: int) -> None:
    copies = 0
    for seed in range(LIMITED):
        before = traced(random_graph(seed))
        after = recomputed(copy_module(before), Flags(3, recompute=True, stitch=True, horizontal=True, parallel=True, limit=limit))
        copies += sum(node_metadata.RECOMPUTED in node.meta for node in after.graph.nodes)
        after.graph.lint()
        assert is_equal(before, after)
    assert copies > LIMITED                      # else the hard case does not occur
