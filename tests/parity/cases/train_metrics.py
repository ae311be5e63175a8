"""The metrics of `mindspore.train`: their numbers, and what they refuse."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, train
from parity.case import case, raised

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
    metric_object = make()
    once = metric_object(*batch)
    metric_object.clear()
    metric_object.update(*batch)
    metric_object.update(*batch)
    return {"once": np.asarray(once), "twice": np.asarray(metric_object.eval())}


@case()
def chosen_outputs():
    accuracy = train.Accuracy()
    accuracy.set_indexes([0, 2])
    accuracy.clear()
    accuracy.update(SCORES, 1, LABELS)
    precision = train.Precision()
    precision.clear()
    precision.update(SCORES, LABELS)
    return {
        "indexes": accuracy.indexes,
        "value": accuracy.eval(),
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
        return {"error": next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")}
    return {"error": None}


RATES = (
    "sensitivity specificity precision,negative predictive value,miss_rate,fall out,fdr,for,prevalence threshold,threat_score,acc,ba,f1,"
    "mcc,fm,bm,markedness,Hit_Rate,tpr,selectivity,tnr,ppv,npv,fnr,fpr,csi,informedness,deltap"
).replace("y s", "y,s").replace("y p", "y,p").split(",")
BATCHES = [(np.random.RandomState(3).rand(4, 2, 3, 4) > 0.5).astype(np.float32)[i] for i in range(4)]


@case(over=RATES, rtol=1e-9)
def rate(name):
    results = {}
    for skip in (True, False):
        entry = train.ConfusionMatrixMetric(skip, name)
        entry.update(ms.Tensor(BATCHES[0]), ms.Tensor(BATCHES[1]))
        entry.update(BATCHES[2], BATCHES[3])
        results[f"skip {skip}"] = np.asarray(entry.eval())
    for decrease in ("mean", "sum"):     # of one class: of several 2.10 leaves the first out where it shall not
        each = train.ConfusionMatrixMetric(True, name, True, decrease)
        each.update(BATCHES[0].reshape(6, 1, 4), BATCHES[1].reshape(6, 1, 4))
        each.update(*[(x * (np.arange(3) > 0)[:, None]).reshape(3, 1, 8) for x in BATCHES[2:]])
        results[decrease] = np.asarray(each.eval())
    nothing = train.ConfusionMatrixMetric(True, name)
    nothing.update(np.zeros((2, 1, 2)), np.zeros((2, 1, 2)))
    return {**results, "of zeros": np.asarray(nothing.eval())}


class OfImage(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, weight_init=ms.Tensor((np.arange(18).reshape(2, 1, 3, 3) / 10 - 0.7).astype(np.float32)))
        self.dense = nn.Dense(60, 3, weight_init=ms.Tensor((np.arange(180).reshape(3, 60) % 7 / 10 - 0.2).astype(np.float32)),
            bias_init="zeros")

    def construct(self, x):
        return self.dense(self.conv(x).reshape(x.shape[0], -1))


@case(over={"": {}, "margin": {"margin": 1}, "batches": {"n_batch": 7}, "box": {"b_box": [0, 0, 1, 3, 1, 2]}, "open box": {"b_box": [0, 0,
    1, 4, -1, -1]},
            "value": {"pad_val": 1.5}}, rtol=1e-4, atol=2e-6)
def occlusion(keywords):
    """A difference of two answers, of which 1e-6 is the last place."""
    entry = train.OcclusionSensitivity(**keywords)
    image = np.random.RandomState(1).rand(1, 1, 6, 5).astype(np.float32)
    entry.update(OfImage(), ms.Tensor(image), np.array(1, np.int32))
    first = entry.eval()
    entry.update(OfImage(), image * 2, ms.Tensor(2, ms.int32))
    return {"first": first, "second": entry.eval()}


@case(over={
    "rate": lambda: train.ConfusionMatrixMetric(True, "nope")(BATCHES[0], BATCHES[1]), "flag": lambda: train.ConfusionMatrixMetric(3),
    "name": lambda: train.ConfusionMatrixMetric(True, 3), "reduction": lambda: train.ConfusionMatrixMetric(True, "tpr", True, "x"),
    "shapes": lambda: train.ConfusionMatrixMetric().update(BATCHES[0], BATCHES[1][:1]),
    "one": lambda: train.ConfusionMatrixMetric().update(BATCHES[0]),
    "axis": lambda: train.ConfusionMatrixMetric().update(np.ones(3), np.ones(3)),
    "none": lambda: train.ConfusionMatrixMetric(calculation_method=True).eval(),
    "pad": lambda: train.OcclusionSensitivity("x"), "margin": lambda: train.OcclusionSensitivity(margin="x"),
    "batch": lambda: train.OcclusionSensitivity(n_batch=1.5), "box": lambda: train.OcclusionSensitivity(b_box=3),
    "length": lambda: train.OcclusionSensitivity(b_box=[1, 2]).update(OfImage(), np.ones((1, 1, 6, 5), np.float32), np.array(1)),
    "images": lambda: train.OcclusionSensitivity().update(OfImage(), np.ones((2, 1, 6, 5), np.float32), np.array(1)),
    "early": lambda: train.OcclusionSensitivity().eval(), "two": lambda: train.OcclusionSensitivity().update(np.ones(2), np.ones(2)),
})
def rate_refused(call):
    return {"raised": raised(call)}
