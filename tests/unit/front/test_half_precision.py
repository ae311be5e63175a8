"""Products and convolutions of 16 bits on a CPU without instructions for them: float32 inside, equal dtypes outside."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops

random = np.random.RandomState(0)
FORMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "matmul": (ops.matmul, ((5, 40), (40, 6))), "bmm": (ops.bmm, ((2, 5, 40), (2, 40, 6))), "mm": (ops.mm, ((5, 40), (40, 6))),
    "MatMul": (ops.MatMul(transpose_b=True), ((5, 40), (6, 40))), "BatchMatMul": (ops.BatchMatMul(), ((2, 5, 40), (2, 40, 6))),
    "dense": (ops.dense, ((5, 40), (6, 40), (6,))), "linear": (mint.nn.functional.linear, ((5, 40), (6, 40))),
    "addmm": (ops.addmm, ((5, 6), (5, 40), (40, 6))), "einsum": (lambda a, b: ops.einsum("ij,jk->ik", a, b), ((5, 40), (40, 6))),
    "tensor_dot": (lambda a, b: ops.tensor_dot(a, b, 1), ((5, 40), (40, 6))),
    "conv1d": (ops.conv1d, ((2, 8, 20), (4, 8, 3))), "conv2d": (ops.conv2d, ((2, 8, 9, 9), (4, 8, 3, 3))),
    "conv3d": (ops.conv3d, ((1, 4, 5, 5, 5), (2, 4, 3, 3, 3))),
    "conv_transpose2d": (mint.nn.functional.conv_transpose2d, ((2, 8, 5, 5), (8, 3, 3, 3))),
}


@pytest.mark.parametrize("dtype", (ms.float16, ms.bfloat16))
@pytest.mark.parametrize("name", FORMS)
def test_results_are_those_of_float32_rounded(name: str, dtype: Any, mode: int) -> None:
    function, shapes = FORMS[name]
    narrow = [Tensor(random.randn(*shape).astype(np.float32)).astype(dtype) for shape in shapes]
    wide = [t.astype(ms.float32) for t in narrow]
    out = function(*narrow)
    assert out.dtype == dtype
    expected = function(*wide).astype(dtype).astype(ms.float32).asnumpy()
    rtol = 2e-3 if dtype == ms.float16 else 2e-2
    np.testing.assert_allclose(out.astype(ms.float32).asnumpy(), expected, rtol=rtol, atol=rtol)
    for got, exact in zip(ms.grad(function, (0, 1))(*narrow), ms.grad(function, (0, 1))(*wide)):
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(ms.float32).asnumpy(), exact.asnumpy(), rtol=rtol, atol=10 * rtol)


@pytest.mark.parametrize("kind", (nn.LSTM, nn.GRU, nn.RNN))
def test_recurrent_layers_keep_their_dtype(kind: Any) -> None:
    layer = kind(8, 6, 2, bidirectional=True)
    x = Tensor(random.randn(5, 3, 8).astype(np.float32))
    expected = layer(x)[0].asnumpy()
    out = layer.to_float(ms.float16)(x.astype(ms.float16))[0]
    assert out.dtype == ms.float16
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-2, atol=5e-3)


def test_mixed_operands_are_refused_as_before() -> None:
    with pytest.raises(TypeError):
        ops.matmul(Tensor(np.ones((2, 2)), ms.float16), Tensor(np.ones((2, 2)), ms.float32))


def test_a_step_in_float16_takes_about_as_long_as_in_float32() -> None:
    """The ratio was 4 to 19; a loose bound, as other processes may run beside the test."""
    def measure(dtype: Any) -> float:
        layer = nn.Conv2d(32, 32, 3, has_bias=False).to_float(dtype)
        x = Tensor(np.ones((2, 32, 28, 28), np.float32))
        step = ms.value_and_grad(lambda x: layer(x).astype(ms.float32).sum(), None, layer.trainable_params())
        times = []
        for _ in range(6):
            begin = time.perf_counter()
            step(x)[1][0].asnumpy()
            times.append(time.perf_counter() - begin)
        return min(times[1:])

    assert measure(ms.float16) < 3 * measure(ms.float32)
