"""Convolution at places that move."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from parity.case import case, raised

RANDOM = np.random.RandomState(5)
FORMS = {
    "plain": ((1, 2, 5, 6), (3, 2, 3, 3), (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), 1, 1),
    "strides": ((2, 2, 7, 6), (4, 2, 2, 3), (1, 1, 2, 1), (0, 1, 2, 0), (1, 1, 1, 1), 1, 1),
    "dilations and groups": ((1, 4, 8, 8), (2, 2, 2, 2), (1, 1, 1, 2), (1, 1, 0, 0), (1, 1, 2, 3), 2, 2),
}


@case(over=FORMS, rtol=1e-4, atol=1e-5, graph=True)
def deformable_conv2d(form):
    """Sums of some dozens of products."""
    shape, kernel, strides, padding, dilations, groups, parts = form
    reach = [(kernel[i] - 1) * dilations[i] + 1 for i in (2, 3)]
    sizes = [(shape[2 + i] + sum(padding[2 * i: 2 * i + 2]) - reach[i]) // strides[2 + i] + 1 for i in (0, 1)]
    random = np.random.RandomState(1)
    x, weight = (Tensor(random.randn(*s).astype(np.float32)) for s in (shape, kernel))
    offsets = Tensor(random.randn(shape[0], 3 * parts * kernel[2] * kernel[3], *sizes).astype(np.float32))
    bias = Tensor(random.randn(kernel[0]).astype(np.float32))

    def call(x, weight, offsets, bias):
        return ops.deformable_conv2d(
            x, weight, offsets, kernel[2:], strides, padding, bias=bias, dilations=dilations, groups=groups, deformable_groups=parts,
        )

    results = {"out": call(x, weight, offsets, bias).asnumpy()}
    gradients = ms.grad(lambda *arguments: (call(*arguments) * 1.5).sum(), (0, 1, 2, 3))(x, weight, offsets, bias)
    return {**results, **{f"gradient {i}": g.asnumpy() for i, g in enumerate(gradients)}}


@case()
def refused():
    x, weight, offsets = (Tensor(np.ones(s, np.float32)) for s in ((1, 1, 3, 3), (1, 1, 2, 2), (1, 12, 2, 2)))
    return {"version": raised(lambda: ops.deformable_conv2d(x, weight, offsets, (2, 2), (1, 1, 1, 1), (0, 0, 0, 0), modulated=False))}
