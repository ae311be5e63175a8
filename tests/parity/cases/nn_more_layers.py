"""Layers that came after the first hundred: pooling, padding, recurrent networks, attention, pictures, small ones."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn
from parity.case import case, raised

rng = np.random.RandomState(5)
IMAGE = rng.randn(2, 4, 8, 9).astype(np.float32)
LINE = rng.randn(2, 4, 10).astype(np.float32)
BOX = rng.randn(1, 2, 5, 6, 7).astype(np.float32)
ROWS = rng.randn(3, 6).astype(np.float32)
STEPS = rng.randn(5, 3, 6).astype(np.float32)
PICTURES = rng.rand(2, 3, 12, 14).astype(np.float32)

LAYERS = {
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2), LINE),
    "MaxPool1d_same": (lambda: nn.MaxPool1d(3, 2, "same"), LINE),
    "MaxPool1d_pad": (lambda: nn.MaxPool1d(4, 3, "pad", padding=1, dilation=2), LINE),
    "MaxPool1d_unbatched": (lambda: nn.MaxPool1d(3, 2), LINE[0]),
    "MaxPool3d": (lambda: nn.MaxPool3d((2, 3, 2), 2), BOX),
    "MaxPool3d_same": (lambda: nn.MaxPool3d(3, 2, "same"), BOX),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2), LINE),
    "AvgPool1d_same": (lambda: nn.AvgPool1d(4, 3, "same"), LINE),
    "AvgPool1d_pad": (lambda: nn.AvgPool1d(3, 2, "pad", padding=1, count_include_pad=False), LINE),
    "AvgPool3d": (lambda: nn.AvgPool3d(2, 2), BOX),
    "AvgPool3d_pad": (lambda: nn.AvgPool3d((2, 3, 3), 2, "pad", padding=1, ceil_mode=True, divisor_override=5), BOX),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(5), LINE),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d((3, None, 2)), BOX),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(5), LINE),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((3, 2)), IMAGE),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d((3, 2, 4)), BOX),
    "LPPool1d": (lambda: nn.LPPool1d(2, 3, 2), LINE),
    "LPPool2d": (lambda: nn.LPPool2d(2, 3), IMAGE),
    "ConstantPad1d": (lambda: nn.ConstantPad1d((1, 2), 0.5), LINE),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, 2, 0, 3), 0.5), IMAGE),
    "ConstantPad3d": (lambda: nn.ConstantPad3d((1, 2, 0, 1, 1, 0), -1), BOX),
    "ReflectionPad1d": (lambda: nn.ReflectionPad1d((1, 2)), LINE),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d((1, 2, 3, 0)), IMAGE),
    "ReflectionPad3d": (lambda: nn.ReflectionPad3d(1), BOX),
    "ReplicationPad1d": (lambda: nn.ReplicationPad1d(2), LINE),
    "ReplicationPad2d": (lambda: nn.ReplicationPad2d((1, 2, 3, 0)), IMAGE),
    "ReplicationPad3d": (lambda: nn.ReplicationPad3d((1, 0, 2, 1, 0, 1)), BOX),
    "ZeroPad2d": (lambda: nn.ZeroPad2d((1, 3, 2, 0)), IMAGE),
    "Conv1dTranspose": (lambda: nn.Conv1dTranspose(4, 3, 3, stride=2), LINE),
    "Conv1dTranspose_valid": (lambda: nn.Conv1dTranspose(4, 6, 3, stride=2, pad_mode="valid", group=2, has_bias=True), LINE),
    "Conv1dTranspose_pad": (lambda: nn.Conv1dTranspose(4, 3, 4, pad_mode="pad", padding=1, dilation=2), LINE),
    "Conv3dTranspose": (lambda: nn.Conv3dTranspose(2, 3, 3, stride=2), BOX),
    "Conv3dTranspose_pad": (lambda: nn.Conv3dTranspose(2, 3, 3, 2, "pad", padding=1, output_padding=1, has_bias=True), BOX),
    "Norm": (lambda: nn.Norm((2, 3), True), IMAGE),
    "Norm_all": (lambda: nn.Norm(), IMAGE),
    "ReduceLogSumExp": (lambda: nn.ReduceLogSumExp((2, 3)), IMAGE),
    "Tril": (lambda: nn.Tril(), ROWS),
    "Triu": (lambda: nn.Triu(), ROWS),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 3)), ROWS),
    "L1Regularizer": (lambda: nn.L1Regularizer(0.3), ROWS),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), IMAGE),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), PICTURES),
    "Upsample": (lambda: nn.Upsample((5, 12)), IMAGE),
    "Upsample_bilinear": (lambda: nn.Upsample((5, 12), mode="bilinear", align_corners=True), IMAGE),
    "Upsample_bicubic": (lambda: nn.Upsample((5, 12), mode="bicubic"), IMAGE),
    "Upsample_linear": (lambda: nn.Upsample((7,), mode="linear"), LINE),
    "Upsample_factor": (lambda: nn.Upsample(scale_factor=(2.0, 3.0), recompute_scale_factor=True), IMAGE),
    "CentralCrop": (lambda: nn.CentralCrop(0.6), PICTURES),
    "Linear": (lambda: nn.Linear(6, 4), ROWS),
    "TimeDistributed": (lambda: nn.TimeDistributed(nn.Dense(6, 4), 1), STEPS),
    "TimeDistributed_joined": (lambda: nn.TimeDistributed(nn.Dense(6, 4), 1, reshape_with_axis=0), STEPS),
    "Conv2dBnAct": (lambda: nn.Conv2dBnAct(4, 3, 3, has_bn=True, activation="leakyrelu", alpha=0.3), IMAGE),
    "Conv2dBnAct_plain": (lambda: nn.Conv2dBnAct(4, 3, 3, stride=2, pad_mode="valid", has_bias=True, activation="relu6"), IMAGE),
    "DenseBnAct": (lambda: nn.DenseBnAct(6, 4, has_bn=True, activation="relu"), ROWS),
    "DenseBnAct_plain": (lambda: nn.DenseBnAct(6, 4, has_bias=False), ROWS),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), IMAGE),
    "LRN": (lambda: nn.LRN(2, 1.5, 0.5, 0.75), IMAGE),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(6, 2, 8, 0.0), STEPS),
    "TransformerEncoderLayer_first": (
        lambda: nn.TransformerEncoderLayer(6, 3, 8, 0.0, "gelu", batch_first=True, norm_first=True), STEPS),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm((6,))), STEPS),
}


def fill(cell):
    """Gives each parameter known values, so that initial random numbers don't matter."""
    numbers = np.random.RandomState(7)
    for name, parameter in cell.parameters_and_names():
        values = numbers.randn(*parameter.shape).astype(np.float32) * 0.3
        if "variance" in name or "gamma" in name:
            values = np.abs(values) + 0.5
        parameter.set_data(ms.Tensor(values.astype(np.float32)))
    return cell


