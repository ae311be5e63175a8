"""Forms of arguments that hardly a program writes, and dtypes that hardly one computes in: what random calls beside MindSpore found."""
from __future__ import annotations

import mindspore as ms
import mindspore.scipy.fft as fft
import numpy as np
from mindspore import Tensor, mint, nn, ops
from parity.case import case

ROWS = Tensor(np.array([[1, 5, 3], [4, 2, 6]], np.float32))
INTEGERS = [Tensor(numbers, ms.int64) for numbers in ([3, -5, 7], [2, 5, -3], [3, 2, 2])]
TRUTH = Tensor([[True, False], [True, True]])
COMPLEX = Tensor(np.array([1 + 2j, 3 - 1j, 0.5j], np.complex64))
LARGE = Tensor(np.array([2**63 + 5, 3, 7], np.uint64))
FOUR = Tensor([[[1.0, 2.0, 4.0, 8.0]]])
PIXELS = Tensor([[[[1, 2], [3, 4]]]], ms.int32)
IMAGE = Tensor(np.random.RandomState(0).rand(1, 1, 6, 6).astype(np.float32))
CHANCES = ops.log_softmax(Tensor(np.random.RandomState(0).randn(6, 2, 5).astype(np.float32)), -1)



def upwards(**options):
    layer = nn.Conv2dTranspose(1, 2, 3, 2, pad_mode="pad", weight_init="ones", has_bias=True, bias_init="ones", **options)
    return layer(Tensor(np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)))


FORMS = {
    "gather": lambda: ops.gather(ROWS, Tensor([-1, 0], ms.int32), 0),
    "gather axis 1": lambda: ops.gather(ROWS, Tensor([-1, -3], ms.int64), 1),
    "gather batch_dims": lambda: ops.gather(ROWS, Tensor([[-1], [0]], ms.int32), 1, 1),
    "gather_d": lambda: ops.gather_d(ROWS, 1, Tensor([[-1], [-2]], ms.int32)),
    "gather_elements": lambda: ops.gather_elements(ROWS, 1, Tensor([[-1], [-2]], ms.int64)),
    "mint.gather": lambda: mint.gather(ROWS, 1, Tensor([[-1], [-2]], ms.int64)),
    "index_select": lambda: ops.index_select(ROWS, 0, Tensor([-1], ms.int32)),
    "Embedding": lambda: nn.Embedding(2, 3, embedding_table=ROWS)(Tensor([-1], ms.int32)),
    "Tensor.take": lambda: ROWS.take(Tensor([-1, 5, -9], ms.int64), 1),
    "Tensor.take flat": lambda: ROWS.take(Tensor([-1, -9, 9], ms.int32)),
    "max with its place": lambda: ROWS.max(return_indices=True),
    "min with its place": lambda: ROWS.min(axis=None, keepdims=True, return_indices=True),
    "dct": lambda: fft.dct(COMPLEX),
    "idct": lambda: fft.idct(COMPLEX),
    "idctn": lambda: fft.idctn(COMPLEX),
    "slogdet": lambda: ops.slogdet(Tensor(np.array([[2 + 1j, 1], [0, 3]], np.complex64))),
    "LogMatrixDeterminant": lambda: ops.LogMatrixDeterminant()(Tensor(np.array([[2 + 1j, 1], [0, 3]], np.complex64))),
    "LayerNorm": lambda: ops.LayerNorm()(*(Tensor(v, ms.float16) for v in ([[1, 2, 4]], [1, 1, 1], [0, 0, 0])))[1:],
    "ResizeLinear1D": lambda: ops.ResizeLinear1D("half_pixel")(FOUR, Tensor([1], ms.int32)),
    "interpolate": lambda: ops.interpolate(FOUR, size=1, mode="linear", align_corners=False),
    "Upsample": lambda: nn.Upsample(size=(1,), mode="linear")(FOUR),
    "addcdiv": lambda: ops.addcdiv(*INTEGERS, Tensor([2, 1, 3], ms.int64)),
    "Tensor.addcdiv": lambda: INTEGERS[0].addcdiv(INTEGERS[1], INTEGERS[2], Tensor(2, ms.int64)),
    "l1_loss sum": lambda: ops.l1_loss(PIXELS, PIXELS * 2, "sum"),
    "l1_loss mean": lambda: ops.l1_loss(PIXELS.astype(ms.int8), PIXELS.astype(ms.int8) * 2),
    "lp_pool1d": lambda: ops.lp_pool1d(Tensor([[[1, 2, 3, 4]]]), 2, 2),
    "LPPool2d": lambda: nn.LPPool2d(2, 2)(PIXELS),
    "movedim": lambda: ops.movedim(FOUR, (0,), 2),
    "ReduceSum": lambda: ops.ReduceSum(True)(TRUTH, 1),
    "max of large": lambda: ops.max(LARGE),
    "topk of large": lambda: ops.topk(LARGE, 2),
    "clamp of large": lambda: ops.clamp(LARGE, 4, 2**40),
    "maximum of large": lambda: ops.maximum(LARGE, Tensor([4], ms.uint64)),
    "log alpha": lambda: ops.ctc_loss(CHANCES, *(Tensor(v, ms.int32) for v in ([[1, 2, 2], [3, 1, -1]], [6, 4], [2, 1])), reduction="none"),
    "norm of a matrix by 2.0": lambda: ops.norm(ROWS, 2.0),
    "norm of matrices by 1.0": lambda: ops.norm(FOUR * ROWS[:, :1], 1.0, (-2, -1), True),
    "Tensor.norm by 1": lambda: ROWS.norm(1),
    "NumPy's int as an axis": lambda: (
        ops.sum(ROWS, np.int64(0)), ops.any(TRUTH, np.int32(1)), mint.sum(ROWS, np.int64(1)), ROWS.max(np.int64(0))[1],
    ),
    "NumPy's int as a shape": lambda: (
        ops.ones(np.int64(2), ms.float32), ops.zeros(np.int64(2), ms.float32), FOUR[:1].squeeze(np.int64(0)),
    ),
    "NumPy's numbers": lambda: ms.common.initializer.initializer(np.float32(2.5), [2], ms.float32).init_data(),
    "unsigned": lambda: (ops.neg(LARGE), ops.nonzero(LARGE), ops.tril(LARGE.reshape(1, 3)), ops.masked_select(LARGE, LARGE == LARGE)),
    "unsigned scattered": lambda: ops.tensor_scatter_update(LARGE, Tensor([[1]]), Tensor([2**63], ms.uint64)),
    "Conv2dTranspose": lambda: upwards(padding=1, output_padding=1),
    "Conv2dTranspose to one side": lambda: upwards(padding=1, output_padding=(0, 1)),
    "ResizeNearestNeighbor": lambda: ops.ResizeNearestNeighbor((13, 9), align_corners=True)(Tensor(np.arange(42.0).reshape(1, 1, 7, 6))),
    "ResizeNearestNeighborV2": lambda: ops.ResizeNearestNeighborV2(half_pixel_centers=True)(IMAGE, Tensor([9, 4], ms.int32)),
    "LayerNorm of float16": lambda: nn.LayerNorm((6,), dtype=ms.float16)(IMAGE),
    "GroupNorm of float16": lambda: nn.GroupNorm(1, 1, dtype=ms.float16)(IMAGE),
    "Range": lambda: nn.Range(5, delta=1.0)(),
    "SubAndFilter": lambda: ops.SubAndFilter()(Tensor([1, 5, 7, 9], ms.int64), 6, 2),
}


