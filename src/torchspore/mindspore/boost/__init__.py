"""`mindspore.boost`: accumulation of gradients. Its shortcuts (frozen weights, fewer batch norms) change the numbers and are not taken."""
from __future__ import annotations

from torchspore.mindspore.boost import boost_cell_wrapper, grad_accumulation
from torchspore.mindspore.boost.boost_cell_wrapper import BoostTrainOneStepCell, BoostTrainOneStepWithLossScaleCell
from torchspore.mindspore.boost.grad_accumulation import GradientAccumulation
from torchspore.names import missing

__getattr__ = missing(__name__)
__all__ = ["BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell", "GradientAccumulation"]
