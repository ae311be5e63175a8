"""Metrics of torchmetrics and torcheval in `Model(metrics=...)`."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.tensors.tensor import raw, transform
from torchspore.mindspore.train.metrics.metric import Metric
from torchspore.torch_modules.module_frame import to_mindspore


class TorchMetric(Metric):
    """A metric of torch, with `update(predicted, label)`, `compute()` and `reset()`, as a Metric."""

    def __init__(self, metric: Any) -> None:
        super().__init__()
        self.metric = metric

    def clear(self) -> None:
        """Reset the metric."""
        self.metric.reset()

    def update(self, *inputs: Any) -> None:
        """Add a batch: the values that `indexes` selects, in this order; by default the predictions and the labels."""
        values = inputs if self.indexes is None else [inputs[index] for index in self.indexes]
        with torch.no_grad():
            self.metric.update(*(transform(value, raw) for value in values))

    def eval(self) -> Any:
        """Return the result: a number for a tensor with one value, otherwise Tensors."""
        result = self.metric.compute()
        if isinstance(result, torch.Tensor) and result.numel() == 1:
            return result.item()
        return to_mindspore(result)
