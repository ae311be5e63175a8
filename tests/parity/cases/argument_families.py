"""Arguments that a random search found to act otherwise than MindSpore's: pad modes, divisors, dtypes of integers, floors of lengths."""
from __future__ import annotations

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
from mindspore import Tensor, nn, ops
from parity.case import case, raised

draw = np.random.RandomState(0)
LAYERS = {
    "1d": (nn.AvgPool1d, ops.AvgPool, draw.randn(1, 2, 8)), "2d": (nn.AvgPool2d, ops.AvgPool, draw.randn(1, 2, 7, 6)),
    "2d of one": (nn.AvgPool2d, ops.AvgPool, draw.randn(2, 7, 6)), "3d": (nn.AvgPool3d, ops.AvgPool3D, draw.randn(1, 2, 5, 5, 5)),
}


@case(over=LAYERS, rtol=1e-5, atol=1e-6)
def average_pools(kind):
    layer, _, values = kind
    x, results = Tensor(values.astype(np.float32)), {}
    for pad_mode in ("same", "valid", "pad"):
        for ceil in (False, True):
            for counts in (False, True):
                for kernel, stride in ((2, 2), (3, 2), (3, 3)):
                    arguments = (kernel, stride, pad_mode, int(pad_mode == "pad"), ceil, counts)
                    results[f"{arguments}"] = layer(*arguments)(x).asnumpy()
                    if layer is not nn.AvgPool1d:
                        results[f"{arguments} by 3"] = layer(*arguments, divisor_override=3)(x).asnumpy()
    return results


@case()
def largest_values_of_one_image():
    x = Tensor(np.random.RandomState(2).randn(2, 7, 6).astype(np.float32))
    results = {pad: nn.MaxPool2d(3, 2, pad, int(pad == "pad"))(x).asnumpy() for pad in ("same", "valid", "pad")}
    values, positions = nn.MaxPool2d(3, 2, "pad", 1, return_indices=True)(x)
    return {**results, "values": values.asnumpy(), "places": positions.asnumpy()}


@case(rtol=1e-5, atol=1e-6)
def real_division_of_integers():
    a, b = Tensor(np.array([-7, 7, -6, 3], np.int32)), Tensor(np.array([2, -2, 4, 2], np.int32))
    results = {"primitive": ops.RealDiv()(a, b), "function": ops.tensor_div(a, b), "number": ops.RealDiv()(a, 2),
             "real": ops.RealDiv()(a, 2.0), "div": ops.Div()(a, b), "half": ops.RealDiv()(a, b.astype(ms.float16)),
             "gradient": ms.grad(lambda x: ops.RealDiv()(x, b))(a)}
    return {f"{name} {value.dtype}": value.asnumpy() for name, value in results.items()}


@case()
def full_without_a_dtype():
    results = {f"{value}": ops.full((2,), value) for value in (3.7, True, -2.5, 3)}
    return {f"{name} {value.dtype}": value.asnumpy() for name, value in results.items()}


@case(over={"tiny": 1e-8, "half": 0.5, "one": 1.0, "three": 3.0}, rtol=1e-5, atol=1e-6)
def cosine_similarity_of_short_vectors(eps):
    random = np.random.RandomState(1)
    a, b = (Tensor(random.randn(4, 3).astype(np.float32)) for _ in range(2))
    zeros = ops.zeros_like(a)
    return {
        **{f"axis {axis}": ops.cosine_similarity(a, b, axis, eps).asnumpy() for axis in (0, 1, -1)},
        "zero": ops.cosine_similarity(a, zeros, 1, eps).asnumpy(),
        "gradient": ms.grad(lambda x: ops.cosine_similarity(x, b, 1, eps).sum())(a).asnumpy(),
    }


@case(rtol=1e-3)
def weights_of_another_dtype():
    x = np.array([[0.62, -1.24]])
    results = {
        "layer": nn.PReLU(w=1.5)(Tensor(x, ms.float16)), "function": ops.prelu(Tensor(x, ms.float16), Tensor([0.5], ms.float32)),
        "primitive": ops.PReLU()(Tensor(x, ms.float32), Tensor([0.5], ms.float16)),
    }
    return {f"{name} {value.dtype}": value.asnumpy() for name, value in results.items()}


