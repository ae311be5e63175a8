"""Gradients by integers, and through casts to integers and truth values: MindSpore's Cast passes them on, cut to whole numbers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

KINDS = ("int8", "int16", "int32", "int64", "uint8")
INTEGER_OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * 2, "square": lambda x: x * x, "power": lambda x: x**3, "difference": lambda x: 5 - x,
    "negative": lambda x: -x, "sum": lambda x: (x * x).sum(), "product of all": lambda x: x.prod(), "running sum": lambda x: x.cumsum(0),
    "element": lambda x: x[0] * 3,
    "rounding division": lambda x: x // 2, "remainder": lambda x: x % 2, "division": lambda x: x / 2,
    "choice": lambda x: ops.where(x > 1, x * 4, x), "maximum": lambda x: ops.maximum(x, 2), "minimum": lambda x: ops.minimum(x, 2) * 2,
    "clamped": lambda x: ops.clamp(x, 2, 3) * 2, "in a row": lambda x: ops.concat([x, x * 2]), "stacked": lambda x: ops.stack([x, x * 2]),
    "tiled": lambda x: ops.tile(x, (2,)), "comparison": lambda x: (x > 1).astype(ms.int32) * x, "bits": lambda x: ops.bitwise_and(x, 1) * 2,
    "as real numbers": lambda x: x.astype(ms.float32) * 2.7, "mean": lambda x: x.astype(ms.float32).mean(),
    "twice": lambda x: x.astype(ms.float32) * 1.5 + x.astype(ms.float32) * 1.5, "root": lambda x: ops.sqrt(x.astype(ms.float32)),
    "wider": lambda x: x.astype(ms.int64) * 3, "stopped": lambda x: ops.stop_gradient(x) * x, "second": ms.grad(lambda x: x * x * x),
    "index": lambda x: ops.gather(ms.Tensor([1.5, 2.5, 3.5]), x - 1, 0),
    "one hot": lambda x: ops.one_hot(x, 4, ms.Tensor(1.0), ms.Tensor(0.0)),
    "there and back": lambda x: (x.astype(ms.float32) * 1.5).astype(ms.int32) * 2,
}
REAL: dict[str, Callable[[Any], Any]] = {
    "cast": lambda x: x.astype(ms.int32) * 2, "fraction": lambda x: x - x.astype(ms.int32).astype(ms.float32),
    "method": lambda x: x.int() * 2,
    "and back": lambda x: x.astype(ms.int32).astype(ms.float32) * 2.5, "truth": lambda x: x.bool().astype(ms.float32) * 3,
    "beside": lambda x: x * ops.cast(x * 2.3, ms.int32), "index": lambda x: ops.gather(x, ops.cast(x, ms.int32) - 1, 0),
    "floor": lambda x: ops.floor(x).astype(ms.int64) * x, "chain": lambda x: x.astype(ms.float16).astype(ms.int8).astype(ms.float32) * 3,
    "comparison": lambda x: (x > 2).astype(ms.float32) * x, "type_as": lambda x: x.type_as(ms.Tensor([1])) * 2,
}


def values_and_dtype(gradient: Any) -> Any:
    return np.append(gradient.asnumpy().astype(np.float64).reshape(-1), str(gradient.dtype) == "Float32")


@case(rtol=1e-6)
def by_integers() -> Any:
    x = ms.Tensor(np.array([1, 2, 3], np.int32))
    return {name: values_and_dtype(ms.grad(function)(x)) for name, function in INTEGER_OPERATIONS.items()}


@case(rtol=1e-6)
def by_each_kind_of_integers() -> Any:
    return {kind: ms.grad(lambda x: x * x)(ms.Tensor(np.array([1, 2, 3], kind))).asnumpy() for kind in KINDS}


@case(rtol=1e-6)
def through_casts() -> Any:
    x = ms.Tensor(np.array([1.5, 2.5, 3.5], np.float32))
    return {name: values_and_dtype(ms.grad(function)(x)) for name, function in REAL.items()}


class Fraction(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x - x.astype(ms.int32).astype(ms.float32) + x * ops.cast(x * 2.3, ms.int32)


class Counted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.count = ms.Parameter(ms.Tensor(np.array([1, 2, 3], np.int32)), name="count")

    def construct(self, x: Any) -> Any:
        return self.count * x


@case(rtol=1e-6, graph=True)
def cells() -> Any:
    real, integers = ms.Tensor(np.array([1.5, 2.5, 3.5], np.float32)), ms.Tensor(np.array([4, 5, 6], np.int32))
    counted = Counted()
    return {
        "fraction": ms.grad(Fraction())(real).asnumpy(), "all": ops.GradOperation(get_all=True)(Fraction())(real)[0].asnumpy(),
        "weight": ops.GradOperation(get_by_list=True)(counted, ms.ParameterTuple([counted.count]))(integers)[0].asnumpy(),
        "by real": ops.GradOperation(get_by_list=True)(counted, ms.ParameterTuple([counted.count]))(real)[0].asnumpy(),
    }


@case(rtol=1e-6)
def asked_for_after_the_call() -> Any:
    results = {}
    for name, x in (("real", np.array([1.5, 2.5, 3.5], np.float32)), ("whole", np.array([1, 2, 3], np.int32))):
        net, x_tensor = Fraction().set_grad(), ms.Tensor(x)
        net(x_tensor)
        results[name] = ops.GradOperation(get_all=True)(net)(x_tensor)[0].asnumpy()
    return results


class Branch(nn.Cell):
    def construct(self, x: Any) -> Any:
        k = x.astype(ms.int32)
        if k.sum() > 3:
            k = k * 3
        else:
            k = k * 5
        return k.astype(ms.float32)


class Loop(nn.Cell):
    def construct(self, x: Any) -> Any:
        i = ms.Tensor(0)
        while i < 3:
            x = x * x.astype(ms.int32).astype(ms.float32) * 0.5
            i = i + 1
        return x


class Again(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Fraction()
        self.inner.recompute()

    def construct(self, x: Any) -> Any:
        return self.inner(x * 3) * 2


@case(rtol=1e-6, graph=True)
def in_branches_loops_and_computed_again() -> Any:
    x = ms.Tensor(np.array([1.5, 2.5, 3.5], np.float32))
    return {net.__name__: ms.grad(net())(x).asnumpy() for net in (Branch, Loop, Again)}


def doubled(x: Any) -> Any:
    return x.astype(ms.int32).astype(ms.float32) * 2


def mixed(x: Any, y: Any) -> Any:
    return x * y.astype(ms.int32), y.astype(ms.int32) * 1.0


def cubed(x: Any) -> Any:
    return x * x * x.astype(ms.int32).astype(ms.float32)


@case(rtol=1e-6)
def weighted_forward_and_twice() -> Any:
    x, integers = ms.Tensor(np.array([1.5, 2.5], np.float32)), ms.Tensor(np.array([1, 2], np.int32))
    sens = ms.Tensor(np.array([1.5, 1.7], np.float32))
    both = ops.GradOperation(get_all=True, sens_param=True)
    products = ms.jvp(mixed, (x, x * 2), (x, x))[1]
    return {
        "weighted": both(lambda a, b: a * b)(integers, x, sens)[0].asnumpy(),
        "product": both(lambda a: a * a.astype(ms.int32) * 1.3)(x, sens)[0].asnumpy(),
        "jvp": ms.jvp(doubled, x, x)[1].asnumpy(),
        "jvp of two": np.stack([product.asnumpy() for product in products]),
        "jacfwd": ms.jacfwd(doubled)(x).asnumpy(), "jacrev": ms.jacrev(doubled)(x).asnumpy(),
        "second": ms.grad(ms.grad(cubed))(x).asnumpy(),
    }
