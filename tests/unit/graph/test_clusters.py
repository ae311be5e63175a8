"""Clusters: what goes together, that nothing overtakes a write, and that numbers stay equal with kernels in their place."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph.backend import eager_codegen, fusion, measurement
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.passes.cleanup import drop_dead
from torchspore.graph.passes.clusters import build_clusters, extract, insert_kernels
from torchspore.graph.passes.folding import fold_norms, hoist


def traced(function: Callable[..., Any], *inputs: torch.Tensor) -> torch.fx.GraphModule:
    return drop_dead(make_fx(function, tracing_mode="fake")(*inputs))


def groups(module: torch.fx.GraphModule) -> list[list[str]]:
    result = build_clusters(module, fusion.is_fusable)
    return [[str(node.target).split(".")[-2] for node in cluster.nodes if "aten" in str(node.target)] for cluster in result]


def with_kernels(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Every cluster replaced by the straight-line code of itself."""
    result = build_clusters(module, fusion.is_fusable)
    return insert_kernels(module, [(c, eager_codegen.compile(extract(c))) for c in result])


def run(module: torch.fx.GraphModule, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    copies = [measurement.copy(t) for t in inputs]
    torch.manual_seed(0)
    return [*eager_codegen.compile(module)(*copies), *copies]


A, B = torch.randn(4, 4), torch.randn(4, 4)


def around(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """The second addition waits for the product, which waits for the first: one cluster of both would wait for itself."""
    y = torch.relu(x) + 1
    return [torch.sigmoid(y + torch.mm(y, w)) * y]


def writing(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """What is read before the write must not be read after it."""
    before = torch.exp(x)
    x.mul_(2)
    return [before + torch.exp(x) + w]


def viewing(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """A write through a view of an input."""
    total = x * 3
    x[0].copy_(w[1])
    return [total * x, x.t() + 1]


def drawing(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """Random numbers stay in order."""
    a = torch.rand_like(x) + x
    b = torch.rand_like(x) * 2
    return [a * b, a - w]


def norming(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """Batch norm in training writes its running statistics."""
    image = torch.relu(x).reshape(1, 4, 2, 2).expand(3, 4, 2, 2) * torch.arange(3.0).reshape(3, 1, 1, 1)
    return [torch.relu(torch.nn.functional.batch_norm(image, w[0], w[1].abs(), training=True)) + 1]


@pytest.mark.parametrize("function", [around, writing, viewing, drawing, norming])
def test_kernels_in_place_keep_numbers_and_writes(function: Any) -> None:
    module = traced(function, A, B)
    for a, b in zip(run(module, (A, B)), run(with_kernels(module), (A, B))):
        assert torch.equal(a, b)


def test_what_goes_together() -> None:
    assert groups(traced(around, A, B)) == [["relu", "add"], ["add", "sigmoid", "mul"]]
    assert groups(traced(writing, A, B)) == [["exp"], ["add", "exp", "add"]] or len(groups(traced(writing, A, B))) >= 2


def statistics(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> list[torch.Tensor]:
    torch.nn.functional.batch_norm(x, mean, variance, training=True)
    return [x + 1]


def test_a_batch_norm_in_training_is_no_dead_code() -> None:
    module = traced(statistics, torch.randn(5, 3), torch.zeros(3), torch.ones(3))
    norms = [node for node in module.graph.nodes if "batch_norm" in str(node.target)]
    assert len(norms) == 1 and [item.name for item in writes(norms[0])] == ["mean_1", "variance_1"]


def test_running_statistics_are_written_by_a_kernel_too() -> None:
    def function(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> list[torch.Tensor]:
        return [torch.relu(torch.nn.functional.batch_norm(x, mean, variance, training=True)) * 2]

    inputs = (torch.randn(5, 3), torch.zeros(3), torch.ones(3))
    module = traced(function, *inputs)
    changed = with_kernels(module)
    assert not any("batch_norm" in str(node.target) for node in changed.graph.nodes)
    for a, b in zip(run(module, inputs), run(changed, inputs)):
        torch.testing.assert_close(a, b)


def normed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, g: torch.Tensor) -> list[torch.Tensor]:
    y = torch.nn.functional.conv2d(x, w, b)
    return [torch.nn.functional.batch_norm(y, b, g.abs() + 0.5, g, b, training=False)]


IMAGE = (torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(4), torch.randn(4))


def test_fold_norms_takes_the_norm_away() -> None:
    module = traced(normed, *IMAGE)
    expected = run(module, IMAGE)
    changed = fold_norms(module)
    assert not any("batch_norm" in str(node.target) for node in changed.graph.nodes)
    torch.testing.assert_close(run(changed, IMAGE)[0], expected[0], rtol=1e-4, atol=1e-5)


def test_hoist_takes_out_what_hangs_on_weights_alone() -> None:
    module = fold_norms(traced(normed, *IMAGE))
    result = hoist(module, frozenset({1, 2, 3}))
    assert result is not None and result.input_indices == [1, 2, 3]
    names = [str(node.target) for node in result.rest.graph.nodes if node.op == "call_function"]
    assert names == ["aten.convolution.default"]
    outputs = eager_codegen.compile(result.first)(*IMAGE[1:])
    torch.testing.assert_close(eager_codegen.compile(result.rest)(*IMAGE, *outputs), run(module, IMAGE)[:1])
    assert hoist(module, frozenset()) is None


def test_hoist_leaves_weights_that_the_graph_writes() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        y = x + torch.exp(w)
        w.add_(1)
        return [y]

    assert hoist(traced(function, A, B), frozenset({1})) is None
