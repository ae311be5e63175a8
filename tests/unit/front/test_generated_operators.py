"""The generated operators that MindSpore has no kernel for on the CPU: the same as what `mint` and Tensors offer, or as written here."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import mint
from mindspore.mint.nn import functional
from mindspore.ops import auto_generate as generated
from mindspore.ops.auto_generate.gen_ops_def import acos_ext
from mindspore.ops.auto_generate.gen_ops_prim import embedding_op, index_add_ext_op

X = np.linspace(0.1, 0.9, 24).astype(np.float32)


def x(*shape: int) -> Any:
    return ms.Tensor(X[: int(np.prod(shape))].reshape(shape))


def equal(result: Any, expected: Any) -> bool:
    if isinstance(expected, (tuple, list)):
        return len(result) == len(expected) and all(map(equal, result, expected))
    return bool(np.allclose(result.asnumpy(), expected.asnumpy(), equal_nan=True))


def test_each_is_what_it_is_called_after() -> None:
    for output, expected in (
        (generated.AcosExt()(x(3)), mint.acos(x(3))), (acos_ext(x(3)), mint.acos(x(3))),
        (generated.RepeatInterleaveInt()(x(3), 2), mint.repeat_interleave(x(3), 2)),
        (generated.Std()(x(2, 3), 1, 0), mint.std(x(2, 3), dim=1, correction=0)), (generated.Repeat()(x(3), (2,)), mint.tile(x(3), (2,))),
        (generated.Conv2DExt()(x(1, 1, 4, 4), x(1, 1, 2, 2), None, 1, 1), functional.conv2d(x(1, 1, 4, 4), x(1, 1, 2, 2), padding=1)),
        (embedding_op(ms.Tensor([0, 2]), x(4, 3)), functional.embedding(ms.Tensor([0, 2]), x(4, 3))),
        (index_add_ext_op(x(3, 2), 0, ms.Tensor([0, 2]), x(2, 2), 2), mint.index_add(x(3, 2), 0, ms.Tensor([0, 2]), x(2, 2), alpha=2)),
        (generated.MedianDim()(x(2, 3)), mint.median(x(2, 3), -1)), (generated.Swiglu()(x(2, 4), 1), ms.ops.swiglu(x(2, 4), 1)),
        (generated.ConstantPadND()(x(3), (1, 2), 3.0), ms.Tensor([3, *X[:3], 3, 3], ms.float32)),
        (generated.ReflectionPad1D()(x(1, 3), (1, 0)), ms.Tensor([[X[1], *X[:3]]])),
        (generated.ReplicationPad2D()(x(1, 1, 2), (1, 0, 0, 0)), ms.Tensor([[[X[0], *X[:2]]]])),
        (
            generated.UpsampleBilinear2D()(x(1, 1, 2, 2), (3, 3), None, True),
            functional.interpolate(x(1, 1, 2, 2), (3, 3), None, "bilinear", True),
        ),
        (generated.UpsampleLinear1D()(x(1, 2, 4), (8,)), functional.interpolate(x(1, 2, 4), (8,), None, "linear", False)),
    ):
        assert equal(output, expected)


def test_in_place() -> None:
    for operator, arguments, expected in (
        (generated.InplaceAddsExt(), (2.0, 3), X[:3] + 6), (generated.InplaceSubExt(), (x(3), 2), -X[:3]),
        (generated.InplaceExp(), (), np.exp(X[:3])),
        (generated.InplaceDivMods(), (0.3, "floor"), X[:3] // np.float32(0.3)),
        (generated.InplaceClampScalar(), (0.12, None), X[:3].clip(0.12)),
        (generated.InplaceFillScalar(), (2.0,), np.full(3, 2.0)), (generated.InplaceZero(), (), np.zeros(3)),
    ):
        input_tensor = x(3)
        operator(input_tensor, *arguments)
        assert np.allclose(input_tensor.asnumpy(), expected), operator.name


def test_norms_give_what_their_gradients_need() -> None:
    out, mean, spread = generated.LayerNormExt()(x(2, 4), (4,))
    rows = X[:8].reshape(2, 4)
    assert np.allclose(mean.asnumpy(), rows.mean(1, keepdims=True))
    assert np.allclose(out.asnumpy(), (rows - mean.asnumpy()) * spread.asnumpy())
    with pytest.raises(ValueError, match=r"expected channels on axis 1 that 3 groups divide, got shape \(2, 4\)"):
        generated.GroupNorm()(x(2, 4), 3)


def test_a_class_says_its_name_and_refuses_what_it_does_not_take() -> None:
    assert generated.AddExt().name == "AddExt" and type(generated.add_ext_op) is generated.AddExt
    with pytest.raises(TypeError, match=r"AddExt\(1\): expected AddExt\(\)"):
        generated.AddExt(1)


def test_swiglu_grad_is_the_gradient_of_swiglu() -> None:
    operand = ms.Tensor(np.random.RandomState(0).randn(3, 8, 2).astype(np.float32))
    for dim, shape in ((1, (3, 4, 2)), (-1, (3, 8, 1))):
        upstream = ms.Tensor(np.random.RandomState(1).randn(*shape).astype(np.float32))
        expected = ms.grad(lambda value, dim=dim, upstream=upstream: (generated.swiglu(value, dim) * upstream).sum())(operand)
        for gradient in (generated.SwigluGrad()(upstream, operand, dim), generated.swiglu_grad(upstream, operand, dim)):
            np.testing.assert_allclose(gradient.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
    expected_error = r"expected a gradient of one half of the input along axis 1, got shapes \(3, 8, 1\) and \(3, 8, 2\)"
    with pytest.raises(ValueError, match=expected_error):
        generated.swiglu_grad(upstream, operand, 1)
