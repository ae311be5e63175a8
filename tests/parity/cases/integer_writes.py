"""Gradients by integers that a program writes into, and second derivatives through casts to integers."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case


def slices(x: Any) -> Any:
    y = x * 2
    y[1:] = x[:2] * x[:2]
    return (y * x).sum()


def number(x: Any) -> Any:
    y = x * 2
    y[0] = 5
    return (y * x).sum()


def fraction(x: Any) -> Any:
    y = x * 2
    y[0] = 2.7
    return (y * x).sum()


def augmented(x: Any) -> Any:
    y = x * 1
    y[0:1] += 5
    y[1] *= 3
    return (y * x).sum()


def into_zeros(x: Any) -> Any:
    y = ops.zeros_like(x)
    y[1] = x[0]
    y[2] = x[1] * x[2]
    return (y * x).sum()


def masked(x: Any) -> Any:
    y = x * 2
    y[x > 2] = x[0]
    return (y * x).sum()


def at_indexes(x: Any) -> Any:
    y = x * 2
    y[ms.Tensor([0, 2])] = x[1:]
    return (y * x).sum()


def in_a_loop(x: Any) -> Any:
    y = x * 2
    for i in range(3):
        y[i] = y[i] * x[i]
    return y.sum()


def in_rows(x: Any) -> Any:
    y = ops.stack((x, x * 2))
    y[0] = x * x
    y[:, 1] = 1
    return (y * x).sum()


def read_before(x: Any) -> Any:
    y = x * 2
    z = y + 1
    y[0] = 5
    return (z * y * x).sum()


def exchanged(x: Any) -> Any:
    y = x * 2
    y[0] = y[1]
    y[1] = y[2]
    y[2] = y[0]
    return (y * x).sum()


def in_a_view(x: Any) -> Any:
    y = (x * 2).reshape(3, 1)
    v = y.view(1, 3)
    v[0, 1] = x[2]
    return (v * x).sum()


def scattered(x: Any) -> Any:
    at = ms.Tensor([0, 2])
    y = ops.tensor_scatter_elements(x * 2, at, x[1:] * x[1:], 0)
    z = ops.tensor_scatter_add(x * 2, at.reshape(2, 1), x[1:] * x[1:])
    return (y * z * x).sum() + ops.scatter_nd(at.reshape(2, 1), x[1:] * x[1:], (3,)).sum()


def product_of_matrices(x: Any) -> Any:
    matrix = ops.cast(ms.Tensor(np.arange(9).reshape(3, 3)), x.dtype)
    return ops.matmul(x.reshape(1, 3), matrix).sum()


def second_of_slices(x: Any) -> Any:
    return ms.grad(slices)(x).sum()


def second_of_reads(x: Any) -> Any:
    return ms.grad(read_before)(x).sum()


WRITES = [
    slices, number, fraction, augmented, into_zeros, masked, at_indexes, in_a_loop, in_rows, read_before, exchanged, in_a_view, scattered,
    product_of_matrices, second_of_slices, second_of_reads,
]


@case(rtol=1e-6, graph=True)
def written() -> Any:
    inputs = [ms.Tensor(np.array([1, 2, 3], dtype)) for dtype in (np.int32, np.float32)]
    return {f"{function.__name__} {x.dtype}": ms.grad(function)(x).asnumpy() for function in WRITES for x in inputs}


def mixed_product(x: Any) -> Any:
    return (x.astype(ms.int32) * x).sum()


def mixed_products(x: Any) -> Any:
    y = x.astype(ms.int32)
    return (y * x * y).sum()


def mixed_quotient(x: Any) -> Any:
    return (x.astype(ms.int32) / x).sum()


def mixed_power(x: Any) -> Any:
    return (x ** x.astype(ms.int32)).sum()


def mixed_write(x: Any) -> Any:
    y = x * 1.0
    y[0:1] = x.astype(ms.int32)[1:2]
    return (y * x).sum()


def mixed_sum(x: Any) -> Any:
    y = x * 1.0
    y += x.astype(ms.int32)
    return (y * x).sum()


def written_cast(x: Any) -> Any:
    y = x.astype(ms.int32) * 2
    y[0] = 5
    return (y * x).sum()


MIXED = [mixed_product, mixed_products, mixed_quotient, mixed_power, mixed_write, mixed_sum, written_cast]


@case(rtol=1e-5, graph=True)
def second_derivatives_through_casts() -> Any:
    x = ms.Tensor(np.array([1.5, 2.5, 3.5], np.float32))
    results = {}
    for function in MIXED:
        def derivative(x: Any, function: Any = function) -> Any:
            return ms.grad(function)(x).sum()

        results[function.__name__] = ms.grad(function)(x).asnumpy()
        results[f"second of {function.__name__}"] = ms.grad(derivative)(x).asnumpy()
    return results


def write_value(x: Any, value: Any) -> Any:
    y = x * 2
    y[0] = value
    return (y * x).sum()


def write_masked(x: Any, value: Any) -> Any:
    y = x * 2
    y[x > 1] = value * 1.5
    return (y * x).sum()


@case(rtol=1e-6, graph=True)
def values_of_other_dtypes() -> Any:
    integers, real = ms.Tensor(np.array([3, 2], np.int32)), ms.Tensor(np.array([1.5, 2.5], np.float32))
    gradients = {
        "real": ms.grad(write_value, (0, 1))(integers, ms.Tensor(2.7)), "integer": ms.grad(write_value, (0, 1))(real, ms.Tensor(2)),
        "masked": ms.grad(write_masked, (0, 1))(integers, ms.Tensor(2.7)),
    }
    return {f"{name} {at}": gradient.asnumpy() for name, pair in gradients.items() for at, gradient in enumerate(pair)}


def by_number(x: Any) -> Any:
    return (x / 2).sum()


def product_by_number(x: Any) -> Any:
    return (x * 3 / 2).sum()


def by_integers(x: Any) -> Any:
    return (x / ms.Tensor([2, 4], ms.int32)).sum()


def by_real_numbers(x: Any) -> Any:
    return (x / ms.Tensor([2.0, 4.0], ms.float32)).sum()


def number_by(x: Any) -> Any:
    return (2 / x).sum()


def beside(x: Any, y: Any) -> Any:
    return (x / 2).sum() + (y * y).sum()


@case(rtol=1e-6, graph=True)
def quotients() -> Any:
    x = ms.Tensor(np.array([1, 2], np.int32))
    gradients = {f.__name__: ms.grad(f)(x) for f in (by_number, product_by_number, by_integers, by_real_numbers, number_by)}
    gradients["first"], gradients["second"] = ms.grad(beside, (0, 1))(x, x * 3)
    return {name: np.append(gradient.asnumpy(), str(gradient.dtype) == "Float32") for name, gradient in gradients.items()}
