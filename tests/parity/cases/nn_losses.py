"""Losses, as layers and as functions, for each reduction, and their gradients."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

rng = np.random.RandomState(5)
SCORES = rng.randn(4, 5).astype(np.float32)
OTHER = rng.randn(4, 5).astype(np.float32)
SHARES = (1 / (1 + np.exp(-SCORES))).astype(np.float32)
FLAGS = (OTHER > 0).astype(np.float32)
CLASSES = np.array([1, 0, 4, 2], np.int32)
LOGS = (SCORES - np.log(np.exp(SCORES).sum(1, keepdims=True))).astype(np.float32)
SOFT = (np.exp(OTHER) / np.exp(OTHER).sum(1, keepdims=True)).astype(np.float32)

CELLS = {
    "MSELoss": (SCORES, OTHER),
    "L1Loss": (SCORES, OTHER),
    "SmoothL1Loss": (SCORES, OTHER),
    "BCELoss": (SHARES, FLAGS),
    "BCEWithLogitsLoss": (SCORES, FLAGS),
    "CrossEntropyLoss": (SCORES, CLASSES),
    "NLLLoss": (LOGS, CLASSES),
}
FUNCTIONS = {
    "mse_loss": (SCORES, OTHER),
    "l1_loss": (SCORES, OTHER),
    "smooth_l1_loss": (SCORES, OTHER),
    "cross_entropy": (SCORES, CLASSES),
    "nll_loss": (LOGS, CLASSES),
    "kl_div": (LOGS, SOFT),
}


def table(rows):
    return {f"{name}_{reduction}": (name, reduction, *arrays) for name, arrays in rows.items() for reduction in ("mean", "sum", "none")}


@case(over=table(CELLS), rtol=1e-4, atol=1e-5, graph=True)
def cell(row):
    name, reduction, scores, labels = row
    return {"output": getattr(nn, name)(reduction=reduction)(ms.Tensor(scores), ms.Tensor(labels)).asnumpy()}


@case(over=table(FUNCTIONS), rtol=1e-4, atol=1e-5)
def function(row):
    name, reduction, scores, labels = row
    return {"output": getattr(ops, name)(ms.Tensor(scores), ms.Tensor(labels), reduction=reduction).asnumpy()}


@case(over={name: (name, *arrays) for name, arrays in CELLS.items()}, rtol=1e-4, atol=1e-5)
def gradient(row):
    name, scores, labels = row
    loss = getattr(nn, name)(reduction="mean")
    return {"output": ms.grad(lambda x: loss(x, ms.Tensor(labels)))(ms.Tensor(scores)).asnumpy()}


@case(rtol=1e-4, atol=1e-5, graph=True)
def softmax_cross_entropy():
    one_hot = np.eye(5, dtype=np.float32)[CLASSES]
    scores = ms.Tensor(SCORES)
    return {
        "sparse": nn.SoftmaxCrossEntropyWithLogits(sparse=True)(scores, ms.Tensor(CLASSES)).asnumpy(),
        "dense_mean": nn.SoftmaxCrossEntropyWithLogits(reduction="mean")(scores, ms.Tensor(one_hot)).asnumpy(),
        "primitive": ops.SoftmaxCrossEntropyWithLogits()(scores, ms.Tensor(one_hot))[0].asnumpy(),
        "primitive_gradient": ops.SoftmaxCrossEntropyWithLogits()(scores, ms.Tensor(one_hot))[1].asnumpy(),
        "sparse_primitive": ops.SparseSoftmaxCrossEntropyWithLogits()(scores, ms.Tensor(CLASSES)).asnumpy(),
        "sigmoid": ops.SigmoidCrossEntropyWithLogits()(scores, ms.Tensor(FLAGS)).asnumpy(),
    }


@case(rtol=1e-4, atol=1e-5, graph=True)
def classes_outside_of_the_logits():
    scores, classes = ms.Tensor(SCORES), ms.Tensor(np.array([1, -1, 5, -100], np.int32))
    losses = {reduction: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction=reduction) for reduction in ("none", "sum")}
    return {
        **{reduction: loss(scores, classes).asnumpy() for reduction, loss in losses.items()},
        **{f"{reduction}_gradient": ms.grad(loss)(scores, classes).asnumpy() for reduction, loss in losses.items()},
    }


@case(rtol=1e-4, atol=1e-5)
def with_options():
    scores, classes = ms.Tensor(SCORES), ms.Tensor(CLASSES)
    weight = ms.Tensor(np.array([1, 2, 0.5, 1, 3], np.float32))
    return {
        "smoothing": nn.CrossEntropyLoss(label_smoothing=0.1)(scores, classes).asnumpy(),
        "weight": nn.CrossEntropyLoss(weight=weight)(scores, classes).asnumpy(),
        "ignore": nn.CrossEntropyLoss(ignore_index=4)(scores, classes).asnumpy(),
        "soft": nn.CrossEntropyLoss()(scores, ms.Tensor(SOFT)).asnumpy(),
        "beta": nn.SmoothL1Loss(beta=0.5, reduction="sum")(scores, ms.Tensor(OTHER)).asnumpy(),
        "SmoothL1Loss": ops.SmoothL1Loss(beta=0.5)(scores, ms.Tensor(OTHER)).asnumpy(),
        "binary_cross_entropy": ops.binary_cross_entropy(ms.Tensor(SHARES), ms.Tensor(FLAGS), ms.Tensor(FLAGS * 0 + 2)).asnumpy(),
        "with_logits": ops.binary_cross_entropy_with_logits(
            scores, ms.Tensor(FLAGS), ms.Tensor(FLAGS * 0 + 2), ms.Tensor(FLAGS * 0 + 1),
        ).asnumpy(),
    }


@case(over={"part of 1": 0.25, "0": 0.0, "more than 1": 2.0}, rtol=1e-4, atol=1e-5)
def gradient_by_labels_of_another_sum(share):
    labels, scores = ms.Tensor(share * np.eye(5, dtype=np.float32)[CLASSES]), ms.Tensor(SCORES)
    primitive, loss = ops.SoftmaxCrossEntropyWithLogits(), nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
    weights = ms.Tensor(np.linspace(-1, 2, len(SCORES), dtype=np.float32))
    return {
        "losses": ms.grad(lambda x: (primitive(x, labels)[0] * weights).sum())(scores).asnumpy(),
        "second result": ms.grad(lambda x: (primitive(x, labels)[1] * x).sum())(scores).asnumpy(),
        "layer": ms.grad(lambda x: loss(x, labels))(scores).asnumpy(),
        "labels": ms.grad(lambda y: loss(scores, y))(labels).asnumpy(),
    }
