"""Products and convolutions of 16 bits on a CPU without instructions for them: float32 inside, equal dtypes outside."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, mint, nn, ops
from torch.utils._python_dispatch import TorchDispatchMode

from torchspore.context import effects
from torchspore.engine.formulas import half_precision

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


class _Products(TorchDispatchMode):
    """Collects the products and convolutions that run, with the dtypes of their operands."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: dict[str, set[torch.dtype]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._schema.name.removeprefix("aten::")
        if name in ("mm", "addmm", "bmm", "baddbmm") or "convolution" in name:
            self.dtypes.setdefault(name, set()).update(t.dtype for t in args if isinstance(t, torch.Tensor))
        return function(*args, **(kwargs or {}))


LAYERS = {
    "convolution": (lambda: nn.Conv2d(4, 4, 3, has_bias=False), (2, 4, 9, 9)),
    "transposed convolution": (lambda: nn.Conv2dTranspose(4, 4, 3), (2, 4, 9, 9)),
    "convolution of a sequence": (lambda: nn.Conv1d(4, 4, 3), (2, 4, 9)), "product": (lambda: nn.Dense(4, 5), (3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_products_run_in_float32_where_the_cpu_has_no_instructions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's own kernels of float16 take 4 to 60 times as long there."""
    monkeypatch.setattr(half_precision, "is_fast", lambda dtype: False)
    create, shape = LAYERS[name]
    layer, x = create().to_float(ms.float16), Tensor(np.ones(shape, np.float32))
    step = ms.value_and_grad(lambda x: layer(x).astype(ms.float32).sum(), 0, layer.trainable_params())
    with _Products() as products:
        value, gradients = step(x)
    assert products.dtypes and all(dtypes == {torch.float32} for dtypes in products.dtypes.values()), products.dtypes
    assert gradients[0].dtype == ms.float32 and np.isfinite(float(value))


CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "conv1d": (ops.conv1d, (2, 4, 9), (6, 4, 3)),
    "conv2d": (ops.conv2d, (2, 4, 7, 7), (6, 4, 3, 3)),
    "conv3d": (ops.conv3d, (1, 2, 5, 5, 5), (3, 2, 3, 3, 3)),
    "mint": (ms.mint.nn.functional.conv2d, (2, 4, 7, 7), (6, 4, 3, 3)),
    "transposed": (ms.mint.nn.functional.conv_transpose2d, (2, 4, 5, 5), (4, 6, 3, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_with_gradients_run_in_float32(name: str, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's gradients of float16 convolutions take 20 times as long, also on a CPU with instructions for float16."""
    monkeypatch.setattr(half_precision, "is_fast", lambda dtype: True)
    compute, *shapes = CONVOLUTIONS[name]
    random = np.random.RandomState(1)
    x, weight = (Tensor(random.randn(*shape).astype(np.float16)) for shape in shapes)
    with effects.fresh():
        results = ms.value_and_grad(lambda x, weight: compute(x, weight).sum(), (0, 1))(x, weight)
        assert "Float16" in effects.notes()["precision"][0]
    seen: list[torch.dtype] = []
    with _Watching(seen):
        gradients = ms.value_and_grad(lambda x, weight: compute(x, weight).sum(), (0, 1))(x, weight)[1]
    assert seen and set(seen) == {torch.float32}
    expected = ms.grad(lambda x, weight: compute(x, weight).sum(), (0, 1))(x.astype(ms.float32), weight.astype(ms.float32))
    for gradient, first, exact in zip(gradients, results[1], expected):
        assert gradient.dtype == ms.float16 and np.array_equal(gradient.asnumpy(), first.asnumpy())
        np.testing.assert_allclose(gradient.asnumpy(), exact.asnumpy(), rtol=2e-3, atol=2e-3)


class _Watching(TorchDispatchMode):
    """Records the dtypes that gradients of convolutions compute in."""

    def __init__(self, seen: list[torch.dtype]) -> None:
        super().__init__()
        self._seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.convolution_backward.default:
            self._seen.append(args[0].dtype)
        return func(*args, **(kwargs or {}))
