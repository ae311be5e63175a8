"""Training steps that MindSpore may shorten; here they are whole."""
from __future__ import annotations

from typing import Any

from torchspore.context import effects
from torchspore.mindspore.nn.wrap import TrainOneStepCell, TrainOneStepWithLossScaleCell
from torchspore.names import missing


def _note(name: str) -> None:
    effects.note("training", f"{name}: takes no shortcuts: no weight is frozen, no batch norm left out")


class BoostTrainOneStepCell(TrainOneStepCell):
    """`nn.TrainOneStepCell`; the shortcuts of `boost` are not taken, and `explain` says so."""

    def __init__(self, network: Any, optimizer: Any, sens: Any = None) -> None:
        super().__init__(network, optimizer, 1.0 if sens is None else sens)
        _note("BoostTrainOneStepCell")


class BoostTrainOneStepWithLossScaleCell(TrainOneStepWithLossScaleCell):
    """`nn.TrainOneStepWithLossScaleCell`; the shortcuts of `boost` are not taken, and `explain` says so."""

    def __init__(self, network: Any, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer, scale_sense)
        _note("BoostTrainOneStepWithLossScaleCell")


__getattr__ = missing(__name__)
