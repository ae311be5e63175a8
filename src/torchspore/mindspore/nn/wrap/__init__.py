"""Cells that join a network, a loss and an optimizer."""
from torchspore.mindspore.nn.wrap.cell_wrapper import ForwardValueAndGrad, ParameterUpdate, TrainOneStepCell, WithEvalCell, WithLossCell
from torchspore.mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell, TrainOneStepWithLossScaleCell

__all__ = [
    "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "ParameterUpdate", "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell", "WithEvalCell", "WithLossCell",
]