NAN, FAR = np.nan, np.inf
ODD = tuple(Tensor(np.array(values, np.float32)) for values in (
    [NAN, 1.5, 2, FAR, 3, NAN, FAR, -FAR, 0, NAN, 7.5, 0], [2, NAN, 4, 3, FAR, NAN, FAR, 3, NAN, 0, -2.5, 0],
))


@case()
def nothing_and_not_a_number():
    x = Tensor(np.array([1.0, 2.0, 4.0], np.float32))
    return {
        "none": mnp.diff(x, n=0, prepend=1.5).asnumpy(), "one": mnp.diff(x, n=1, prepend=1.5).asnumpy(),
        "gcd": mnp.gcd(*ODD).asnumpy(), "lcm": mnp.lcm(*ODD).asnumpy(),
        "sign": mnp.sign(Tensor(np.array([np.nan, 1.0, -2.0, 0.0], np.float32))).asnumpy(),
    }


@case(rtol=1e-6)
def clips_whose_norm_is_not_finite():
    results = {}
    for name, values in {"nan": [3.0, NAN, 4.0], "infinite": [3.0, FAR, 4.0]}.items():
        x = Tensor(np.array(values, np.float32))
        for norm_type in (2.0, 1.0):
            results[f"{name} {norm_type}"] = ops.clip_by_norm(x, 1.0, norm_type).asnumpy()
            pair = ops.clip_by_norm([x, Tensor(np.ones(2, np.float32))], 1.0, norm_type)
            results[f"{name} {norm_type} pair"] = np.concatenate([part.asnumpy() for part in pair])
    return results


@case()
def spread_of_truth_values():
    truth = Tensor([[True, False], [True, True]])
    calls = {"var": ops.var, "std": ops.std, "var_mean": ops.var_mean, "std_mean": ops.std_mean, "ReduceStd": ops.ReduceStd()}
    return {name: raised(lambda call=call: call(truth)) for name, call in calls.items()}


@case()
def lengths_and_masks_of_other_dtypes():
    x = Tensor(np.ones((3, 2, 4), np.float32))
    layers = {"rnn": nn.RNN(4, 4), "lstm": nn.LSTM(4, 4), "gru": nn.GRU(4, 4)}
    results = {}
    for name, layer in layers.items():
        for dtype in (ms.int32, ms.int64, ms.float32, ms.bool_, ms.uint8):
            results[f"{name} {dtype}"] = raised(lambda layer=layer, dtype=dtype: layer(x, None, Tensor([1, 1]).astype(dtype)))
    attention = nn.MultiheadAttention(4, 2)
    for dtype in (ms.bool_, ms.float32, ms.int32, ms.int64):
        zeros = Tensor(np.zeros((3, 3), np.float32)).astype(dtype)
        results[f"attn_mask {dtype}"] = raised(lambda mask=zeros: attention(x, x, x, attn_mask=mask)[0].asnumpy())
        padding = Tensor(np.zeros((2, 3), np.float32)).astype(dtype)
        results[f"key_padding_mask {dtype}"] = raised(lambda mask=padding: attention(x, x, x, key_padding_mask=mask)[0].asnumpy())
    return results


@case(rtol=1e-4, atol=1e-5)
def masks_of_each_dtype():
    attention = nn.MultiheadAttention(4, 2)
    for parameter in attention.get_parameters():
        values = (np.arange(parameter.size).reshape(parameter.shape) % 7 - 3) / 5
        parameter.set_data(Tensor(values.astype(np.float32)))
    x = Tensor((np.arange(24).reshape(3, 2, 4) % 5).astype(np.float32))
    mask = Tensor([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    return {f"{dtype}": attention(x, x, x, attn_mask=mask.astype(dtype))[0].asnumpy() for dtype in (ms.bool_, ms.uint8, ms.float32)}
