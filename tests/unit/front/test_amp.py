"""Loss scalers and mixed precision: what is refused, and what stays in float32. Numbers are compared with records of 2.10."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, amp, mint, nn, ops


class Deep(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm = nn.Dense(4, 4), nn.LayerNorm((4,))
        self.seen: list[Any] = []

    def construct(self, x: Any) -> Any:
        x = self.dense(x)
        self.seen.append(x.dtype)
        return self.norm(x)


def test_a_black_list_of_the_program() -> None:
    net = Deep()
    changed = amp.custom_mixed_precision(net, black_list=[nn.Dense])
    assert changed(Tensor(np.ones((2, 4), np.float32))).dtype == ms.float32
    assert net.seen == [ms.float16] and net.name_cells()["dense"].name_cells()["_backbone"].weight.dtype == ms.float32


def test_bfloat16() -> None:
    net = Deep()
    assert amp.auto_mixed_precision(net, "O3", ms.bfloat16)(Tensor(np.ones((2, 4), np.float32))).dtype == ms.float32
    assert net.seen == [ms.bfloat16]


def test_all_finite(mode: int) -> None:
    values = (Tensor([1.0, 2.0]), [Tensor([[3]]), Tensor([0.5], ms.float16)])
    assert bool(amp.all_finite(values))
    assert not bool(amp.all_finite((*values, Tensor([np.inf]))))
    assert not bool(amp.all_finite(Tensor([np.nan])))


def test_a_training_step_with_a_scaler(mode: int) -> None:
    net, scaler = nn.Dense(2, 1), amp.DynamicLossScaler(1024, 2, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)

    def forward(x: Any) -> Any:
        return scaler.scale(ops.reduce_sum(net(x)) if hasattr(ops, "reduce_sum") else net(x).sum())

    step = ms.value_and_grad(forward, None, optimizer.parameters)
    before = net.weight.value().asnumpy()
    _, gradients = step(Tensor(np.ones((3, 2), np.float32)))
    gradients = scaler.unscale(gradients)
    assert bool(amp.all_finite(gradients))
    optimizer(gradients)
    np.testing.assert_allclose(net.weight.asnumpy(), before - 0.3, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("level", "inner", "outer"), [("O1", "BFloat16", "Float32"), ("auto", "BFloat16", "Float32")])
def test_levels_by_operator_in_bfloat16(mode: int, level: str, inner: str, outer: str) -> None:
    seen = []

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.product, self.norm, self.dense = ops.BatchMatMul(), nn.LayerNorm((4,)), nn.Dense(4, 4)

        def construct(self, x: Any) -> Any:
            y = self.product(x, x)
            seen.append(str(y.dtype))
            return self.norm(y), self.dense(x)

    net = Net()
    assert amp.auto_mixed_precision(net, level, ms.bfloat16) is net
    x = Tensor(np.ones((2, 4, 4), np.float32) * 1.001)
    assert [str(t.dtype) for t in net(x)] == [outer, outer]
    assert seen[0] == (inner if level == "auto" else outer)
    assert ops.BatchMatMul()(x, x).dtype == ms.float32                                  # outside of it nothing has changed


def test_a_model_at_each_level(mode: int) -> None:
    data = ms.dataset.NumpySlicesDataset((np.ones((4, 3), np.float32), np.ones((4, 2), np.float32)), shuffle=False).batch(2)
    for level in ("O0", "O1", "auto"):
        net = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), amp_level=level)
        model.train(1, data)
        np.testing.assert_allclose(net.weight.asnumpy(), 0.68, atol=0.01)
        assert model.predict(Tensor(np.ones((1, 3), np.float32))).dtype == ms.float32


def test_a_strategy_by_names(mode: int) -> None:
    from mindspore._c_expression import amp as strategies

    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return ops.MatMul()(x, x), ops.exp(x), ops.Softmax()(x), x + x

    level, white, black = strategies.AmpLevel, [("MatMul", []), ("Exp", [0])], [("Softmax", [])]
    expected = {level.AmpO0: "3333", level.AmpO1: "1133", level.AmpO2: "1131", level.AmpO3: "1111", level.AmpAuto: "1133"}
    for name, dtypes in expected.items():
        net = Net()
        net.amp_strategy = strategies.create_amp_strategy(name, ms.float16, white, black)
        text = "".join(str(t.dtype)[5] for t in net(Tensor(np.ones((2, 2), np.float32))))
        assert text == (dtypes if mode == ms.GRAPH_MODE else "3333")                 # it acts in graphs alone
    info = strategies.get_prim_cast_strategy_info(net.amp_strategy, "Concat")
    assert info.strategy is strategies.PrimCastStrategy.AmpAutoPromote
    strategies.push_amp_strategy(level.AmpO1, ms.float16, white, [])
    assert strategies.get_curr_amp_strategy().get_amp_dtype() == ms.float16
    assert ops.MatMul()(Tensor(np.ones((2, 2), np.float32)), Tensor(np.ones((2, 2), np.float32))).dtype == ms.float16
    strategies.pop_amp_strategy()
    assert strategies.get_curr_amp_strategy() is None and ops.exp(Tensor(1.0)).dtype == ms.float32


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: amp.DynamicLossScaler(0, 2, 2), ValueError), (lambda: amp.DynamicLossScaler("a", 2, 2), TypeError),
    (lambda: amp.DynamicLossScaler(16, 2, 1.5), TypeError), (lambda: amp.StaticLossScaler(-1), ValueError),
    (lambda: amp.StaticLossScaler(1).adjust("a"), TypeError), (lambda: amp.all_finite(3), TypeError),
    (lambda: amp.auto_mixed_precision(Deep(), "O2", ms.int32), ValueError),
    (lambda: amp.custom_mixed_precision(Deep(), black_list=[ops.MatMul]), TypeError),
    (lambda: amp.custom_mixed_precision(Deep(), black_list=nn.Dense), TypeError),
])
def test_what_does_not_fit(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


def test_the_black_list_is_that_of_mindspore() -> None:
    assert [kind.__name__ for kind in amp.get_black_list()] == ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm"]
    assert issubclass(amp.StaticLossScaler, amp.LossScaler)


class Normed(nn.Cell):
    def __init__(self, layer: Callable[[int], nn.Cell], weight: float = 1.0) -> None:
        super().__init__()
        self.norm, self.dense = layer(3), nn.Dense(3, 1, weight_init="ones", has_bias=False)
        self.norm.trainable_params()[0].set_data(Tensor([weight] * 3, ms.float32))

    def construct(self, x: Tensor) -> Tensor:
        return self.dense(self.norm(x).mean((2, 3)))


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("layer", [nn.BatchNorm2d, mint.nn.BatchNorm2d], ids=["nn", "mint"])
def test_running_statistics_move_in_float16(mode: int, level: str, layer: Any) -> None:
    x, y = Tensor(np.random.RandomState(1).randn(4, 3, 5, 5) * 3 + 2, ms.float32), Tensor(np.ones((4, 1)), ms.float32)
    results = []
    for value in ("O0", level):
        net = Normed(layer)
        states = [parameter for parameter in net.get_parameters() if "mean" in parameter.name or "var" in parameter.name]
        step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.01), nn.MSELoss(), level=value, loss_scale_manager=None)
        for _ in range(3):
            step(x, y)
        assert [state.dtype for state in states] == [ms.float32] * 2
        results.append(np.concatenate([state.asnumpy() for state in states]))
        step.set_train(False)
        results.append(net(x).asnumpy())
    np.testing.assert_allclose(results[2], results[0], rtol=2e-3)
    np.testing.assert_allclose(results[3], results[1], rtol=2e-2, atol=2e-2)


def test_a_cell_with_its_dtype_takes_unrounded_values() -> None:
    net, seen = Normed(nn.BatchNorm2d, weight=1.0001), []
    net.to_float(ms.float16)
    net.norm.to_float(ms.float32)
    net.norm.register_forward_hook(lambda cell, inputs, output: seen.append(output.asnumpy()))
    net(Tensor(np.full((1, 3, 1, 1), 1000.0), ms.float32))
    assert float(seen[0][0, 0, 0, 0]) == pytest.approx(1000.1 / (1 + 1e-5) ** 0.5, abs=1e-3)     # in float16 1.0001 is 1


class Counting(nn.Cell):
    """Writes into its Parameters, between two statements that no graph holds if `speaks`."""

    def __init__(self, speaks: bool) -> None:
        super().__init__()
        self.added, self.scattered, self.given = (Parameter(Tensor([2048.0], ms.float32), name=name) for name in ("a", "s", "g"))
        self.speaks, self.seen = speaks, []

    def construct(self, x: Tensor) -> Tensor:
        ops.assign_add(self.added, Tensor([1.0], ms.float32))
        if self.speaks:
            self.seen.append(float(self.added.asnumpy()[0]))
            print(end="")
        ops.ScatterAdd()(self.scattered, Tensor([0], ms.int32), Tensor([1.0], ms.float32))
        ops.assign(self.given, Tensor([2049.0], ms.float32))
        return x * self.added


@pytest.mark.parametrize("speaks", [False, True], ids=["whole", "in parts"])
def test_parameters_that_are_written_keep_their_dtype(mode: int, speaks: bool) -> None:
    net = Counting(speaks).to_float(ms.float16)
    outs = [net(Tensor([1.0], ms.float32)) for _ in range(3)]
    assert [parameter.asnumpy().tolist() for parameter in net.get_parameters()] == [[2051.0], [2051.0], [2049.0]]    # 2048 in float16
    assert [(out.dtype, float(out)) for out in outs] == [(ms.float16, value) for value in (2048.0, 2050.0, 2052.0)]
    assert net.seen == ([2049.0, 2050.0, 2051.0] if speaks else [])
