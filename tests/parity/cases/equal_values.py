"""Which of equal values is selected, in which order, and which one receives the gradient."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from parity.case import case

random = np.random.RandomState(4)
ROWS = {
    "few": np.array([[1, 0, 2, 1, 1, 0], [1, 3, 2, 2, 3, 3], [0, 0, 0, 0, 0, 0]]),
    "twenty": random.randint(0, 3, (2, 20)),
    "hundred": random.randint(0, 4, (3, 100)),
    "thousand": random.randint(0, 9, (2, 1000)),
    "many": random.randint(0, 50, (1, 5000)),
    "zeros": np.zeros((1, 100)),
    "signed zeros": np.array([[-0.0, 0.0, -0.0, 0.0, 0.0, -0.0]]),
}
DTYPES = (ms.float32, ms.float16, ms.float64, ms.int32, ms.int64, ms.int8, ms.uint8, ms.uint32)


def counts(length):
    return sorted({1, 2, 3, 5, length // 2, length // 2 + 1, length - 1, length} & set(range(1, length + 1)))


@case(over={name: name for name in ROWS}, graph=True)
def topk(name):
    values = ROWS[name]
    out = {}
    for dtype in DTYPES if values.shape[1] <= 100 else DTYPES[:1]:
        x = Tensor(values.astype(np.float32)).astype(dtype)
        for k in counts(values.shape[1]):
            for in_order in (True, False) if k < 5 or values.shape[1] < 500 else (True,):
                result, indexes = ops.topk(x, k, sorted=in_order)
                out[f"{dtype} {k} {in_order}"], out[f"{dtype} {k} {in_order} index"] = result.asnumpy(), indexes.asnumpy()
    return out


@case(over={name: name for name in ROWS})
def topk_in_other_forms(name):
    x = Tensor(ROWS[name].astype(np.float32))
    out = {}
    for k in counts(x.shape[1]):
        out[f"smallest {k}"] = ops.topk(x, k, largest=False)[1].asnumpy()
        out[f"axis 0 {k}"] = ops.topk(x.T, k, dim=0)[1].asnumpy()
        out[f"method {k}"], out[f"primitive {k}"] = x.topk(k)[1].asnumpy(), ops.TopK()(x, k)[1].asnumpy()
        out[f"gradient {k}"] = ms.grad(lambda x: ops.topk(x, k)[0])(x).asnumpy()           # noqa: B023
    return out


@case(over={f"{name} {dtype}": (name, dtype) for name in ("few", "hundred") for dtype in DTYPES[:7]})
def order(row):
    name, dtype = row
    x = Tensor(ROWS[name].astype(np.float32)).astype(dtype)
    out = {}
    for descending in (False, True):
        out[f"sort {descending}"] = ops.sort(x, 1, descending)[1].asnumpy()
        out[f"argsort {descending}"] = ops.argsort(x, 1, descending).asnumpy()
    for function in (ops.max, ops.min, ops.cummax, ops.cummin):
        out[function.__name__] = function(x, 1)[1].asnumpy()
    out["argmax"] = ops.argmax(x, 1).asnumpy()
    if dtype == ms.float32:
        out["argmin"] = ops.argmin(x, 1).asnumpy()
    return out


X = np.array([[1, 3, 3, 2], [3, 3, 3, 3], [0, 0, 1, 1]], np.float32)
GRADIENTS = {
    "aminmax": lambda x: ops.aminmax(x)[0].sum() + 2 * ops.aminmax(x)[1].sum(),
    "max": lambda x: ops.max(x, 1)[0], "min": lambda x: ops.min(x, 1)[0],
    "amax": lambda x: ops.amax(x, 1), "amin": lambda x: ops.amin(x, 1),
    "median": lambda x: ops.median(x, 1)[0],
    "sort": lambda x: ops.sort(x, 1)[0] * Tensor([1.0, 2, 3, 4]), "norm inf": lambda x: ops.norm(x, float("inf"), 1),
    "norm -inf": lambda x: ops.norm(x, -float("inf"), 1), "vector_norm": lambda x: ops.vector_norm(x, float("inf"), 1),
    "clamp": lambda x: ops.clamp(x, Tensor(1.0), Tensor(3.0)), "maximum": lambda x: ops.maximum(x, Tensor(X)),
    "minimum": lambda x: ops.minimum(x, Tensor(X)),
}


@case(over={name: name for name in GRADIENTS})
def gradient(name):
    return {"output": ms.grad(GRADIENTS[name])(Tensor(X)).asnumpy()}


@case()
def suppressed_boxes():
    out, draw = {}, np.random.RandomState(1)
    for count in (2, 5, 8, 17, 40):
        scores = draw.randint(0, 4, count) / 4 + 0.1
        corners = draw.randint(0, 20, (count, 2))
        boxes = np.concatenate([corners, corners + 10, scores[:, None]], 1).astype(np.float32)
        for name, part in zip(("boxes", "places", "mask"), ops.NMSWithMask(0.5)(Tensor(boxes))):
            out[f"{name} {count}"] = part.asnumpy()
    return out


@case()
def gradient_of_bounds():
    bounds = Tensor(1.0), Tensor(3.0)
    low, high = ms.grad(lambda low, high: ops.clamp(Tensor(X), low, high), (0, 1))(*bounds)
    return {"low": low.asnumpy(), "high": high.asnumpy()}
