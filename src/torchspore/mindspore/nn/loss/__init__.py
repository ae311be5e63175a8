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

_Loss = LossBase

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "LossBase", "MSELoss", "NLLLoss", "SmoothL1Loss",
    "SoftmaxCrossEntropyWithLogits",
]