@case(over=LAYERS, rtol=1e-4, atol=1e-5, graph=True)
def layer(row):
    make, array = row
    cell = fill(make())
    results = {"names": [[name, list(parameter.shape), bool(parameter.requires_grad)] for name, parameter in cell.parameters_and_names()]}
    cell.set_train(False)
    results["evaluation"] = cell(ms.Tensor(array)).asnumpy()
    cell.set_train(True)
    results["training"] = cell(ms.Tensor(array)).asnumpy()
    results.update({f"after_{name}": parameter.asnumpy() for name, parameter in cell.parameters_and_names() if "moving" in name})
    return results


@case(over=LAYERS, rtol=1e-3, atol=1e-4)
def gradient(row):
    make, array = row
    cell = fill(make()).set_train(True)
    weights = ms.ParameterTuple(cell.trainable_params())
    forward = ms.value_and_grad(lambda x: (cell(x) * cell(x)).sum(), 0, weights or None)
    _, result = forward(ms.Tensor(array))
    to_input, to_weights = result if len(weights) else (result, ())
    return {"input": to_input.asnumpy(), **{f"weight{index}": weight.asnumpy() for index, weight in enumerate(to_weights)}}


ACTIVATIONS = {
    "CELU": lambda: nn.CELU(0.7), "FastGelu": lambda: nn.FastGelu(), "GLU": lambda: nn.GLU(), "HShrink": lambda: nn.HShrink(0.3),
    "Hardtanh": lambda: nn.Hardtanh(-0.5, 0.7), "SoftShrink": lambda: nn.SoftShrink(0.3), "Softmin": lambda: nn.Softmin(0),
    "Tanhshrink": lambda: nn.Tanhshrink(), "Threshold": lambda: nn.Threshold(0.2, 5.0),
}


