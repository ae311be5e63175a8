"""Losses, norms and logarithms where they saturate: at 0, 1, tiny and huge values, with their gradients."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops
from parity.case import case

PROBABILITIES, LABELS = (values.ravel().astype(np.float32) for values in np.meshgrid(
    [0.0, 1.0, 0.5, 1e-20, 1e-12, 1e-13, 1e-7, 1 - 6e-8, 0.25], [0.0, 1.0, 0.5, 0.25],
))
WEIGHTS = np.linspace(0.5, 2, PROBABILITIES.size).astype(np.float32)
F = mint.nn.functional
CROSS_ENTROPIES = {
    "ops": lambda p, y, w, reduction: ops.binary_cross_entropy(p, y, w, reduction),
    "mint": lambda p, y, w, reduction: F.binary_cross_entropy(p, y, w, reduction),
    "primitive": lambda p, y, w, reduction: ops.BinaryCrossEntropy(reduction)(p, y, w),
    "layer": lambda p, y, w, reduction: nn.BCELoss(w, reduction)(p, y),
}


@case(over={f"{name}_{word}": (name, word) for name in CROSS_ENTROPIES for word in ("none", "mean", "sum")}, rtol=2e-6, graph=True)
def binary_cross_entropy(row):
    name, reduction = row
    p, y, w = map(Tensor, (PROBABILITIES, LABELS, WEIGHTS))

    def loss(p):
        return CROSS_ENTROPIES[name](p, y, w, reduction)

    return {"loss": loss(p).asnumpy(), "gradient": ms.grad(loss)(p).asnumpy()}


@case(graph=True)
def binary_cross_entropy_of_nan():
    p, y = Tensor([np.nan, 0.5], ms.float32), Tensor([1.0, 0.0])
    return {
        "loss": ops.binary_cross_entropy(p, y, None, "none").asnumpy(),
        "gradient": ms.grad(lambda p: ops.binary_cross_entropy(p, y, None, "none"))(p).asnumpy(),
    }


@case(over={str(scale): scale for scale in (1e-16, 1e-12, 1e-8, 1e-4, 1.0, 1e8, 1e12)}, rtol=1e-5, atol=1e-6)
def cosine_embedding_loss(scale):
    a = Tensor(np.array([[1, 2], [1, 1]], np.float32) * np.float32(scale))
    b = Tensor(np.array([[1, 3], [2, 1]], np.float32) * np.float32(scale))
    target = Tensor(np.array([1, -1], np.int32))

    def loss(a, b):
        return ops.cosine_embedding_loss(a, b, target, 0.1, "none")

    gradients = ms.grad(loss, (0, 1))(a, b)
    scaled = [g.asnumpy() * np.float32(scale) for g in gradients]
    return {"loss": loss(a, b).asnumpy(), "first": scaled[0], "second": scaled[1]}


@case()
def corners():
    """Gradients exactly at a margin, where two branches meet."""
    x = Tensor([0.0, 1, 2, -1, 0.5])
    signs = Tensor([-1.0, -1, 1, -1, -1])
    near = Tensor(np.array([[1, 0], [0, 1], [1, 1]], np.float32))
    other = Tensor(np.array([[1, 0], [1, 0], [1, 1]], np.float32))
    targets = Tensor(np.array([1, -1, -1], np.int32))
    return {
        "hinge": ms.grad(lambda x: ops.hinge_embedding_loss(x, signs, 1.0, "none"))(x).asnumpy(),
        "hinge of other targets": ops.hinge_embedding_loss(Tensor([0.3, 0.3, 0.3]), Tensor([0.0, 0.5, -2.0]), 1.0, "none").asnumpy(),
        "cosine": np.round(ms.grad(lambda x: ops.cosine_embedding_loss(x, other, targets, 0.0, "none"))(near).asnumpy(), 5),
    }


@case(rtol=1e-5)
def poisson_of_targets_up_to_one():
    rates, targets = Tensor([0.5, 1.0, 2.0, 3.0]), Tensor([0.0, 1.0, 0.5, 4.0])
    out = {}
    for log_input in (True, False):
        loss = nn.PoissonNLLLoss(log_input, True, reduction="none")
        out[f"loss {log_input}"] = loss(rates, targets).asnumpy()
        for position in (0, 1):
            out[f"gradient {log_input} {position}"] = ms.grad(loss, position)(rates, targets).asnumpy()
    return out


@case(rtol=1e-5)
def large_logarithms_of_sums():
    x = Tensor(np.array([[3e38, 3e38, 1], [1e20, 1e20, 1e20], [88, 89, 90], [-1e20, -1e20, 0]], np.float32))
    return {"value": ops.logsumexp(x, 1).asnumpy(), "gradient": ms.grad(lambda x: ops.logsumexp(x, 1))(x).asnumpy()}


@case()
def below_the_domain():
    x = Tensor([-3.0, -1.5, 0.5, 1.5, 2.0])
    y = Tensor([1.0, 0.0, 2.0, 0.0, -1.0])
    return {
        "acosh": ops.acosh(x).asnumpy(), "gradient of acosh": ms.grad(ops.acosh)(x).asnumpy(),
        "MulNoNan": ops.MulNoNan()(x, y).asnumpy(), "MulNoNan by x": ms.grad(lambda x, y: ops.MulNoNan()(x, y), 0)(x, y).asnumpy(),
        "MulNoNan by y": ms.grad(lambda x, y: ops.MulNoNan()(x, y), 1)(x, y).asnumpy(),
    }


@case(rtol=1e-4, atol=1e-6)
def gamma_functions_by_their_first_argument():
    a, x = Tensor([0.5, 1.0, 2.0, 5.0]), Tensor([1.0, 0.5, 3.0, 4.0])
    return {f"{name} {position}": ms.grad(getattr(ops, name), position)(a, x).asnumpy()
            for name in ("igamma", "igammac") for position in (0, 1)}
