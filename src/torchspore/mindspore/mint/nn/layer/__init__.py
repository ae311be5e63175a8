"""`mindspore.mint.nn.layer`: the layers of mint by subject."""
from torchspore.mindspore.mint.nn.layer import activation, basic, conv, loss, normalization, padding, pooling
from torchspore.mindspore.mint.nn.layer.activation import LogSigmoid, SiLU, Threshold
from torchspore.mindspore.mint.nn.layer.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, SyncBatchNorm
from torchspore.mindspore.mint.nn.layer.pooling import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
    "GroupNorm", "LayerNorm", "LogSigmoid", "SiLU", "SyncBatchNorm", "Threshold", "activation", "basic", "conv", "loss", "normalization",
    "padding", "pooling",
]
