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
    found = ms.grad(lambda x, offsets: (call(x, offsets) * 1.5).sum(), (0, 1))(x, offsets)
    return {"out": call(x, offsets).asnumpy(), **{f"gradient {i}": one.asnumpy() for i, one in enumerate(found)}}