@case(over=ACTIVATIONS, rtol=1e-5, atol=1e-5, graph=True)
def activation(make):
    cell = make()
    return {"output": cell(ms.Tensor(ROWS)).asnumpy(), "gradient": ms.grad(cell)(ms.Tensor(ROWS)).asnumpy()}


@case(rtol=1e-5, graph=True)
def softmax_of_channels():
    return {"batched": nn.Softmax2d()(ms.Tensor(IMAGE)).asnumpy(), "alone": nn.Softmax2d()(ms.Tensor(IMAGE[0])).asnumpy()}


@case(over={name: name for name in "softshrink hshrink fast_gelu softmin rrelu tanhshrink hardtanh softsign".split()})
def by_name(name):
    return {"kind": type(nn.get_activation(name)).__name__}


INDICES = {
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, "pad", padding=1, return_indices=True), LINE),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, 2, "pad", padding=1, return_indices=True), BOX),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(3, True), IMAGE),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d(3, True), BOX),
    "ImageGradients": (lambda: nn.ImageGradients(), IMAGE),
    "Moments": (lambda: nn.Moments(), IMAGE),
    "Moments_axes": (lambda: nn.Moments((2, 3), True), IMAGE),
    "Moments_half": (lambda: nn.Moments(0, False), ROWS.astype(np.float16)),
}


@case(over=INDICES, rtol=1e-5, atol=1e-5, graph=True)
def two_results(row):
    make, array = row
    first, second = make()(ms.Tensor(array))
    return {"first": first.asnumpy(), "second": second.asnumpy()}


UNPOOLED = {
    "MaxUnpool1d": (lambda: nn.MaxPool1d(2, 2, "pad", return_indices=True), lambda: nn.MaxUnpool1d(2, 2), LINE, None),
    "MaxUnpool2d": (lambda: nn.MaxPool2d(2, 2, return_indices=True), lambda: nn.MaxUnpool2d(2, 2), IMAGE, (2, 4, 8, 9)),
    "MaxUnpool3d": (lambda: nn.MaxPool3d(2, 2, "pad", return_indices=True), lambda: nn.MaxUnpool3d(2), BOX[:, :, :4, :, :6].copy(), None),
}


@case(over=UNPOOLED, rtol=1e-6)
def unpooled(row):
    pool, unpool, array, size = row
    out, at = (ms.ops.max_pool2d(ms.Tensor(array), 2, 2, return_indices=True) if array is IMAGE else pool()(ms.Tensor(array)))
    back = unpool()(out, at) if size is None else unpool()(out, at, size)
    return {"output": back.asnumpy()}


@case(over={"2d": 2, "3d": 3}, rtol=1e-6)
def fractional(count):
    if count == 2:
        samples = ms.Tensor(np.linspace(0, 0.9, 16).reshape(2, 4, 2).astype(np.float32))
        out, at = nn.FractionalMaxPool2d(2, (3, 4), return_indices=True, _random_samples=samples)(ms.Tensor(IMAGE))
    else:
        samples = ms.Tensor(np.linspace(0, 0.9, 6).reshape(1, 2, 3).astype(np.float32))
        out, at = nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.5, 0.5), return_indices=True, _random_samples=samples)(ms.Tensor(BOX))
    return {"output": out.asnumpy(), "at": at.asnumpy()}


