"""What constructors refuse: the kind of error for each of many calls with one bad argument, and for calls that are right."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case, raised

NAMES = {
    "nn": nn, "ops": ops, "P": ops.operations, "ms": ms, "np": np, "inf": float("inf"), "nan": float("nan"),
    "weights": lambda: [ms.Parameter(ms.Tensor(np.ones(2, np.float32)), name="w")],
}

FAMILIES = {
    "windows_of_pools": """
        MaxPool2d(2, ()) MaxPool2d((2, 2, 2)) MaxPool2d(kernel_size=(2, 2)) MaxPool2d(2, pad_mode="pad", padding=[1, 1]) AvgPool2d((2,))
        AvgPool2d(2, padding=(), pad_mode="pad") AvgPool2d(2, divisor_override=0) AvgPool2d(2, divisor_override=-1)
        AvgPool2d(2, divisor_override=()) MaxPool1d((2,)) MaxPool1d((2, 2)) MaxPool1d(2, (2,)) AvgPool1d((2, 2)) AvgPool1d((2,))
        AvgPool1d(2, ()) MaxPool3d((2,)) MaxPool3d((2, 2)) MaxPool3d((2, 2, 2)) MaxPool3d(2, ()) AvgPool3d((2,) * 7)
        AvgPool3d(2, divisor_override=0) AvgPool3d(2, pad_mode="pad", padding=(1, 1)) MaxPool2d(True) MaxPool2d([2, 2]) MaxPool2d((2, 0))
        MaxPool2d(2, -1) AvgPool2d(2, pad_mode="pad", padding=-1)
    """,
    "windows_of_convolutions": """
        Conv1d(2, 4, (3,)) Conv1d(2, 4, 3, stride=(1,)) Conv1d(2, 4, 3, dilation=[1]) Conv1d(2, 4, True) Conv1d(2, 4, 3, padding=(0, 0))
        Conv2d(2, 4, (3,)) Conv2d(2, 4, (3, 3, 3)) Conv2d(2, 4, [3, 3]) Conv2d(2, 4, 3, (1, 1, 2, 2)) Conv2d(2, 4, 3, dilation=(1,))
        Conv2d(2, 4, 3, pad_mode="pad", padding=(1, 1)) Conv2d(2, 4, 3, pad_mode="pad", padding=(1, 1, 1, 1)) Conv2d(2, 4, 0)
        Conv2d(2, 4, 3, 0) Conv2d(2, 4, 3, dilation=0) Conv2d(2, 4, 3, pad_mode="pad", padding=-1) Conv2d(2, 4, True)
        Conv2d(2, 4, 3, has_bias=1) Conv2d(2, 4, 3, has_bias=None) Conv2d(2, 4, 3, data_format="NHCW") Conv2d(2, 4, 3, data_format=None)
        Conv3d(2, 4, (3, 3)) Conv3d(2, 4, 3, (1,)) Conv3d(2, 4, 3, dilation=(1, 1)) Conv3d(2, 4, [3, 3, 3]) Conv3d(2, 4, 3, has_bias="a")
        Conv3d(2, 4, 3, pad_mode="pad", padding=(1, 1, 1)) Conv3d(2, 4, 3, data_format="NDHWC") Conv3d(2, 4, 3, pad_mode="SAME")
        Conv1dTranspose(2, 4, (3,)) Conv1dTranspose(2, 4, 3, has_bias=1) Conv2dTranspose(2, 4, (3, 3, 3)) Conv2dTranspose(2, 4, [3, 3])
        Conv2dTranspose(2, 4, 3, pad_mode="pad", padding=(1, 1)) Conv3dTranspose(2, 4, (3, 3)) Conv3dTranspose(2, 4, True)
        Dense(2, 4, has_bias=1) Dense(2, 4, has_bias=None)
    """,
    "windows_of_other_pools": """
        MaxUnpool2d((2, 2)) AdaptiveMaxPool2d(2, return_indices=True)
    """,
    "norms": """
        BatchNorm1d(3, data_format="bad") BatchNorm2d(3, data_format=None) BatchNorm2d(3, momentum=-0.1) BatchNorm2d(3, eps=1e-3)
        GroupNorm(1, 3, eps=1) GroupNorm(1, 3, affine=1) GroupNorm(0, 3) GroupNorm(True, 3) GroupNorm(2, 3)
    """,
    "rates": """
        ExponentialDecayLR(1, 0.9, 4) ExponentialDecayLR(0.1, 1, 4) ExponentialDecayLR(inf, 0.9, 4) ExponentialDecayLR(0.1, 0.9, 4, 1)
        NaturalExpDecayLR(0.1, nan, 4) NaturalExpDecayLR(0.1, 0.9, 4, None) InverseDecayLR(1, 0.9, 4) InverseDecayLR(0.1, 0.9, 4.0)
        CosineDecayLR(0, 0.1, 4) CosineDecayLR(0.0, 1, 4) CosineDecayLR(0.0, inf, 4) CosineDecayLR(0.0, 0.1, 0) CosineDecayLR(0.2, 0.1, 4)
        PolynomialDecayLR(1, 0.1, 4, 1.0) PolynomialDecayLR(0.1, 0.01, 4, 1) PolynomialDecayLR(0.1, inf, 4, 1.0)
        PolynomialDecayLR(0.1, 1, 4, 1.0) PolynomialDecayLR(0.1, 0.01, 4, 0.5, 1) WarmUpLR(inf, 4) WarmUpLR(-0.1, 4) WarmUpLR(0.0, 4)
        WarmUpLR(0.1, 4) WarmUpLR(1, 4)
    """,
    "optimizers": """
        Adam(weights(), inf) Adam(weights(), nan) Adam(weights(), eps=1) Adam(weights(), eps=inf) Adam(weights(), eps=0.0)
        Adam(weights(), 0) Adam(weights(), weight_decay=inf) Adam(weights(), beta1=1.0) Adam(weights(), beta1=1) Adam(weights(), -0.1)
        Momentum(weights(), inf, 0.9) Momentum(weights(), 0.1, 1) Momentum(weights(), 0.1, -0.9) Momentum(weights(), 0.1, 0.9, -1.0)
        SGD(weights(), nan) AdaMax(weights(), eps=1) Adagrad(weights(), inf) Adagrad(weights(), weight_decay=inf)
        Adadelta(weights(), loss_scale=inf) Adadelta(weights(), epsilon=inf) FTRL(weights(), l1=inf) FTRL(weights(), learning_rate=0.0)
        FTRL(weights(), learning_rate=inf) LazyAdam(weights(), eps=1) LazyAdam(weights(), loss_scale=nan)
        ProximalAdagrad(weights(), accum=inf) RMSProp(weights(), inf) AdamWeightDecay(weights(), eps=1)
        AdamWeightDecay(weights(), weight_decay=inf) ASGD(weights(), inf) Rprop(weights(), inf) Lamb(weights(), inf)
        Lamb(weights(), 0.1, eps=1)
    """,
    "primitives": """
        ops.MaxPool(2, [2, 2]) ops.MaxPool((2,)) ops.MaxPool(2, True) ops.MaxPool(2, data_format="bad") ops.AvgPool3D(2, (1, 1))
        ops.AvgPool3D(2, divisor_override=-1) ops.MaxPool3D((2, 2)) ops.MaxPool3DWithArgmax((2,), 1, 0) ops.Conv2D(4, (3, 3, 3))
        ops.Conv2D(4, [3, 3]) ops.Conv2D(4, 3, pad_mode="SAME") ops.Conv2D(4, 3, stride=(1, 1, 2, 2)) ops.Conv2D(4, 3, stride=(1,))
        ops.Conv2D(4, 3, pad_mode="pad", pad=(1, 1)) ops.Conv2D(4, 3, pad_mode="pad", pad=-1) ops.Conv2DTranspose(4, 3, pad_mode="x")
        ops.Conv3D(4, [3, 3, 3]) ops.Conv3D(4, 3, stride=(1, 1)) ops.Conv3D(4, 3, pad_mode="SAME")
        ops.Conv3DTranspose(2, 4, 3, pad_mode="x") ops.ApplyMomentum(gradient_scale=1) ops.ApplyAdagradV2(1) ops.ApplyAdamWithAmsgrad(1)
        ops.ApproximateEqual(1) ops.Dropout2D(1) ops.CropAndResize(extrapolation_value=1) ops.FillDiagonal(1) ops.LRN(bias=1)
        ops.LogSpace(base=-1) ops.LpNorm(1, -1)
        ops.LpNorm(1, epsilon=-0.5) ops.MultiMarginLoss(margin=1) ops.NMSWithMask(1) ops.Pdist(1) ops.ROIAlign(2, 2, 1) ops.Renorm(1, 0, 1)
        ops.ROIAlign(2, 2, 0.5, 2, 3) ops.ROIAlign(2, 2, 0.5, 2, 0) ops.SparseApplyFtrl(0.0, 0.0, 0.0, -0.5)
        ops.SparseApplyFtrl(0.1, -0.1, 0.0, -0.5) ops.SparseApplyFtrl(0.1, 0.0, 0.0, 0.5) ops.SparseApplyFtrl(0.1, 0.0, 0.0, -0.5)
        ops.SparseApplyRMSProp(1.5, 0.1, 0.1) ops.SparseApplyRMSProp(0.5, -0.1, 0.1) ops.SparseApplyRMSProp(0.5, 0.1, 0.0)
        ops.SparseApplyAdagradV2(1, 0.1) ops.Histogram(5, 0, 1) ops.Col2Im((2,)) ops.Col2Im(2, padding=-1)
    """,
    "losses": """
        MarginRankingLoss(0.5) MultiMarginLoss(margin=1) MultiMarginLoss(p=3) TripletMarginWithDistanceLoss(margin=1) DiceLoss(0.0)
        DiceLoss(1) FocalLoss(gamma=2) CrossEntropyLoss(label_smoothing=1.5) CrossEntropyLoss(label_smoothing=0.1) SmoothL1Loss(0.5)
        L1Loss("avg") HuberLoss("avg") CosineEmbeddingLoss(2.0)
    """,
}


def calls(text: str) -> list[str]:
    """The calls of a text: they are apart by a blank after a closing bracket and before a capital letter."""
    results, depth, start = [], 0, 0
    joined = " ".join(text.split())
    for index, letter in enumerate(joined):
        depth += (letter in "([") - (letter in ")]")
        if letter in ")" and not depth:
            results.append(joined[start:index + 1].strip())
            start = index + 1
    return results


@case(over={name: name for name in FAMILIES})
def refused(family):
    return {call: kind_of_error(call) for call in calls(FAMILIES[family])}


def kind_of_error(call: str) -> str | None:
    """What the call raises; a name without a module is one of nn."""
    return raised(lambda: eval(call if "." in call.partition("(")[0] else f"nn.{call}", dict(NAMES)))
