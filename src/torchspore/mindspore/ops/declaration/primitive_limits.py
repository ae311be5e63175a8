"""Limits of the constructor arguments of primitives, as MindSpore 2.10 checks them."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import short
from torchspore.mindspore.ops.declaration.limits import (
    Rule,
    axes,
    dtypes,
    int_range,
    lengths,
    number,
    open_lengths,
    optional,
    real,
    sequence,
    shape,
    truth,
    volume,
    words,
)

_PLANES, _VOLUMES = words("NCHW", "NHWC"), words("NCDHW")
_POSITIVE, _FROM_0, _ONE = lengths(), lengths(least=0), int_range(1, 1)
_INDICES, _REALS = dtypes("Int32", "Int64"), dtypes("Float16", "Float32", "Float64")
_LISTS = (tuple, list)
_AXES, _AXES_ALONE = axes(tuple, list), axes(tuple, list, is_int_allowed=False)
_MODES, _EITHER_CASE = words("same", "valid", "pad"), words("same", "valid", "pad", either_case=True)
_POOL: dict[str, Rule] = {"kernel_size": lengths(2, 4), "strides": lengths(2, 4), "data_format": _PLANES}
_POOL_3D: dict[str, Rule] = {"kernel_size": volume(), "strides": volume(), "data_format": _VOLUMES}
_CONVOLUTION: dict[str, Rule] = {
    "out_channel": _POSITIVE, "kernel_size": lengths(2), "stride": lengths(2, 4), "dilation": lengths(2, 4), "pad": lengths(4, least=0),
    "pad_mode": _MODES, "mode": _ONE, "group": _POSITIVE, "data_format": _PLANES,
}
_TRANSPOSED: dict[str, Rule] = {**_CONVOLUTION, "pad_mode": _EITHER_CASE, "pad_list": optional(sequence(_LISTS))}
_CONVOLUTION_3D: dict[str, Rule] = {
    "out_channel": _POSITIVE, "kernel_size": lengths(3), "stride": volume(), "dilation": volume(),
    "pad": lengths(6, least=0), "pad_mode": _EITHER_CASE, "mode": _ONE, "group": _POSITIVE,
    "data_format": _VOLUMES,
}
_FTRL: dict[str, Rule] = {
    "lr": real(above=0.0), "l1": real(least=0.0), "l2": real(least=0.0), "lr_power": real(most=0.0),
}
_FRACTIONS: dict[str, Rule] = {"pooling_ratio": sequence(list, float)}
_BOXES: dict[str, Rule] = {"means": sequence(tuple, float, 4), "stds": sequence(tuple, float, 4)}
_FORMATS: dict[str, Rule] = {"src_format": _PLANES, "dst_format": _PLANES}
_TRIANGLE: dict[str, Rule] = {"row": _FROM_0, "col": _FROM_0, "dtype": _INDICES}
_ALIGNS: dict[str, Rule] = {"align": words("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")}
_BLOCK = lengths(*range(1, 9), kinds=_LISTS)
_SAMPLES: dict[str, Rule] = {"num_true": _POSITIVE, "num_sampled": _POSITIVE, "range_max": _POSITIVE}
_FILTERS: dict[str, Rule] = {
    "kernel_type": words("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"),
}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

LIMITS: dict[str, dict[str, Rule]] = {
    "AdaptiveAvgPool2D": {"output_size": open_lengths(2)},
    "AdaptiveAvgPool3D": {"output_size": open_lengths(1, 3)},
    "AdaptiveMaxPool2D": {"output_size": sequence(_LISTS)},
    "ApplyAdagradV2": {"epsilon": real()},
    "ApplyAdamWithAmsgrad": dict.fromkeys(("beta1", "beta2", "epsilon"), real()),
    "ApplyMomentum": {"gradient_scale": real()},
    "ApproximateEqual": {"tolerance": real()},
    "Argmax": {"output_type": _INDICES},
    "Argmin": {"output_type": _INDICES},
    "AvgPool": _POOL,
    "AvgPool3D": {**_POOL_3D, "pad": lengths(6, least=0, kinds=_LISTS), "divisor_override": _FROM_0},
    "BartlettWindow": {"dtype": _REALS},
    "BasicLSTMCell": {"keep_prob": real(least=0.0, most=1.0), "forget_bias": real(), "activation": words("tanh")},
    "BatchNorm": {
        "epsilon": real(above=0.0, most=1.0), "momentum": real(least=0.0, most=1.0), "data_format": words("NCHW", "NHWC", "NCDHW"),
    },
    "BatchToSpace": {"block_size": lengths(least=2), "crops": sequence(_LISTS)},
    "BatchToSpaceND": {"block_shape": _BLOCK, "crops": sequence(_LISTS)},
    "BiasAdd": {"data_format": words("NCHW", "NHWC", "NCDHW")},
    "BlackmanWindow": {"dtype": _REALS},
    "BoundingBoxDecode": {**_BOXES, "max_shape": sequence(tuple, count=2), "wh_ratio_clip": real()},
    "BoundingBoxEncode": _BOXES,
    "BroadcastTo": {"shape": shape},
    "Bucketize": {"boundaries": sequence(list, float)},
    "Cauchy": {"size": sequence(list, int), "median": real(), "sigma": real()},
    "Cdist": {"p": real(least=0.0)},
    "CeLU": {"alpha": real()},
    "Col2Im": {
        "kernel_size": lengths(2, kinds=_LISTS), "dilation": lengths(2, kinds=_LISTS), "padding": lengths(2, least=0, kinds=_LISTS),
        "stride": lengths(2, kinds=_LISTS),
    },
    "ComputeAccidentalHits": {"num_true": _POSITIVE},
    "Conv2D": _CONVOLUTION,
    "Conv2DBackpropInput": _TRANSPOSED,
    "Conv2DTranspose": _TRANSPOSED,
    "Conv3D": _CONVOLUTION_3D,
    "Conv3DTranspose": {**_CONVOLUTION_3D, "in_channel": _POSITIVE, "output_padding": lengths(3, 5, least=0)},
    "CountNonZero": {"dims": optional(_AXES)},
    "CropAndResize": {"extrapolation_value": real(), "method": words("bilinear", "nearest", "bilinear_v2")},
    "CropAndResizeGradBoxes": {"method": words("bilinear")},
    "DataFormatDimMap": _FORMATS,
    "DataFormatVecPermute": _FORMATS,
    "DeformableOffsets": {
        **dict.fromkeys(("strides", "pads", "dilations"), sequence(tuple, int, 4)), "ksize": sequence(tuple, int, 2),
        "data_format": _PLANES, "deformable_groups": _POSITIVE,
    },
    "DepthToSpace": {"block_size": lengths(least=2)},
    "Dilation2D": {"data_format": _PLANES, "pad_mode": words("same", "valid", either_case=True)},
    "Dropout2D": {"keep_prob": real(least=0.0, most=1.0)},
    "Dropout3D": {"keep_prob": real(least=0.0, most=1.0)},
    "ExtractGlimpse": {"noise": words("uniform", "gaussian", "zero")},
    "ExtractVolumePatches": {"padding": words("same", "valid", either_case=True)},
    "FFTWithSize": {"norm": words("backward", "forward", "ortho", either_case=True)},
    "FillDiagonal": {"fill_value": real()},
    "FractionalAvgPool": _FRACTIONS,
    "FractionalMaxPool": _FRACTIONS,
    "FractionalMaxPool3DWithFixedKsize": {
        "ksize": lengths(3), "output_shape": lengths(3), "data_format": words("NCDHW", "NDHWC"),
    },
    "FractionalMaxPoolWithFixedKsize": {"ksize": lengths(2), "output_shape": lengths(2), "data_format": words("NCHW")},
    "FusedSparseFtrl": _FTRL,
    "HammingWindow": {"alpha": real(), "beta": real(), "dtype": _REALS},
    "Histogram": {"bins": _POSITIVE, "min": real(), "max": real()},
    "HistogramFixedWidth": {"nbins": _POSITIVE, "dtype": words("int32")},
    "Im2Col": {
        **dict.fromkeys(("ksizes", "strides", "dilations"), lengths(1, 2, kinds=_LISTS)), "pads": lengths(1, 2, least=0, kinds=_LISTS),
    },
    "InplaceAdd": {"indices": axes(tuple)},
    "InplaceSub": {"indices": axes(tuple)},
    "InplaceUpdate": {"indices": axes(tuple)},
    "InstanceNorm": {"epsilon": real(above=0.0, most=1.0), "momentum": real(least=0.0, most=1.0)},
    "L2Normalize": {"axis": _AXES},
    "LARSUpdate": {"epsilon": real(), "hyperpara": real()},
    "LRN": {**dict.fromkeys(("bias", "alpha", "beta"), real()), "depth_radius": _FROM_0, "norm_region": words("ACROSS_CHANNELS")},
    "LSTM": {
        "dropout": real(least=0.0, most=1.0), "input_size": _POSITIVE, "hidden_size": _POSITIVE, "num_layers": _POSITIVE,
        "proj_size": _FROM_0,
    },
    "ListDiff": {"out_idx": _INDICES},
    "LogNormalReverse": {"mean": real(), "std": real()},
    "LogSpace": {"base": _FROM_0, "steps": _FROM_0, "dtype": _REALS},
    "LogUniformCandidateSampler": _SAMPLES,
    "Logit": {"eps": real()},
    "LowerBound": {"out_type": _INDICES},
    "LpNorm": {"axis": _AXES, "p": _FROM_0, "epsilon": real(least=0.0)},
    "Lu": {"output_idx_type": _INDICES},
    "MatrixDiagPartV3": _ALIGNS,
    "MatrixDiagV3": _ALIGNS,
    "MatrixSetDiagV3": _ALIGNS,
    "MaxPool": _POOL,
    "MaxPool3D": {**_POOL_3D, "pad_list": lengths(3, 6, least=0), "ceil_mode": optional(truth)},
    "MaxPool3DWithArgmax": {
        "ksize": lengths(3), "strides": lengths(3), "pads": lengths(3, least=0), "dilation": lengths(3), "data_format": _VOLUMES,
        "argmax_type": _INDICES,
    },
    "MaxPoolWithArgmax": _POOL,
    "MaxPoolWithArgmaxV2": {
        "kernel_size": lengths(2, 4), "strides": optional(lengths(2, 4)), "pads": lengths(2, 4, least=0), "dilation": lengths(2, 4),
        "argmax_type": _INDICES,
    },
    "MaxUnpool2D": {
        "ksize": lengths(2, 4), "strides": lengths(2, 4, least=0), "pads": lengths(2, 4, least=0), "output_shape": sequence(tuple),
        "data_format": _PLANES,
    },
    "MaxUnpool3D": {
        "ksize": volume(), "strides": volume(least=0), "pads": volume(least=0), "output_shape": sequence(tuple),
        "data_format": words("NCDHW", "NDHWC"),
    },
    "MirrorPad": {"mode": words("REFLECT", "SYMMETRIC")},
    "MultiMarginLoss": {"p": int_range(1, 2), "margin": real()},
    "Multinomial": {"dtype": _INDICES},
    "MultinomialWithReplacement": {"numsamples": _FROM_0},
    "Mvlgamma": {"p": _POSITIVE},
    "NMSWithMask": {"iou_threshold": real()},
    "NanToNum": dict.fromkeys(("nan", "posinf", "neginf"), optional(number)),
    "NoRepeatNGram": {"ngram_size": _POSITIVE},
    "NonDeterministicInts": {"dtype": dtypes("Int32", "Int64", "UInt32", "UInt64")},
    "NuclearNorm": {"dim": optional(sequence(_LISTS, int))},
    "Pad": {"paddings": sequence(tuple)},
    "PadV3": {"mode": words("constant", "reflect", "edge", "circular")},
    "Padding": {"pad_dim_size": _POSITIVE},
    "Pdist": {"p": real(least=0.0)},
    "ROIAlign": {"spatial_scale": real(), "roi_end_mode": int_range(0, 1)},
    "RaggedRange": {"Tsplits": _INDICES},
    "RaggedTensorToSparse": {"Tsplits": optional(_INDICES)},
    "RandomCategorical": {"dtype": dtypes("Int16", "Int32", "Int64")},
    "RandomChoiceWithMask": {"count": _POSITIVE},
    "RandomPoisson": {"dtype": dtypes("Int32", "Int64", "Float16", "Float32", "Float64")},
    "Range": {"maxlen": _POSITIVE},
    "ReduceStd": {"axis": _AXES},
    "Renorm": {"p": _POSITIVE, "maxnorm": real()},
    "ResizeNearestNeighbor": {"size": sequence(_LISTS)},
    "ReverseV2": {"axis": _AXES_ALONE},
    "ScaleAndTranslate": _FILTERS,
    "ScaleAndTranslateGrad": _FILTERS,
    "SearchSorted": {"dtype": _INDICES},
    "Softmax": {"axis": axes(tuple)},
    "SpaceToBatch": {"block_size": lengths(least=2), "paddings": sequence(_LISTS)},
    "SpaceToBatchND": {"block_shape": _BLOCK, "paddings": sequence(_LISTS)},
    "SpaceToDepth": {"block_size": lengths(least=2)},
    "SparseApplyAdadelta": {"epsilon": real(least=0.0)},
    "SparseApplyAdagrad": {"lr": real()},
    "SparseApplyAdagradV2": {"lr": real(), "epsilon": real()},
    "SparseApplyFtrl": _FTRL,
    "SparseApplyFtrlV2": {**_FTRL, "l2_shrinkage": real()},
    "SparseApplyRMSProp": {
        "rho": real(least=0.0, most=1.0), "momentum": real(least=0.0), "epsilon": real(above=0.0),
    },
    "SplitV": {"size_splits": sequence(_LISTS, int), "num_split": _POSITIVE},
    "Squeeze": {"axis": _AXES},
    "StridedSlice": dict.fromkeys(_MASKS, lengths(least=0)),
    "TrilIndices": _TRIANGLE,
    "TripletMarginLoss": {"eps": real()},
    "TriuIndices": _TRIANGLE,
    "TruncatedNormal": {"dtype": _REALS},
    "UniformCandidateSampler": _SAMPLES,
    "Unstack": {"num": optional(lengths())},
    "UpperBound": {"out_type": _INDICES},
}
"""By primitive and constructor argument. Values that other devices or 1.x accept are not limited, even if 2.10 refuses them."""


def check_relations(name: str, arguments: dict[str, Any]) -> None:
    """Raises ValueError for a border that is given although `pad_mode` is not 'pad', or a histogram that ends before it begins."""
    if name in _BORDERS and str(arguments["pad_mode"]).lower() != "pad":
        border = _BORDERS[name]
        value = arguments[border]
        if any(value) if isinstance(value, (tuple, list)) else value:
            raise ValueError(f"{name}({border}={short(value)}, pad_mode={arguments['pad_mode']!r}): expected pad_mode='pad' for a border.")
    if name == "Histogram" and arguments["min"] > arguments["max"]:
        raise ValueError(f"Histogram(min={arguments['min']}, max={arguments['max']}): expected min <= max.")


_BORDERS = {
    **dict.fromkeys(("Conv2D", "Conv2DBackpropInput", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "AvgPool3D"), "pad"),
    "MaxPool3D": "pad_list",
}
"""The argument that is a border, by primitive."""
