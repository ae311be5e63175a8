"""Functions that all programs use: a training step as one Cell, as `Model.train` builds it, and a forward pass."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import nn


def training(net: Any, loss: Any, optimizer: Any, *batch: Any) -> Callable[[], Any]:
    """Return a function that runs one training step."""
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    cell.set_train()
    return lambda: cell(*batch)


def inference(net: Any, *batch: Any) -> Callable[[], Any]:
    """Return a function that runs one forward pass of a trained net; its attributes `net` and `batch` name both."""
    net.set_train(False)

    def run() -> Any:
        return net(*batch)

    run.net, run.batch = net, batch  # type: ignore[attr-defined]
    return run
