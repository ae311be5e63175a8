"""Strategies of the operators that layers carry: over simulated ranks beside the same layer without any."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P

from torchspore.errors import StrategyRefused

source = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return source.standard_normal(shape).astype(np.float32)


ROWS, HALF = ((8, 1),), ((2, 4),)
IMAGES = {"conv2d": ((2, 1, 1, 1), (4, 1, 1, 1)), "bias_add": ((2, 4, 1, 1), (4,))}
STATISTICS = ((2, 4, 1, 1), (4,), (4,), (4,), (4,))
NUMBERS = source.integers(0, 64, (8, 4)).astype(np.int32)
LAYERS: dict[str, tuple[Callable[[], Any], dict[str, Any], Any, dict[str, Any]]] = {
    "dense": (lambda: nn.Dense(16, 32, activation="relu"), {"matmul": ((2, 1), (4, 1)), "bias_add": ((2, 4), (4,))}, floats(8, 16),
              {"weight": [8, 16], "bias": [8]}),
    "dense of rows": (lambda: nn.Dense(16, 32), {"matmul": ((2, 4), (1, 4))}, floats(8, 16), {"weight": [32, 4]}),
    "dense of three axes": (lambda: nn.Dense(16, 32), {"matmul": ((1, 1), (8, 1))}, floats(2, 4, 16), {"weight": [4, 16]}),
    "conv2d": (lambda: nn.Conv2d(8, 16, 3, has_bias=True), IMAGES, floats(4, 8, 6, 6), {"weight": [4, 8, 3, 3], "bias": [4]}),
    "conv1d": (lambda: nn.Conv1d(8, 16, 3, has_bias=True), {"conv2d": IMAGES["conv2d"]}, floats(4, 8, 6), {"weight": [4, 8, 1, 3]}),
    "conv2d transposed": (
        lambda: nn.Conv2dTranspose(8, 16, 3, has_bias=True),
        {"conv2d_transpose": ((2, 1, 1, 1), (1, 4, 1, 1)), "bias_add": IMAGES["bias_add"]}, floats(4, 8, 6, 6), {"weight": [8, 4, 3, 3]},
    ),
    "batch norm": (lambda: nn.BatchNorm2d(8), {"bn_train": STATISTICS, "bn_infer": STATISTICS}, floats(8, 8, 3, 3), {"gamma": [2]}),
    "layer norm": (lambda: nn.LayerNorm((16,)), {"layer_norm": ((4, 2, 1), (1,), (1,))}, floats(8, 4, 16), {}),
    "embedding": (lambda: nn.Embedding(64, 16), {"gather": ((8, 1), (1,))}, NUMBERS, {"embedding_table": [8, 16]}),
    "embedding by products": (
        lambda: nn.Embedding(64, 16, use_one_hot=True), {"one_hot": ((2, 4), (), ()), "array_mul": ((2, 4), (4, 1))}, NUMBERS,
        {"embedding_table": [16, 16]},
    ),
    "prelu": (lambda: nn.PReLU(8), {"prelu": ((2, 4), (4,))}, floats(8, 8), {"w": [2]}),
    "dropout": (lambda: nn.Dropout(p=0.5), {"dropout": ROWS}, floats(8, 8), {}),
    "pooling": (lambda: nn.MaxPool2d(2, 2), {"max_pool": ((2, 4, 1, 1),)}, floats(4, 8, 6, 6), {}),
    "relu": (lambda: nn.ReLU(), {"relu": HALF}, floats(8, 8), {}),
    "softmax": (lambda: nn.Softmax(), {"softmax": ROWS}, floats(8, 8), {}),
}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=before)


def with_strategies(layer: Any, strategies: dict[str, Any]) -> Any:
    for name, strategy in strategies.items():
        getattr(layer, name).shard(strategy)
    return layer


class Step(nn.Cell):
    """The result of a layer, its gradients, and its Parameters afterwards."""

    def __init__(self, layer: Any, takes_floats: bool) -> None:
        super().__init__()
        self.layer = layer
        weights = layer.trainable_params()

        def weighed(*inputs: Any) -> Any:
            out = layer(*inputs)
            return (out * out * ops.cos(ops.arange(out.size).astype(ms.float32)).reshape(out.shape)).sum(), out

        self.gradients = ms.value_and_grad(weighed, 0 if takes_floats else None, weights or None, has_aux=True)

    def construct(self, *inputs: Any) -> Any:
        return self.gradients(*inputs)


def stepped(layer: Any, *inputs: Any) -> tuple[list[Any], Any]:
    ms.set_seed(5)
    step = Step(layer, inputs[0].dtype == np.float32).set_train()
    flat: list[Any] = []

    def collect(value: Any) -> None:
        for element in value:
            collect(element) if isinstance(element, (tuple, list)) else flat.append(element.asnumpy())

    collect(step(*map(Tensor, inputs)))
    return flat + [parameter.asnumpy() for parameter in layer.get_parameters()], step


def seeded(make: Callable[[], Any]) -> Any:
    ms.set_seed(3)
    ms.set_context(mode=ms.GRAPH_MODE)
    return make()


def over_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")


def agree(results: list[Any], expected: list[Any]) -> None:
    assert len(results) == len(expected)
    for actual, other in zip(results, expected):
        np.testing.assert_allclose(actual, other, rtol=1e-5, atol=2e-6 * max(1.0, float(np.abs(other).max())))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_split_as_its_operators_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, strategies, x, parts = LAYERS[name]
    expected, _ = stepped(seeded(make), x)
    layer = with_strategies(seeded(make), strategies)
    over_eight(monkeypatch)
    result, step = stepped(layer, x)
    agree(result, expected)
    for key, shape in parts.items():
        assert step.parameter_layout_dict[f"layer.{key}"][2] == shape
    if name == "batch norm":
        layer.set_train(False)
        full_layer = seeded(make)
        for parameter, other in zip(full_layer.get_parameters(), layer.get_parameters()):
            parameter.set_data(Tensor(other.asnumpy()))
        np.testing.assert_allclose(layer(Tensor(x)).asnumpy(), full_layer.set_train(False)(Tensor(x)).asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("sparse", "reduction", "strategies"), [
    (True, "mean", {"sparse_softmax_cross_entropy": ((8, 1), (8,))}),
    (True, "sum", {"one_hot": ((8, 1), (), ()), "softmax_cross_entropy": ((8, 1), (8, 1)), "reduce_sum": ((8,),)}),
    (False, "mean", {"softmax_cross_entropy": ((8, 1), (8, 1)), "reduce_mean": ((8,),)}),
    (False, "none", {"softmax_cross_entropy": ((8, 1), (8, 1))}),
])
def test_losses(sparse: bool, reduction: str, strategies: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = floats(8, 16), source.integers(0, 16, 8).astype(np.int32)
    labels = labels if sparse else np.eye(16, dtype=np.float32)[labels]
    expected, _ = stepped(seeded(lambda: nn.SoftmaxCrossEntropyWithLogits(sparse, reduction)), logits, labels)
    loss = with_strategies(seeded(lambda: nn.SoftmaxCrossEntropyWithLogits(sparse, reduction)), strategies)
    over_eight(monkeypatch)
    agree(stepped(loss, logits, labels)[0], expected)


def test_a_loss_of_the_program_reduces_by_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distance(nn.LossBase):
        def construct(self, logits: Any, labels: Any) -> Any:
            return self.get_loss(ops.abs(logits - labels))

    inputs = floats(8, 8), floats(8, 8)
    expected, _ = stepped(seeded(Distance), *inputs)
    loss = seeded(Distance)
    loss.reduce_mean.shard(HALF)
    loss.mul.shard(((), (2, 4)))
    over_eight(monkeypatch)
    agree(stepped(loss, *inputs)[0], expected)
    wrong = seeded(Distance)
    wrong.reduce_mean.shard(((3, 1),))
    with pytest.raises(StrategyRefused, match="ReduceMean"):
        stepped(wrong, *inputs)


def test_a_strategy_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = with_strategies(seeded(lambda: nn.Dense(16, 32)), {"matmul": ((3, 1), (1, 1))})
    over_eight(monkeypatch)
    with pytest.raises(StrategyRefused, match="MatMul"):
        layer(Tensor(floats(8, 16)))


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("name", LAYERS)
def test_without_devices_the_numbers_are_the_same_to_the_bit(name: str, mode: int) -> None:
    make, strategies, x, _ = LAYERS[name]
    plain, layer = seeded(make), with_strategies(seeded(make), strategies)
    ms.set_context(mode=mode)
    results = []
    for copied in (plain, layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        ms.set_seed(5)
        results.append((copied.set_train()(Tensor(x)).asnumpy(), [p.asnumpy() for p in copied.get_parameters()]))
    for out, parameters in results[1:]:
        np.testing.assert_array_equal(out, results[0][0])
        for actual, expected in zip(parameters, results[0][1]):
            np.testing.assert_array_equal(actual, expected)


def test_a_copy_computes_with_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = with_strategies(seeded(lambda: nn.Dense(16, 32)), {"matmul": ((2, 1), (4, 1))})
    x = Tensor(floats(8, 16))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        other.weight.set_data(ops.zeros_like(other.weight))
        other.bias.set_data(ops.ones_like(other.bias))
        assert (other(x).asnumpy() == 1).all()
        with monkeypatch.context() as patch:
            over_eight(patch)
            assert (other(x).asnumpy() == 1).all()
            assert other.parameter_layout_dict["weight"][2] == [8, 16]
            ms.reset_auto_parallel_context()


def test_a_primitive_that_is_put_instead_of_a_part_is_called() -> None:
    class Doubled(nn.Dense):
        def __init__(self) -> None:
            super().__init__(4, 4, has_bias=False)
            self.matmul = P.MatMul(transpose_b=False)

    layer, x = seeded(Doubled), floats(2, 4)
    np.testing.assert_allclose(layer(Tensor(x)).asnumpy(), x @ layer.weight.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_construct_of_the_program_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(nn.Dense):
        def construct(self, x: Any) -> Any:
            return self.bias_add(self.matmul(x, self.weight), self.bias) * 2

    layer, x = with_strategies(seeded(lambda: Twice(16, 32)), {"matmul": ((2, 1), (4, 1))}), Tensor(floats(8, 16))
    expected = layer(x).asnumpy()
    over_eight(monkeypatch)
    np.testing.assert_allclose(layer(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert layer.parameter_layout_dict["weight"][2] == [8, 16]
    assert "construct" not in layer.__dict__


def test_running_values_that_two_strategies_lay_differently_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ((8, 1, 1, 1), (1,), (1,), (1,), (1,))

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.own = nn.BatchNorm2d(8)
            self.first, self.second = P.BatchNorm(is_training=True).shard(STATISTICS), P.BatchNorm(is_training=True).shard(rows)

        def construct(self, x: Any) -> Any:
            values = self.own.gamma, self.own.beta, self.own.moving_mean, self.own.moving_variance
            return self.second(self.first(x, *values)[0] + x, *values)[0]

    over_eight(monkeypatch)
    with pytest.raises(StrategyRefused, match=r"the Parameter own.gamma cut \(1,\): expected the layout in which BatchNorm has it"):
        seeded(Net)(Tensor(floats(8, 8, 3, 3) + 1))
