"""Products with Jacobians use the forward pass of `vjp`: the same random numbers, counts and values."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

ONES = np.ones(64, np.float32)
FACTOR = [1.0]
CALLS: list[int] = []


def drop(x: Any) -> Any:
    return ops.dropout(x, 0.5, training=True)


def drop_and_double(x: Any) -> Any:
    return ops.dropout(x, 0.5, training=True), x * 2


@ms.jit
def drop_in_a_graph(x: Any) -> Any:
    return ops.dropout(x, 0.5, training=True)


@ms.jit
def product_in_a_graph(x: Any) -> Any:
    result, product = ms.vjp(drop, x)
    return result, product(x)


def sum_with_product(x: Any) -> Any:
    result, product = ms.vjp(drop, x)
    return (result * 100 + product(x)[0]).sum()


class Drop(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(p=0.5)
        self.drop.set_train()
        self.w = ms.Parameter(ms.Tensor(ONES), name="w")
        self.calls = 0

    def construct(self, x: Any) -> Any:
        self.calls += 1
        return self.drop(x * self.w)


def have_equal_masks(result: Any, gradient: Any) -> Any:
    first = gradient[0] if isinstance(gradient, (tuple, list)) else gradient
    return np.array_equal(result.asnumpy(), first.asnumpy())


@case()
def masks_of_dropout() -> Any:
    x, net, results = ms.Tensor(ONES), Drop(), {}
    result, product = ms.vjp(drop, x)
    results["function"] = [have_equal_masks(result, product(x)), have_equal_masks(result, product(x))]
    result, product, aux = ms.vjp(drop_and_double, x, has_aux=True)
    results["aux"] = [have_equal_masks(result, product(x)), np.array_equal(aux.asnumpy(), 2 * ONES)]

    def closure(x: Any) -> Any:
        return net(x) * 1

    result, product = ms.vjp(closure, x, weights=[net.w])
    by_input, by_weight = product(x)
    results["closure"] = [have_equal_masks(result, by_input), have_equal_masks(result, by_weight[0]), net.calls]
    result, product = ms.vjp(drop_in_a_graph, x)
    results["jit"] = [have_equal_masks(result, product(x)), have_equal_masks(*product_in_a_graph(x))]
    results["in a gradient"] = sorted(set(np.round(ms.grad(sum_with_product)(x).asnumpy()).tolist()))
    return {name: np.array(values) for name, values in results.items()}


def scaled(x: Any) -> Any:
    return x * x * FACTOR[0]


@case()
def values_of_the_call() -> Any:
    x, count = ms.Tensor([1.0, 2.0], ms.float32), ms.Parameter(ms.Tensor([0.0, 0.0], ms.float32), name="count")
    FACTOR[0] = 1.0
    _, product = ms.vjp(scaled, x)
    FACTOR[0] = 10.0
    results = {"first": product(x)[0].asnumpy(), "second": product(x)[0].asnumpy()}
    FACTOR[0] = 1.0

    def counted(x: Any) -> Any:
        CALLS.append(1)
        ops.assign_add(count, ops.ones_like(count))
        return x * count

    CALLS.clear()
    result, product = ms.vjp(counted, x)
    results["counted"] = np.stack([result.asnumpy(), product(x)[0].asnumpy(), count.asnumpy()])
    results["calls"] = np.array(len(CALLS))
    results["counted again"] = np.stack([product(x)[0].asnumpy(), count.asnumpy()])
    results["calls again"] = np.array(len(CALLS))
    return results
