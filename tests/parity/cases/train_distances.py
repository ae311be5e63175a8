"""Metrics of surfaces, curves and translations."""
from __future__ import annotations

import mindspore.train as train
import numpy as np
from mindspore import Tensor
from parity.case import case

RANDOM = np.random.RandomState(0)
X = np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]])
Y = np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]])
CUBES = RANDOM.randint(0, 2, (5, 6, 4)), RANDOM.randint(0, 2, (5, 6, 4))
CALLS = {
    f"{name} {distance} {label} {kind}": (name, {"distance_metric": distance, **keywords}, arrays, label)
    for name, keywords, kind in (
        ("HausdorffDistance", {}, ""), ("HausdorffDistance", {"directed": True}, "directed"),
        ("HausdorffDistance", {"percentile": 50.0}, "half"), ("MeanSurfaceDistance", {}, ""),
    )
    for distance in ("euclidean", "chessboard", "taxicab") for label, arrays in ((0, (X, Y)), (1, (X, Y)), (1.0, CUBES), (7, (X, Y)))
}


def measured(metric, *inputs):
    try:
        metric.update(*inputs)
        result = metric.eval()
    except (TypeError, ValueError, RuntimeError) as error:
        return {"raised": type(error).__name__}
    return {"found": np.asarray(result, np.float64)}


@case(over=CALLS, rtol=1e-12)
def surfaces(item):
    name, keywords, (x, y), label = item
    return measured(getattr(train, name)(**keywords), Tensor(x), Tensor(y), label)


CANDIDATES = [["i", "have", "a", "pen", "on", "my", "desk"], ["the", "cat", "sat"]]
REFERENCES = [
    [["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]],
    [["the", "cat", "sat", "down"], ["a", "cat"]],
]


@case(over={f"{n} {smooth} {count}": (n, smooth, count) for n in (1, 2, 3, 4) for smooth in (False, True) for count in (1, 2)}, rtol=1e-12)
def bleu(item):
    return measured(train.BleuScore(*item[:2]), CANDIDATES[: item[2]], REFERENCES[: item[2]])


EDGES = {
    "nothing in common": ([["a"]], [[["b"]]]), "short": ([["a", "b"]], [[["a", "b", "c", "d"]]]), "uneven": ([["a"], ["b"]], [[["b"]]]),
}


@case(over=EDGES)
def bleu_edges(item):
    return measured(train.BleuScore(2), *item)


ROCS = {
    "example": ({"pos_label": 2}, [0.28, 0.55, 0.15, 0.05], [0, 1, 2, 3]), "two": ({}, [3.0, 1, 4, 2], [0, 1, 1, 0]),
    "equal scores": ({}, [1.0, 1, 2, 2, 0.5], [0, 1, 1, 0, 1]),
    "several": ({"class_num": 3}, [[0.28, 0.55, 0.15], [0.1, 0.2, 0.05], [0.2, 0.05, 0.15]], [0, 1, 2]),
}


@case(over=ROCS, rtol=1e-12)
def roc(item):
    keywords, scores, labels = item
    metric = train.ROC(**keywords)
    metric.update(Tensor(np.array(scores)), Tensor(np.array(labels)))
    curves = metric.eval()
    if isinstance(curves[0], list):
        return {f"{kind} {n}": np.asarray(array, np.float64) for kind, arrays in zip("ftx", curves) for n, array in enumerate(arrays)}
    return {kind: np.asarray(array, np.float64) for kind, array in zip("ftx", curves)}
