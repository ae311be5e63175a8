"""Windows of images and pools by fractions, images under a filter, and the recurrent gradients that only MindSpore's modules name."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import _rl_inner_ops as inner
from mindspore.ops.operations import image_ops, nn_ops
from parity.case import case
from parity.waves import numbered, of, t

OFFSETS = {"inside": [[0.9, 1.4], [2, 3]], "over": [[-1, -1], [5, 5]], "far": [[-2.5, 2], [0, 9]]}


@case(over={f"{name}_{centered:d}{normalized:d}": (name, centered, normalized) for name in OFFSETS for centered in (False, True)
            for normalized in (False, True)}, rtol=1e-6)
def glimpse(named):
    name, centered, normalized = named
    result = image_ops.ExtractGlimpse(centered, normalized, False, "zero")(of(2, 5, 6, 2), t([3, 4], np.int32), t(OFFSETS[name]))
    return {"found": result.asnumpy()}


KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")


@case(over={name: name for name in KERNELS}, rtol=1e-4, atol=2e-5)
def moved(kernel):
    results = {}
    for name, scale, to in (("smaller", [0.7, 0.6], [0.3, -0.2]), ("larger", [1.7, 2.0], [-1.0, 0.5]), ("away", [1, 1], [9, 0])):
        for antialias in (True, False):
            where = t([3, 4], np.int32), t(scale), t(to)
            key = f"{name}_{antialias:d}"
            results[key] = image_ops.ScaleAndTranslate(kernel, antialias)(of(2, 5, 6, 2), *where).asnumpy()
            back = G.ScaleAndTranslateGrad(kernel, antialias)
            results[f"{key}_back"] = back(of(2, 3, 4, 2, start=1.0), of(2, 5, 6, 2), *where[1:]).asnumpy()
    return results


@case()
def moved_integers():
    integers = t(np.arange(20).reshape(1, 4, 5, 1), np.int32)
    return {"found": image_ops.ScaleAndTranslate("triangle")(integers, t([2, 2], np.int32), t([0.5, 0.5]), t([0, 0])).asnumpy()}


@case(over={f"{kind}{overlapping:d}{pseudo:d}": (kind, overlapping, pseudo) for kind in ("max", "avg") for overlapping in (False, True)
            for pseudo in (False, True)}, rtol=1e-5, atol=1e-6)
def even_pools(how):
    kind, overlapping, pseudo = how
    cls = nn_ops.FractionalMaxPool if kind == "max" else nn_ops.FractionalAvgPool
    results = {}
    for name, x in (("float32", of(2, 6, 6, 2)), ("int64", t(np.arange(-30, 42).reshape(2, 6, 6, 1), np.int64))):
        out, rows, columns = cls([1.0, 2.0, 3.0, 1.0], pseudo, overlapping)(x)
        results |= {f"{name}_out": out.asnumpy(), f"{name}_rows": rows.asnumpy(), f"{name}_columns": columns.asnumpy()}
    return results


ROWS, COLUMNS = [0, 1, 3, 4, 6], [0, 1, 2, 4, 5, 7]


@case(over={"apart": False, "overlapping": True}, rtol=1e-5, atol=1e-6)
def pools_back(overlapping):
    x, back = of(2, 6, 7, 2), of(2, 4, 5, 2, start=1.0)
    rows, columns = t(ROWS, np.int64), t(COLUMNS, np.int64)
    first = nn_ops.FractionalMaxPool([1.0, 1.5, 1.4, 1.0])(x[:1])[0]          # of more than one picture MindSpore's is wrong
    integers = t(np.arange(-20, 20).reshape(2, 4, 5, 1), np.int64)
    return {
        "max": G.FractionalMaxPoolGrad(overlapping)(x[:1], first, back[:1], rows, columns).asnumpy(),
        "avg": G.FractionalAvgPoolGrad(overlapping)(t([2, 6, 7, 2], np.int64), back, rows, columns).asnumpy(),
        "avg_int64": G.FractionalAvgPoolGrad(overlapping)(t([2, 6, 7, 1], np.int64), integers, rows, columns).asnumpy(),
    }


def weights(count):
    return t(np.sin(np.arange(count) * 0.9).reshape(count, 1, 1))


@case(rtol=1e-4, atol=1e-5)
def lstm_back():
    x, h, c, w = of(4, 2, 3), of(1, 2, 2, start=1.0), of(1, 2, 2, start=2.0), weights(48)
    out, last_h, last_c, reserve, _ = ms.ops.LSTM(3, 2, 1, True, False, 0.0)(x, h, c, w)
    back = of(4, 2, 2, start=3.0), of(1, 2, 2, start=4.0), of(1, 2, 2, start=5.0)
    return numbered(*G.LSTMGrad(3, 2, 1, True, False, 0.0)(x, h, c, w, out, last_h, last_c, *back, reserve))


@case(rtol=1e-4, atol=1e-5)
def gru_and_back():
    x, h, w, lengths = of(4, 2, 3), of(1, 2, 2, start=1.0), weights(36), t([4, 4], np.int32)
    out, last, reserve, _ = inner.GRUV2(3, 2, 1, True, False, 0.0)(x, h, w, lengths)
    back = G.GRUV2Grad(3, 2, 1, True, False, 0.0)(x, h, w, lengths, out, last, of(4, 2, 2, start=3.0), of(1, 2, 2, start=4.0), reserve)
    plain, _, _, _ = inner.GRUV2(3, 2, 1, False, False, 0.0)(x, h, weights(30), lengths)
    return numbered(out, last, *back, plain)
