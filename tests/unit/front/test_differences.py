"""Where the front end differs from MindSpore 2.10 on purpose: one test for each point of docs/differences.md."""
from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, boost, nn, ops

from torchspore.context import effects

DOCUMENT = Path(__file__).parents[3] / "docs" / "differences.md"


def test_every_point_of_the_document_has_its_test() -> None:
    text_after_context = DOCUMENT.read_text(encoding="utf-8").split("<!-- context: end -->")[1]
    named = set(re.findall(r"`(test_\w+)`", text_after_context.partition("## Tensors, Cells and gradients")[2].partition("\n## ")[0]))
    here = {name for name in vars(sys.modules[__name__]) if name.startswith("test_")} - {"test_every_point_of_the_document_has_its_test"}
    assert named == here


def test_marked_containers_have_gradients_in_both_modes() -> None:
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        gradients = ops.GradOperation(get_all=True)(lambda pair, y: pair[0] * y)(ms.mutable((Tensor(2.0), Tensor(7.0))), Tensor(3.0))
        assert [float(gradient) for gradient in (*gradients[0], gradients[1])] == [3, 0, 2]


def test_each_position_has_its_gradient() -> None:
    x = Tensor(3.0)
    assert [float(g) for g in ms.grad(lambda a, b: a * a * b, (0, 1))(x, x)] == [18, 9]


def test_an_assignment_leaves_the_value_that_was_read(mode: int) -> None:
    p = Parameter(Tensor(1.0), name="p")

    def assigning(x):
        y = p * p * x
        ops.assign(p, p + 1)
        return y

    assert float(ms.grad(assigning, None, p)(Tensor(3.0))) == 6 and float(p) == 2


def test_a_mean_of_integers_is_computed_in_float64() -> None:
    assert int(Tensor(np.array([1, 2, 4_000_000_000], np.uint32)).mean()) == 1_333_333_334


def test_a_variance_of_integers_uses_the_exact_mean() -> None:
    x = Tensor([[1, 2, 4], [7, 0, 3]], ms.int32)
    exact = np.var(x.asnumpy())
    for result in (x.var(), ops.var(x), ops.std(x) ** 2, x.std() ** 2):
        assert result.dtype == ms.float32 and float(result) == pytest.approx(exact, rel=1e-6)
    assert ops.var_mean(x)[0].asnumpy() == pytest.approx(exact, rel=1e-6)
    assert float(ms.numpy.var(x)) == pytest.approx(5.8333335)


def test_any_of_integers_tests_every_element() -> None:
    for dtype in (ms.int8, ms.int32, ms.int64):
        assert ops.any(Tensor([[1, 2, 4], [7, 0, 3], [0, 0, 0]], dtype), 1).asnumpy().tolist() == [True, True, False]
    assert ops.any(Tensor([[256, 0]], ms.int32), 1).asnumpy().tolist() == [True]


def test_clip_by_norm_of_integers_has_the_documented_norm() -> None:
    clipped = ops.clip_by_norm(Tensor([[3, 4], [6, 8]], ms.int32), 1.0)
    np.testing.assert_allclose(clipped.asnumpy(), np.array([[3, 4], [6, 8]]) / np.sqrt(125), rtol=1e-5)
    assert np.isnan(ops.clip_by_norm(Tensor([np.inf, -np.inf], ms.float32), 1.0, 1.0).asnumpy()).all()


def test_operators_take_more_dtypes() -> None:
    wide, truth = Tensor(np.array([3, 1], np.uint32)), Tensor([True, False])
    assert ops.sort(wide)[0].asnumpy().tolist() == [1, 3] and ops.roll(wide, 1, 0).asnumpy().tolist() == [1, 3]
    assert Tensor([1.0, 2.0, 3.0, 4.0])[wide].asnumpy().tolist() == [4, 2]
    assert ops.cumsum(truth, 0).asnumpy().tolist() == [1, 1] and bool(ops.max(truth, 0)[0])


def test_integers_are_not_divided_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        Tensor([1]) // Tensor([0])


def test_a_singular_matrix_has_no_inverse() -> None:
    with pytest.raises(ValueError):
        ops.inverse(Tensor([[0.0, 0.0], [0.0, 0.0]]))


