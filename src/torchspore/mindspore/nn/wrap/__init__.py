"""Cells that combine a network, a loss and an optimizer."""
from torchspore.mindspore.nn.wrap.cell_wrapper import (
    ForwardValueAndGrad,
    GetNextSingleOp,
    ParameterUpdate,
    TrainOneStepCell,
    VirtualDatasetCellTriple,
    WithEvalCell,
    WithGradCell,
    WithLossCell,
)
from torchspore.mindspore.nn.wrap.grad_reducer import DistributedGradReducer, PipelineGradReducer
from torchspore.mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell, TrainOneStepWithLossScaleCell
from torchspore.mindspore.nn.wrap.micro_batches import GradAccumulationCell, MicroBatchInterleaved, PipelineCell

__all__ = [
    "DistributedGradReducer", "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "GetNextSingleOp",
    "GradAccumulationCell", "MicroBatchInterleaved", "ParameterUpdate", "PipelineCell", "PipelineGradReducer", "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell", "VirtualDatasetCellTriple", "WithEvalCell", "WithGradCell", "WithLossCell",
]