RECURRENT = {
    "LSTM": lambda: nn.LSTM(6, 4),
    "LSTM_deep": lambda: nn.LSTM(6, 4, num_layers=2, bidirectional=True),
    "LSTM_no_bias": lambda: nn.LSTM(6, 4, has_bias=False, batch_first=True),
    "GRU": lambda: nn.GRU(6, 4),
    "GRU_deep": lambda: nn.GRU(6, 4, num_layers=2, bidirectional=True, batch_first=True),
    "GRU_no_bias": lambda: nn.GRU(6, 4, has_bias=False),
    "RNN": lambda: nn.RNN(6, 4),
    "RNN_deep": lambda: nn.RNN(6, 4, 2, nonlinearity="relu", bidirectional=True),
}


def flat(value):
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def listed(value):
    return {f"output{i}": tensor.asnumpy() for i, tensor in enumerate(flat(value))}


@case(over=RECURRENT, rtol=1e-4, atol=1e-5, graph=True)
def recurrent(make):
    cell = fill(make())
    names = [[name, list(parameter.shape)] for name, parameter in cell.parameters_and_names()]
    return {"names": names, **listed(cell(ms.Tensor(STEPS)))}


@case(over=RECURRENT, rtol=1e-4, atol=1e-5)
def recurrent_with_lengths(make):
    cell = fill(make())
    count = 5 if cell.batch_first else 3
    lengths = ms.Tensor(([3, 5, 1, 2, 3] if count == 5 else [3, 5, 1]), ms.int32)
    lengths = ms.Tensor(np.minimum(lengths.asnumpy(), 3 if count == 5 else 5))
    states = cell.num_layers * (2 if cell.bidirectional else 1)
    start = ms.Tensor(np.random.RandomState(3).randn(states, count, 4).astype(np.float32))
    return listed(cell(ms.Tensor(STEPS), (start, start * 0.5) if "LSTM" in type(cell).__name__ else start, lengths))


@case(over=RECURRENT, rtol=1e-3, atol=1e-4)
def recurrent_gradient(make):
    cell = fill(make())
    weights = ms.ParameterTuple(cell.trainable_params())

    def loss(x):
        out, last = cell(x)
        return (out * out).sum() + sum((output * output).sum() for output in flat(last))

    to_input, to_weights = ms.grad(loss, 0, weights)(ms.Tensor(STEPS))
    return {"input": to_input.asnumpy(), **{weight.name: grad.asnumpy() for weight, grad in zip(weights, to_weights)}}


CELLS = {
    "LSTMCell": lambda: nn.LSTMCell(6, 4), "LSTMCell_no_bias": lambda: nn.LSTMCell(6, 4, has_bias=False),
    "GRUCell": lambda: nn.GRUCell(6, 4), "RNNCell": lambda: nn.RNNCell(6, 4), "RNNCell_relu": lambda: nn.RNNCell(6, 4, nonlinearity="relu"),
}


@case(over=CELLS, rtol=1e-4, atol=1e-5, graph=True)
def recurrent_cell(make):
    cell = fill(make())
    h = ms.Tensor(np.random.RandomState(3).randn(3, 4).astype(np.float32))
    names = [[name, list(parameter.shape)] for name, parameter in cell.parameters_and_names()]
    out = cell(ms.Tensor(ROWS), (h, h * 0.5) if type(cell).__name__ == "LSTMCell" else h)
    return {"names": names, **listed(out)}


QUERY = rng.randn(4, 2, 6).astype(np.float32)
KEY = rng.randn(5, 2, 6).astype(np.float32)
CAUSAL = np.triu(np.ones((4, 5), np.bool_), 2)
PADDED = np.array([[False, False, False, True, True], [False] * 5])
ATTENTION = {
    "plain": (lambda: nn.MultiheadAttention(6, 2), {}),
    "no_bias": (lambda: nn.MultiheadAttention(6, 3, has_bias=False), {}),
    "extra": (lambda: nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True), {}),
    "causal": (lambda: nn.MultiheadAttention(6, 2), {"attn_mask": CAUSAL}),
    "padded": (lambda: nn.MultiheadAttention(6, 2), {"key_padding_mask": PADDED}),
    "both": (lambda: nn.MultiheadAttention(6, 2), {"key_padding_mask": PADDED, "attn_mask": CAUSAL}),
    "added": (lambda: nn.MultiheadAttention(6, 2), {"attn_mask": rng.randn(4, 4, 5).astype(np.float32)}),
    "each_head": (lambda: nn.MultiheadAttention(6, 2), {"average_attn_weights": False}),
}


