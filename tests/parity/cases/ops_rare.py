"""Operators of 1.x that few programs use."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops import operations as P
from parity.case import case, raised

COLUMNS = {
    "windows that meet": ((2, 3, 4, 36), 2, 1, 1, 1, [5, 5]),
    "windows apart": ((2, 3, 4, 4), (2, 2), 1, 0, 2, [4, 4]),
    "dilated": ((1, 2, 6, 20), (2, 3), (2, 1), (1, 0), (1, 1), [5, 6]),
}
"""The columns' shape, kernel, dilation, padding, stride, the image's size."""


@case(over=COLUMNS, rtol=1e-6, atol=1e-6, graph=True)
def col2im(form):
    shape, kernel, dilation, pad, stride, size = form
    x = Tensor(np.random.RandomState(1).randn(*shape).astype(np.float32))

    def call(x):
        return ops.col2im(x, Tensor(size, ms.int32), kernel, dilation, pad, stride)

    return {"out": call(x).asnumpy(), "gradient": ms.grad(lambda x: (call(x) ** 2).sum())(x).asnumpy()}


@case(graph=True)
def padding():
    x = Tensor(np.array([[[8.0], [10.0]]], np.float32))
    return {
        "function": ops.padding(x, 4).asnumpy(), "primitive": P.Padding(3)(x).asnumpy(), "default": P.Padding()(x).asnumpy(),
        "gradient": ms.grad(lambda x: (ops.padding(x, 3) * 2).sum())(x).asnumpy(),
        "whole numbers": ops.padding(Tensor([[1], [2]], ms.int32), 2).asnumpy(),
        "refused": [
            raised(lambda: ops.padding(Tensor(np.ones((2, 3), np.float32)), 4)), raised(lambda: ops.padding(Tensor([1.0]), 4)),
            raised(lambda: ops.padding(x, 0)), raised(lambda: ops.padding(x, 2.0)),
        ],
    }


@case(rtol=1e-5, atol=1e-5)
def deformable_offsets():
    random = np.random.RandomState(2)
    x = Tensor(random.randn(2, 4, 6, 5).astype(np.float32))
    offsets = Tensor(random.randn(2, 12, 5, 4).astype(np.float32))
    call = P.DeformableOffsets((1, 1, 1, 1), (0, 0, 0, 0), (2, 2))
    gradients = ms.grad(lambda x, offsets: (call(x, offsets) * 1.5).sum(), (0, 1))(x, offsets)
    return {"out": call(x, offsets).asnumpy(), **{f"gradient {i}": gradient.asnumpy() for i, gradient in enumerate(gradients)}}


@case(rtol=1e-5, atol=2e-5, graph=True)
def cosine_transforms():
    from mindspore.ops import auto_generate as P

    x = np.arange(12).reshape(3, 4).astype(np.float32) ** 1.3
    z = (x + 1j * x[::-1]).astype(np.complex64)
    results = {}
    for name, arguments in (
        ("DCT", (2, 4, -1, "ortho")), ("DCT", (2, None, 0, None)), ("DCT", (2, 6, -1, "ortho")), ("IDCT", (2, 3, 1, "ortho")),
        ("IDCT", (2, None, 0, None)), ("DCTN", (2, None, (0, 1), "ortho")), ("DCTN", (2, (2, 3), (0, 1), None)),
        ("IDCTN", (2, None, None, None)),
    ):
        for kind, value in (("real", x), ("integers", x.astype(np.int32)), ("complex", z)):
            transform = getattr(P, name)()
            results[f"{name}{arguments}_{kind}"] = transform(ms.Tensor(value), *arguments).asnumpy()
    return results


@case()
def sequences_compared():
    from mindspore.ops.operations import _sequence_ops as S

    class Net(ms.nn.Cell):
        def __init__(self, primitive):
            super().__init__()
            self.primitive = primitive

        def construct(self, x, y):
            return self.primitive(x, y)

    ms.set_context(mode=ms.GRAPH_MODE)
    results = {}
    for name in ("tuple_equal", "tuple_lt", "tuple_le", "tuple_greater_than", "tuple_greater_equal"):
        for number, (x, y) in enumerate((((1, 2), (1, 2)), ((1, 2), (1, 3)), ((2,), (1, 3)), ((1,), (1, 0)))):
            results[f"{name}_{number}"] = bool(Net(getattr(S, name)())(x, y))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return results
