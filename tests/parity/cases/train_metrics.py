"""The metrics of `mindspore.train`: their numbers, and what they refuse."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import train
from parity.case import case

SCORES = ms.Tensor(np.array([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.9, 0.05, 0.05], [0.3, 0.3, 0.4]], np.float32))
LABELS = ms.Tensor(np.array([1, 0, 0, 2], np.int32))
ONE_HOT = ms.Tensor(np.eye(3, dtype=np.float32)[[1, 0, 0, 2]])
SETS = ms.Tensor(np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1]], np.float32))
TRUE_SETS = ms.Tensor(np.array([[0, 1, 1], [1, 0, 1], [0, 1, 1]], np.int32))
PARTS = ms.Tensor(np.array([[0.2, 0.6, 0.9], [0.7, 0.1, 0.4]], np.float32))
TRUE_PARTS = ms.Tensor(np.array([[0, 1, 1], [1, 0, 1]], np.int32))
WIDE = ms.Tensor(np.random.RandomState(0).rand(4, 7).astype(np.float32))


def ints(*values):
    return ms.Tensor(np.array(values))


METRICS = {
    "Accuracy": (lambda: train.Accuracy(), (SCORES, LABELS)),
    "Accuracy one-hot": (lambda: train.Accuracy(), (SCORES, ONE_HOT)),
    "Accuracy of sets": (lambda: train.Accuracy("multilabel"), (SETS, TRUE_SETS)),
    "Precision": (lambda: train.Precision(), (SCORES, LABELS)),
    "Precision of sets": (lambda: train.Precision("multilabel"), (SETS, TRUE_SETS)),
    "Recall": (lambda: train.Recall(), (SCORES, LABELS)),
    "Recall of sets": (lambda: train.Recall("multilabel"), (SETS, TRUE_SETS)),
    "MAE": (lambda: train.MAE(), (SCORES, ONE_HOT)),
    "MSE": (lambda: train.MSE(), (SCORES, ONE_HOT)),
    "Loss": (lambda: train.Loss(), (ms.Tensor(np.float32(0.5)),)),
    "Top1": (lambda: train.Top1CategoricalAccuracy(), (SCORES, LABELS)),
    "Top2": (lambda: train.TopKCategoricalAccuracy(2), (SCORES, ONE_HOT)),
    "Top5": (lambda: train.Top5CategoricalAccuracy(), (WIDE, LABELS)),
    "F1": (lambda: train.F1(), (SCORES, LABELS)),
    "Fbeta": (lambda: train.Fbeta(2), (SCORES, LABELS)),
    "ConfusionMatrix": (lambda: train.ConfusionMatrix(3), (ints(0, 1, 2, 2), ints(0, 1, 1, 2))),
    "ConfusionMatrix of scores": (lambda: train.ConfusionMatrix(3), (SCORES, LABELS)),
    "ConfusionMatrix target": (lambda: train.ConfusionMatrix(3, "target"), (ints(0, 1, 2, 2), ints(0, 1, 1, 2))),
    "ConfusionMatrix prediction": (lambda: train.ConfusionMatrix(3, "prediction"), (ints(0, 1, 2, 2), ints(0, 1, 1, 2))),
    "ConfusionMatrix all": (lambda: train.ConfusionMatrix(3, "all"), (ints(0, 1, 2, 2), ints(0, 1, 1, 2))),
    "Perplexity": (lambda: train.Perplexity(), (SCORES, LABELS)),
    "Perplexity, ignored": (lambda: train.Perplexity(0), (SCORES, LABELS)),
    "CosineSimilarity": (lambda: train.CosineSimilarity(), (SCORES,)),
    "CosineSimilarity mean": (lambda: train.CosineSimilarity("dot", "mean"), (SCORES,)),
    "Dice": (lambda: train.Dice(), (PARTS, TRUE_PARTS)),
}


@case(over=list(METRICS), rtol=1e-6)
def metric(name):
    make, batch = METRICS[name]
    one = make()
    once = one(*batch)
    one.clear()
    one.update(*batch)
    one.update(*batch)
    return {"once": np.asarray(once), "twice": np.asarray(one.eval())}


@case()
def chosen_outputs():
    one = train.Accuracy()
    one.set_indexes([0, 2])
    one.clear()
    one.update(SCORES, 1, LABELS)
    precision = train.Precision()
    precision.clear()
    precision.update(SCORES, LABELS)
    return {
        "indexes": one.indexes,
        "value": one.eval(),
        "average": float(precision.eval(True)),
        "auc": float(train.auc(np.array([0, 0.5, 1.0]), np.array([0, 0.7, 1.0]))),
    }


REFUSED = {
    "eval_type": lambda: train.Accuracy("x"),
    "eval first": lambda: train.Accuracy().eval(),
    "one value": lambda: train.Accuracy().update(SCORES),
    "shapes": lambda: train.Accuracy().update(SCORES, ints(1, 2)),
    "sets of scores": lambda: train.Accuracy("multilabel").update(PARTS, TRUE_PARTS),
    "MSE sizes": lambda: train.MSE().update(SCORES, LABELS),
    "Loss of a matrix": lambda: train.Loss().update(SCORES),
    "Loss of two": lambda: train.Loss().update(SCORES, SCORES),
    "Loss eval first": lambda: train.Loss().eval(),
    "top 0": lambda: train.TopKCategoricalAccuracy(0),
    "top text": lambda: train.TopKCategoricalAccuracy("a"),
    "Fbeta 0": lambda: train.Fbeta(0),
    "normalize": lambda: train.ConfusionMatrix(3, "x"),
    "indexes": lambda: train.Accuracy().set_indexes(3),
    "unknown": lambda: train.get_metric_fn("q"),
}


@case(over=list(REFUSED))
def refused(name):
    try:
        REFUSED[name]()
    except Exception as error:
        return {"error": next(one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins")}
    return {"error": None}
