"""GroupedMatmul, by the documented formula and example of MindSpore 2.10, with gradients and strategies."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops.auto_generate import GroupedMatmul
from mindspore.ops.operations._inner_ops import DSDMatmul, MatmulDDS


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_the_documented_example() -> None:
    x = [Tensor(np.array([[0] * 4, [1] * 4, [2] * 4, [2] * 4, [1] * 4, [1] * 4]), ms.float16)]
    weight = [Tensor(np.arange(32).reshape((4, 4, 2)), ms.float16)]
    (result,) = GroupedMatmul(3, 0)(x, weight, None, None, None, None, None, Tensor([1, 3, 4, 6], ms.int64))
    assert result.dtype == ms.float16
    assert result.asnumpy().tolist() == [[0, 0], [44, 48], [88, 96], [152, 160], [108, 112], [108, 112]]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_groups_of_rows_with_gradients(mode: int) -> None:
    ms.set_context(mode=mode)
    x, weight, bias, ends = draw(8, 4), draw(3, 4, 5), draw(3, 5), [2, 2, 7]
    product = GroupedMatmul(3, 0)

    def loss(x, weight, bias):
        return product([x], [weight], [bias], None, None, None, None, Tensor(ends, ms.int64))[0].square().sum()

    rows = [slice(0, 2), slice(2, 2), slice(2, 7)]
    expected = sum(float(np.square(x[part] @ weight[at] + bias[at]).sum()) for at, part in enumerate(rows))
    inputs = Tensor(x), Tensor(weight), Tensor(bias)
    np.testing.assert_allclose(float(loss(*inputs)), expected, rtol=1e-5)
    of_x, of_weight, of_bias = (gradient.asnumpy() for gradient in ms.grad(loss, (0, 1, 2))(*inputs))
    for at, part in enumerate(rows):
        of_result = 2 * (x[part] @ weight[at] + bias[at])
        np.testing.assert_allclose(of_x[part], of_result @ weight[at].T, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_weight[at], x[part].T @ of_result, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_bias[at], of_result.sum(0), rtol=1e-4, atol=1e-5)
    assert not of_x[7].any()


def test_pairs_and_integer_weights() -> None:
    xs, weights = [Tensor(draw(4, 6)), Tensor(draw(2, 3, 6))], [Tensor(draw(6, 5)), Tensor(draw(6, 2))]
    for result, x, weight in zip(GroupedMatmul(0, -1)(xs, weights), xs, weights):
        np.testing.assert_allclose(result.asnumpy(), x.asnumpy() @ weight.asnumpy(), rtol=1e-5, atol=1e-6)
    turned = GroupedMatmul(0, -1, False, True)([xs[0]], [weights[0].T])[0]
    np.testing.assert_allclose(turned.asnumpy(), xs[0].asnumpy() @ weights[0].asnumpy(), rtol=1e-5, atol=1e-6)
    whole = np.arange(-15, 15, dtype=np.int8).reshape(6, 5)
    scale, zero = draw(5).astype(np.float16), draw(1, 5)[0].astype(np.float16)
    result = GroupedMatmul(0, -1)([xs[0].half()], [Tensor(whole)], None, None, None, [Tensor(scale)], [Tensor(zero)])[0]
    np.testing.assert_allclose(result.asnumpy(), xs[0].asnumpy() @ ((whole + zero.astype(np.float32)) * scale), rtol=2e-2, atol=0.3)


@pytest.mark.parametrize(("settings", "more", "error", "text"), [
    ((3, -1), {}, TypeError, "split_item=0 with group_type=-1, or 3 with 0"), ((3, 0), {}, TypeError, "with group_list=None: expected a"),
    ((0, -1), {"scale": [Tensor([1.0])]}, ValueError, "with a scale or an offset: expected None"),
    ((0, -1), {"group_list": Tensor([4])}, TypeError, "expected None"),
    ((3, 0), {"group_list": Tensor([4])}, ValueError, r"expected weights \(E, K, N\) and E ends"),
])
def test_other_calls_are_refused(settings: Any, more: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        GroupedMatmul(*settings)([Tensor(draw(4, 6))], [Tensor(draw(6, 5))], **more)


class Grouped(nn.Cell):
    def __init__(self, strategy: Any) -> None:
        super().__init__()
        self.weight, self.bias = ms.Parameter(Tensor(draw(4, 8, 16)), name="w"), ms.Parameter(Tensor(draw(4, 16)), name="b")
        self.product = GroupedMatmul(3, 0)
        if strategy is not None:
            self.product.shard(strategy)

    def construct(self, x, ends):
        return self.product([x], [self.weight], [self.bias], None, None, None, None, ends)[0]


@pytest.mark.parametrize(("strategy", "parts"), [
    ((((1, 1),), ((1, 1, 4),), ((1, 4),), ((),), ((),), ((),), ((),), (1,)), [4, 8, 4]),
    ((((1, 4),), ((1, 4, 1),), ((1, 1),), ((),), ((),), ((),), ((),), (1,)), [4, 2, 16]),
    ((((2, 2),), ((1, 2, 1),), ((1, 1),), ((),), ((),), ((),), ((),), (1,)), [4, 4, 16]),
])
def test_four_devices_give_the_numbers_of_one(strategy: Any, parts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    x, ends = Tensor(draw(12, 8)), Tensor([1, 5, 5, 12], ms.int64)
    expected = Grouped(None)(x, ends).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Grouped(strategy)
    np.testing.assert_allclose(net(x, ends).asnumpy(), expected, rtol=1e-5, atol=1e-5)
    assert net.parameter_layout_dict["w"][2] == parts


def test_operators_without_a_formula_have_shapes_and_do_not_run() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    q, masks = ops.ones((8, 16, 16, 16)), (ops.ones((16, 4, 16, 16)), ops.ones((4, 16, 16, 16)))
    first, second = ops.ones((2, 4, 4, 2, 4, 16, 16)), ops.ones((8, 16, 16, 16))

    class Sparse(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scores, self.product = MatmulDDS(1, 2), DSDMatmul()

        def construct(self, q, k, local_mask, global_mask, first, second):
            return self.scores(q, k, local_mask, global_mask), self.product(first, first, second)

    net = Sparse()
    net.compile(q, q, *masks, first, second)
    with pytest.raises(NotImplementedError, match="MatmulDDS: a kernel of Ascend without a documented formula"):
        net(q, q, *masks, first, second)
    with pytest.raises(NotImplementedError, match="DSDMatmul: a kernel of Ascend"):
        DSDMatmul()(first, first, second)
