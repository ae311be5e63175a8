"""The search along one axis finds the least sum: compared with an integer program that HiGHS solves (scipy.optimize.milp)."""
from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from torchspore.context.plan_request import Machine
from torchspore.distributed.shard.search import elimination
from torchspore.distributed.shard.search.axis import NEVER, Axis, Choice
from torchspore.distributed.shard.search.model import Model
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph import passes

NETWORKS = 200
QUICK = 12
MACHINE = Machine(latency=1e-7, bandwidth=1e9, operations=1e10, memory=1e10)
"""Slow enough that tensors of a few kilobytes are worth cutting."""


class RandomNetwork:
    """A random network of products, activations, sums and norms: `step` returns its loss and the gradients of its weights."""

    def __init__(self, seed: int) -> None:
        source = random.Random(seed)
        self.rows = source.choice((4, 8, 24, 64))
        widths = [source.choice((4, 6, 8, 16, 32)) for _ in range(source.randint(2, 4))]
        self.shapes = [(self.rows, widths[0]), *itertools.pairwise(widths)]
        self.kinds = [source.choice(("relu", "gelu", "softmax", "twice", "norm", "tie", "square")) for _ in self.shapes[1:]]

    def loss(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        """The network's loss; "twice" uses a value twice, "tie" uses a weight twice."""
        for weight, kind in zip(weights, self.kinds):
            y = x @ weight
            if kind == "twice":
                y = y * torch.sigmoid(y)
            elif kind == "norm":
                y = torch.nn.functional.layer_norm(y, y.shape[-1:])
            elif kind == "tie":
                y = torch.relu(y) @ weight.T @ weight
            elif kind == "softmax":
                y = torch.softmax(y, -1)
            else:
                y = {"relu": torch.relu, "gelu": torch.nn.functional.gelu, "square": torch.square}[kind](y)
            x = y
        return x.square().mean()

    def step(self, x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        """The loss, and the new weights of gradient descent."""
        leaves = [weight.requires_grad_() for weight in weights]
        loss = self.loss(x, *leaves)
        return [loss.detach(), *(w.detach() - 0.1 * g for w, g in zip(leaves, torch.autograd.grad(loss, leaves)))]

    def module(self) -> torch.fx.GraphModule:
        """The joint graph of forward pass, gradient and update."""
        return passes.run(passes.CLEAN, make_fx(self.step, tracing_mode="fake")(*map(torch.randn, self.shapes)), keep=None)


def problem(module: torch.fx.GraphModule, mesh: Mesh, machine: Machine = MACHINE) -> list[Axis]:
    """Each axis of the grid, given the best choices along those before it."""
    model = Model(module, {}, {}, machine, True)
    chosen: list[list[Choice] | None] = [None] * len(mesh.sizes)
    axes = []
    for at in range(len(mesh.sizes)):
        axes.append(Axis(model, mesh, at, chosen, True))
        values = elimination.Elimination(axes[-1].unary(), axes[-1].edges()).solved([]).values
        chosen[at] = [choices[value] for choices, value in zip(axes[-1].choices, values)]
    return axes


def solved_by_highs(unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]]) -> float:
    """The least sum: a 0-1 variable for each value, and one for each pair of values of an edge."""
    starts = np.cumsum([0, *map(len, unary)])
    costs = [*map(np.asarray, unary)]
    upper = [np.ones(starts[-1])]
    entries: list[tuple[int, int, float]] = [
        (row, int(starts[row] + value), 1.0) for row, values in enumerate(unary) for value in range(len(values))
    ]
    sides, rows, columns = [1.0] * len(unary), len(unary), int(starts[-1])
    for first, other, table in edges:
        costs.append(np.where(table >= NEVER / 2, 0, table).ravel())
        upper.append((table < NEVER / 2).astype(float).ravel())
        pairs = columns + np.arange(table.size).reshape(table.shape)
        for variable, lines in ((first, pairs), (other, pairs.T)):
            for value, line in enumerate(lines):
                entries += [(rows, int(pair), 1.0) for pair in line]
                entries.append((rows, int(starts[variable] + value), -1.0))
                sides.append(0.0)
                rows += 1
        columns += table.size
    at, to, values = zip(*entries)
    constraint = LinearConstraint(coo_matrix((values, (at, to)), (rows, columns)).tocsr(), sides, sides)
    scale = 1e6                                                   # HiGHS has absolute tolerances of 1e-7
    result = milp(np.concatenate(costs) * scale, constraints=constraint, integrality=1, bounds=Bounds(0, np.concatenate(upper)),
                  options={"mip_rel_gap": 0})
    assert result.success, result.message
    return float(result.fun) / scale