@case(over=ATTENTION, rtol=1e-4, atol=1e-5, graph=True)
def attention(row):
    make, options = row
    cell = fill(make()).set_train(False)
    options = {name: ms.Tensor(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
    out, weights = cell(ms.Tensor(QUERY), ms.Tensor(KEY), ms.Tensor(KEY), **options)
    return {"output": out.asnumpy(), "weights": weights.asnumpy(), "names": [name for name, _ in cell.parameters_and_names()]}


@case(rtol=1e-4, atol=1e-5)
def attention_of_other_lengths():
    cell = fill(nn.MultiheadAttention(6, 2, kdim=3, vdim=4, batch_first=True)).set_train(False)
    key, value = (ms.Tensor(np.random.RandomState(2).randn(2, 5, n).astype(np.float32)) for n in (3, 4))
    out, *weights = cell(ms.Tensor(QUERY.transpose(1, 0, 2)), key, value, need_weights=False)
    alone = cell(ms.Tensor(QUERY[:, 0]), key[0], value[0])
    return {"output": out.asnumpy(), "count": len(weights), "alone": alone[0].asnumpy(), "alone_weights": alone[1].asnumpy()}


@case(rtol=1e-4, atol=1e-5)
def decoder():
    cell = fill(nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm((6,)))).set_train(False)
    return {"output": cell(ms.Tensor(QUERY), ms.Tensor(KEY)).asnumpy()}


@case(over={"after": False, "first": True}, rtol=1e-4, atol=1e-5, graph=True)
def decoder_layer(first):
    cell = fill(nn.TransformerDecoderLayer(6, 2, 8, 0.0, norm_first=first)).set_train(False)
    out = cell(ms.Tensor(QUERY), ms.Tensor(KEY), memory_key_padding_mask=ms.Tensor(PADDED), tgt_mask=ms.Tensor(CAUSAL[:, :4]))
    return {"output": out.asnumpy()}


@case(rtol=1e-4, atol=1e-5)
def transformer():
    cell = fill(nn.Transformer(6, 2, 1, 2, 8, 0.0)).set_train(False)
    return {"output": cell(ms.Tensor(KEY), ms.Tensor(QUERY)).asnumpy(), "names": [name for name, _ in cell.parameters_and_names()]}


@case(rtol=1e-5)
def small():
    square = ms.Tensor(np.ones((2, 3), np.float32)), ms.Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    indexes = ms.Tensor(np.array([[1, 2], [0, 3]], np.int32))
    bilinear = fill(nn.BiDense(6, 6, 3))
    sparse = ms.COOTensor(ms.Tensor([[0, 1], [1, 0]], ms.int32), ms.Tensor([1.0, 2.0], ms.float32), (2, 3))
    return {
        "MatMul": nn.MatMul(transpose_x2=True)(*square).asnumpy(),
        "MatMul_vectors": nn.MatMul()(square[0][0], square[1][1]).asnumpy(),
        "OneHot": nn.OneHot(depth=4)(indexes).asnumpy(),
        "OneHot_axis": nn.OneHot(1, 4, 2, 1, ms.int32)(indexes).asnumpy(),
        "Range": nn.Range(1, 8, 2)().asnumpy(), "Range_floats": nn.Range(1.0, 8.0, 2.0)().asnumpy(), "Range_one": nn.Range(5)().asnumpy(),
        "BiDense": bilinear(ms.Tensor(ROWS), ms.Tensor(ROWS[::-1].copy())).asnumpy(),
        "IGamma": nn.IGamma()(ms.Tensor([1.0, 2.5], ms.float32), ms.Tensor([0.5, 3.0], ms.float32)).asnumpy(),
        "SparseToDense": nn.SparseToDense()(sparse).asnumpy(),
        "SparseTensorDenseMatmul": nn.SparseTensorDenseMatmul()(sparse.indices, sparse.values, (2, 3), ms.Tensor(ROWS)).asnumpy(),
        "names": [name for name, _ in bilinear.parameters_and_names()],
        "slices": [nn.EmbeddingLookup.BATCH_SLICE, nn.EmbeddingLookup.FIELD_SLICE, nn.EmbeddingLookup.TABLE_ROW_SLICE,
                   nn.EmbeddingLookup.TABLE_COLUMN_SLICE, nn.MultiFieldEmbeddingLookup.OPERATOR_MEAN],
    }  # fmt: skip


# 2.10's own approximations are good to four digits.
@case(rtol=1e-3, atol=1e-4)
def gamma_functions():
    x, y = ms.Tensor([0.5, 2.5, 7.0], ms.float32), ms.Tensor([1.5, 0.25, 3.0], ms.float32)
    return {"LGamma": nn.LGamma()(x).asnumpy(), "DiGamma": nn.DiGamma()(x).asnumpy(), "LBeta": nn.LBeta()(x, y).asnumpy()}


@case(over={name: (name, array) for name, array in (("Dropout1d", LINE), ("Dropout2d", IMAGE), ("Dropout3d", BOX))})
def dropped_channels(row):
    name, array = row
    cell = getattr(nn, name)(0.5)
    ones = ms.Tensor(np.ones_like(array))
    dropped = cell.set_train(True)(ones).asnumpy()
    channels = dropped.reshape(dropped.shape[0] * dropped.shape[1], -1)
    return {"off": cell.set_train(False)(ones).asnumpy(), "whole": bool((channels == channels[:, :1]).all()),
            "values": bool(set(np.unique(dropped)) <= {0.0, 2.0})}  # fmt: skip


@case(over={
    "types": [
        lambda: nn.ConstantPad2d((1, 2), "a"), lambda: nn.L1Regularizer("a"),
        lambda: nn.PSNR("a"), lambda: nn.SSIM(filter_size="a"), lambda: nn.Dropout2d("a"), lambda: nn.LSTM(3, "a"),
        lambda: nn.LSTM(3, 4, has_bias=1), lambda: nn.LSTM(3, 4, dropout=1), lambda: nn.LSTMCell(3.0, 4), lambda: nn.GRU(3, 4, unknown=1),
        lambda: nn.PipelineCell(nn.ReLU(), "a"), lambda: nn.PipelineCell(1, 2), lambda: nn.MicroBatchInterleaved(nn.ReLU(), "a"),
        lambda: nn.GradAccumulationCell(nn.ReLU(), "a"), lambda: nn.CentralCrop(1), lambda: nn.MatMul(1), lambda: nn.OneHot(depth=4)(1),
    ],
    "values": [
        lambda: nn.ConstantPad1d((1, 2, 3), 0.5), lambda: nn.ReflectionPad2d((-1, 2, 1, 0)), lambda: nn.L1Regularizer(-1),
        lambda: nn.CentralCrop(1.5), lambda: nn.SSIM(max_val=-1.0), lambda: nn.SSIM(filter_size=0), lambda: nn.Dropout2d(1.5),
        lambda: nn.LSTM(3, 4, 0), lambda: nn.LSTM(3, 4, dropout=2.0), lambda: nn.RNN(3, 4, nonlinearity="x"),
        lambda: nn.LSTM(3, 4)(ms.Tensor(np.ones((2, 3), np.float32))), lambda: nn.PipelineCell(nn.ReLU(), 0),
        lambda: nn.PipelineCell(nn.ReLU(), 3)(ms.Tensor(ROWS[:2])), lambda: nn.MicroBatchInterleaved(nn.ReLU(), 0),
        lambda: nn.DistributedGradReducer([], degree=0), lambda: nn.InstanceNorm2d(0), lambda: nn.MultiheadAttention(5, 2),
    ],
})  # fmt: skip
def refused(calls):
    return {"errors": [raised(call) for call in calls]}
