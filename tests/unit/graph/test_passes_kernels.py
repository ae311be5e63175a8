"""Passes that choose other kernels: what each does to a graph, and that the numbers stay equal."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.unit.graph.test_passes import targets, traced
from torchspore.graph.backend import eager_codegen, measurement
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.passes.layout import channels_last, has_images, pool_channels_last
from torchspore.graph.passes.onednn import fuse_activations, onednn_linears

LINEAR = "mkldnn._linear_pointwise.default"


def results(module: torch.fx.GraphModule, *inputs: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return eager_codegen.compile(module)(*[measurement.copy(t) for t in inputs])


def always(*operands: Any) -> bool:
    return True


X, W, B = torch.randn(4, 3), torch.randn(5, 3), torch.randn(5)


@pytest.mark.parametrize(("function", "inputs", "after"), [
    (lambda x, w: [torch.mm(x, w.t())], (X, W), [LINEAR]),
    (lambda x, w, b: [torch.addmm(b, x, w.t())], (X, W, B), [LINEAR]),
    (lambda x, w: [torch.mm(x, w)], (X, W.t().contiguous()), ["aten.t.default", LINEAR]),
    (lambda x, w: [torch.mm(x.t(), w)], (torch.randn(3, 4), W.t().contiguous()), ["aten.t.default", "aten.t.default", LINEAR]),
    (lambda x, w, b: [torch.addmm(b, x, w.t(), beta=2.0)], (X, W, B), ["aten.t.default", "aten.addmm.default"]),
    (lambda x, w: [torch.mm(x, w.t())], (X.double(), W.double()), ["aten.t.default", "aten.mm.default"]),
    (lambda x, w: [torch.mm(x, w.t())], (X[:0], W), ["aten.t.default", "aten.mm.default"]),
])  # fmt: skip
def test_products_by_onednn(function: Any, inputs: tuple[torch.Tensor, ...], after: list[str]) -> None:
    module = traced(function, *inputs)
    changed = onednn_linears(copy_module(module), always)
    assert targets(changed) == after
    for a, b in zip(results(module, *inputs), results(changed, *inputs)):
        torch.testing.assert_close(a, b)


def test_only_selected_products_change() -> None:
    module = traced(lambda x, w: [torch.mm(x, w.t())], X, W)
    assert targets(onednn_linears(copy_module(module), lambda *operands: False)) == targets(module)


@pytest.mark.parametrize(("then", "fused"), [
    (torch.relu, True), (torch.nn.functional.gelu, True), (lambda y: torch.nn.functional.gelu(y, approximate="tanh"), True),
    (lambda y: torch.relu(y) + y, False), (torch.sigmoid, False),
])  # fmt: skip
def test_an_activation_joins_the_linear_before_it(then: Any, fused: bool) -> None:
    module = onednn_linears(traced(lambda x, w, b: [then(torch.addmm(b, x, w.t()))], X, W, B), always)
    changed = fuse_activations(copy_module(module))
    assert (targets(changed) == [LINEAR]) == fused
    torch.testing.assert_close(results(module, X, W, B), results(changed, X, W, B))


def step(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
    """A training step with a flattened image, a mean over pixels, and an image among the results."""
    with torch.enable_grad():
        first, second = w.detach().requires_grad_(), v.detach().requires_grad_()
        h = torch.max_pool2d(torch.relu(torch.conv2d(x, first)), 2)
        out = h.reshape(h.shape[0], -1) @ second
        loss = out.square().mean() + torch.relu(torch.conv2d(x, first)).mean((2, 3)).sum()
        gradients = torch.autograd.grad(loss, [first, second])
    torch._fused_sgd_([w, v], list(gradients), [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False,
                      is_first_step=False)
    return [loss.detach(), h.detach(), out.detach()]


def test_channels_last_keeps_numbers_strides_of_results_and_writes() -> None:
    inputs = (torch.randn(2, 3, 10, 10), torch.randn(4, 3, 3, 3), torch.randn(64, 5))
    module = traced(step, *inputs)
    assert has_images(module)
    changed = channels_last(copy_module(module))
    seen: list[tuple[str, tuple[int, ...]]] = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if "convolution" in str(func):
                seen.append((str(func), args[0].stride()))
            return func(*args, **(kwargs or {}))

    ours, theirs = [[measurement.copy(t) for t in inputs] for _ in range(2)]
    before = eager_codegen.compile(module)(*ours)
    with Watch():
        after = eager_codegen.compile(changed)(*theirs)
    assert seen and all(stride[1] == 1 for _, stride in seen)
    for a, b in zip([*before, *ours], [*after, *theirs]):
        torch.testing.assert_close(a, b)
        assert a.stride() == b.stride()
    assert not torch.equal(ours[1], inputs[1])


@pytest.mark.parametrize(("shape", "turned"), [((4, 8, 32, 32), True), ((4, 2, 64, 64), False), ((2, 8, 8, 8), False)])
def test_large_poolings_run_with_channels_last_to_the_bit(shape: tuple[int, ...], turned: bool) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            y = torch.max_pool2d(torch.relu(leaf), 3, 2, 1)
            (gradient,) = torch.autograd.grad(y.square().sum(), [leaf])
        return [y.detach(), gradient]

    x = torch.randn(shape)
    module = traced(function, x)
    changed = pool_channels_last(copy_module(module))
    assert ("aten.contiguous.default" in targets(changed)) == turned
    for a, b in zip(results(module, x), results(changed, x)):
        assert torch.equal(a, b) and a.stride() == b.stride()


def test_a_copy_leaves_the_original_as_it_is() -> None:
    module = traced(lambda x, w: [torch.mm(x, w.t())], X, W)
    onednn_linears(copy_module(module), always)
    assert targets(module) == ["aten.t.default", "aten.mm.default"]