def expect_least(axis: Axis) -> None:
    """The elimination is exact, and its sum is that of HiGHS."""
    unary, edges = axis.unary(), axis.edges()
    tables = elimination.Elimination(unary, edges)
    solution = tables.solved([])
    assert tables.is_exact and solution.guessed == 0
    assert solution.total == pytest.approx(solved_by_highs(unary, edges), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[] if seed < QUICK else [pytest.mark.slow]) for seed in range(NETWORKS)])
def test_random_networks(seed: int) -> None:
    for axis in problem(RandomNetwork(seed).module(), Mesh([(8,), (2, 4), (2, 2, 2)][seed % 3])):
        expect_least(axis)


def test_the_random_networks_differ() -> None:
    networks = [RandomNetwork(seed) for seed in range(NETWORKS)]
    kinds = Counter(kind for network in networks for kind in network.kinds)
    assert len({(network.rows, *network.shapes, *network.kinds) for network in networks}) > 0.95 * NETWORKS
    assert min(kinds.values()) > 40 and len(kinds) == 7


def test_best_choices_are_not_all_of_one_kind() -> None:
    counts: Counter[str] = Counter()
    for seed in range(QUICK):
        (axis,) = problem(RandomNetwork(seed).module(), Mesh((8,)))
        values = elimination.Elimination(axis.unary(), axis.edges()).solved([]).values
        for variable, choices, value in zip(axis.model.variables, axis.choices, values):
            if variable.is_product:
                counts[str(choices[value].factor)] += 1
    assert len(counts) >= 3 and counts.most_common(1)[0][1] < 0.8 * counts.total(), counts


def mlp(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """Eight layers."""
    for weight in weights:
        x = torch.relu(x @ weight)
    return x.square().mean()


def gpt(x: torch.Tensor, table: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """Two layers of a GPT with its word table."""
    functional = torch.nn.functional
    h = functional.embedding(x, table)
    for at in range(0, len(weights), 6):
        q, k, v, out, up, down = weights[at:at + 6]
        y = functional.layer_norm(h, h.shape[-1:])
        heads = [(y @ w).unflatten(-1, (8, 16)).transpose(1, 2) for w in (q, k, v)]
        mixed = torch.softmax(heads[0] @ heads[1].transpose(2, 3) * 0.25, -1) @ heads[2]
        h = h + mixed.transpose(1, 2).flatten(2) @ out
        h = h + functional.gelu(functional.layer_norm(h, h.shape[-1:]) @ up) @ down
    return functional.cross_entropy((h @ table.T).flatten(0, 1), x.flatten())


def resnet(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """ResNet-18 without norms: seventeen convolutions, three of them on a short cut, and a head."""
    *kernels, head = weights
    x = torch.relu(torch.conv2d(x, kernels[0], padding=1))
    at = 1
    while at < len(kernels):
        first, second, at = kernels[at], kernels[at + 1], at + 2
        stride = 1 if first.shape[0] == first.shape[1] else 2
        y = torch.conv2d(torch.relu(torch.conv2d(x, first, padding=1, stride=stride)), second, padding=1)
        if stride == 2:
            x, at = torch.conv2d(x, kernels[at], stride=2), at + 1
        x = torch.relu(x + y)
    return (x.mean((2, 3)) @ head).square().mean()


def _kernels() -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = [(16, 3, 3, 3)]
    before = 16
    for width in (16, 32, 64, 128):
        shapes += [(width, before, 3, 3), (width, width, 3, 3)] + [(width, before, 1, 1)] * (width != before)
        shapes += [(width, width, 3, 3)] * 2
        before = width
    return [*shapes, (128, 8)]


def _gpt_inputs() -> list[torch.Tensor]:
    weights = [torch.randn(shape) for _ in range(2) for shape in ((128, 128),) * 4 + ((128, 512), (512, 128))]
    return [torch.zeros(16, 32, dtype=torch.long), torch.randn(1024, 128), *weights]


PROGRAMS: dict[str, tuple[Callable[..., torch.Tensor], Callable[[], list[Any]]]] = {
    "mlp": (mlp, lambda: [torch.randn(64, 256), *(torch.randn(256, 256) for _ in range(8))]),
    "gpt": (gpt, _gpt_inputs),
    "resnet-18": (resnet, lambda: [torch.randn(16, 3, 32, 32), *map(torch.randn, _kernels())]),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS])
def test_well_known_networks_on_eight_devices(name: str) -> None:
    loss, inputs = PROGRAMS[name]

    def step(x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        leaves = [weight.requires_grad_() for weight in weights]
        value = loss(x, *leaves)
        return [value.detach(), *(w.detach() - 0.1 * g for w, g in zip(leaves, torch.autograd.grad(value, leaves)))]

    module = passes.run(passes.CLEAN, make_fx(step, tracing_mode="fake")(*inputs()), keep=None)
    for mesh in (Mesh((8,)), Mesh((2, 4))):
        for axis in problem(module, mesh):
            expect_least(axis)
