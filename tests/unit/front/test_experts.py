"""Tokens sorted by their experts and put back, as MindSpore's documents define it: it has kernels on Ascend alone."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops.auto_generate import MoeInitRoutingV2, MoeTokenPermute, MoeTokenUnpermute


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def _mode(request: pytest.FixtureRequest) -> None:
    ms.set_context(mode=request.param)


def test_permute_of_the_documents() -> None:
    tokens = Tensor([[1.0] * 3, [7.0] * 3, [2.0] * 3, [1.0] * 3, [2.0] * 3, [3.0] * 3], ms.bfloat16)
    rows, positions = ops.moe_token_permute(tokens, Tensor([5, 0, 3, 1, 2, 4], ms.int32))
    assert rows.float().asnumpy()[:, 0].tolist() == [7, 1, 2, 2, 3, 1] and rows.dtype == ms.bfloat16
    assert positions.asnumpy().tolist() == [5, 0, 3, 1, 2, 4] and positions.dtype == ms.int32


@pytest.mark.parametrize("num_out_tokens", [None, 0, 9, 12])
def test_there_and_back(num_out_tokens: int | None) -> None:
    chance = np.random.RandomState(0)
    tokens, experts = chance.randn(6, 4).astype(np.float32), chance.randint(0, 3, (6, 2)).astype(np.int64)
    weights = chance.rand(6, 2).astype(np.float32)

    def there_and_back(x: Tensor) -> Tensor:
        rows, indices = ops.moe_token_permute(x, Tensor(experts), num_out_tokens)
        return ops.moe_token_unpermute(rows, indices, Tensor(weights))

    rows, positions = ops.moe_token_permute(Tensor(tokens), Tensor(experts), num_out_tokens)
    order = sorted(range(12), key=lambda at: experts.reshape(-1)[at])
    np.testing.assert_array_equal(rows.asnumpy(), tokens[[at // 2 for at in order[: num_out_tokens or 12]]])
    is_there = (positions.asnumpy() < (num_out_tokens or 12)).reshape(6, 2)
    factor = (weights * is_there).sum(1, keepdims=True)
    np.testing.assert_allclose(there_and_back(Tensor(tokens)).asnumpy(), tokens * factor, rtol=1e-5)
    slope = ms.grad(lambda x: there_and_back(x).sum())(Tensor(tokens)).asnumpy()
    np.testing.assert_allclose(slope, np.broadcast_to(factor, (6, 4)), rtol=1e-5)


ROUTED = Tensor(np.array([[0.1, 0.2, 0.3], [0.2, 0.7, 0.8], [0.3, 0.3, 0.5]], np.float32))
EXPERTS = Tensor([[0, 1, 1], [2, 1, 1], [0, 0, 0]], ms.int32)


def test_routing_with_a_capacity() -> None:
    rows, positions, counts, before = ops.moe_init_routing_v2(ROUTED, EXPERTS, 3, 2, 3, 1, 0, True)
    x = ROUTED.asnumpy()
    np.testing.assert_array_equal(rows.asnumpy(), np.stack([np.stack(two) for two in ((x[0], x[2]), (x[0], x[0]), (x[1], x[0] * 0))]))
    assert positions.asnumpy().tolist() == [0, 2, 3, 4, -1, -1, 1, -1, -1]
    assert before.asnumpy().tolist() == [4, 4, 1] and counts.asnumpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(("active", "flag", "told"), [(0, 0, [0, 0, 0]), (0, 1, [4, 8, 9]), (5, 2, [4, 4, 1])])
def test_routing_of_all(active: int, flag: int, told: list[int]) -> None:
    rows, positions, counts, _ = ops.moe_init_routing_v2(ROUTED, EXPERTS, active, 0, 3, 0, flag, False)
    np.testing.assert_array_equal(rows.asnumpy(), ROUTED.asnumpy()[[0, 2, 2, 2, 0, 0, 1, 1, 1]][: active or 9])
    assert positions.asnumpy().tolist() == [0, 4, 5, 8, 6, 7, 1, 2, 3] and counts.asnumpy().tolist() == told


def test_what_does_not_fit() -> None:
    for call, message in (
        (lambda: ops.moe_token_permute(ROUTED, EXPERTS, None, True), r"moe_token_permute\(padded_mode=True\): expected False"),
        (lambda: ops.moe_token_permute(ROUTED, Tensor([1, 2])), r"expected tokens \(n, H\) and indices \(n,\) or \(n, k\)"),
        (lambda: ops.moe_token_unpermute(ROUTED, Tensor([0, 1, 2], ms.int32), None, True), r"expected padded_mode=False"),
        (lambda: ops.moe_init_routing_v2(ROUTED, EXPERTS, 0, 2, 2, 1, 0, False), r"expected numbers from 0 to 1, as expert_num=2"),
        (lambda: ops.moe_init_routing_v2(ROUTED, EXPERTS, 0, 2, 3, 2, 0, False), r"drop_pad_mode=2\): expected 0 or 1"),
        (lambda: ops.moe_init_routing_v2(ROUTED, Tensor([1]), 0, 2, 3, 1, 0, False), r"expected x \(n, H\) and expert_idx \(n, k\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_primitives() -> None:
    for primitive, function, arguments in (
        (MoeTokenPermute(), ops.moe_token_permute, (ROUTED, EXPERTS)),
        (MoeTokenUnpermute(), lambda *x: (ops.moe_token_unpermute(*x),), (ROUTED, Tensor([2, 0, 1], ms.int32))),
        (MoeInitRoutingV2(), ops.moe_init_routing_v2, (ROUTED, EXPERTS, 0, 0, 3, 0, 2, False)),
    ):
        result = primitive(*arguments)
        for tensor, expected in zip(result if isinstance(result, tuple) else (result,), function(*arguments), strict=True):
            np.testing.assert_array_equal(tensor.asnumpy(), expected.asnumpy())


def test_no_tokens_at_all() -> None:
    """An expert, or a process, may get none."""
    nothing, of_none = Tensor(np.zeros((0, 4), np.float32)), Tensor(np.zeros((0, 2), np.int32))
    rows, positions = ops.moe_token_permute(nothing, of_none)
    assert rows.shape == (0, 4) and positions.shape == (0,)
    assert ops.moe_token_unpermute(rows, positions, Tensor(np.zeros((0, 2), np.float32))).shape == (0, 4)
    result = ops.moe_token_unpermute(rows, Tensor([0, 1, 2, 3], ms.int32), Tensor(np.ones((2, 2), np.float32)))
    assert result.asnumpy().tolist() == [[0.0] * 4] * 2
    for mode in (0, 1):
        rows, positions, _, before = ops.moe_init_routing_v2(nothing, of_none, 0, 2, 3, mode, 0, True)
        assert rows.shape == ((3, 2, 4) if mode else (0, 4)) and positions.shape == (0,)
    assert before.asnumpy().tolist() == [0, 0, 0]
    assert ops.moe_init_routing_v2(ROUTED, EXPERTS, 0, 0, 3, 1, 0, True)[0].shape == (3, 0, 3)


def test_rows_at_minus_one_count_as_zeros() -> None:
    """That is where `moe_init_routing_v2` says that a token was dropped."""
    rows = Tensor(np.array([[1.0], [10.0], [100.0]], np.float32))
    result = ops.moe_token_unpermute(rows, Tensor([-1, 1, 0, -1], ms.int32), Tensor(np.ones((2, 2), np.float32)))
    assert result.asnumpy().tolist() == [[10.0], [1.0]]


@pytest.mark.parametrize("name, number", [("active_num", 0), ("expert_capacity", 0), ("expert_num", 1)])
def test_routing_takes_no_numbers_below(name: str, number: int) -> None:
    inputs = {"active_num": 0, "expert_capacity": 2, "expert_num": 3, name: number - 1}
    with pytest.raises(ValueError, match=rf"moe_init_routing_v2\({name}={number - 1}\): expected an int from {number}"):
        ops.moe_init_routing_v2(
            ROUTED, EXPERTS, **inputs, drop_pad_mode=1, expert_tokens_count_or_cumsum_flag=0, expert_tokens_before_capacity_flag=True,
        )
