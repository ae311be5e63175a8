"""Forms and dtypes that 2.10 takes on the CPU, measured there: integers and truth values for floats, numbers before Tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import COOTensor, Tensor, mint, nn, ops

INTEGERS = Tensor([[1, 2, 3]], ms.int32)
SMALL = Tensor([1, 0], ms.uint8)
TRUTH = Tensor([True, False])
HALF = Tensor([3.0, 4.0], ms.float16)
DENSE = Tensor([[1.0, 2.0], [3.0, 4.0]])


def _sparse() -> Any:
    return COOTensor(Tensor([[0, 1], [1, 0]], ms.int64), Tensor([1.0, 2.0]), (2, 2))


FORMS: dict[str, tuple[Callable[[], Any], str, Any]] = {
    "a number before the Tensor": (lambda: ops.greater(2, INTEGERS), "Bool", [[True, False, False]]),
    "a number before the Tensor of mint": (lambda: mint.le(2, INTEGERS), "Bool", [[False, True, True]]),
    "clip by a float": (lambda: ops.clip(INTEGERS, 2.5), "Float32", [[2.5, 2.5, 3.0]]),
    "clamp by a Tensor of floats": (lambda: ops.clamp(INTEGERS, Tensor(1.5)), "Float32", [[1.5, 2.0, 3.0]]),
    "round of integers": (lambda: mint.round(INTEGERS), "Int32", [[1, 2, 3]]),
    "frac of integers": (lambda: ops.frac(INTEGERS), "Int32", [[0, 0, 0]]),
    "abs of truth values": (lambda: ops.abs(TRUTH), "Bool", [True, False]),
    "all of bytes": (lambda: ops.all(SMALL), "Bool", False),
    "nansum of integers": (lambda: mint.nansum(INTEGERS), "Int32", 6),
    "trace of integers": (lambda: ops.trace(Tensor([[1, 2], [3, 4]], ms.int32)), "Int32", 5),
    "argmax of truth values": (lambda: ops.argmax(TRUTH), "Int64", 0),
    "argmin of all keeps no axes": (lambda: ops.argmin(DENSE, None, True), "Int32", 0),
    "the largest of all, and 0": (lambda: DENSE.argmax_with_value(None)[0], "Float32", 4.0),
    "prod along axes": (lambda: ops.prod(INTEGERS, (0, 1)), "Int32", 6),
    "a norm of integers": (lambda: mint.linalg.norm(Tensor([3, 4])), "Float32", 5.0),
    "a norm of integers of ops": (lambda: ops.norm(Tensor([3, 4])), "Float32", 5.0),
    "mse_loss of integers": (lambda: ops.mse_loss(Tensor([1, 2]), Tensor([2, 4])), "Float32", 2.5),
    "leaky_relu of integers": (lambda: ops.leaky_relu(Tensor([-10, 3], ms.int32)), "Int32", [-2, 3]),
    "hardtanh of bytes": (lambda: ops.hardtanh(Tensor([0, 5], ms.uint8)), "UInt8", [0, 1]),
    "cov of halves": (lambda: ops.cov(HALF), "Float32", 0.5),
    "irfft of halves": (lambda: ops.irfft(HALF), "Float32", [3.5, -0.5]),
    "cross of two sizes of float": (lambda: ops.cross(Tensor([1.0, 0, 0]), Tensor([0, 1.0, 0], ms.float16)), "Float32", [0, 0, 1]),
    "softmax along no axis": (lambda: mint.softmax(Tensor([0.0, 0.0]), None), "Float32", [0.5, 0.5]),
    "max with a number": (lambda: mint.max(Tensor([1.0, 3.0]), 2.5), "Float32", [2.5, 3.0]),
    "t of more axes": (lambda: mint.t(Tensor([[[1, 2]]], ms.int32)), "Int32", [[[1, 2]]]),
    "one vector's combinations": (lambda: ops.cartesian_prod(Tensor([1, 2])), "Int64", [[1], [2]]),
    "uneven parts": (lambda: ops.hsplit(INTEGERS, 2)[1], "Int32", [[3]]),
    "one Tensor clipped": (lambda: ops.clip_by_global_norm(Tensor([3.0, 4.0]), 1.0), "Float32", [0.6, 0.8]),
    "integers clipped": (lambda: ops.clip_by_global_norm((Tensor([30, 40]),), 25.0)[0], "Int64", [15, 20]),
    "a Tensor and a sparse one": (lambda: DENSE + _sparse(), "Float32", [[1.0, 3.0], [5.0, 4.0]]),
    "a Tensor less a sparse one": (lambda: DENSE - _sparse(), "Float32", [[1.0, 1.0], [1.0, 4.0]]),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form(name: str) -> None:
    call, dtype, values = FORMS[name]
    result = call()
    assert str(result.dtype) == dtype
    assert result.shape == np.shape(values) and np.allclose(result.asnumpy(), values, rtol=1e-6)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Tensor([1, 2], shape=(2,)), ValueError, "expected no shape with data"),
    (lambda: Tensor(1, const_arg=3), TypeError, r"Tensor\(const_arg=3\): expected a bool, got int"),
    (lambda: Tensor([1.0]).reshape("a"), TypeError, "expected ints as shape, got str 'a'"),
    (lambda: Tensor([1.0]).flatten("X"), ValueError, r"flatten\(order='X'\): expected 'C' or 'F'"),
    (lambda: Tensor([1.0, 2.0]).itemset(3.0), IndexError, "expected an index, or a Tensor of one element"),
    (lambda: ops.clip(INTEGERS, TRUTH), ValueError, "must not be bool"),
    (lambda: ms.Parameter(Tensor(1.0), layerwise_parallel="x"), TypeError, "layerwise_parallel='x': expected a bool"),
    (lambda: setattr(ms.Parameter(Tensor(1.0)), "comm_fusion", -1), TypeError, "comm_fusion=-1: expected an int from 0 on"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_what_is_refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_an_empty_name_is_none() -> None:
    assert ms.Parameter(Tensor(1.0), name="").name.startswith("Parameter#") and Tensor(1).const_arg is False


TRUE_OR_NOT = Tensor([[True, False], [True, True]])
REFUSED: dict[str, tuple[Any, str]] = {
    "Tensor.mean": (lambda: TRUE_OR_NOT.mean(), "expected numbers, got truth values."),
    "ops.mean": (lambda: ops.mean(TRUE_OR_NOT, 0), "expected numbers, got truth values."),
    "ReduceMean": (lambda: ops.ReduceMean()(TRUE_OR_NOT), "expected numbers, got truth values."),
    "mint.mean": (lambda: mint.mean(TRUE_OR_NOT), "expected numbers, got truth values."),
    "AvgPool2d": (lambda: nn.AvgPool2d(2)(Tensor(np.ones((1, 1, 2, 2), np.int64))), "expected floating-point numbers, got Int64."),
    "addcdiv": (lambda: ops.addcdiv(*[Tensor([3])] * 3, 0.5), "expected an integer as value, because the Tensors have integers."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_results_that_would_mean_nothing_are_refused(name: str, mode: int) -> None:
    call, message = REFUSED[name]
    with pytest.raises(TypeError) as caught:
        call()
    assert f"): {message}\n\nhint: cast" in str(caught.value)
