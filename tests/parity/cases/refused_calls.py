"""Calls with one wrong argument in place of the question mark: the kind of error of each. `refused_calls.txt` lists them.

They come from a sweep over the calls of all parity cases, in which each argument was replaced by values of other kinds and dtypes.
"""
from __future__ import annotations

from pathlib import Path

import mindspore as ms
import mindspore.dataset.audio as audio
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import mindspore.experimental.optim as optim
import mindspore.experimental.optim.lr_scheduler as lr_scheduler
import mindspore.nn.probability.bijector as bijector
import mindspore.nn.probability.distribution as distribution
import mindspore.numpy as mnp
import numpy as np
from mindspore import mint, nn, ops
from mindspore.ops import auto_generate
from parity.case import case, raised

CALLS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()


def t(values, dtype):
    return ms.Tensor(np.array(values), d(dtype))


def n(dtype, *shape):
    return ms.Tensor((np.arange(int(np.prod(shape))) % 5 + 0.5).reshape(shape), d(dtype))


def p(tensor):
    return ms.Parameter(tensor, name="p")


def a(dtype, *shape):
    return (np.arange(int(np.prod(shape))) % 5 + 0.5).reshape(shape).astype(dtype)


def d(dtype):
    return getattr(ms, {"Bool": "bool_"}.get(dtype, dtype.lower()))


NAMES = {
    "ms": ms, "ops": ops, "mint": mint, "nn": nn, "mnp": mnp, "auto_generate": auto_generate, "audio": audio, "vision": vision,
    "transforms": transforms, "distribution": distribution, "bijector": bijector, "optim": optim, "lr_scheduler": lr_scheduler,
    "t": t, "n": n, "p": p, "a": a, "d": d,
}


def computed(call):
    """Evaluate a call and wait for its values."""
    for value in tree_leaves(eval(call, dict(NAMES))):
        if isinstance(value, ms.Tensor):
            value.asnumpy()


def tree_leaves(value):
    return [leaf for item in value for leaf in tree_leaves(item)] if isinstance(value, (tuple, list)) else [value]


@case(over=CALLS)
def refused(line):
    call, _, values = line.rpartition(": ")
    ms.set_context(pynative_synchronize=True)
    try:
        return {value: raised(lambda value=value: computed(call.replace("?", value, 1))) for value in values.split(" | ")}
    finally:
        ms.set_context(pynative_synchronize=False)
