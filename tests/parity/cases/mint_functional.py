"""mindspore.mint.nn.functional and the layers of mindspore.mint.nn: values, gradients, both modes."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import mint
from mindspore.mint.nn import functional
from parity.case import case, raised

RANDOM = np.random.default_rng(11)
X = np.array([[-2.5, -1.0, -0.5, 0.1], [0.25, 0.5, 1.0, 2.9]], np.float32)
Y = np.array([[2.0, -3.0, 0.5, 1.0], [-0.25, 4.0, 1.5, 2.0]], np.float32)
SHARES = np.array([[0.1, 0.2, 0.3, 0.4], [0.25, 0.5, 0.05, 0.2]], np.float32)
OTHERS = SHARES[::-1, ::-1].copy()
SIGNS = np.array([[1, -1, 1, 1], [-1, 1, -1, 1]], np.float32)
CLASSES = np.array([2, 0], np.int64)
LINE = RANDOM.normal(size=(2, 2, 6)).astype(np.float32)
IMAGE = RANDOM.normal(size=(2, 4, 6, 6)).astype(np.float32)
VOLUME = RANDOM.normal(size=(1, 2, 4, 4, 4)).astype(np.float32)
KERNEL1 = RANDOM.normal(size=(3, 2, 3)).astype(np.float32)
KERNEL2 = RANDOM.normal(size=(3, 4, 3, 3)).astype(np.float32)
TURNED = RANDOM.normal(size=(4, 3, 3, 3)).astype(np.float32)
KERNEL3 = RANDOM.normal(size=(2, 2, 2, 2, 2)).astype(np.float32)
FOUR = np.array([1.0, 0.5, 2.0, -1.0], np.float32)
ABOVE = np.array([0.5, 1.0, 2.0, 1.5], np.float32)
THREE = np.array([0.5, -0.5, 1.0], np.float32)
WEIGHT = np.array([[1.0, 2.0, 0.5, -1.0], [0.0, 1.0, -1.0, 0.5], [2.0, 0.5, 1.0, 1.0]], np.float32)
ROWS = np.array([[0, 2], [1, 2]], np.int64)
GRID = RANDOM.uniform(-1, 1, size=(2, 3, 3, 2)).astype(np.float32)
COLUMNS = RANDOM.normal(size=(1, 8, 9)).astype(np.float32)


def table():
    """(label, name, arguments, options) of every call of a function."""
    calls = []

    def add(names, *arguments, label="", **options):
        for name in names.split():
            calls.append((f"{name}{'-' + label if label else ''}", name, arguments, options))

    add("elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish relu relu6 selu sigmoid", X)
    add("silu softmax softplus softshrink tanh", X)
    add("elu", X, 0.5, label="alpha")
    add("gelu", X, label="tanh", approximate="tanh")
    add("glu", X)
    add("glu", X, 0, label="first")
    add("hardtanh", X, -0.5, 2.0, label="range")
    add("leaky_relu", X, 0.2, label="slope")
    add("softplus", X, 2, 1, label="options")
    add("hardshrink softshrink", X, 1.0, label="lambd")
    add("threshold", X, 0.3, 9.0)
    add("softmax log_softmax", X, 0, label="first")
    add("softmax log_softmax", LINE, label="three")
    add("softmax log_softmax", IMAGE, label="four")
    add("prelu", IMAGE, FOUR)
    add("prelu", X, THREE[:1], label="one")
    add("elu_ hardtanh_ relu_ sigmoid_", X)
    add("threshold_", X, 0.3, 9.0)
    add("elu hardtanh relu6 silu", X, label="inplace", inplace=True)
    add("linear", X, WEIGHT)
    add("linear", X, WEIGHT, THREE, label="bias")
    add("conv1d", LINE, KERNEL1)
    add("conv1d", LINE, KERNEL1, THREE, 2, 1, label="options")
    add("conv2d", IMAGE, KERNEL2)
    add("conv2d", IMAGE, KERNEL2, THREE, 2, 1, label="options")
    add("conv2d", IMAGE, KERNEL2, label="same", padding="same")
    add("conv3d", VOLUME, KERNEL3)
    add("conv_transpose2d", IMAGE, TURNED)
    add("conv_transpose2d", IMAGE, TURNED, THREE, 2, 1, 1, label="options")
    add("avg_pool1d", LINE, 2)
    add("avg_pool2d", IMAGE, 2)
    add("avg_pool2d", IMAGE, 3, 2, 1, label="options", count_include_pad=False)
    add("avg_pool3d", VOLUME, 2)
    add("max_pool2d", IMAGE, 2)
    add("max_pool2d", IMAGE, 3, 2, 1, label="options")
    add("max_pool2d", IMAGE, 2, label="indexes", return_indices=True)
    add("adaptive_avg_pool1d", LINE, 3)
    add("adaptive_avg_pool2d", IMAGE, (2, 3))
    add("adaptive_avg_pool3d", VOLUME, (2, 2, 2))
    add("adaptive_max_pool1d", LINE, 3)
    add("adaptive_max_pool2d", IMAGE, (2, 3))
    add("batch_norm", IMAGE, FOUR, ABOVE)
    add("batch_norm", IMAGE, FOUR, ABOVE, FOUR, FOUR, label="affine")
    add("batch_norm", IMAGE, FOUR, ABOVE, FOUR, FOUR, True, label="training")
    add("layer_norm", X, (4,))
    add("layer_norm", X, (4,), FOUR, FOUR, label="affine")
    add("group_norm", IMAGE, 2)
    add("group_norm", IMAGE, 2, FOUR, FOUR, label="affine")
    add("normalize", X)
    add("normalize", X, 1.0, 0, label="one")
    add("interpolate upsample", IMAGE, label="nearest", size=(3, 4))
    add("interpolate upsample", IMAGE, label="scale", scale_factor=(2.0, 2.0))
    add("interpolate upsample", IMAGE, label="bilinear", size=(3, 4), mode="bilinear", align_corners=True)
    add("interpolate", IMAGE, label="bilinearhalf", size=(9, 4), mode="bilinear", align_corners=False)
    add("interpolate", IMAGE, label="bicubic", size=(9, 4), mode="bicubic", align_corners=False)
    add("interpolate", LINE, label="linear", size=(4,), mode="linear", align_corners=False)
    add("grid_sample", IMAGE, GRID, label="corners", align_corners=True)
    add("grid_sample", IMAGE, GRID, "nearest", "border", label="nearest")
    add("pad", X, (1, 2))
    add("pad", X, (1, 2, 1, 0), label="value", value=3.0)
    add("pad", LINE, (1, 2), "reflect", label="reflect")
    add("pad", LINE, (1, 2), "replicate", label="replicate")
    add("pad", LINE, (1, 2), "circular", label="circular")
    add("unfold", IMAGE, 3)
    add("unfold", IMAGE, 3, 1, 1, 2, label="options")
    add("fold", COLUMNS, (4, 4), (2, 2))
    add("pixel_shuffle", IMAGE, 2)
    add("one_hot", ROWS, 4)
    add("one_hot", ROWS, label="counted")
    add("embedding", ROWS, WEIGHT)
    add("flatten", LINE)
    add("dropout dropout2d", IMAGE, label="off", training=False)
    add("dropout", X, label="none", p=0.0)
    for reduction in ("mean", "sum", "none"):
        add("mse_loss l1_loss smooth_l1_loss", X, Y, label=reduction, reduction=reduction)
        add("binary_cross_entropy", SHARES, OTHERS, label=reduction, reduction=reduction)
        add("binary_cross_entropy_with_logits", X, OTHERS, label=reduction, reduction=reduction)
        add("soft_margin_loss", X, SIGNS, label=reduction, reduction=reduction)
        add("kl_div", np.log(SHARES), OTHERS, label=reduction, reduction=reduction)
        add("cross_entropy nll_loss", X, CLASSES, label=reduction, reduction=reduction)
        add("cosine_embedding_loss", X, Y, SIGNS[0, :2], label=reduction, reduction=reduction)
    add("smooth_l1_loss", X, Y, label="beta", beta=2.0)
    add("binary_cross_entropy binary_cross_entropy_with_logits", SHARES, OTHERS, np.abs(Y), label="weight")
    add("binary_cross_entropy_with_logits", X, OTHERS, label="positive", pos_weight=ABOVE)
    add("kl_div", np.log(SHARES), np.log(OTHERS), label="logarithms", log_target=True)
    add("kl_div", np.log(SHARES), OTHERS, label="batchmean", reduction="batchmean")
    add("cross_entropy nll_loss", X, CLASSES, ABOVE, label="weight")
    add("cross_entropy nll_loss", X, CLASSES, label="ignored", ignore_index=2)
    add("cross_entropy", X, CLASSES, label="smooth", label_smoothing=0.1)
    add("cross_entropy", X, SHARES, label="shares")
    add("cosine_embedding_loss", X, Y, SIGNS[0, :2], 0.3, label="margin")
    return calls


def layers():
    """(label, name, constructor's arguments, input arrays)."""
    calls = []

    def add(names, arguments, *inputs, label="", **options):
        for name in names.split():
            calls.append((f"{name}{'-' + label if label else ''}", name, (arguments, options), inputs))

    add("ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LogSigmoid LogSoftmax Mish ReLU ReLU6 SELU SiLU Sigmoid", (), X)
    add("Softmax Softshrink Tanh Identity Flatten PReLU Dropout", (), X)
    add("Softmax LogSoftmax", (0,), X, label="first")
    add("Threshold", (0.3, 9.0), X)
    add("ELU", (0.5,), X, label="alpha")
    add("GELU", ("tanh",), X, label="tanh")
    add("Hardtanh", (-0.5, 2.0), X, label="range")
    add("AdaptiveAvgPool1d AdaptiveMaxPool1d", (3,), LINE)
    add("AdaptiveAvgPool2d AdaptiveMaxPool2d", ((2, 3),), IMAGE)
    add("AdaptiveAvgPool3d", (2,), VOLUME)
    add("AvgPool1d", (2,), LINE)
    add("AvgPool2d MaxPool2d", (2,), IMAGE)
    add("AvgPool3d", (2,), VOLUME)
    add("Fold", ((4, 4), (2, 2)), COLUMNS)
    add("Unfold", (3,), IMAGE)
    add("PixelShuffle", (2,), IMAGE)
    add("Upsample UpsamplingNearest2d UpsamplingBilinear2d", ((3, 4),), IMAGE)
    add("ConstantPad1d", (1, 2.0), LINE)
    add("ConstantPad2d", (1, 2.0), IMAGE)
    add("ConstantPad3d", (1, 2.0), VOLUME)
    add("ZeroPad1d ReflectionPad1d ReplicationPad1d", (1,), LINE)
    add("ZeroPad2d ReflectionPad2d ReplicationPad2d", (1,), IMAGE)
    add("ZeroPad3d ReflectionPad3d ReplicationPad3d", (1,), VOLUME)
    add("ZeroPad2d ReflectionPad2d ReplicationPad2d", ((1, 0, 2, 1),), IMAGE, label="uneven")
    add("MSELoss L1Loss SmoothL1Loss", (), X, Y)
    add("MSELoss L1Loss SmoothL1Loss", ("sum",), X, Y, label="sum")
    add("BCELoss", (), SHARES, OTHERS)
    add("BCEWithLogitsLoss", (), X, OTHERS)
    add("SoftMarginLoss", (), X, SIGNS)
    add("KLDivLoss", (), np.log(SHARES), OTHERS)
    add("CrossEntropyLoss NLLLoss", (), X, CLASSES)
    add("CosineEmbeddingLoss", (), X, Y, SIGNS[0, :2])
    add("Linear", (4, 3), X)
    add("Conv1d", (2, 3, 3), LINE)
    add("Conv2d", (4, 3, 3), IMAGE)
    add("Conv2d", (4, 4, 3), IMAGE, label="circular", padding=1, padding_mode="circular")
    add("Conv2d", (4, 4, 3), IMAGE, label="same", padding="same", groups=2, bias=False)
    add("Conv3d", (2, 3, 2), VOLUME)
    add("ConvTranspose2d", (4, 3, 3), IMAGE)
    add("BatchNorm1d", (2,), LINE)
    add("BatchNorm2d", (4,), IMAGE)
    add("BatchNorm2d", (4,), IMAGE, label="plain", affine=False)
    add("BatchNorm2d", (4,), IMAGE, label="batch", track_running_stats=False)
    add("BatchNorm3d", (2,), VOLUME)
    add("GroupNorm", (2, 4), IMAGE)
    add("GroupNorm", (2, 4), IMAGE, label="plain", affine=False)
    add("LayerNorm", ((4,),), X)
    add("LayerNorm", ((4,),), X, label="plain", elementwise_affine=False)
    add("Embedding", (3, 4), ROWS)
    add("Embedding", (3, 4), ROWS, label="padding", padding_idx=1)
    return calls


CALLS = {label: (name, arguments, options) for label, name, arguments, options in table()}
LAYERS = {label: (name, options, inputs) for label, name, options, inputs in layers()}
ELSEWHERE = frozenset(
    (
        "elu gelu hardtanh leaky_relu log_softmax logsigmoid mish relu6 selu elu-alpha gelu-tanh hardtanh-range leaky_relu-slope "
        "threshold log_softmax-first log_softmax-three log_softmax-four elu_ hardtanh_ relu_ sigmoid_ threshold_ elu-inplace "
        "hardtanh-inplace relu6-inplace silu-inplace conv1d conv1d-options conv2d conv2d-options conv2d-same conv3d conv_transpose2d "
        "conv_transpose2d-options avg_pool1d avg_pool2d avg_pool2d-options avg_pool3d max_pool2d max_pool2d-options max_pool2d-indexes "
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d batch_norm batch_norm-affine batch_norm-training "
        "layer_norm layer_norm-affine normalize normalize-one interpolate-bilinear upsample-bilinear interpolate-bilinearhalf "
        "interpolate-bicubic interpolate-linear pad pad-value pad-reflect pad-replicate unfold unfold-options fold one_hot "
        "one_hot-counted embedding dropout2d-off mse_loss-mean l1_loss-mean soft_margin_loss-mean kl_div-mean cross_entropy-mean "
        "cosine_embedding_loss-mean mse_loss-sum l1_loss-sum soft_margin_loss-sum kl_div-sum cross_entropy-sum cosine_embedding_loss-sum "
        "mse_loss-none l1_loss-none soft_margin_loss-none kl_div-none cross_entropy-none cosine_embedding_loss-none kl_div-logarithms "
        "kl_div-batchmean cross_entropy-weight cross_entropy-ignored cross_entropy-smooth cross_entropy-shares "
        "cosine_embedding_loss-margin"
    ).split(),
)
"""What MindSpore 2.10 has on Ascend only."""
WITHOUT_GRADIENT = frozenset(
    (
        "softplus softplus-options"
    ).split(),
)
"""What has no gradient on MindSpore's CPU."""
LAYERS_ELSEWHERE = frozenset(
    (
        "ELU GELU Hardtanh LogSigmoid LogSoftmax Mish ReLU6 SELU LogSoftmax-first Threshold ELU-alpha GELU-tanh Hardtanh-range "
        "AdaptiveAvgPool1d AdaptiveMaxPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d MaxPool2d AvgPool3d Fold Unfold "
        "UpsamplingBilinear2d ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ReflectionPad1d ReplicationPad1d ZeroPad2d "
        "ReflectionPad2d ReplicationPad2d ZeroPad3d ReflectionPad3d ReplicationPad3d ZeroPad2d-uneven ReflectionPad2d-uneven "
        "ReplicationPad2d-uneven MSELoss L1Loss MSELoss-sum L1Loss-sum SoftMarginLoss KLDivLoss CrossEntropyLoss CosineEmbeddingLoss "
        "Conv1d Conv2d Conv2d-circular Conv2d-same Conv3d ConvTranspose2d BatchNorm1d BatchNorm2d BatchNorm2d-plain BatchNorm2d-batch "
        "BatchNorm3d LayerNorm LayerNorm-plain Embedding Embedding-padding"
    ).split(),
)
"""Layers that MindSpore 2.10 has on Ascend only."""
HERE = {label: call for label, call in CALLS.items() if label not in ELSEWHERE}


def tensors(value):
    return ms.Tensor(value.copy()) if isinstance(value, np.ndarray) else value


def plain(out):
    """The arrays of an answer."""
    if isinstance(out, (tuple, list)):
        return {f"output{index}": each.asnumpy() for index, each in enumerate(out)}
    return {"output": out.asnumpy()}


@case(over=HERE, rtol=1e-5, atol=1e-5, graph=True)
def forward(call):
    name, arguments, options = call
    return plain(getattr(functional, name)(*map(tensors, arguments), **{key: tensors(value) for key, value in options.items()}))


def differentiable(label, call):
    return label not in WITHOUT_GRADIENT and call[1][0].dtype == np.float32 and not call[0].endswith("_") and not call[2].get("inplace")


@case(over={label: call for label, call in HERE.items() if differentiable(label, call)}, rtol=1e-4, atol=1e-5)
def gradient(call):
    name, arguments, options = call
    rest = [tensors(each) for each in arguments[1:]]
    named = {key: tensors(value) for key, value in options.items()}

    def total(x):
        out = getattr(functional, name)(x, *rest, **named)
        out = out[0] if isinstance(out, (tuple, list)) else out
        return (out * out).sum()

    return {"gradient": ms.grad(total)(ms.Tensor(arguments[0])).asnumpy()}


def filled(layer):
    """The layer with known parameters."""
    for index, parameter in enumerate(layer.get_parameters()):
        if parameter.dtype == ms.float32:
            count = int(np.prod(parameter.shape))
            values = np.linspace(0.2, 1.0 + index, count, dtype=np.float32).reshape(parameter.shape)
            parameter.set_data(ms.Tensor(values))
    return layer


@case(over={label: call for label, call in LAYERS.items() if label not in LAYERS_ELSEWHERE}, rtol=1e-5, atol=1e-5, graph=True)
def layer(call):
    name, (arguments, options), inputs = call
    module = filled(getattr(mint.nn, name)(*arguments, **options))
    module.set_train(name != "Dropout")
    answer = plain(module(*map(tensors, inputs)))
    answer.update({f"after {parameter.name}": parameter.asnumpy() for parameter in module.get_parameters() if not parameter.requires_grad})
    return answer


@case(over=LAYERS, rtol=1e-5)
def parameters(call):
    name, (arguments, options), _ = call
    module = getattr(mint.nn, name)(*arguments, **options)
    return {"parameters": [[p.name, list(p.shape), str(p.dtype), p.requires_grad] for p in module.get_parameters()]}


REFUSED = {
    "linear_text": lambda: mint.nn.Linear("a", 3),
    "conv_groups": lambda: mint.nn.Conv2d(4, 3, 3, groups=3),
    "conv_padding_mode": lambda: mint.nn.Conv2d(4, 4, 3, padding_mode="mirror"),
    "batch_norm_axes": lambda: mint.nn.BatchNorm2d(4)(ms.Tensor(X)),
    "threshold_short": lambda: mint.nn.Threshold(1.0),
    "group_norm_groups": lambda: mint.nn.GroupNorm(3, 4),
}


@case(over=REFUSED)
def refused(call):
    return {"raised": raised(call)}
