"""`mindspore.boost`: training in fewer steps, and steps of fewer layers.

The change that only MindSpore's graphs make is not supported, and `explain` reports it: `LessBN` does not remove batch norms.
"""
from __future__ import annotations

from torchspore.mindspore.boost import boost_cell_wrapper, grad_accumulation
from torchspore.mindspore.boost.adasum import AdaSum
from torchspore.mindspore.boost.base import OptimizerProcess, ParameterProcess
from torchspore.mindspore.boost.boost import AutoBoost
from torchspore.mindspore.boost.boost_cell_wrapper import BoostTrainOneStepCell, BoostTrainOneStepWithLossScaleCell
from torchspore.mindspore.boost.dim_reduce import DimReduce
from torchspore.mindspore.boost.grad_accumulation import GradientAccumulation
from torchspore.mindspore.boost.grad_freeze import FreezeOpt, GradientFreeze, freeze_cell
from torchspore.mindspore.boost.group_loss_scale_manager import GroupLossScaleManager
from torchspore.mindspore.boost.less_batch_normalization import LessBN
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = [
    "AdaSum", "AutoBoost", "BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell", "DimReduce", "FreezeOpt", "GradientAccumulation",
    "GradientFreeze", "GroupLossScaleManager", "LessBN", "OptimizerProcess", "ParameterProcess", "freeze_cell",
]
