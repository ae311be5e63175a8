"""Initializers: exact where they are, else by the moments and bounds of many values."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.common import initializer as init
from parity.case import case

EXACT = {
    "Zero": lambda: init.initializer(init.Zero(), (2, 3), ms.float32),
    "One": lambda: init.initializer(init.One(), (2,), ms.float16),
    "Constant": lambda: init.initializer(init.Constant(2.5), (2, 2), ms.float32),
    "Identity": lambda: init.initializer(init.Identity(), (3, 4), ms.float32),
    "Dirac": lambda: init.initializer(init.Dirac(), (4, 3, 3, 3), ms.float32),
    "text": lambda: init.initializer("ones", [2, 2], ms.float32),
    "number": lambda: init.initializer(3, (2,), ms.int32),
}
RANDOM = {
    "Normal": lambda: init.Normal(0.05, 0.1),
    "Uniform": lambda: init.Uniform(0.3),
    "TruncatedNormal": lambda: init.TruncatedNormal(0.2, 0.1, -2, 2),
    "HeNormal": lambda: init.HeNormal(),
    "HeNormal_fan_out": lambda: init.HeNormal(mode="fan_out", nonlinearity="relu"),
    "HeUniform": lambda: init.HeUniform(np.sqrt(5)),
    "XavierNormal": lambda: init.XavierNormal(),
    "XavierUniform": lambda: init.XavierUniform(2.0),
    "VarianceScaling": lambda: init.VarianceScaling(2.0, "fan_avg", "uniform"),
    "text_normal": lambda: "normal",
    "text_uniform": lambda: "uniform",
    "text_xavier": lambda: "xavier_uniform",
    "text_he": lambda: "he_normal",
    "text_truncated": lambda: "truncatedNormal",
}


@case(over=EXACT)
def exact(make):
    return {"output": make().init_data().asnumpy()}


@case(over=RANDOM, rtol=0.03, atol=0.004)
def moments(make):
    values = init.initializer(make(), (300, 40, 3, 3), ms.float32).init_data().asnumpy()
    low, high = np.percentile(values, [1, 99])
    return {"mean": np.array(values.mean()), "std": np.array(values.std()), "low": np.array(low), "high": np.array(high)}


@case(rtol=1e-4, atol=1e-5)
def orthogonal():
    values = init.initializer(init.Orthogonal(2.0), (4, 6), ms.float32).init_data().asnumpy()
    return {"product": values @ values.T}


@case()
def sparse():
    values = init.initializer(init.Sparse(0.5, 0.01), (10, 8), ms.float32).init_data().asnumpy()
    return {"zeros_in_each_column": (values == 0).sum(0).tolist()}


@case()
def one_seed_gives_equal_bits():
    matrices = []
    for _ in range(2):
        ms.set_seed(5)
        matrices.append([init.initializer(name, (3, 3), ms.float32).init_data().asnumpy() for name in ("normal", "he_uniform", "normal")])
    return {"same": all((a == b).all() for a, b in zip(matrices[0], matrices[1])),
            "two_differ": bool((matrices[0][0] != matrices[0][2]).any())}
