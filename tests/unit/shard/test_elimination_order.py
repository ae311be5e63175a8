"""One elimination order serves all problems over a graph, and layers that repeat share their forms: the search depends on neither."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.unit.shard.test_exact_search import MACHINE
from torchspore.distributed.shard.search import elimination
from torchspore.distributed.shard.search.axis import Axis
from torchspore.distributed.shard.search.model import OPERATOR, Model
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph import passes

COUNT = 9


def random_problem(source: np.random.Generator, ends: list[tuple[int, int]], most: int) -> tuple[list[np.ndarray], elimination.Edges]:
    sizes = source.integers(1, most + 1, COUNT)
    return [source.random(size) for size in sizes], [(a, b, source.random((sizes[a], sizes[b]))) for a, b in ends]


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_another_problem_gives_the_least_sum(seed: int) -> None:
    source = np.random.default_rng(seed)
    ends = [(int(a), int(b)) for a, b in source.integers(0, COUNT, (16, 2))]
    order = elimination.Elimination(*random_problem(source, ends, 4)).order
    for _ in range(4):
        unary, edges = random_problem(source, ends, 4)
        shared, separate = elimination.Elimination(unary, edges, order=order), elimination.Elimination(unary, edges)
        assert shared.order is order
        assert shared.solved([]).total == pytest.approx(separate.solved([]).total, rel=1e-12)
        assert elimination.total_of(unary, edges, shared.solved([]).values) == shared.solved([]).total


def test_an_order_whose_tables_get_too_large_is_not_used() -> None:
    source = np.random.default_rng(1)
    ends = [(a, b) for a in range(COUNT) for b in range(a)]
    small = elimination.Elimination(*random_problem(source, ends, 1), limit=100)
    assert small.is_exact
    unary, edges = random_problem(source, ends, 5)
    tables = elimination.Elimination(unary, edges, limit=100, order=small.order)
    solved = tables.solved([0] * COUNT)
    assert tables.order is not small.order and not tables.is_exact and solved.guessed
    assert solved == tables.solved([0] * COUNT)                     # the guesses of a solution are not those of the next


def update(count: int) -> torch.fx.GraphModule:
    """A training step of `count` equal layers whose update is operators over lists."""
    def step(x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        leaves = [weight.requires_grad_() for weight in weights]
        y = x
        for weight in leaves:
            y = torch.relu(y @ weight) + y
        gradients = torch.autograd.grad(y.square().mean(), leaves)
        return list(torch._foreach_sub([w.detach() for w in leaves], torch._foreach_mul(gradients, 0.1)))

    shapes = [(8, 16), *[(16, 16)] * count]
    return passes.run(passes.CLEAN, make_fx(step, tracing_mode="fake")(*map(torch.randn, shapes)), keep=None)


def test_more_layers_have_no_more_forms_and_tables() -> None:
    counts = []
    for layers in (6, 12):
        model = Model(update(layers), {}, {}, MACHINE, True)
        axis = Axis(model, Mesh((4,)), 0, [None], True)
        lists = [variable for variable in model.variables if variable.kind == OPERATOR and "foreach" in str(variable.node.target)]
        assert len(lists) == 2 * layers and all(len(variable.rule.outputs) == 1 for variable in lists)
        counts.append((len({variable.form for variable in model.variables}), len({id(table) for *_, table in axis.edges()})))
    assert counts[0] == counts[1]
