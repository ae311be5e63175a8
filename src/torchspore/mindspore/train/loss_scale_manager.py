"""Loss scaling for gradients of float16."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_bool, check_int, check_type
from torchspore.base.text import message
from torchspore.mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell


class LossScaleManager:
    """Base of the loss-scale managers."""

    def get_loss_scale(self) -> Any:
        """Returns the scale."""

    def update_loss_scale(self, overflow: bool) -> None:
        """Changes the scale after a step."""

    def get_update_cell(self) -> Any:
        """Returns the Cell that changes the scale within a training step, None for a constant scale."""


class FixedLossScaleManager(LossScaleManager):
    """One constant scale (from 1); with `drop_overflow_update`, a step that overflows changes no Parameter."""

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        check_type("FixedLossScaleManager", "loss_scale", loss_scale, (int, float), "a number")
        if loss_scale < 1:
            raise ValueError(message(f"FixedLossScaleManager(loss_scale={loss_scale})", "a number from 1"))
        self._loss_scale = loss_scale
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self) -> float:
        """Returns the scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Returns whether a step that overflows is skipped."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Leaves the scale unchanged."""

    def get_update_cell(self) -> Any:
        """Returns a FixedLossScaleUpdateCell, None without `drop_overflow_update`."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that is divided by `scale_factor` after an overflow and multiplied by it after `scale_window` steps without one."""

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        check_type("DynamicLossScaleManager", "init_loss_scale", init_loss_scale, (int, float), "a number")
        if init_loss_scale < 1:
            raise ValueError(message(f"DynamicLossScaleManager(init_loss_scale={init_loss_scale})", "a number from 1"))
        check_type("DynamicLossScaleManager", "scale_factor", scale_factor, int, "an int")
        if scale_factor <= 1:
            raise ValueError(message(f"DynamicLossScaleManager(scale_factor={scale_factor})", "an int from 2"))
        check_int("DynamicLossScaleManager", "scale_window", scale_window, 1)
        self.loss_scale, self.scale_factor, self.scale_window = init_loss_scale, scale_factor, scale_window
        self.increase_ratio, self.decrease_ratio = scale_factor, 1 / scale_factor
        self.cur_iter, self.last_overflow_iter = 1, 0

    def get_loss_scale(self) -> float:
        """Returns the current scale."""
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        """Changes the scale after a step. Raises TypeError unless `overflow` is a bool."""
        check_bool("update_loss_scale", "overflow", overflow)
        if overflow:
            self.loss_scale = max(1, self.loss_scale * self.decrease_ratio)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= self.increase_ratio
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        """Returns True: a step that overflows is skipped."""
        return True

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        """Returns the Cell that does the same within a training step."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
