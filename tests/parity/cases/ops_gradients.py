"""The primitives of `mindspore.ops.operations._grad_ops`: gradients that programs compute by themselves."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.ops.operations import _grad_ops as G
from parity.case import case

X = np.array([[-2.5, -1.0, -0.5, 0.0], [0.25, 0.5, 1.0, 3.0]], np.float32)
INSIDE = X / np.float32(4)
ABOVE = np.abs(X) + np.float32(0.25)
DY = np.array([[1.0, -2.0, 3.0, 0.5], [2.0, 1.5, -1.0, 4.0]], np.float32)
ROW = np.array([0.5, 1.0, 2.0, -1.0], np.float32)
SCALE = np.ones(4, np.float32)
MASK = (X > 0).astype(np.float32)
MATRIX = np.array([[2.0, 0.0], [1.0, 3.0]], np.float32)
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
SMALL = np.array([[[[1.0, -2.0], [3.0, 4.0]]]], np.float32)
MEAN = X.mean(1, keepdims=True)
VARIANCE = X.var(1, keepdims=True) + np.float32(1e-5)


def both(name, first, second, *, init=(), seconds=None):
    def make():
        primitive = getattr(G, name, None) or getattr(ops.auto_generate, name)
        return primitive(*init)(*[ms.Tensor(v) if isinstance(v, np.ndarray) else v for v in (first, second, *(seconds or ()))])

    return make


OF_ONE_INPUT = {
    **{name: both(name, X, DY) for name in ("AbsGrad", "AtanGrad", "HShrinkGrad", "SoftShrinkGrad", "FastGeLUGrad")},
    **{name: both(name, INSIDE, DY) for name in ("ACosGrad", "AsinGrad")},
    **{name: both(name, ABOVE, DY) for name in "AcoshGrad AsinhGrad InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad TanhGrad".split()},
    **{name: both(name, DY, X) for name in ("ReluGrad", "ReLU6Grad", "EluGrad", "SoftplusGrad", "SiLUGrad", "HSigmoidGrad")},
    "HSwishGrad": both("HSwishGrad", np.array([1.0, 2.0, 3.0, 4.0], np.float32), np.array([-3.0, -1.0, 3.0, 3.5], np.float32)),
    "SqrtGrad": both("SqrtGrad", DY, ABOVE),
    "LogitGrad": both("LogitGrad", DY, ABOVE / 4),
    "LogitGrad_eps": both("LogitGrad", DY, ABOVE / 4, init=(0.2,)),
    "DropoutGrad": both("DropoutGrad", DY, MASK, init=(0.25,)),
    "LogSoftmaxGrad": both("LogSoftmaxGrad", X, DY),
    "GluGrad": both("GluGrad", DY[:, :2], X, init=(-1,)),
    "GeLUGrad": lambda: G.GeLUGrad()(ms.Tensor(DY), ms.Tensor(X), ops.gelu(ms.Tensor(X))),
    "BiasAddGrad": lambda: G.BiasAddGrad()(ms.Tensor(DY)),
    "FlattenGrad": both("FlattenGrad", DY, (4, 2)),
    "KLDivLossGrad": both("KLDivLossGrad", np.array(2.0, np.float32), X, seconds=(ABOVE,), init=("sum",)),
    "SigmoidCrossEntropyWithLogitsGrad": both("SigmoidCrossEntropyWithLogitsGrad", X, MASK, seconds=(DY,)),
    "SmoothL1LossGrad": both("SmoothL1LossGrad", X, DY, seconds=(ABOVE,)),
    "BinaryCrossEntropyGrad": both("BinaryCrossEntropyGrad", ABOVE / 4, MASK, seconds=(DY, ABOVE), init=("none",)),
    "L2NormalizeGrad": lambda: G.L2NormalizeGrad(1)(ms.Tensor(X), ops.L2Normalize(1)(ms.Tensor(X)), ms.Tensor(DY)),
    "TraceGrad": both("TraceGrad", np.array(2.5, np.float32), np.array([2, 3])),
    "MaskedSelectGrad": both("MaskedSelectGrad", X, X > 0, seconds=(ROW,)),
    "StridedSliceGrad": both("StridedSliceGrad", DY[:, :2], (2, 4), seconds=((0, 0), (2, 4), (1, 2))),
    "SliceGrad": both("SliceGrad", DY[:, :2], X, seconds=((0, 1), (2, 2))),
    "AdaptiveAvgPool2DGrad": both("AdaptiveAvgPool2DGrad", SMALL, np.array([1, 1, 4, 4])),
    "ResizeNearestNeighborGrad": both("ResizeNearestNeighborGrad", IMAGE, (2, 2)),
    "ResizeBilinearGrad": both("ResizeBilinearGrad", IMAGE, SMALL, init=(True,)),
    "CdistGrad": both("CdistGrad", MATRIX, X[:, :3], seconds=(DY[:, :3], np.array([[5.0, 6.0], [3.0, 4.0]], np.float32)), init=(3.0,)),
    "GatherDGradV2": both("GatherDGradV2", X, 1, seconds=(np.array([[0, 0], [3, 1]]), DY[:, :2])),
}
OF_TWO = {
    "MaximumGrad": both("MaximumGrad", X, ROW, seconds=(DY,)),
    "MinimumGrad": both("MinimumGrad", X, ROW, seconds=(DY,)),
    "PReLUGrad": both("PReLUGrad", DY, X, seconds=(ROW,)),
    "LayerNormGrad": both("LayerNormGrad", X, DY, seconds=(VARIANCE, MEAN, ROW)),
    "LstsqV2Grad": both("LstsqV2Grad", DY[:, :2], np.array([[2.0, 1.0], [0.0, 1.0]], np.float32), seconds=(MATRIX,)),
}


@case(rtol=2e-5, atol=1e-6, over=OF_ONE_INPUT)
def gradient_of(make):
    return {"gradient": make().asnumpy()}


@case(rtol=2e-5, atol=1e-6, over=OF_TWO)
def gradients_of(make):
    return {f"gradient_{index}": tensor.asnumpy() for index, tensor in enumerate(make())}


@case(rtol=1e-6, graph=True, over={"valid": ("VALID", 2, 1), "same": ("SAME", (1, 1, 2, 2, 2), (1, 1, 2, 1, 2))})
def volume_patches(how):
    padding, kernel, strides = how
    volume = np.arange(2 * 3 * 4 * 3, dtype=np.float32).reshape(1, 2, 3, 4, 3)
    return {"patches": ops.ExtractVolumePatches(kernel, strides, padding)(ms.Tensor(volume)).asnumpy()}
