#!/usr/bin/env python3
"""A training step in the style of 1.x, compared with `nn.TrainOneStepCell`: the forward pass must not run twice.

`python benchmarks/idiom.py [--seconds S] [--rounds N]`.
"""
from __future__ import annotations

from typing import Any

import turns

import torchspore


def main() -> None:
    """Measure LeNet-5 with batch norm and dropout and ResNet-18 in both modes; the goal is a ratio of at most 1.02."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    import mindspore as ms

    for title, network in (("LeNet-5 with batch norm and dropout, batch 64", _lenet), ("ResNet-18 on 64x64, batch 16", _resnet18)):
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            contenders = {"nn.TrainOneStepCell": turns.timer(_step(network, False)), "own step, 1.x": turns.timer(_step(network, True))}
            name = "Graph" if mode == ms.GRAPH_MODE else "PyNative"
            turns.compare(f"{title}, {name}", contenders, "nn.TrainOneStepCell", options.seconds, options.rounds)


def _lenet() -> tuple[Any, Any, Any]:
    import mindspore as ms
    import numpy as np
    from mindspore import nn

    net = nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(256, 120), nn.ReLU(), nn.Dropout(p=0.5), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
    )
    x = np.random.rand(64, 1, 28, 28).astype(np.float32)
    return net, ms.Tensor(x), ms.Tensor(np.random.randint(0, 10, 64).astype(np.int32))


def _resnet18() -> tuple[Any, Any, Any]:
    import mindspore as ms
    import numpy as np
    from programs.resnet18 import ResNet18

    x = np.random.rand(16, 3, 64, 64).astype(np.float32)
    return ResNet18(), ms.Tensor(x), ms.Tensor(np.random.randint(0, 10, 16).astype(np.int32))


def _step(network: Any, is_older_style: bool) -> Any:
    """Return a step of a new net: by TrainOneStepCell, or by a Cell as programs for 1.x write it."""
    import mindspore as ms
    from mindspore import nn, ops

    class OlderTrainStep(nn.Cell):
        """The training step of the model zoo."""

        def __init__(self, network: Any, optimizer: Any) -> None:
            super().__init__(auto_prefix=False)
            self.network = network
            self.network.set_grad()
            self.optimizer = optimizer
            self.weights = optimizer.parameters
            self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
            self.sens = 1.0

        def construct(self, *inputs: Any) -> Any:
            """Return the loss."""
            loss = self.network(*inputs)
            sens = ops.fill(loss.dtype, loss.shape, self.sens)
            self.optimizer(self.grad(self.network, self.weights)(*inputs, sens))
            return loss

    ms.set_seed(1)
    net, x, y = network()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    step = (OlderTrainStep if is_older_style else nn.TrainOneStepCell)(with_loss, optimizer)
    step.set_train()
    return lambda: step(x, y)


if __name__ == "__main__":
    main()
