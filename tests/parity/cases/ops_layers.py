"""Operators behind layers: pooling, resizing, rearranging, convolving, normalising, recurrent ones."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.ops import operations as P
from parity.case import case, raised

rng = np.random.RandomState(13)
IMAGE = rng.randn(2, 4, 8, 9).astype(np.float32)
LINE = rng.randn(2, 4, 10).astype(np.float32)
BOX = rng.randn(1, 2, 5, 6, 7).astype(np.float32)
ROWS = rng.randn(3, 6).astype(np.float32)
WIDE = IMAGE.transpose(0, 2, 3, 1).copy()


def sizes(*lengths):
    return ms.Tensor(list(lengths), ms.int32)


SINGLE_INPUT = {
    "avg_pool1d": (lambda x: ops.avg_pool1d(x, 3, 2, 1, True, False), LINE),
    "avg_pool3d": (lambda x: ops.avg_pool3d(x, (2, 3, 2), 2, 1, divisor_override=3), BOX),
    "max_pool3d": (lambda x: ops.max_pool3d(x, 3, 2, 1), BOX),
    "MaxPool3D": (lambda x: ops.MaxPool3D(2, 2)(x), BOX),
    "MaxPool3D_same": (lambda x: ops.MaxPool3D(3, 2, "SAME")(x), BOX),
    "MaxPool3D_pad": (lambda x: ops.MaxPool3D(3, 2, "PAD", (1, 0, 1, 1, 0, 1), False)(x), BOX),
    "AvgPool3D": (lambda x: ops.AvgPool3D(2, 1)(x), BOX),
    "AvgPool3D_same": (lambda x: ops.AvgPool3D(3, 2, "same")(x), BOX),
    "AvgPool3D_pad": (lambda x: ops.AvgPool3D(3, 2, "pad", 1, False, False)(x), BOX),
    "adaptive_avg_pool1d": (lambda x: ops.adaptive_avg_pool1d(x, 5), LINE),
    "adaptive_avg_pool3d": (lambda x: ops.adaptive_avg_pool3d(x, 3), BOX),
    "AdaptiveAvgPool3D": (lambda x: ops.AdaptiveAvgPool3D((2, 3, 4))(x), BOX),
    "adaptive_max_pool1d": (lambda x: ops.adaptive_max_pool1d(x, 5), LINE),
    "adaptive_max_pool2d": (lambda x: ops.adaptive_max_pool2d(x, (3, None)), IMAGE),
    "adaptive_max_pool3d": (lambda x: ops.adaptive_max_pool3d(x, (2, 3, 4)), BOX),
    "lp_pool1d": (lambda x: ops.lp_pool1d(x, 2, 3, 2, True), LINE),
    "lp_pool2d": (lambda x: ops.lp_pool2d(x, 2.0, (3, 2)), IMAGE),
    "ResizeBilinearV2": (lambda x: P.ResizeBilinearV2()(x, sizes(5, 12)), IMAGE),
    "ResizeBilinearV2_corners": (lambda x: P.ResizeBilinearV2(align_corners=True)(x, sizes(5, 12)), IMAGE),
    "ResizeBilinearV2_half": (lambda x: P.ResizeBilinearV2(half_pixel_centers=True)(x, sizes(12, 5)), IMAGE),
    "ResizeBicubic": (lambda x: ops.ResizeBicubic()(x, sizes(5, 12)), IMAGE),
    "ResizeBicubic_corners": (lambda x: ops.ResizeBicubic(True)(x, sizes(5, 12)), IMAGE),
    "ResizeBicubic_half": (lambda x: ops.ResizeBicubic(False, True)(x, sizes(5, 12)), IMAGE),
    "ResizeNearestNeighborV2": (lambda x: P.ResizeNearestNeighborV2()(x, sizes(5, 12)), IMAGE),
    "ResizeLinear1D": (lambda x: ops.ResizeLinear1D()(x, sizes(7)), LINE),
    "ResizeLinear1D_half": (lambda x: ops.ResizeLinear1D("half_pixel")(x, sizes(13)), LINE),
    "UpsampleNearest3D": (lambda x: ops.UpsampleNearest3D()(x, (7, 4, 9), None), BOX),
    "UpsampleTrilinear3D": (lambda x: ops.UpsampleTrilinear3D(True)(x, None, (1.5, 2.0, 1.0)), BOX),
    "upsample": (lambda x: ops.upsample(x, (12, 5), mode="bilinear"), IMAGE),
    "upsample_trilinear": (lambda x: ops.upsample(x, (7, 4, 9), mode="trilinear"), BOX),
    "pixel_shuffle": (lambda x: ops.pixel_shuffle(x, 2), IMAGE),
    "pixel_unshuffle": (lambda x: ops.pixel_unshuffle(x[..., :8], 2), IMAGE),
    "channel_shuffle": (lambda x: ops.channel_shuffle(x, 2), IMAGE),
    "unfold": (lambda x: ops.unfold(x, (2, 3), 2, 1, 2), IMAGE),
    "fold": (lambda x: ops.fold(x, sizes(4, 4), 2, 1, 0, 2), rng.randn(2, 12, 4).astype(np.float32)),
    "Im2Col": (lambda x: P.Im2Col((2, 3), 2)(x), IMAGE),
    "Col2Im": (lambda x: P.Col2Im(2, 1, 0, 2)(x, sizes(4, 4)), rng.randn(2, 3, 4, 4).astype(np.float32)),
    "FastGeLU": (lambda x: ops.FastGeLU()(x), ROWS),
    "fast_gelu": (lambda x: ops.fast_gelu(x), ROWS),
    "hardtanh": (lambda x: ops.hardtanh(x, -0.3, 0.4), ROWS),
    "softmin": (lambda x: ops.softmin(x, 0), ROWS),
    "tanhshrink": (lambda x: ops.tanhshrink(x), ROWS),
    "threshold": (lambda x: ops.threshold(x, 0.1, -2), ROWS),
    "soft_shrink": (lambda x: ops.soft_shrink(x, 0.2), ROWS),
    "CeLU": (lambda x: ops.CeLU(0.6)(x), ROWS),
    "GLU": (lambda x: P.GLU(1)(x), ROWS),
    "lrn": (lambda x: ops.lrn(x, 1, 2.0, 0.3, 0.6), IMAGE),
    "LRN": (lambda x: ops.LRN(3)(x), IMAGE),
    "LpNorm": (lambda x: ops.LpNorm([1, 3], 2, True)(x), IMAGE),
    "LpNorm_one": (lambda x: ops.LpNorm(1, 1)(x), IMAGE),
    "L2Loss": (lambda x: ops.L2Loss()(x), IMAGE),
    "PadV3": (lambda x: ops.PadV3()(x, sizes(1, 2, 0, 3), ms.Tensor(0.5)), IMAGE),
    "PadV3_reflect": (lambda x: ops.PadV3("reflect")(x, sizes(1, 2)), LINE),
    "PadV3_edge": (lambda x: ops.PadV3("edge")(x, sizes(1, 2, 2, 1)), IMAGE),
}
# Their gradients are missing or wrong in 2.10 on the CPU, or whole numbers have none.
NO_GRADIENT = ("channel_shuffle",)


@case(over=SINGLE_INPUT, rtol=1e-4, atol=1e-5, graph=True)
def one(row):
    call, array = row
    return {"output": call(ms.Tensor(array)).asnumpy()}


@case(over={name: row for name, row in SINGLE_INPUT.items() if name not in NO_GRADIENT}, rtol=1e-3, atol=1e-4)
def gradient(row):
    call, array = row
    return {"gradient": ms.grad(lambda x: (call(x) * call(x)).sum())(ms.Tensor(array)).asnumpy()}


# 2.10 has no kernel in float64 for these on the CPU.
SINGLE = (
    "avg_pool1d adaptive_avg_pool1d adaptive_max_pool1d FastGeLU fast_gelu soft_shrink lrn LRN LpNorm LpNorm_one"
).split()


@case(over=SINGLE_INPUT, rtol=1e-2, atol=1e-2)
def half(row):
    call, array = row
    return {"output": call(ms.Tensor(array.astype(np.float16))).asnumpy()}


@case(over={name: row for name, row in SINGLE_INPUT.items() if name not in SINGLE}, rtol=1e-5, atol=1e-5)
def double(row):
    call, array = row
    return {"output": call(ms.Tensor(array.astype(np.float64))).asnumpy()}


@case(over={"corners": True, "plain": False}, rtol=1e-5, atol=1e-6, graph=True)
def resize_area(corners):
    return {"output": ops.ResizeArea(corners)(ms.Tensor(WIDE), sizes(5, 12)).asnumpy()}


PAIRS = {
    "MaxPoolWithArgmaxV2": (lambda x: ops.MaxPoolWithArgmaxV2(3, 2, 1)(x), IMAGE),
    "MaxPoolWithArgmaxV2_32": (lambda x: ops.MaxPoolWithArgmaxV2((2, 3), argmax_type=ms.int32)(x), IMAGE),
    "MaxPoolWithArgmax": (lambda x: P.MaxPoolWithArgmax(2, 2)(x), IMAGE),
    "MaxPool3DWithArgmax": (lambda x: ops.MaxPool3DWithArgmax(2, 2, 1)(x), BOX),
    "max_pool3d": (lambda x: ops.max_pool3d(x, 2, return_indices=True), BOX),
    "AdaptiveMaxPool2D": (lambda x: ops.AdaptiveMaxPool2D((3, 4))(x), IMAGE),
    "AdaptiveMaxPool3D": (lambda x: ops.AdaptiveMaxPool3D()(x, sizes(2, 3, 4)), BOX),
    "adaptive_max_pool3d": (lambda x: ops.adaptive_max_pool3d(x, 2, True), BOX),
    "FractionalMaxPoolWithFixedKsize": (
        lambda x: ops.FractionalMaxPoolWithFixedKsize(2, (3, 4))(x, ms.Tensor(np.linspace(0, 0.9, 16).reshape(2, 4, 2).astype(np.float32))),
        IMAGE),
    "FractionalMaxPool3DWithFixedKsize": (
        lambda x: ops.FractionalMaxPool3DWithFixedKsize(2, (3, 4, 2))(
            x, ms.Tensor(np.linspace(0, 0.9, 6).reshape(1, 2, 3).astype(np.float32))),
        BOX),
}


@case(over=PAIRS, rtol=1e-5, graph=True)
def pair(row):
    call, array = row
    first, second = call(ms.Tensor(array))
    return {"first": first.asnumpy(), "second": second.asnumpy()}


@case(rtol=1e-6)
def at_random_places():
    planes = ms.Tensor(np.linspace(0, 0.9, 16).reshape(2, 4, 2).astype(np.float32))
    volumes = ms.Tensor(np.linspace(0, 0.9, 6).reshape(1, 2, 3).astype(np.float32))
    return {
        "2d": ops.fractional_max_pool2d(ms.Tensor(IMAGE), 2, (3, 4), _random_samples=planes).asnumpy(),
        "2d_share": ops.fractional_max_pool2d(ms.Tensor(IMAGE), 2, output_ratio=(0.5, 0.4), _random_samples=planes).asnumpy(),
        "3d": ops.fractional_max_pool3d(ms.Tensor(BOX), 2, 3, _random_samples=volumes).asnumpy(),
    }


@case(rtol=1e-6)
def unpooled():
    out, at = ops.max_pool3d(ms.Tensor(BOX[:, :, :4, :, :6].copy()), 2, return_indices=True)
    flat, indices = ops.MaxPoolWithArgmaxV2(2)(ms.Tensor(IMAGE[..., :8].copy()))
    line, spots = ms.nn.MaxPool1d(2, 2, "pad", return_indices=True)(ms.Tensor(LINE))
    return {
        "max_unpool1d": ops.max_unpool1d(line, spots, 2).asnumpy(),
        "max_unpool2d": ops.max_unpool2d(flat, indices, 2).asnumpy(),
        "max_unpool3d": ops.max_unpool3d(out, at, 2, output_size=(4, 6, 6)).asnumpy(),
        "MaxUnpool2D": ops.MaxUnpool2D(2)(flat, indices).asnumpy(),
        "MaxUnpool3D": ops.MaxUnpool3D(2)(out, at).asnumpy(),
    }


KERNELS = {
    "Conv3D": (lambda x, w: ops.Conv3D(3, 2)(x, w), BOX, (3, 2, 2, 2, 2)),
    "Conv3D_same": (lambda x, w: ops.Conv3D(3, (3, 2, 2), pad_mode="same", stride=2)(x, w), BOX, (3, 2, 3, 2, 2)),
    "Conv3D_pad": (lambda x, w: ops.Conv3D(4, 3, pad_mode="pad", pad=(1, 1, 2, 2, 0, 0))(x, w), BOX, (4, 2, 3, 3, 3)),
    "Conv2DTranspose": (lambda x, w: ops.Conv2DTranspose(4, 3)(x, w, (2, 5, 10, 11)), IMAGE, (4, 5, 3, 3)),
    "Conv2DTranspose_same": (
        lambda x, w: ops.Conv2DTranspose(4, 3, "same", stride=2)(x, w, (2, 5, 16, 17)), IMAGE, (4, 5, 3, 3)),
    "Conv2DTranspose_pad": (
        lambda x, w: ops.Conv2DTranspose(4, 3, "pad", pad=1, stride=2)(x, w, (2, 5, 16, 17)), IMAGE, (4, 5, 3, 3)),
    "Conv2DBackpropInput": (lambda x, w: P.Conv2DBackpropInput(4, 3)(x, w, (2, 5, 10, 11)), IMAGE, (4, 5, 3, 3)),
    "Conv3DTranspose": (lambda x, w: ops.Conv3DTranspose(2, 3, 2)(x, w), BOX, (2, 3, 2, 2, 2)),
    "Conv3DTranspose_pad": (
        lambda x, w: ops.Conv3DTranspose(2, 3, 3, pad_mode="pad", pad=1, stride=2, output_padding=1)(x, w), BOX, (2, 3, 3, 3, 3)),
    "conv3d_transpose": (lambda x, w: P.nn_ops.Conv3DTranspose(2, 3, 3, pad_mode="same", stride=2)(x, w), BOX, (2, 3, 3, 3, 3)),
}


@case(over=KERNELS, rtol=1e-4, atol=1e-4, graph=True)
def convolution(row):
    call, array, shape = row
    weight = ms.Tensor(np.random.RandomState(1).randn(*shape).astype(np.float32))
    return {"output": call(ms.Tensor(array), weight).asnumpy()}


@case(over={name: row for name, row in KERNELS.items() if "Backprop" not in name}, rtol=1e-3, atol=1e-3)
def convolution_gradient(row):
    call, array, shape = row
    weight = ms.Tensor(np.random.RandomState(1).randn(*shape).astype(np.float32))
    to_input, to_weight = ms.grad(lambda x, w: (call(x, w) * call(x, w)).sum(), (0, 1))(ms.Tensor(array), weight)
    return {"input": to_input.asnumpy(), "weight": to_weight.asnumpy()}


def positive_parameter(seed):
    return ms.Parameter(ms.Tensor(np.abs(np.random.RandomState(seed).randn(4)).astype(np.float32) + 0.5), name=f"p{seed}")


@case(over={"training": True, "evaluation": False}, rtol=1e-4, atol=1e-5)
def batch_norm(training):
    state = [positive_parameter(seed) for seed in range(4)]
    result = ops.BatchNorm(training, 1e-3, 0.2)(ms.Tensor(IMAGE), *state)
    return {"output": result[0].asnumpy(), "mean": state[2].asnumpy(), "variance": state[3].asnumpy(),
            "shapes": [list(output.shape) for output in result]}  # fmt: skip


@case(rtol=1e-4, atol=1e-5)
def bidense():
    weight, bias = rng.randn(2, 6, 6).astype(np.float32) * 0 + 0.5, np.ones(2, np.float32)
    return {"output": ops.bidense(*map(ms.Tensor, (ROWS, ROWS[::-1].copy(), weight, bias))).asnumpy()}


LSTMS = {
    "plain": (1, False, True), "both_ways": (1, True, True), "both_plain": (1, True, False), "deep_plain": (2, False, False),
    "deep": (2, False, True), "no_bias": (1, False, False),
}


@case(over=LSTMS, rtol=1e-4, atol=1e-5)
def lstm(row):
    layers, both, bias = row
    directions = 2 if both else 1
    features = 3 if layers == 2 else 5
    count = layers * directions * (4 * 3 * (features + 3) + (12 if bias else 0))
    numbers = np.random.RandomState(6)
    weights = numbers.randn(count, 1, 1).astype(np.float32) * 0.4
    x, h = numbers.randn(4, 2, features).astype(np.float32), numbers.randn(layers * directions, 2, 3).astype(np.float32)
    result = ops.LSTM(features, 3, layers, bias, both, 0.0)(ms.Tensor(x), ms.Tensor(h), ms.Tensor(h * 0.5), ms.Tensor(weights))
    return {"output": result[0].asnumpy(), "h": result[1].asnumpy(), "c": result[2].asnumpy()}


RANDOM = {
    "dropout1d": lambda x: ops.dropout1d(x, 0.4), "dropout2d": lambda x: ops.dropout2d(x, 0.4),
    "dropout3d": lambda x: ops.dropout3d(x, 0.4),
    "Dropout2D": lambda x: ops.Dropout2D(0.6)(x)[0], "Dropout3D": lambda x: ops.Dropout3D(0.6)(x)[0],
}
SHAPES = {"1d": (30, 20, 4), "2d": (30, 20, 3, 3), "2D": (30, 20, 3, 3), "3d": (30, 20, 2, 3, 3), "3D": (30, 20, 2, 3, 3)}


@case(over={name: name for name in RANDOM}, rtol=1e-5)
def dropped(name):
    ms.set_seed(1)
    out = RANDOM[name](ms.Tensor(np.ones(SHAPES[name[-2:]], np.float32))).asnumpy()
    channels = out.reshape(600, -1)
    return {"whole": bool((channels == channels[:, :1]).all()), "values": np.unique(np.round(out, 4)),
            "share": bool(abs((out > 0).mean() - 0.6) < 0.08)}  # fmt: skip


@case()
def drawn():
    x = ms.Tensor(ROWS)
    soft, hard = ops.gumbel_softmax(x, 0.5).asnumpy(), ops.gumbel_softmax(x, hard=True).asnumpy()
    slopes = (ops.rrelu(x, 0.2, 0.3).asnumpy() / ROWS)[ROWS < 0]
    return {"sums": bool(np.allclose(soft.sum(-1), 1, atol=1e-5)), "hard": sorted(np.unique(np.round(hard, 5)).tolist()),
            "slopes": bool(((slopes >= 0.2 - 1e-6) & (slopes <= 0.3 + 1e-6)).all())}  # fmt: skip


@case(over={
    "types": [
        lambda: ops.lp_pool1d(ms.Tensor(LINE), "a", 2),
        lambda: ops.hardtanh(ms.Tensor(ROWS), "a"),
    ],
    "values": [
        lambda: ops.dropout2d(ms.Tensor(IMAGE), 1.5), lambda: ops.lp_pool1d(ms.Tensor(LINE), 0, 2), lambda: ops.huber_loss(
            ms.Tensor(ROWS), ms.Tensor(ROWS), delta=-1.0), lambda: ops.LRN(norm_region="WITHIN")(ms.Tensor(IMAGE)),
        lambda: ops.adaptive_max_pool1d(ms.Tensor(LINE), 3), lambda: ops.PadV3("x")(ms.Tensor(LINE), sizes(1, 1), 0),
        lambda: ops.ResizeLinear1D("x")(ms.Tensor(LINE), sizes(3)),
        lambda: ops.rrelu(ms.Tensor(ROWS), 0.5, 0.1), lambda: ops.channel_shuffle(ms.Tensor(IMAGE), 3),
    ],
})  # fmt: skip
def refused(calls):
    return {"errors": [raised(call) for call in calls]}
