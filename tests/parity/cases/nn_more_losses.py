"""Losses as Cells and as functions: values for each reduction, gradients, and what is refused."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case, raised

rng = np.random.RandomState(9)
X = rng.randn(3, 4).astype(np.float32)
Y = rng.randn(3, 4).astype(np.float32)
CHANCES = np.abs(rng.rand(3, 4)).astype(np.float32) + 0.05
SIGNS = np.where(rng.rand(3, 4) > 0.5, 1, -1).astype(np.float32)
CLASSES = np.array([1, 3, 0], np.int32)
IMAGE = rng.randn(2, 3, 4, 2).astype(np.float32)

LOSSES = {
    "MAELoss": (lambda r: nn.MAELoss(r), (X, Y)),
    "HuberLoss": (lambda r: nn.HuberLoss(r, 0.7), (X, Y)),
    "KLDivLoss": (lambda r: nn.KLDivLoss(r), (X, CHANCES)),
    "KLDivLoss_below_zero": (lambda r: nn.KLDivLoss(r), (X, Y)),
    "CosineEmbeddingLoss": (lambda r: nn.CosineEmbeddingLoss(0.2, r), (X, Y, np.array([1, -1, -1], np.int32))),
    "HingeEmbeddingLoss": (lambda r: nn.HingeEmbeddingLoss(0.8, r), (X, SIGNS)),
    "MarginRankingLoss": (lambda r: nn.MarginRankingLoss(0.3, r), (X, Y, SIGNS)),
    "MultiMarginLoss": (lambda r: nn.MultiMarginLoss(2, 0.7, r), (X, CLASSES.astype(np.int64))),
    "MultiLabelSoftMarginLoss": (lambda r: nn.MultiLabelSoftMarginLoss(reduction=r), (X, (SIGNS > 0).astype(np.float32))),
    "TripletMarginWithDistanceLoss": (lambda r: nn.TripletMarginWithDistanceLoss(reduction=r, swap=True), (X, Y, CHANCES)),
    "PoissonNLLLoss": (lambda r: nn.PoissonNLLLoss(reduction=r), (X, CHANCES * 4)),
    "PoissonNLLLoss_full": (lambda r: nn.PoissonNLLLoss(False, True, 1e-6, r), (CHANCES, CHANCES * 4)),
    "GaussianNLLLoss": (lambda r: nn.GaussianNLLLoss(reduction=r), (X, Y, CHANCES)),
    "GaussianNLLLoss_full": (lambda r: nn.GaussianNLLLoss(full=True, eps=0.3, reduction=r), (X, Y, CHANCES)),
    "FocalLoss": (lambda r: nn.FocalLoss(reduction=r), (X, CLASSES.reshape(3, 1))),
    "FocalLoss_image": (
        lambda r: nn.FocalLoss(ms.Tensor([0.5, 1.0, 2.0]), 1.5, r), (IMAGE, np.abs(IMAGE[:, :1] * 0).astype(np.int32) + 2)),
    "FocalLoss_shares": (lambda r: nn.FocalLoss(ms.Tensor([0.5, 1.0, 2.0]), reduction=r), (IMAGE, np.abs(IMAGE))),
}


@case(over=LOSSES, rtol=1e-4, atol=1e-5, graph=True)
def loss(row):
    make, arrays = row
    return {reduction: make(reduction)(*map(ms.Tensor, arrays)).asnumpy() for reduction in ("mean", "sum", "none")}


# Where a label is below 0, 2.10's loss is 0 and its gradient is not.
@case(over={name: row for name, row in LOSSES.items() if name != "KLDivLoss_below_zero"}, rtol=1e-3, atol=1e-4)
def gradient(row):
    make, arrays = row
    return {"gradient": ms.grad(make("mean"))(*map(ms.Tensor, arrays)).asnumpy()}


HALVES = "MAELoss HuberLoss KLDivLoss HingeEmbeddingLoss MarginRankingLoss PoissonNLLLoss GaussianNLLLoss CosineEmbeddingLoss".split()


@case(over={name: LOSSES[name] for name in HALVES}, rtol=1e-2, atol=1e-2)
def half(row):
    make, arrays = row
    arrays = [array.astype(np.float16) if array.dtype == np.float32 else array for array in arrays]
    return {reduction: make(reduction)(*map(ms.Tensor, arrays)).asnumpy() for reduction in ("mean", "none")}


@case(rtol=1e-4, atol=1e-5, graph=True)
def whole():
    x, y = ms.Tensor(CHANCES), ms.Tensor(np.abs(Y))
    margin_loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: ops.abs(a - b).sum(-1), margin=0.5)
    return {
        "RMSELoss": nn.RMSELoss()(ms.Tensor(X), ms.Tensor(Y)).asnumpy(),
        "DiceLoss": nn.DiceLoss(0.1)(x, y).asnumpy(),
        "MultiClassDiceLoss": nn.MultiClassDiceLoss()(x, y).asnumpy(),
        "MultiClassDiceLoss_one_out": nn.MultiClassDiceLoss(ignore_indiex=1, activation="sigmoid")(x, y).asnumpy(),
        "MultiClassDiceLoss_weights": nn.MultiClassDiceLoss(ms.Tensor(X[:, :2].repeat(2, 0)[:4]), None, None)(x, y).asnumpy(),
        "KLDivLoss_batchmean": nn.KLDivLoss("batchmean")(ms.Tensor(X), x).asnumpy(),
        "own_distance": margin_loss(ms.Tensor(X), ms.Tensor(Y), x).asnumpy(),
    }


TIMES = rng.randn(6, 2, 5).astype(np.float32)
TARGETS = np.array([[1, 2, 2], [3, 1, 0]], np.int32)


def chances():
    return ops.log_softmax(ms.Tensor(TIMES), 2)


@case(rtol=1e-4, atol=1e-4)
def ctc():
    lengths = ms.Tensor([6, 4], ms.int32), ms.Tensor([3, 2], ms.int32)
    short = ms.Tensor([3, 4], ms.int32), ms.Tensor([3, 2], ms.int32)
    results = {r: nn.CTCLoss(reduction=r)(chances(), ms.Tensor(TARGETS), *lengths).asnumpy() for r in ("mean", "sum", "none")}
    return {
        **results, "blank": nn.CTCLoss(4)(chances(), ms.Tensor(TARGETS), *lengths).asnumpy(),
        # zero_infinity is not recorded: 2.10's loss stays infinite on the CPU.
        "infinite": nn.CTCLoss(reduction="none")(chances(), ms.Tensor(TARGETS), *short).asnumpy(),
        "function": ops.ctc_loss(chances(), ms.Tensor(TARGETS), *lengths)[0].asnumpy(),
        "CTCLossV2": ops.CTCLossV2()(chances(), ms.Tensor(TARGETS), *lengths)[0].asnumpy(),
    }


@case(rtol=1e-3, atol=1e-4)
def ctc_of_logits():
    # Beyond the end of a sequence 2.10's gradient is what lay in the memory; ours is 0.
    indices, values = ms.Tensor([[0, 0], [0, 1], [1, 0]], ms.int64), ms.Tensor([1, 3, 2], ms.int32)
    losses, gradient = ops.CTCLoss()(ms.Tensor(TIMES), indices, values, ms.Tensor([6, 4], ms.int32))
    summed = ms.grad(lambda x: ops.CTCLoss()(x, indices, values, ms.Tensor([6, 4], ms.int32))[0].sum())(ms.Tensor(TIMES))
    return {"losses": losses.asnumpy(), "gradient": gradient.asnumpy()[:4], "summed": summed.asnumpy()[:4]}


@case(over={"merged": True, "apart": False}, rtol=1e-5)
def ctc_greedy_decoder(merges):
    peaks = np.zeros((6, 2, 5), np.float32)
    for time, (first, second) in enumerate([(1, 4), (1, 0), (4, 0), (1, 4), (2, 2), (2, 3)]):
        peaks[time, 0, first] = peaks[time, 1, second] = 2.0 + time
    result = ops.ctc_greedy_decoder(ms.Tensor(peaks), ms.Tensor([6, 5], ms.int32), merges)
    primitive = ops.CTCGreedyDecoder(merges)(ms.Tensor(peaks), ms.Tensor([6, 5], ms.int32))
    return {**{f"part{i}": part.asnumpy() for i, part in enumerate(result)},
            **{f"own{i}": part.asnumpy() for i, part in enumerate(primitive)}}


FUNCTIONS = {
    "huber_loss": lambda r: ops.huber_loss(ms.Tensor(X), ms.Tensor(Y), r, 0.5),
    "cosine_embedding_loss": lambda r: ops.cosine_embedding_loss(ms.Tensor(X), ms.Tensor(Y), ms.Tensor([1, -1, 1]), 0.1, r),
    "hinge_embedding_loss": lambda r: ops.hinge_embedding_loss(ms.Tensor(X), ms.Tensor(SIGNS), 0.9, r),
    "margin_ranking_loss": lambda r: ops.margin_ranking_loss(ms.Tensor(X), ms.Tensor(Y), ms.Tensor(SIGNS), 0.2, r),
    "multi_margin_loss": lambda r: ops.multi_margin_loss(ms.Tensor(X), ms.Tensor(CLASSES.astype(np.int64)), 2, 2, reduction=r),
    "multilabel_soft_margin_loss": lambda r: ops.multilabel_soft_margin_loss(ms.Tensor(X), ms.Tensor(CHANCES), reduction=r),
    "gaussian_nll_loss": lambda r: ops.gaussian_nll_loss(ms.Tensor(X), ms.Tensor(Y), ms.Tensor(CHANCES), True, reduction=r),
    "KLDivLoss": lambda r: ops.KLDivLoss(r)(ms.Tensor(X), ms.Tensor(CHANCES)),
    "BinaryCrossEntropy": lambda r: ops.BinaryCrossEntropy(r)(ms.Tensor(CHANCES * 0.8), ms.Tensor(CHANCES * 0.9), ms.Tensor(np.abs(X))),
    "BCEWithLogitsLoss": lambda r: ops.BCEWithLogitsLoss(r)(*map(ms.Tensor, (X, CHANCES, np.abs(Y), np.abs(X)))),
    "MultiMarginLoss": lambda r: ops.MultiMarginLoss(1, 0.5, r)(ms.Tensor(X), ms.Tensor(CLASSES.astype(np.int64))),
    "NLLLoss": lambda r: ops.NLLLoss(r, 3)(ms.Tensor(X), ms.Tensor(CLASSES), ms.Tensor(CHANCES[0]))[0],
}


@case(over=FUNCTIONS, rtol=1e-4, atol=1e-5, graph=True)
def function(call):
    return {reduction: call(reduction).asnumpy() for reduction in ("mean", "sum", "none")}


@case(graph=True, rtol=1e-5, over={"without_hits": True, "with_hits": False})
def sampled_softmax(removes_hits):
    loss = nn.SampledSoftmaxLoss(5, 40, 2, remove_accidental_hits=removes_hits, seed=7, reduction="none")
    weights = ms.Tensor(np.linspace(-1, 1, 120).reshape(40, 3).astype(np.float32))
    biases = ms.Tensor(np.linspace(-1, 1, 40).astype(np.float32))
    labels, x = ms.Tensor(np.array([[1, 2], [30, 4]], np.int32)), ms.Tensor(np.array([[1, 2, 3], [-1, 0.5, 0]], np.float32))
    return {f"loss_{number}": loss(weights, biases, labels, x).asnumpy() for number in range(3)}


@case(rtol=1e-5)
def counted_weights():
    return {"total": ops.NLLLoss("mean", 3)(ms.Tensor(X), ms.Tensor(CLASSES), ms.Tensor(CHANCES[0]))[1].asnumpy()}


@case(over={
    "types": [
        lambda: nn.CosineEmbeddingLoss("a"), lambda: nn.DiceLoss("a"), lambda: nn.FocalLoss(gamma="a"), lambda: nn.GaussianNLLLoss(eps="a"),
        lambda: nn.SampledSoftmaxLoss("a", 5), lambda: nn.MultiClassDiceLoss(ignore_indiex=1.5),
    ],
    "values": [
        lambda: nn.MAELoss("max"), lambda: nn.CosineEmbeddingLoss(2.0), lambda: nn.FocalLoss(reduction="max"),
        lambda: nn.DiceLoss()(ms.Tensor(X), ms.Tensor(Y[:2])), lambda: nn.FocalLoss()(ms.Tensor(X), ms.Tensor(IMAGE)),
        lambda: nn.SampledSoftmaxLoss(9, 5), lambda: nn.GaussianNLLLoss(eps=-1.0),
        lambda: nn.HuberLoss(delta=-1.0)(*map(ms.Tensor, (X, Y))),
    ],
})
def refused(calls):
    return {"errors": [raised(call) for call in calls]}