def test_labels_must_be_as_many_as_rows() -> None:
    with pytest.raises(ValueError):
        ops.nll_loss(Tensor(np.zeros((2, 3), np.float32)), Tensor([0]))


def test_one_value_for_a_channel_trains_no_batch_norm() -> None:
    norm = nn.BatchNorm1d(3).set_train()
    with pytest.raises(ValueError):
        norm(Tensor(np.zeros((1, 3), np.float32)))
    assert np.isfinite(norm.moving_variance.asnumpy()).all()


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: ops.matmul(Tensor(np.zeros((2, 3))), Tensor(np.zeros((2, 3)))), ValueError),
    (lambda: nn.Conv2d(3, 4, 3)(Tensor(np.zeros((1, 4, 8, 8), np.float32))), ValueError),
    (lambda: ops.gather(Tensor([1.0]), Tensor([5]), 0), IndexError),
    (lambda: ops.cross_entropy(Tensor(np.zeros((1, 3), np.float32)), Tensor([7])), ValueError),
])
def test_no_runtime_errors_about_shapes_and_values(call: object, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert not isinstance(caught.value, RuntimeError)


def test_a_strided_slice_of_two_axes_has_a_gradient(mode: int) -> None:
    x = Tensor(np.zeros((2, 3, 4), np.float32))
    assert float(ms.grad(lambda x: x[0:2:2, 1:3:2].sum())(x).sum()) == 4


def updated(make, shape, gradient):
    parameter = Parameter(Tensor(np.zeros(shape, np.float32)), name="w")
    make(parameter)((Tensor(gradient),))
    return parameter.asnumpy()


def test_momentum_with_nesterov_looks_ahead(mode: int) -> None:
    result = updated(lambda p: nn.Momentum([p], 0.1, 0.9, use_nesterov=True), (1,), np.ones(1, np.float32))
    np.testing.assert_allclose(result, [-0.19], rtol=1e-6)


def test_gradients_of_every_shape_are_centralized(mode: int) -> None:
    for shape in ((2, 2), (2, 16), (2, 16, 1, 2)):
        gradient = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        result = updated(lambda p: nn.Momentum([{"params": [p], "grad_centralization": True}], 0.1, 0.0), shape, gradient)
        np.testing.assert_allclose(result.reshape(shape[0], -1).sum(1), 0, atol=1e-4)


class Changing(nn.Cell):
    def __init__(self):
        super().__init__()
        self.factor, self.shift = 2, Tensor([10.0])

    def construct(self, x):
        part = x[0:1]
        part[0] = 1.0
        return x * self.factor + self.shift


def test_graph_mode_sees_changed_attributes(mode: int) -> None:
    net = Changing()
    assert net(Tensor([0.0])).asnumpy().tolist() == [12]
    net.factor = 5
    assert net(Tensor([0.0])).asnumpy().tolist() == [15]
    net.shift = Tensor([0.0])
    assert net(Tensor([0.0])).asnumpy().tolist() == [5]


def test_graph_mode_writes_views_and_inputs(mode: int) -> None:
    x = Tensor([0.0, 0.0])
    assert Changing()(x).asnumpy().tolist() == [12, 10]
    assert x.asnumpy().tolist() == [1, 0]


class Refused(nn.Cell):
    """What 2.10 can't compile: lambdas in a list, and a text that depends on a Tensor."""

    def __init__(self):
        super().__init__()
        self.steps = [lambda x: x + 1, lambda x: x * 2]

    def construct(self, x):
        for step in self.steps:
            x = step(x)
        name = "large" if x.sum() > 10 else "small"
        return x * 10 if name == "large" else x


def test_graph_mode_runs_what_it_cannot_compile(mode: int) -> None:
    net = Refused()
    assert net(Tensor([1.0])).asnumpy().tolist() == [4] and net(Tensor([9.0])).asnumpy().tolist() == [200]


def counting() -> nn.Cell:
    """A Cell that counts its forward passes, of which gradients are said to be wanted."""

    class Counting(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor([2.0]), name="weight")
            self.passes = Parameter(Tensor(0.0), name="passes", requires_grad=False)

        def construct(self, x):
            ops.assign_add(self.passes, Tensor(1.0))
            return x * x * self.weight

    return Counting().set_grad()


def test_a_changed_forward_pass_is_not_used() -> None:
    net, x = counting(), Tensor([3.0])
    net(x)
    x[0] = 4.0
    assert float(ops.GradOperation(get_by_list=True)(net, net.trainable_params())(x)[0][0]) == 16.0
    assert float(net.passes) == 2


def test_graph_mode_counts_forward_passes_as_pynative(mode: int) -> None:
    net = counting()

    class Step(nn.Cell):
        def construct(self, x):
            net(x)
            net(x)
            return [ops.GradOperation(get_by_list=True)(net, net.trainable_params())(x) for _ in range(2)]

    Step()(Tensor([3.0]))
    assert float(net.passes) == 2                          # two calls, and a gradient of each


def test_messages_of_a_graph_are_reported_once(mode: int) -> None:
    class Tells(nn.Cell):
        def construct(self, x):
            ms.log.warning("of the call")
            return x * 2

    net, printed = Tells(), io.StringIO()
    with contextlib.redirect_stderr(printed):
        assert [float(net(Tensor([1.0]))) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert printed.getvalue().count("of the call") == (1 if mode == ms.GRAPH_MODE else 3)


def test_set_data_copies() -> None:
    first, other = nn.Dense(2, 2), nn.Dense(2, 2)
    other.weight.set_data(first.weight.data)
    weight_before = first.weight.asnumpy().copy()
    nn.SGD([first.weight], 1.0)((ops.ones((2, 2)),))
    np.testing.assert_array_equal(other.weight.asnumpy(), weight_before)
    np.testing.assert_array_equal(first.weight.asnumpy(), weight_before - 1)


def test_a_tensor_of_a_tensor_is_a_copy() -> None:
    first = Tensor([1.0, 2.0])
    other = Tensor(first)
    other[0] = 9.0
    assert first.asnumpy().tolist() == [1.0, 2.0]


def test_an_array_follows_every_assignment() -> None:
    parameter = Parameter(Tensor([1.0, 2.0]), name="p")
    array, value = parameter.asnumpy(), parameter.value()
    ops.assign(parameter, Tensor([5.0, 6.0]))
    assert array.tolist() == [5.0, 6.0] and value.asnumpy().tolist() == [1.0, 2.0]


def test_seeds_of_dropout_start_streams_on_the_cpu_and_are_reported_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_seed(1)
    seen = [ops.dropout(ops.ones(64), 0.5, True, 11).asnumpy().tolist() for _ in range(2)]
    ms.set_seed(1)
    assert seen[0] != seen[1] and seen == [ops.dropout(ops.ones(64), 0.5, True, 11).asnumpy().tolist() for _ in range(2)]
    with effects.fresh():
        ops.dropout(ops.ones(64), 0.5, True, 11)
        assert "random numbers" not in effects.notes()
        monkeypatch.setattr("torchspore.mindspore.ops.random_draws.dropouts._has_kernel", lambda x: False)
        ops.dropout(ops.ones(64), 0.5, True, 11)
        ops.Dropout(0.5, 3, 4)(ops.ones(64))
        notes = effects.notes()["random numbers"]
    assert any("dropout(seed=11)" in line for line in notes) and any("Dropout(Seed0=3, Seed1=4)" in line for line in notes)


def test_less_bn_computes_every_batch_norm(mode: int) -> None:
    class Block(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def construct(self, x: Any) -> Any:
            return ops.relu(self.norm(x) + x)

    x = Tensor(np.array([[1.0, 2.0], [3.0, 5.0]], np.float32))
    net = Block().set_train()
    np.testing.assert_array_equal(boost.LessBN(net)(x).asnumpy(), Block().set_train()(x).asnumpy())
    assert any("LessBN: every batch norm" in line for line in effects.notes()["training"])


def test_a_number_is_written_into_a_parameter(mode: int) -> None:
    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.step = Parameter(Tensor(0, ms.int32), name="step")
            self.pair = Parameter(Tensor([1.0, 2.0]), name="pair")

        def construct(self, x: Any) -> Any:
            self.step += 1
            if self.step >= 3:
                self.step = 0
            return x + self.step

    net = Counter()
    assert [int(net(Tensor(0, ms.int32))) for _ in range(5)] == [1, 2, 0, 1, 2]
    for value in (1.5, True, "a"):
        with pytest.raises(TypeError, match="step"):
            net.step = value
    with pytest.raises(TypeError, match="pair"):
        net.pair = 0


def test_the_result_of_an_assignment_is_the_parameter(mode: int) -> None:
    p = Parameter(Tensor(2.0), name="p")

    def adding(x: Any) -> Any:
        return ops.assign_add(p, x * x) * x + p

    by_input, by_weight = ms.grad(adding, 0, p)(Tensor(3.0))
    assert (float(by_input), float(by_weight)) == (11, 4)


def test_half_normal_begins_at_its_mean() -> None:
    density = nn.probability.distribution.HalfNormal(0.5, 1.0).prob(Tensor([0.3, 0.5, 0.6])).asnumpy()
    assert density[0] == 0 and density[1] > density[2] > 0


def test_mint_runs_on_any_device() -> None:
    assert ms.mint.sum(Tensor(np.zeros((0, 3), np.float32))).item() == 0
    assert ms.mint.median(Tensor([3.0, 1.0, 2.0])).item() == 2


def test_figures_of_scalar_distributions() -> None:
    home = nn.probability.distribution
    assert home.Bernoulli(0.7).mode().asnumpy() == 1 and home.Poisson(2.5).mode().asnumpy() == 2
    for distribution in (home.Gamma(2.0, 1.0), home.Beta(2.0, 1.0), home.Poisson(2.0)):
        assert distribution.sample((2,)).shape == (2,)


def test_max_by_position_acts_as_its_values_too() -> None:
    values, indices = pair = Tensor([[1.0, 5.0], [7.0, 2.0]]).max(1)
    assert isinstance(pair, tuple) and values.asnumpy().tolist() == [5, 7] and indices.asnumpy().tolist() == [1, 0]
    assert (pair < 6).asnumpy().tolist() == [True, False]


def test_tensors_hold_a_gradient() -> None:
    x = Tensor([1.0])
    assert x.grad is None
    x.grad = Tensor([2.0])
    assert float(x.grad[0]) == 2


def test_the_absolute_value_of_complex_numbers() -> None:
    assert ops.abs(Tensor([3 + 4j])).dtype == ms.float64 and ops.abs(Tensor([3 + 4j])).asnumpy().tolist() == [5.0]


def test_a_gradient_in_a_gradient_counts_what_parameters_do_to_each_other(mode: int) -> None:
    first, second = Parameter(Tensor([[2.0]]), name="first"), Parameter(Tensor([[3.0]]), name="second")

    def loss(a: Any, b: Any) -> Any:
        return ops.matmul(a, b).sum()

    slopes = ms.grad(loss, (0, 1))

    def after_a_step() -> Any:
        by_a, by_b = slopes(first, second)
        return loss(first - 0.1 * by_a, second - 0.1 * by_b)         # (a - b / 10) * (b - a / 10)

    result = ms.value_and_grad(after_a_step, None, [first, second])()[1]
    assert [round(float(gradient), 5) for gradient in result] == [2.63, 1.42]


def test_inference_and_experts_run_everywhere() -> None:
    q = Tensor(np.random.RandomState(0).randn(1, 2, 3, 4).astype(np.float32))
    result = ops.prompt_flash_attention(q, q, q, num_heads=2, scale_value=0.5, input_layout="BNSD")
    expected = ops.flash_attention_score(q, q, q, 2, scalar_value=0.5, input_layout="BNSD")
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-5)
    rows, positions = ops.moe_token_permute(q[0, 0], Tensor([2, 0, 1]))
    assert np.array_equal(ops.moe_token_unpermute(rows, positions).asnumpy(), q[0, 0].asnumpy())
    with pytest.raises(ValueError, match=r"quant_scale2=\.\.\.\): expected None"):
        ops.prompt_flash_attention(q, q, q, quant_scale2=Tensor([1.0]), num_heads=2, input_layout="BNSD")
