"""Optimizer primitives for rows: the shapes that they refuse, as MindSpore 2.10 does."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor
from mindspore.ops import operations as P

RATE = [Tensor(0.1, ms.float32)] * 3
ADAM = [Tensor(value, ms.float32) for value in (0.9, 0.9, 0.1, 0.9, 0.9, 1e-8)]
OPERATORS: dict[str, tuple[Any, int, list[Tensor]]] = {
    "FusedSparseFtrl": (lambda: P.FusedSparseFtrl(0.001, 0.0, 0.0, -0.5), 3, []),
    "SparseApplyFtrl": (lambda: P.SparseApplyFtrl(0.001, 0.0, 0.0, -0.5), 3, []),
    "FusedSparseProximalAdagrad": (P.FusedSparseProximalAdagrad, 2, RATE),
    "SparseApplyAdagrad": (lambda: P.SparseApplyAdagrad(0.1), 2, []),
    "SparseApplyAdagradV2": (lambda: P.SparseApplyAdagradV2(0.1, 1e-6), 2, []),
    "FusedSparseAdam": (P.FusedSparseAdam, 3, ADAM),
    "FusedSparseLazyAdam": (P.FusedSparseLazyAdam, 3, ADAM),
}


def apply(name: str, shapes: list[tuple[int, ...]], gradient: tuple[int, ...], indices: Any) -> Any:
    build, count, numbers = OPERATORS[name]
    states = [Parameter(Tensor(np.ones(shape, np.float32)), name=f"state{i}") for i, shape in enumerate(shapes[:count])]
    return build()(*states, *numbers, Tensor(np.ones(gradient, np.float32)), Tensor(indices, ms.int32))[0]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("shapes, gradient, indices, text", [
    ([(3, 3), (3, 2), (3, 3)], (2, 3), [0, 1], "the var shape must be equal to the shapes of the states"),
    ([(3, 3)] * 3, (3, 3), [0, 1], r"the grad_shape\[0\] must be equal to indices_shape\[0\] which is 2"),
    ([(3, 3)] * 3, (2, 2), [0, 1], r"the var_shape\[1:\] must be equal to grad_shape\[1:\]"),
    ([(3, 3)] * 3, (1, 3), [[0]], "the indices rank must be equal to 1, but got 2"),
    ([(3, 3)] * 3, (1, 3), 0, "the indices rank must be equal to 1, but got 0"),
], ids=["states", "count", "columns", "matrix", "scalar"])
def test_shapes_that_do_not_fit(name: str, shapes: Any, gradient: tuple[int, ...], indices: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        apply(name, shapes, gradient, indices)


@pytest.mark.parametrize("name", OPERATORS)
def test_shapes_that_fit(name: str) -> None:
    result = apply(name, [(3, 3)] * 3, (2, 3), [0, 1]).asnumpy()
    assert result.shape == (3, 3) and (result[:2] != 1).all()
