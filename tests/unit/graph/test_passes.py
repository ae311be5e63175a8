"""Passes: what each does to a graph, and that the numbers stay equal."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph.backend import eager_codegen
from torchspore.graph.passes import CLEAN, run
from torchspore.graph.passes.cleanup import cancel_views, drop_copies, drop_dead
from torchspore.graph.passes.common_subexpressions import common_subexpressions
from torchspore.graph.passes.in_place import overwrite
from torchspore.graph.passes.regather import regather_weights
from torchspore.graph.passes.repeated_values import MOST_BYTES, share_small_values


def traced(function: Callable[..., Any], *inputs: torch.Tensor) -> torch.fx.GraphModule:
    return make_fx(function, tracing_mode="fake")(*inputs)


def targets(module: torch.fx.GraphModule) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def results(module: torch.fx.GraphModule, *inputs: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return eager_codegen.compile(module)(*[t.clone() for t in inputs])


def test_drop_dead_keeps_writes_and_random_operators() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        torch.exp(x)
        torch.rand_like(x)
        x.add_(1)
        return [x * 2]

    module = traced(function, torch.ones(3))
    assert [t.split(".")[1] for t in targets(module)] == ["exp", "rand_like", "add_", "mul"]
    assert [t.split(".")[1] for t in targets(drop_dead(module))] == ["rand_like", "add_", "mul"]


def test_drop_copies_takes_detach_away() -> None:
    module = traced(lambda x: [x.detach() * 2], torch.ones(3))
    assert targets(module) == ["aten.detach.default", "aten.mul.Tensor"]
    assert targets(drop_copies(module)) == ["aten.mul.Tensor"]


def test_cancel_views_takes_two_transposes_away() -> None:
    module = traced(lambda x: [x.t().t() + 1, x.t()], torch.ones(2, 3))
    assert targets(drop_dead(cancel_views(module))).count("aten.t.default") == 1


CONV = (torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3))


@pytest.mark.parametrize(("function", "inputs", "names"), [
    (lambda x, w: [torch.relu(torch.conv2d(x, w))], CONV, ["aten.relu_.default"]),
    (lambda x, w: [torch.relu(x)], CONV, []),                                                  # an input is not ours to write into
    (lambda x, w: [torch.relu(c := torch.conv2d(x, w)), c], CONV, []),                         # somebody reads it again
    (lambda x, w: [torch.relu(torch.conv2d(x, w).view(-1))], CONV, []),                        # a view has another's memory
    (lambda x, w: [torch.mm(x, w) + torch.ones(1, 3)], (torch.randn(2, 3), torch.randn(3, 3)), ["aten.add_.Tensor"]),
    (lambda x, w: [torch.mm(x, w) + x[:1].unsqueeze(0)], (torch.randn(3, 3), torch.randn(3, 3)), []),     # the shape grows
    (lambda x, w: [(m := torch.mm(x, w)) + m], (torch.randn(3, 3), torch.randn(3, 3)), []),
    (lambda x, w: [torch.mm(x, w) + torch.randn(3, 3).double()], (torch.randn(3, 3), torch.randn(3, 3)), []),
])  # fmt: skip
def test_overwrite_only_where_nobody_can_tell(function: Any, inputs: tuple[torch.Tensor, ...], names: list[str]) -> None:
    before, after = traced(function, *inputs), overwrite(traced(function, *inputs))
    assert [t for t in targets(after) if t.rpartition(".")[0].endswith("_")] == names
    for a, b in zip(results(before, *inputs), results(after, *inputs)):
        assert torch.equal(a, b)


def test_all_passes_keep_the_numbers_and_the_caller_s_tensors() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        with torch.enable_grad():
            leaf = w.detach().requires_grad_()
            loss = torch.relu(torch.nn.functional.dropout(x @ leaf.t(), 0.5)).sum()
            (gradient,) = torch.autograd.grad(loss, [leaf])
        w.sub_(gradient * 0.1)
        return [loss.detach()]

    x, w = torch.randn(4, 3), torch.randn(5, 3)
    plain, mended = w.clone(), w.clone()
    module = traced(step, x, w)
    torch.manual_seed(0)
    first = eager_codegen.compile(module)(x, plain)
    torch.manual_seed(0)
    second = eager_codegen.compile(run(CLEAN, traced(step, x, w), keep=None))(x, mended)
    assert torch.equal(first[0], second[0]) and torch.equal(plain, mended) and not torch.equal(w, mended)


def test_straight_line_code_frees_values_after_their_last_use() -> None:
    module = run(CLEAN, traced(lambda x: [torch.exp(torch.sin(x)) + 1], torch.ones(200, 200)), keep=None)
    code = eager_codegen.source(module)[0]
    assert "= None" in code and code.index("f_aten__sin") < code.index("f_aten__exp")


def test_what_is_written_into_a_gathered_weight_is_not_gathered_twice() -> None:
    gather, wait = torch.ops._c10d_functional.all_gather_into_tensor.default, torch.ops._c10d_functional.wait_tensor.default
    graph = torch.fx.Graph()
    weight, x = graph.placeholder("weight"), graph.placeholder("x")
    gathered = graph.call_function(wait, (graph.call_function(gather, (weight, 2, "world")),))
    graph.call_function(torch.ops.aten.add_.Tensor, (gathered, x))
    far = x
    for _ in range(20):                                # the optimizer's other writes, between this one and the part that is kept of it
        far = graph.call_function(torch.ops.aten.mul.Tensor, (far, 2.0))
    part = graph.call_function(torch.ops.aten.slice.Tensor, (gathered, 0, 0, 2))
    graph.call_function(torch.ops.aten.copy_.default, (weight, part))
    graph.output([far])
    module = regather_weights(torch.fx.GraphModule(torch.nn.Module(), graph))
    assert targets(module).count(str(gather)) == 1 and part.args[0] is gathered


def test_equal_small_values_are_computed_once() -> None:
    def function(x: torch.Tensor, at: torch.Tensor) -> list[torch.Tensor]:
        rows = x[torch.where(at < 0, at + 3, at)] + x[torch.where(at < 0, at + 3, at)]
        return [rows, x * 2, x * 2, torch.rand_like(x), torch.rand_like(x)]

    inputs = torch.randn(3), torch.tensor([0, -1])
    module = traced(function, *inputs)
    expected = results(module, *inputs)
    names = targets(share_small_values(module))
    assert names.count("aten.where.self") == 1 and names.count("aten.rand_like.default") == 2
    assert names.count("aten.mul.Tensor") == 2                                   # the program may write into one of them
    assert all(map(torch.equal, results(module, *inputs), expected))


def test_large_values_and_written_ones_are_computed_again() -> None:
    large = torch.ones(MOST_BYTES // 4 + 1)
    module = traced(lambda x: [x.exp().sum() + x.exp().mean()], large)
    assert targets(share_small_values(module)).count("aten.exp.default") == 2
    module = traced(lambda x: [(x + 1).mul_(2).sum() + (x + 1).sum()], torch.ones(3))
    assert targets(share_small_values(module)).count("aten.add.Tensor") == 3


def test_small_constants_are_stored() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.zeros(4).index_add(0, torch.arange(3), x), torch.zeros(3).add_(x), torch.ones(2), x + torch.full((3,), 0.5)]

    module = traced(function, torch.ones(3))
    expected = results(module, torch.ones(3))
    names = targets(share_small_values(module))
    assert names.count("aten.zeros.default") == 1 and names.count("aten.ones.default") == 1      # one is written, the other is a result
    assert "aten.arange.default" not in names and "aten.full.default" not in names
    for _ in range(2):
        assert all(map(torch.equal, results(module, torch.ones(3)), expected))


def test_pieces_of_unsafe_split_are_views() -> None:
    """Two equal products of which the pieces are overwritten are two values: a GRU cell of torch does that."""
    def cells(w: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        results = []
        for _ in range(2):
            first, second = torch.ops.aten.unsafe_split.Tensor(torch.mm(h, w), 4, 1)
            results.append(first.add_(second).sigmoid_() + second)
        return torch.cat(results)

    w, h = torch.randn(8, 8), torch.randn(2, 8)
    module = common_subexpressions(make_fx(cells)(w, h))
    module.recompile()
    assert torch.equal(module(w, h), cells(w, h))
