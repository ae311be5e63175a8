"""Adaptive summation of gradients over processes; for one process, the result is its gradients."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.distributed.data_parallel import settings
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim.optimizer import Optimizer


class _AdaSum(Cell):
    """An optimizer that sums gradients, or steps, of several processes by how parallel they are.

    On one process it is the optimizer itself (arXiv 2006.02924, formula 4, with one term). Raises TypeError for a value that is not an
    optimizer, RuntimeError if several processes exchange gradients, which is not supported.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(optimizer, Optimizer):
            raise TypeError(message(f"{type(self).__name__}({short(optimizer)})", f"an optimizer, got {type(optimizer).__name__}"))
        if settings.is_shared():
            raise RuntimeError(message(
                f"{type(self).__name__} over {settings.processes()} processes",
                "one process: the adaptive sum of several is not in torchspore",
                hint="train with the optimizer itself, and gradients_mean=True",
            ))
        self.optimizer = optimizer
        self.parameters, self.learning_rate = optimizer.parameters, optimizer.learning_rate

    def construct(self, grads: Any) -> Any:
        """Run the step of the optimizer."""
        return self.optimizer(grads)


class AdaSumByGradWrapCell(_AdaSum):
    __doc__ = _AdaSum.__doc__


class AdaSumByDeltaWeightWrapCell(_AdaSum):
    __doc__ = _AdaSum.__doc__
