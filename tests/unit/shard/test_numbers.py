"""Programs whose strategies leave terms, cut axes and written parts behind; 8 simulated ranks beside one device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops import operations as P

from torchspore.errors import StrategyRefused


class Net(nn.Cell):
    """A function behind a value that is cut (4, 2) and a Parameter that is cut so too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function, self.cut, self.cut_weight = function, P.Neg().shard(((4, 2),)), P.Neg().shard(((4, 2),))
        self.weight = Parameter(Tensor(np.linspace(0, 2, 256, dtype=np.float32).reshape(8, 32)), "weight")

    def construct(self, x: Tensor) -> Any:
        return self.function(self, self.cut(x), self.cut_weight(self.weight))


def called(function: Callable[..., Any], x: Tensor, times: int = 2) -> list[np.ndarray]:
    """The results of the last call and the Parameter after it."""
    ms.set_seed(1)                            # functions count their calls
    net = Net(function)
    for _ in range(times):
        out = net(x)
    return [*(output.asnumpy() for output in (out if isinstance(out, tuple) else (out,))), net.weight.asnumpy()]


def compared(function: Callable[..., Any], x: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = called(function, x)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    for expected, other in zip(alone, called(function, x)):
        assert expected.dtype == other.dtype
        np.testing.assert_allclose(other, expected, rtol=1e-4, atol=1e-4)


def row_written(net: Net, x: Tensor, w: Tensor) -> Any:
    net.weight[0] = x[0]
    net.weight[:, 3] = 1.0
    return net.cut_weight(net.weight)


def rows_written_in_turn(net: Net, x: Tensor, w: Tensor) -> Any:
    for at in range(3):
        net.weight[at] = net.weight[at + 1] * 0.5 + x[at]
    return net.cut_weight(net.weight)


def value_written(net: Net, x: Tensor, w: Tensor) -> Any:
    turned = x.T
    x[0] = 1.0
    x[:, 2:4] += 3
    return x, turned, x.sum(0)


def terms_written(net: Net, x: Tensor, w: Tensor) -> Any:
    total = ops.sum(x, 1)
    ops.masked_fill(total, total > 0, 0.0)
    total += 2.0
    ops.assign_add(net.weight[0], x[0])
    return nn.CrossEntropyLoss(label_smoothing=0.2, ignore_index=2)(x, LABELS), total


def view_read_later(net: Net, x: Tensor, w: Tensor) -> Any:
    row = net.weight[3]
    net.weight[3] = x[0]
    return row, row + 1, net.cut_weight(net.weight)


LABELS = Tensor(np.arange(16, dtype=np.int32) % 8)
X = Tensor(np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32))
COUNTED = Tensor(np.arange(512, dtype=np.int32).reshape(16, 32))
CASES: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "a number beside terms of a product": (lambda net, x, w: ops.matmul(x, w.T) + 1.0, X),
    "a number less terms of a sum": (lambda net, x, w: 1.0 - ops.sum(x, 1), X),
    "a number taken from terms": (lambda net, x, w: ops.sum(x, 1) - 1.0, X),
    "padding that keeps the length": (lambda net, x, w: ops.pad(x, (1, -1)) + 1, X),
    "padding of rows that keeps their number": (lambda net, x, w: ops.pad(x, (0, 0, 1, -1)) + 1, X),
    "sums of integers": (lambda net, x, w: P.ReduceSum()(x, 1) + 1, COUNTED),
    "rows of integers": (lambda net, x, w: P.Gather()(x, Tensor([1, 9, 3], ms.int32), 0), COUNTED),
    "a row of a weight written": (row_written, X),
    "rows of a weight written in turn": (rows_written_in_turn, X),
    "parts of a value written": (value_written, X),
    "terms written": (terms_written, X),
    "numbers drawn with a seed": (lambda net, x, w: ops.rand_like(x, seed=3) + P.StandardNormal(seed=4)((16, 32)), X),
    "a view that is read after a write": (view_read_later, X),
}


@pytest.mark.parametrize("case", CASES)
def test_as_one_device(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = CASES[case]
    compared(function, x, monkeypatch)


def test_a_length_that_values_say_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match=r"test_numbers.*nonzero.*the length of its result depends on values"):
        called(lambda net, x, w: ops.nonzero(x > 0), X)


class Chosen(nn.Cell):
    """A softmax in half precision along an axis that is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.softmax = P.ReLU().shard(((1, 8),)), nn.Softmax()

    def construct(self, x: Tensor) -> Tensor:
        return self.softmax(self.relu(x))


@pytest.mark.parametrize("is_wide", [False, True])
def test_sums_inside_of_an_operator_are_wide_too(is_wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.graph import dispatch

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", force_fp32_communication=is_wide)
    net = Chosen()
    array = net(Tensor(np.arange(64).reshape(4, 16) / 16, ms.float16)).asnumpy()
    np.testing.assert_allclose(array.astype(np.float32).sum(1), 1, rtol=5e-3)
    graph = dispatch.graphs(net)[0].split.local.module.graph
    sums = [node.meta["val"].dtype for node in graph.nodes if "all_reduce" in str(node.target)]
    assert {str(dtype) for dtype in sums} == {"torch.float32" if is_wide else "torch.float16"}


class _ForwardFirst(ms.nn.TrainOneStepCell):
    """The gradient of a network whose forward pass ran before, as many programs write a step."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        return ms.ops.depend(loss, self.optimizer(self.grad(self.network, self.weights)(*inputs, self.sens)))


def test_gradients_are_means_also_after_a_separate_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", gradients_mean=True)
    changes = []
    for step_class in (ms.nn.TrainOneStepCell, _ForwardFirst):
        net = ms.nn.Dense(8, 8, weight_init="ones", has_bias=False)
        step = step_class(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net.trainable_params(), 1e-3)).set_train()
        x = ms.Tensor(np.ones((8, 8), np.float32))
        step(x, x)
        changes.append(float(net.weight.asnumpy()[0, 0]) - 1)
    assert changes[0] == changes[1] == pytest.approx(-0.0004375, rel=1e-3)


@pytest.mark.parametrize("means", [False, True])
def test_a_gradient_that_repeats_one_number_is_dense_for_the_optimizer(monkeypatch: pytest.MonkeyPatch, means: bool) -> None:
    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a = ms.nn.Dense(8, 8)
            self.scale = ms.Parameter(Tensor(np.linspace(-1, 1, 127 * 4, dtype=np.float32).reshape(127, 4)), name="scale")

        def construct(self, x: Tensor) -> Tensor:
            return self.a(x) * (1 + self.scale.sum())

    losses = []
    for devices in ("", "2"):
        monkeypatch.setenv("TORCHSPORE_SIMULATE", devices)
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.reset_auto_parallel_context()
        if devices:
            ms.set_auto_parallel_context(
                parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", enable_parallel_optimizer=True, gradients_mean=means,
                parallel_optimizer_config={"parallel_optimizer_threshold": 0},
            )
        ms.set_seed(3)
        net = Net()
        step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.Adam(net.trainable_params(), 1e-2)).set_train()
        x = Tensor(np.random.RandomState(1).rand(4, 8).astype(np.float32))
        losses.append([float(step(x, x)) for _ in range(3)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