@case(over=FORMS, rtol=1e-5)
def form(call):
    result = call()
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return {f"{index} {part.dtype}": part.asnumpy() for index, part in enumerate(parts)}


SOFT, LABELS, SCORES = (Tensor([row]) for row in ([0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [1.0, 2.0, 3.0]))
TRUE_CLASS, SHARES = Tensor([1], ms.int32), Tensor([1.0, 2.0, 3.0])


def upwards_of(image):
    return nn.Conv2dTranspose(1, 1, 3, 2, pad_mode="pad", padding=1, output_padding=1, weight_init="ones")(image) ** 2


GRADIENTS = {
    "kl_div": (lambda a, b: ops.kl_div(ops.log(a), b, "sum"), SOFT, LABELS),
    "KLDivLoss": (lambda a, b: nn.KLDivLoss("batchmean")(ops.log(a), b), SOFT, LABELS),
    "SoftmaxCrossEntropyWithLogits": (lambda a, b: nn.SoftmaxCrossEntropyWithLogits(reduction="sum")(a, b), SCORES, LABELS),
    "SigmoidCrossEntropyWithLogits": (lambda a, b: ops.SigmoidCrossEntropyWithLogits()(a, b).sum(), SCORES, LABELS),
    "binary_cross_entropy": (lambda a, b, c: ops.binary_cross_entropy(a, b, c, "sum"), SOFT, LABELS, LABELS + 1),
    "with logits": (
        lambda a, b, c, d: ops.binary_cross_entropy_with_logits(a, b, c, d, "sum"), SCORES, LABELS, LABELS + 1, LABELS + 2,
    ),
    "nll_loss": (lambda a, c: ops.nll_loss(ops.log_softmax(a, 1), TRUE_CLASS, c, reduction="sum"), SCORES, SHARES),
    "nll_loss smoothed": (lambda a, c: ops.nll_loss(ops.log_softmax(a, 1), TRUE_CLASS, c, label_smoothing=0.2), SCORES, SHARES),
    "cross_entropy": (lambda a, c: ops.cross_entropy(a, TRUE_CLASS, c), SCORES, SHARES),
    "NLLLoss": (lambda a, c: ops.NLLLoss("sum")(ops.log_softmax(a, 1), TRUE_CLASS, c)[0], SCORES, SHARES),
    "gaussian_nll_loss": (
        lambda a, b, c: ops.gaussian_nll_loss(a, b, c, eps=0.1, reduction="sum"), SCORES, LABELS, Tensor([[1.0, 0.0, 0.05]]),
    ),
    "ROIAlign": (lambda i, r: ops.ROIAlign(2, 2, 1.0, 2)(i, r).sum(), IMAGE, Tensor([[0.0, 1.0, 1.0, 4.0, 4.5]])),
    "IOU": (lambda a, b: ops.IOU()(a, b).sum(), Tensor([[0.0, 0.0, 2.0, 2.0]]), Tensor([[1.0, 1.0, 3.0, 3.0]])),
    "Conv2dTranspose": (
        lambda i: upwards_of(i).sum(), Tensor(np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)),
    ),
    "sgn": (lambda a: a.sgn().sum(), SCORES),
}


@case(over=GRADIENTS, rtol=1e-4, atol=1e-5, graph=True)
def gradient(arguments):
    function, *values = arguments
    grads = ms.grad(function, tuple(range(len(values))))(*values)
    return {str(index): tensor.asnumpy() for index, tensor in enumerate(grads if isinstance(grads, tuple) else (grads,))}
