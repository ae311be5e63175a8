"""The primitives that are gradients of others: pools, convolutions, resizes, pads, samplings, norms, margins, sums of segments."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.ops import operations as P
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations.math_ops import Median
from parity.case import case

LRN = P.LRN(2, 1.0, 0.5, 0.75)


def t(values, dtype=np.float32):
    return ms.Tensor(np.array(values, dtype))


def ints(*values):
    return t(values, np.int32)


def of(*shape, start=0.5):
    """Numbers that all differ and turn signs, of a shape."""
    count = int(np.prod(shape))
    return t((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape))


def numbered(result):
    return {str(at): tensor.asnumpy() for at, tensor in enumerate(result if isinstance(result, (tuple, list)) else (result,))}


def max_pool(mode):
    x = of(2, 3, 6, 6)
    out = P.MaxPool(2, 2, mode)(x)
    return G.MaxPoolGrad(2, 2, mode)(x, out, of(*out.shape, start=1.0))


def avg_pool(mode):
    x = of(2, 3, 5, 5)
    out = P.AvgPool(3, 2, mode)(x)
    return G.AvgPoolGrad(3, 2, mode)(x, out, of(*out.shape, start=1.0))


def max_pool_3d():
    x = of(1, 2, 4, 4, 4)
    out = P.MaxPool3D(2, 2, "VALID")(x)
    return G.MaxPool3DGrad((1, 1, 2, 2, 2), (1, 1, 2, 2, 2), "VALID")(x, out, of(*out.shape, start=1.0))


def adaptive_max_2d():
    x = of(1, 2, 5, 5)
    out, indices = P.AdaptiveMaxPool2D((3, 2))(x)
    return G.AdaptiveMaxPool2DGrad()(of(*out.shape, start=1.0), x, indices)


def adaptive_max_3d():
    x = of(1, 2, 4, 5, 5)
    out, indices = P.AdaptiveMaxPool3D()(x, ints(2, 3, 2))
    return G.AdaptiveMaxPool3DGrad()(of(*out.shape, start=1.0), x, indices)


def argmax_v2():
    x = of(1, 2, 6, 6)
    out, indices = P.MaxPoolWithArgmaxV2(3, 2, 1)(x)
    return G.MaxPoolGradWithArgmaxV2(3, 2, 1)(x, of(*out.shape, start=1.0), indices)


def batch_norm(training):
    x = of(3, 2, 4, 4)
    result = P.BatchNorm(is_training=training)(x, t([1, 2]), t([0.5, -1]), t([0.1, 0.2]), t([1.5, 0.7]))
    mean, variance = (result[3], result[4]) if training else (t([0.1, 0.2]), t([1.5, 0.7]))
    return G.BatchNormGrad(training, 1e-5)(of(3, 2, 4, 4, start=1.0), x, t([1, 2]), mean, variance, result[3])


GRADIENTS = {
    "max_pool_valid": lambda: max_pool("valid"),
    "max_pool_same": lambda: max_pool("same"),
    "avg_pool_valid": lambda: avg_pool("valid"),
    "avg_pool_same": lambda: avg_pool("same"),
    "max_pool_3d": max_pool_3d,
    "avg_pool_3d": lambda: G.AvgPool3DGrad((1, 1, 2, 2, 2), (1, 1, 2, 2, 2), (0,) * 6)((1, 2, 4, 4, 4), of(1, 2, 2, 2, 2)),
    "adaptive_avg_3d": lambda: G.AdaptiveAvgPool3DGrad()(of(1, 2, 2, 3, 2), ints(1, 2, 4, 5, 5)),
    "adaptive_max_2d": adaptive_max_2d,
    "adaptive_max_3d": adaptive_max_3d,
    "argmax_v2": argmax_v2,
    "conv_filter": lambda: G.Conv2DBackpropFilter(4, 3, stride=(1, 1, 2, 2))(of(2, 4, 2, 2), of(2, 3, 5, 5), (4, 3, 3, 3)),
    "conv_filter_same": lambda: G.Conv2DBackpropFilter(4, 3, "same", stride=(1, 1))(of(2, 4, 5, 5), of(2, 3, 5, 5), (4, 3, 3, 3)),
    "conv_filter_3d": lambda: G.Conv3DBackpropFilter(2, 2)(of(1, 3, 4, 4, 4), of(1, 2, 3, 3, 3), (2, 3, 2, 2, 2)),
    "mirror_pad": lambda: G.MirrorPadGrad("REFLECT")(of(1, 2, 5, 6), t([[0, 0], [0, 0], [1, 1], [2, 1]], np.int64)),
    "mirror_pad_symmetric": lambda: G.MirrorPadGrad("SYMMETRIC")(of(1, 2, 5, 6), t([[0, 0], [0, 0], [1, 1], [2, 1]], np.int64)),
    "pad_v3_reflect": lambda: G.PadV3Grad("reflect")(of(1, 2, 5, 6), t([2, 1, 1, 1], np.int64)),
    "pad_v3_edge": lambda: G.PadV3Grad("edge")(of(1, 2, 5, 6), t([2, 1, 1, 1], np.int64)),
    "bicubic": lambda: G.ResizeBicubicGrad()(of(1, 2, 6, 8), of(1, 2, 3, 4)),
    "bicubic_corners": lambda: G.ResizeBicubicGrad(align_corners=True)(of(1, 2, 6, 8), of(1, 2, 3, 4)),
    "linear": lambda: G.ResizeLinear1DGrad()(of(1, 2, 7), of(1, 2, 4)),
    "linear_half_pixel": lambda: G.ResizeLinear1DGrad("half_pixel")(of(1, 2, 7), of(1, 2, 4)),
    "nearest_v2": lambda: G.ResizeNearestNeighborV2Grad()(of(1, 2, 6, 8), ints(3, 4)),
    "nearest_3d": lambda: G.UpsampleNearest3DGrad()(of(1, 2, 4, 6, 4), (1, 2, 2, 3, 2), (4, 6, 4), None),
    "trilinear_3d": lambda: G.UpsampleTrilinear3DGrad(True)(of(1, 2, 4, 6, 4), (1, 2, 2, 3, 2), (4, 6, 4), None),
    "affine_grid": lambda: G.AffineGridGrad()(of(2, 3, 4, 2), (2, 1, 3, 4)),
    "grid_sampler_3d": lambda: G.GridSampler3DGrad()(of(1, 2, 2, 3, 2), of(1, 2, 3, 4, 3), t(np.tanh(of(1, 2, 3, 2, 3).asnumpy()))),
    "roi_align": lambda: G.ROIAlignGrad(2, 2, 0.5, 2)(of(1, 2, 2, 2), t([[0, 1.0, 1.0, 6.0, 7.0]]), (1, 2, 5, 5)),
    "lrn": lambda: G.LRNGrad(2, 1.0, 0.5, 0.75)(of(1, 6, 2, 2), of(1, 6, 2, 2, start=1.0), LRN(of(1, 6, 2, 2, start=1.0))),
    "batch_norm": lambda: batch_norm(False),
    "batch_norm_training": lambda: batch_norm(True),
    "pdist": lambda: G.PdistGrad(2.0)(of(6), of(4, 3), P.Pdist(2.0)(of(4, 3))),
    "median": lambda: G.MedianGrad(False, 1, False)(of(3), of(3, 5), *Median(False, 1, False)(of(3, 5))),
    "mvlgamma": lambda: G.MvlgammaGrad(3)(of(2, 2), t([[3, 4], [5, 6]])),
    "igamma_a": lambda: G.IgammaGradA()(t([0.5, 2.0, 3.0]), t([1.0, 0.5, 4.0])),
    "multi_margin": lambda: G.MultiMarginLossGrad()(t(1.0), of(3, 4), t([0, 3, 1], np.int64), t([1, 2, 1, 0.5])),
    "nll": lambda: G.NLLLossGrad("mean")(of(3, 4), t(2.0), ints(0, 3, 1), t([1, 2, 1, 0.5]), t(3.5)),
    "nll_none": lambda: G.NLLLossGrad("none")(of(3, 4), of(3), ints(0, 3, 1), t([1, 2, 1, 0.5]), t(3.5)),
    "maximum_grad": lambda: G.MaximumGradGrad()(of(2, 3), of(2, 3, start=1.0), of(2, 3, start=2.0), of(2, 3, start=3.0)),
    "minimum_grad": lambda: G.MinimumGradGrad()(of(2, 3), of(2, 3, start=1.0), of(2, 3, start=2.0), of(2, 3, start=3.0)),
    "segment_mean": lambda: G.SparseSegmentMeanGrad()(of(2, 3), ints(0, 2, 3), ints(0, 0, 1), ints(5)[0]),
    "segment_root": lambda: G.SparseSegmentSqrtNGrad()(of(2, 3), ints(0, 2, 3), ints(0, 0, 1), ints(5)[0]),
}


@case(over={name: name for name in GRADIENTS}, rtol=1e-4, atol=1e-5)
def gradient(name):
    return numbered(GRADIENTS[name]())
