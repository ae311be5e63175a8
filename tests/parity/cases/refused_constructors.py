"""Constructors of primitives and layers with wrong arguments: the kind of error for each value in place of the question mark."""
from __future__ import annotations

import mindspore as ms
from mindspore import mint, nn, ops
from parity.case import case, raised

CALLS = """
nn.BatchNorm1d(2, use_batch_statistics=?): 'a' | 1.5 | 1
ops.Softmax(axis=?): 1.5 | -1.0 | 'a'
nn.BatchNorm2d(2, use_batch_statistics=?): 'a' | 1.5 | 1
nn.LayerNorm(?): ()
nn.AvgPool1d(2, 2, 'same', 0, ?, False): None
nn.AvgPool2d(2, 2, 'same', 0, ?, False): None
nn.AvgPool3d(2, 2, 'same', 0, ?, False): None
nn.MaxPool2d(3, 2, 'same', 0, dilation=?): -1 | 0 | -7
nn.PReLU(w=?): 1 | (1.5,)
nn.Linear(4, 3, bias=?): 1 | 0 | 'a'
mint.nn.GroupNorm(2, 4, eps=?): 'a' | None | True
mint.nn.ConstantPad2d(?, 2.0): (1, 1)
mint.nn.ConstantPad3d(?, 2.0): (1, 1)
mint.nn.ReflectionPad1d(?): -1 | -7
mint.nn.ReplicationPad1d(?): -1 | -7
mint.nn.ZeroPad2d(?): (1, 1)
mint.nn.ReflectionPad2d(?): -1 | -7 | (1, 1)
mint.nn.ReplicationPad2d(?): -1 | -7 | (1, 1)
mint.nn.ZeroPad3d(?): (1, 1)
mint.nn.ReflectionPad3d(?): -1 | -7 | (1, 1)
mint.nn.ReplicationPad3d(?): -1 | -7 | (1, 1)
mint.nn.Conv1d(2, 3, ?): (3, 3) | (3, 3, 3, 3, 3)
mint.nn.Conv1d(2, 3, 3, stride=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
mint.nn.Conv1d(2, 3, 3, padding=?): 1.5 | 0.0 | None
mint.nn.Conv1d(2, 3, 3, dilation=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
mint.nn.Conv1d(2, 3, 3, bias=?): 1 | 0 | 'a'
mint.nn.Conv2d(4, 3, ?): [3] | (3,) | (3, 3, 3, 3, 3)
mint.nn.Conv2d(4, 3, 3, stride=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
mint.nn.Conv2d(4, 3, 3, padding=?): 1.5 | 0.0 | None
mint.nn.Conv2d(4, 3, 3, dilation=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
mint.nn.Conv2d(4, 3, 3, bias=?): 1 | 0 | 'a'
mint.nn.Conv3d(2, 3, ?): [2] | (2,) | (2, 2)
mint.nn.Conv3d(2, 3, 2, stride=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
mint.nn.Conv3d(2, 3, 2, padding=?): 1.5 | 0.0 | None
mint.nn.Conv3d(2, 3, 2, dilation=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
mint.nn.Conv3d(2, 3, 2, bias=?): 1 | 0 | 'a'
mint.nn.ConvTranspose2d(4, 3, 3, stride=?): True | -1 | 0 | -7
mint.nn.ConvTranspose2d(4, 3, 3, bias=?): 1 | 0 | 'a'
mint.nn.ConvTranspose2d(4, 3, 3, dilation=?): True | -1 | 0 | -7
nn.LayerNormExt(?): ()
nn.EmbeddingExt(3, 4, padding_idx=?): True
nn.EmbeddingExt(3, 4, max_norm=?): 'a' | 1 | -1
nn.EmbeddingExt(3, 4, norm_type=?): 'a' | True | 1
nn.EmbeddingExt(3, 4, scale_grad_by_freq=?): 1 | 0 | 'a'
nn.EmbeddingExt(3, 4, sparse=?): 0 | None
nn.BatchNorm3d(2, use_batch_statistics=?): 'a' | 1.5 | 1
nn.AdaptiveAvgPool2d(?): [3, 2] | () | 'a' | None | (3, -1) | (3, 2, 2)
nn.ClipByNorm(axis=?): 'a' | 1.5 | True
nn.Softmax(axis=?): 1.5 | -1.0 | 'a'
nn.Embedding(5, 3, padding_idx=?): True
nn.Embedding(5, 3, padding_idx=1, use_one_hot=?): 1 | 0 | 'a'
nn.CrossEntropyLoss(reduction='mean', weight=?): 'a' | 1.5 | 1
nn.NLLLoss(reduction='mean', weight=?): 'a' | 1.5 | 1
nn.MaxPool1d(3, 2, dilation=?): -1 | 0 | -7
nn.MaxPool3d((2, 3, 2), 2, dilation=?): -1 | 0 | -7
nn.AdaptiveAvgPool3d(?): [3, None, 2] | 'a' | None
nn.ConstantPad1d(?, 0.5): ()
nn.Conv3dTranspose(2, 3, 3, stride=2, output_padding=?): 1.5 | 0.0 | 'a' | -1 | -7 | (0,)
nn.Norm(?, True): 'a' | 1.5
nn.L1Regularizer(?): float("nan")
nn.SyncBatchNorm(4, use_batch_statistics=?): 'a' | 1.5 | 1
nn.LRN(?, 1.5, 0.5, 0.75): -1 | -7
nn.LRN(2, 1.5, 0.5, 0.75, norm_region=?): 'nonsense' | ''
ops.MultiMarginLoss(?, 0.5, 'mean'): -1 | 0 | -7
ops.Squeeze(?): 1.5 | 1.0 | 'a'
ops.BroadcastTo(?): 'a' | 1 | 1.5
ops.ReverseV2(axis=?): 'a' | 1 | 1.5
ops.Unstack(axis=1, num=?): 'a' | 1.5 | True
ops.Pad(?): [(1, 0), (0, 2)] | 'a' | None
ops.MirrorPad(mode=?): 'nonsense' | ''
ops.BoundingBoxEncode(means=?): [0.0, 0.0, 0.0, 0.0] | () | 'a' | None | (0.0, 0.0, 0.0, 0.0, 0.0) | (0.0, 0.0, 0.0)
ops.BoundingBoxEncode(stds=?): [1.0, 1.0, 1.0, 1.0] | () | 'a' | None | (1.0, 1.0, 1.0, 1.0, 1.0) | (1.0, 1.0, 1.0)
ops.BoundingBoxDecode(?): [15, 20] | () | 'a' | 1 | ((15, 20),) | (15, 20, 20)
ops.BoundingBoxDecode((15, 20), means=?): [0.0, 0.0, 0.0, 0.0] | () | 'a' | None | (0.0, 0.0, 0.0, 0.0, 0.0) | (0.0, 0.0, 0.0)
ops.BoundingBoxDecode((15, 20), stds=?): [1.0, 1.0, 1.0, 1.0] | () | 'a' | None | (1.0, 1.0, 1.0, 1.0, 1.0) | (1.0, 1.0, 1.0)
ops.BoundingBoxDecode((15, 20), wh_ratio_clip=?): 1
ops.CropAndResize(method=?): 'nonsense' | 'BILINEAR' | ''
ops.ReduceStd(axis=?): 1.5 | 1.0 | 'a'
ops.Histogram(?, 0.0, 10.0): -1 | 0 | -7
ops.Histogram(3, 0.0, ?): -1.0
ops.FFTWithSize(1, False, True, norm=?): 'nonsense' | ''
ops.BartlettWindow(False, dtype=?): 'a' | 'float32' | 1
ops.BlackmanWindow(dtype=?): 'a' | 'float32' | 1
ops.HammingWindow(True, 0.5, 0.4, dtype=?): 'a' | 'float32' | 1
ops.SearchSorted(right=True, dtype=?): 'a' | 'float32' | 1
ops.LowerBound(out_type=?): 'a' | 'float32' | 1
ops.UpperBound(?): 'a' | 'float32' | 1
ops.Bucketize(?): (1.0, 3.0) | 'a' | None
ops.ListDiff(out_idx=?): 'a' | 'float32' | 1
ops.RaggedRange(?): 'a' | 'float32' | 1
ops.DepthToSpace(?): -1 | 0 | -7
ops.SpaceToDepth(?): -1 | 0 | -7
ops.SpaceToBatchND(?, [[1, 1], [0, 2]]): [] | 'a' | None | 1.5 | [2, -1] | [2, 0]
ops.SpaceToBatchND([2, 2], ?): 'a' | None | 1
ops.BatchToSpaceND(?, [[0, 0], [0, 0]]): [] | 'a' | None | 1.5 | [2, -1] | [2, 0]
ops.BatchToSpaceND([2, 2], ?): 'a' | None | 1
ops.LRN(?, 1.0, 0.5, 0.75): -1 | -7
ops.LRN(2, 1.0, 0.5, 0.75, norm_region=?): 'nonsense' | ''
ops.MaxPool3D(?, 2, 'VALID'): (2, 2, 2, 2, 2)
ops.MaxPool3D(2, ?, 'VALID'): (2, 2, 2, 2, 2)
ops.MaxPool3D(2, 2, 'VALID', pad_list=?): 1.5 | 0.0 | 'a' | -1 | -7 | (0,)
ops.MaxPool3D(2, 2, 'VALID', ceil_mode=?): 'a' | 1.5 | 1
ops.MaxPool3D(2, 2, 'VALID', data_format=?): 'nonsense' | ''
ops.AdaptiveMaxPool2D(?): 'a' | 1 | 1.5
ops.MaxPoolWithArgmaxV2(?, 2, 1): 1.5 | 3.0 | 'a' | -1 | 0 | -7
ops.MaxPoolWithArgmaxV2(3, ?, 1): 1.5 | 2.0 | 'a' | -1 | 0 | -7
ops.MaxPoolWithArgmaxV2(3, 2, ?): 1.5 | 1.0 | 'a' | -1 | -7 | (1,)
ops.MaxPoolWithArgmaxV2(3, 2, 1, dilation=?): [1, 1] | () | 'a' | None | (1, -1) | (1, 0)
ops.MaxPoolWithArgmaxV2(3, 2, 1, argmax_type=?): 'a' | 'float32' | 1
ops.BatchNorm(is_training=False, data_format=?): 'nonsense' | ''
ops.Conv2D(?, 3, pad_mode='same', stride=2): -1 | 0 | -7
ops.Conv2D(6, 3, pad_mode='same', stride=2, mode=?): -1 | 0 | -7
ops.Conv2D(6, 3, pad_mode='same', stride=2, pad=?): 99 | 1099511627776
ops.Conv2D(6, 3, pad_mode='same', stride=2, group=?): -1 | 0 | -7
ops.Conv2D(6, 3, pad_mode='same', stride=2, data_format=?): 'nonsense' | ''
ops.AdaptiveAvgPool2D(?): [2, 3] | () | 'a' | None | (2, -1) | (2, 3, 3)
ops.ResizeNearestNeighbor(?): 'a' | 1 | 1.5
ops.DeformableOffsets(strides=?, pads=(0, 0, 0, 0), ksize=(2, 2)): [1, 1, 1, 1] | () | 'a' | None | ((1, 1, 1, 1),) | (1, 1, 1, 1, 1)
ops.DeformableOffsets(strides=(1, 1, 1, 1), pads=?, ksize=(2, 2)): [0, 0, 0, 0] | () | 'a' | None | ((0, 0, 0, 0),) | (0, 0, 0, 0, 0)
ops.DeformableOffsets(strides=(1, 1, 1, 1), pads=(0, 0, 0, 0), ksize=?): [2, 2] | () | 'a' | None | ((2, 2),) | (2, 2, 2)
ops.DeformableOffsets(strides=(1, 1, 1, 1), pads=(0, 0, 0, 0), ksize=(2, 2), dilations=?): [1, 1, 1, 1] | () | 'a' | None
ops.DeformableOffsets(strides=(1, 1, 1, 1), pads=(0, 0, 0, 0), ksize=(2, 2), data_format=?): 'nonsense' | ''
ops.DeformableOffsets(strides=(1, 1, 1, 1), pads=(0, 0, 0, 0), ksize=(2, 2), deformable_groups=?): -1 | 0 | -7
ops.NoRepeatNGram(?): -1 | 0 | -7
ops.AvgPool3D(?, 1): (2, 2, 2, 2, 2)
ops.AvgPool3D(2, 1, pad=?): 99 | 1099511627776
ops.AvgPool3D(2, 1, data_format=?): 'nonsense' | ''
ops.AdaptiveAvgPool3D(?): [2, 3, 4] | 'a' | None | (2, 3, -1)
ops.Im2Col(?, 2): () | 'a' | None | 1.5 | (2, -1) | (2, 0)
ops.Im2Col((2, 3), ?): 1.5 | 2.0 | 'a' | -1 | 0 | -7
ops.Im2Col((2, 3), 2, dilations=?): 1.5 | 1.0 | 'a' | -1 | 0 | -7
ops.Im2Col((2, 3), 2, pads=?): 1.5 | 0.0 | 'a' | -1 | -7 | (0, 0, 0, 0, 0)
ops.LpNorm(?, 2, True): 'a' | None | 1.5
ops.PadV3(mode=?): 'nonsense' | 'CONSTANT' | ''
ops.MaxPool3DWithArgmax(2, 2, 1, data_format=?): 'nonsense' | ''
ops.MaxPool3DWithArgmax(2, 2, 1, argmax_type=?): 'a' | 'float32' | 1
ops.FractionalMaxPoolWithFixedKsize(2, ?): [3, 4] | () | 'a' | None | (3, -1) | (3, 0)
ops.FractionalMaxPoolWithFixedKsize(2, (3, 4), data_format=?): 'nonsense' | ''
ops.FractionalMaxPool3DWithFixedKsize(2, ?): [3, 4, 2] | () | 'a' | None | (3, 4, -1) | (3, 4, 0)
ops.FractionalMaxPool3DWithFixedKsize(2, (3, 4, 2), data_format=?): 'nonsense' | ''
ops.MaxUnpool2D(?): 1.5 | 2.0 | 'a' | -1 | 0 | -7
ops.MaxUnpool2D(2, strides=?): 1.5 | 'a' | None | -1 | -7 | (0,)
ops.MaxUnpool2D(2, pads=?): 1.5 | 0.0 | 'a' | -1 | -7 | (0,)
ops.MaxUnpool2D(2, output_shape=?): [] | 'a' | None
ops.MaxUnpool2D(2, data_format=?): 'nonsense' | ''
ops.MaxUnpool3D(?): 1.5 | 2.0 | 'a' | -1 | 0 | -7
ops.MaxUnpool3D(2, strides=?): 1.5 | 'a' | None | -1 | -7 | (0,)
ops.MaxUnpool3D(2, pads=?): 1.5 | 0.0 | 'a' | -1 | -7 | (0,)
ops.MaxUnpool3D(2, output_shape=?): [] | 'a' | None
ops.MaxUnpool3D(2, data_format=?): 'nonsense' | ''
ops.Conv3D(?, 2): -1 | 0 | -7
ops.Conv3D(3, 2, mode=?): -1 | 0 | -7
ops.Conv3D(3, 2, pad=?): 99 | 1099511627776
ops.Conv3D(3, 2, group=?): -1 | 0 | -7
ops.Conv3D(3, 2, data_format=?): 'nonsense' | ''
ops.Conv2DTranspose(?, 3): -1 | 0 | -7
ops.Conv2DTranspose(4, 3, pad=?): 99 | 1099511627776
ops.Conv2DTranspose(4, 3, pad_list=?): 'a' | 1.5 | 1
ops.Conv2DTranspose(4, 3, mode=?): -1 | 0 | -7
ops.Conv2DTranspose(4, 3, group=?): -1 | 0 | -7
ops.Conv2DTranspose(4, 3, data_format=?): 'nonsense' | ''
ops.Conv2DBackpropInput(?, 3): -1 | 0 | -7
ops.Conv2DBackpropInput(4, 3, pad=?): 99 | 1099511627776
ops.Conv2DBackpropInput(4, 3, pad_list=?): 'a' | 1.5 | 1
ops.Conv2DBackpropInput(4, 3, mode=?): -1 | 0 | -7
ops.Conv2DBackpropInput(4, 3, group=?): -1 | 0 | -7
ops.Conv2DBackpropInput(4, 3, data_format=?): 'nonsense' | ''
ops.Conv3DTranspose(?, 3, 2): -1 | 0 | -7
ops.Conv3DTranspose(2, ?, 2): -1 | 0 | -7
ops.Conv3DTranspose(2, 3, 2, mode=?): -1 | 0 | -7
ops.Conv3DTranspose(2, 3, 2, pad=?): 99 | 1099511627776
ops.Conv3DTranspose(2, 3, 2, group=?): -1 | 0 | -7
ops.Conv3DTranspose(2, 3, 2, output_padding=?): 1.5 | 0.0 | 'a' | -1 | -7 | (0,)
ops.Conv3DTranspose(2, 3, 2, data_format=?): 'nonsense' | ''
ops.LSTM(?, 3, 1, True, False, 0.0): -1 | 0 | -7
ops.LSTM(5, ?, 1, True, False, 0.0): -1 | 0 | -7
ops.LSTM(5, 3, ?, True, False, 0.0): -1 | 0 | -7
ops.LSTM(5, 3, 1, True, False, 0.0, proj_size=?): -1 | -7
ops.NanToNum(?, 2.0, 3.0): 'a' | (1.0,)
ops.NanToNum(1.0, ?, 3.0): 'a' | (2.0,)
ops.NanToNum(1.0, 2.0, ?): 'a' | (3.0,)
ops.Mvlgamma(?): -1 | 0 | -7
ops.DataFormatDimMap(src_format=?): 'nonsense' | ''
ops.DataFormatDimMap(dst_format=?): 'nonsense' | ''
ops.DataFormatVecPermute(src_format=?): 'nonsense' | ''
ops.DataFormatVecPermute(dst_format=?): 'nonsense' | ''
ops.LogSpace(?, 2): -1 | -7
ops.LogSpace(5, 2, dtype=?): 'a' | 'float32' | 1
ops.Renorm(?, 1, 1.5): 1.5 | 2.0 | -1 | 0 | -7
ops.NuclearNorm(dim=?): 'a' | 1.5 | 1
ops.TrilIndices(?, 4): -1 | -7
ops.TrilIndices(3, ?): -1 | -7
ops.TrilIndices(3, 4, dtype=?): 'a' | 'float32' | 1
ops.TriuIndices(?, 4, -1): -1 | -7
ops.TriuIndices(3, ?, -1): -1 | -7
ops.TriuIndices(3, 4, -1, dtype=?): 'a' | 'float32' | 1
ops.Padding(?): -1 | 0 | -7
ops.Argmax(axis=1, output_type=?): 'a' | 'float32' | 1
ops.Argmin(axis=2, output_type=?): 'a' | 'float32' | 1
ops.L2Normalize(axis=?): 1.5 | 1.0 | 'a'
ops.InplaceAdd(?): [0, 1] | 'a' | None
ops.InplaceSub(?): [3, 1] | 'a' | None
ops.InplaceUpdate(?): [0, 1] | 'a' | None
ops.ExtractGlimpse(False, False, False, ?): 'nonsense' | 'ZERO' | ''
ops.ScaleAndTranslate(?, True): 'nonsense' | 'LANCZOS1' | ''
ops.FractionalMaxPool(?, False, False): (1.0, 2.0, 3.0, 1.0) | 'a' | None
ops.FractionalAvgPool(?, False, False): (1.0, 2.0, 3.0, 1.0) | 'a' | None
"""
NAMES = {"ms": ms, "mint": mint, "nn": nn, "ops": ops}


@case(over=[line for line in CALLS.splitlines() if line])
def refused_constructors(line):
    call, values = line.split(": ")
    return {value: raised(lambda text=call.replace("?", value): eval(text, dict(NAMES))) for value in values.split(" | ")}
