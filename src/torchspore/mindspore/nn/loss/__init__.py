"""Losses as Cells."""
from torchspore.mindspore.nn.loss.loss import (
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
from torchspore.mindspore.nn.loss.more_losses import *
from torchspore.mindspore.nn.loss.more_losses import __all__ as _more

_Loss = LossBase

__all__ = [
    *_more, "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "LossBase", "MSELoss", "NLLLoss", "SmoothL1Loss",
    "SoftmaxCrossEntropyWithLogits",
]
