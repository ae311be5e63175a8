"""What the programs share: one training step inside one Cell, as `Model.train` builds it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import nn


def training(net: Any, loss: Any, optimizer: Any, *batch: Any) -> Callable[[], Any]:
    """A function that does one training step."""
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    cell.set_train()
    return lambda: cell(*batch)


def inference(net: Any, *batch: Any) -> Callable[[], Any]:
    """A function that does one forward pass of a trained net."""
    net.set_train(False)
    return lambda: net(*batch)
