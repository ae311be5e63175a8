"""Convolution, pooling, padding, resizing and normalisation as functions and primitives, with their gradients."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.ops import operations as P
from parity.case import case

rng = np.random.RandomState(8)
IMAGE = rng.randn(2, 4, 7, 6).astype(np.float32)
LINE = rng.randn(2, 4, 9).astype(np.float32)
BOX = rng.randn(1, 2, 5, 6, 4).astype(np.float32)
WEIGHT = rng.randn(6, 4, 3, 3).astype(np.float32)
GROUPED = rng.randn(6, 2, 3, 3).astype(np.float32)
SIX = rng.randn(6).astype(np.float32)
FOUR = (rng.rand(4) + 0.5).astype(np.float32)


def t(array):
    return ms.Tensor(array)


def nhwc(array):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1))


CALLS = {
    "conv2d": lambda x: ops.conv2d(x, t(WEIGHT)),
    "conv2d_bias_same": lambda x: ops.conv2d(x, t(WEIGHT), t(SIX), stride=2, pad_mode="same"),
    "conv2d_pad": lambda x: ops.conv2d(x, t(WEIGHT), pad_mode="pad", padding=(1, 2), dilation=2),
    "conv2d_groups": lambda x: ops.conv2d(x, t(GROUPED), groups=2),
    "Conv2D": lambda x: P.Conv2D(6, 3, pad_mode="same", stride=2)(x, t(WEIGHT)),
    "Conv2D_pad": lambda x: P.Conv2D(out_channel=6, kernel_size=3, pad_mode="pad", pad=1)(x, t(WEIGHT)),
    "max_pool2d": lambda x: ops.max_pool2d(x, 3, 2),
    "max_pool2d_padding": lambda x: ops.max_pool2d(x, kernel_size=3, stride=2, padding=1, ceil_mode=True),
    "MaxPool": lambda x: P.MaxPool(kernel_size=3, strides=2, pad_mode="same")(x),
    "avg_pool2d": lambda x: ops.avg_pool2d(x, 3, 2),
    "avg_pool2d_padding": lambda x: ops.avg_pool2d(x, kernel_size=3, stride=2, padding=1, count_include_pad=False),
    "AvgPool": lambda x: P.AvgPool(kernel_size=2, strides=2, pad_mode="same")(x),
    "adaptive_avg_pool2d": lambda x: ops.adaptive_avg_pool2d(x, (3, 2)),
    "AdaptiveAvgPool2D": lambda x: P.AdaptiveAvgPool2D((2, 3))(x),
    "batch_norm": lambda x: ops.batch_norm(x, t(FOUR), t(FOUR), t(FOUR), t(FOUR)),
    "group_norm": lambda x: ops.group_norm(x, 2, t(FOUR), t(FOUR)),
    "interpolate_nearest": lambda x: ops.interpolate(x, size=(10, 9), mode="nearest"),
    "interpolate_bilinear": lambda x: ops.interpolate(x, size=(10, 9), mode="bilinear"),
    "interpolate_corners": lambda x: ops.interpolate(x, size=(10, 9), mode="bilinear", align_corners=True),
    "ResizeNearestNeighbor": lambda x: P.ResizeNearestNeighbor((10, 9))(x),
    "dropout_off": lambda x: ops.dropout(x, 0.5, training=False),
}


@case(over=CALLS, rtol=2e-5, atol=2e-6)
def image(call):
    return {"output": call(t(IMAGE)).asnumpy()}


@case(over={name: call for name, call in CALLS.items() if not name.startswith(("interp", "Resize"))}, rtol=1e-4, atol=2e-3)
def image_gradient(call):
    weights = t(np.arange(1, 5, dtype=np.float32).reshape(1, 4, 1, 1))
    return {"gradient": ms.grad(lambda x: (call(x * weights) ** 2).sum())(t(IMAGE)).asnumpy()}


@case(rtol=2e-5, atol=2e-6)
def other_axes():
    line, box = rng_weights((3, 4, 3)), rng_weights((3, 2, 3, 3, 3))
    return {
        "conv1d": ops.conv1d(t(LINE), t(line), stride=2, pad_mode="same").asnumpy(),
        "conv3d": ops.conv3d(t(BOX), t(box)).asnumpy(),
    }


def rng_weights(shape):
    return np.random.RandomState(2).randn(*shape).astype(np.float32)


@case()
def random_kinds():
    ms.set_seed(3)
    x = ms.Tensor(np.zeros((50, 40), np.float32))
    ones, halves = ops.rand_like(x).asnumpy(), ops.randn_like(x).asnumpy()
    order = ops.randperm(20).asnumpy()
    drawn = ops.multinomial(ms.Tensor([0.0, 1.0, 1.0]), 2, replacement=False).asnumpy()
    second = ops.multinomial(ms.Tensor([0.0, 1.0]), 3).asnumpy()
    chosen = ops.bernoulli(ms.Tensor(np.zeros((50, 40), np.float32))).asnumpy()
    dropped = ops.dropout(ms.Tensor(np.ones((50, 40), np.float32)), 0.5).asnumpy()
    return {
        "rand_like": [str(ones.dtype), list(ones.shape), bool(((ones >= 0) & (ones < 1)).all()), round(float(ones.mean()), 1)],
        "randn_like": [str(halves.dtype), list(halves.shape), abs(round(float(halves.mean()), 1)), round(float(halves.std()), 1)],
        "randperm": [str(order.dtype), sorted(order.tolist())],
        "multinomial": [str(drawn.dtype), sorted(drawn.tolist())],
        "multinomial_again": [str(second.dtype), second.tolist()],
        "bernoulli": [str(chosen.dtype), sorted(set(chosen.reshape(-1).tolist())), round(float(chosen.mean()), 1)],
        "dropout": [str(dropped.dtype), sorted(set(dropped.reshape(-1).tolist()))],
    }
