"""Helpers of training loops that call the user's callbacks and schedules."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn, optim


class RunContext:
    """The state of a training for callbacks; `original_args()` returns the object itself."""

    def __init__(self, network: nn.Module, optimizer: optim.Optimizer, loss_fn: Any, train_dataset: Any, epoch_num: int) -> None:
        self.network = self.train_network = network
        self.optimizer, self.loss_fn, self.train_dataset, self.epoch_num = optimizer, loss_fn, train_dataset, epoch_num
        self.cur_epoch_num = self.cur_step_num = 0
        self.net_outputs: Any = None
        self.mode = "train"
        self.is_stop_requested = False

    @property
    def batch_num(self) -> int:
        """The number of batches of an epoch."""
        return len(self.train_dataset)

    def original_args(self) -> RunContext:
        """The state of the training."""
        return self

    def request_stop(self) -> None:
        """End the training after this step or epoch."""
        self.is_stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether a callback requested the end."""
        return self.is_stop_requested


class RateOf:
    """The learning rate of each step, which a Module computes."""

    def __init__(self, schedule: nn.Module) -> None:
        self.schedule = schedule

    def __call__(self, step: int) -> float:
        with torch.no_grad():
            return float(self.schedule(torch.tensor([step], dtype=torch.int32)))
