"""`mindspore.nn`: Cells, layers, losses, optimizers."""
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.dynamic_lr import *
from torchspore.mindspore.nn.dynamic_lr import __all__ as _rate_names
from torchspore.mindspore.nn.graph_cell import GraphCell
from torchspore.mindspore.nn.layer.activation import (
    ELU,
    GELU,
    HSigmoid,
    HSwish,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    SeLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softsign,
    Tanh,
)
from torchspore.mindspore.nn.layer.basic import ClipByNorm, Dense, Dropout, Embedding, Flatten, Identity, Pad, get_activation
from torchspore.mindspore.nn.layer.container import CellDict, CellList, SequentialCell
from torchspore.mindspore.nn.layer.conv import Conv1d, Conv2d, Conv2dTranspose, Conv3d
from torchspore.mindspore.nn.layer.embedding import EmbeddingLookup
from torchspore.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm
from torchspore.mindspore.nn.layer.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from torchspore.mindspore.nn.learning_rate_schedule import *
from torchspore.mindspore.nn.learning_rate_schedule import __all__ as _schedule_names
from torchspore.mindspore.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    LossBase,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
    SoftmaxCrossEntropyWithLogits,
)
from torchspore.mindspore.nn.optim import *
from torchspore.mindspore.nn.optim import __all__ as _optimizer_names
from torchspore.mindspore.nn.wrap import *
from torchspore.mindspore.nn.wrap import __all__ as _wrap_names

__all__ = [
    *_rate_names, *_schedule_names, *_wrap_names, *_optimizer_names, "EmbeddingLookup",
    "AdaptiveAvgPool2d", "AvgPool2d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "Cell",
    "CellDict", "CellList", "ClipByNorm", "Conv1d", "Conv2d", "Conv2dTranspose", "Conv3d", "CrossEntropyLoss", "Dense", "Dropout", "ELU",
    "Embedding",
    "Flatten", "GELU", "GroupNorm", "HSigmoid", "HSwish", "Identity", "L1Loss", "LayerNorm", "LeakyReLU", "LogSigmoid", "LogSoftmax",
    "LossBase",
    "MSELoss", "MaxPool2d", "Mish", "NLLLoss", "PReLU", "Pad", "ReLU", "ReLU6", "SeLU", "SequentialCell",
    "SiLU",
    "Sigmoid", "SmoothL1Loss", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softsign", "Tanh", "get_activation",
]
