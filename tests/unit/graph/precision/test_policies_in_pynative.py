"""`precision_mode` and `enable_auto_mixed_precision` in PyNative: operators compute in another dtype, and `explain` says so."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from torchspore.cli import explain
from torchspore.context.store import STORE
from torchspore.engine.execution import precision

FACTORS = np.random.RandomState(0).randn(2, 8, 8).astype(np.float32)
A, B = (Tensor(factor) for factor in FACTORS)


@pytest.fixture(autouse=True)
def pynative() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, ascend_config={"precision_mode": "must_keep_origin_dtype"}, enable_auto_mixed_precision=False)
    assert precision._policy_options == set()
    STORE.reset("context")


def rounded_product(dtype: Any) -> Any:
    return ops.matmul(A.astype(dtype), B.astype(dtype)).astype(ms.float32).asnumpy()


def set_mode(mode: str) -> None:
    ms.set_context(ascend_config={"precision_mode": mode})


@pytest.mark.parametrize(("mode", "dtype"), [
    ("allow_fp32_to_fp16", ms.float16), ("allow_fp32_to_bf16", ms.bfloat16), ("allow_mix_precision", ms.float16),
    ("allow_mix_precision_bf16", ms.bfloat16), ("force_fp16", ms.float16), ("must_keep_origin_dtype", ms.float32),
])
def test_products_are_those_of_the_dtype(mode: str, dtype: Any) -> None:
    expected = rounded_product(dtype)
    set_mode(mode)
    product = ops.matmul(A, B)
    assert product.dtype == ms.float32
    np.testing.assert_array_equal(product.asnumpy(), expected)


def test_force_fp32_computes_products_of_16_bits_in_float32() -> None:
    half_a, half_b = A.astype(ms.float16), B.astype(ms.float16)
    expected = ops.matmul(half_a.astype(ms.float32), half_b.astype(ms.float32)).astype(ms.float16).asnumpy()
    set_mode("force_fp32")
    np.testing.assert_array_equal(ops.matmul(half_a, half_b).asnumpy(), expected)


@pytest.mark.parametrize("mode", ["allow_fp32_to_fp16", "allow_fp32_to_bf16", "allow_mix_precision"])
def test_a_training_step_has_the_losses_of_graph_mode(mode: str) -> None:
    def losses(graph: int, mode: str = mode) -> list[float]:
        ms.set_context(mode=graph, ascend_config={"precision_mode": mode})
        net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 8))
        for number, parameter in enumerate(net.get_parameters()):
            parameter.set_data(Tensor(np.random.RandomState(number).randn(*parameter.shape).astype(np.float32)))
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2)).set_train()
        return [float(step(A, B)) for _ in range(4)]

    pynative, graph = losses(ms.PYNATIVE_MODE), losses(ms.GRAPH_MODE)
    np.testing.assert_allclose(pynative, graph, rtol=1e-6)
    assert pynative != losses(ms.PYNATIVE_MODE, "must_keep_origin_dtype")


def test_other_dtypes_state_and_writes_are_unchanged() -> None:
    double = ops.matmul(A.astype(ms.float64), B.astype(ms.float64)).asnumpy()
    parameter = Parameter(A.copy(), name="p")
    set_mode("force_fp16")
    np.testing.assert_array_equal(ops.matmul(A.astype(ms.float64), B.astype(ms.float64)).asnumpy(), double)
    ops.assign_add(parameter, B)
    np.testing.assert_array_equal(parameter.asnumpy(), FACTORS[0] + FACTORS[1])
    assert (ops.add(Tensor(1.0), Tensor(1e-4)).asnumpy() == np.float32(1) + np.float32(1e-4)).all()      # numbers keep their dtype
    assert ops.inverse(A).dtype == ms.float32                                                     # no kernel in float16


def test_auto_mixed_precision_and_what_explain_says() -> None:
    expected = rounded_product(ms.float16)
    ms.set_context(enable_auto_mixed_precision=True)
    np.testing.assert_array_equal(ops.matmul(A, B).asnumpy(), expected)
    assert [row[3] for row in explain.rows() if row[0] == "enable_auto_mixed_precision"] == [
        "applied: PyNative casts the inputs of operators as the policy states, and casts their results back",
    ]
