"""Adaptive summation of gradients over processes; of the gradients of one process it is these themselves."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.distributed.parallel import settings
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim.optimizer import Optimizer


class _AdaSum(Cell):
    """An optimizer whose gradients, or steps, of several processes are summed by how far they point the same way.

    On one process it is the optimizer itself (arXiv 2006.02924, formula 4, of one term). Raises TypeError for what is no optimizer,
    RuntimeError where gradients are shared among several processes, which is not in torchspore.
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
        """The step of the optimizer."""
        return self.optimizer(grads)


class AdaSumByGradWrapCell(_AdaSum):
    __doc__ = _AdaSum.__doc__


class AdaSumByDeltaWeightWrapCell(_AdaSum):
    __doc__ = _AdaSum.__doc__
