"""Conversion of networks and models for the optimizer `thor`."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.thor_conversion import ConvertNetUtils
from torchspore.mindspore.nn.optim.thor import Thor
from torchspore.mindspore.train.model import Model


class _EverySoOften(Cell):
    """A training step that sets the flag `thor` in the first and then every `frequency`-th call."""

    def __init__(self, network: Cell, frequency: int) -> None:
        super().__init__(auto_prefix=False)
        self.network, self._frequency, self._calls = network, frequency, 0

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        is_thor_step = self._calls % self._frequency == 0
        if is_thor_step or self._calls % self._frequency == 1:
            self.network.add_flags_recursive(thor=is_thor_step)
        self.__dict__["_calls"] += 1
        return self.network(*inputs, **named)


class ModelThor(Model):
    """A Model whose matrices are recomputed at the frequency of its optimizer."""

    def _build_train_network(self) -> Cell:
        network = super()._build_train_network()
        return _EverySoOften(network, self._optimizer.frequency) if isinstance(self._optimizer, Thor) else network


class ConvertModelUtils:
    """Converts a Model for `thor`."""

    @staticmethod
    def convert_to_thor_model(
        model: Model, network: Cell, loss_fn: Any = None, optimizer: Any = None, metrics: Any = None, amp_level: str = "O0",
        loss_scale_manager: Any = None, keep_batchnorm_fp32: bool = False,
    ) -> Model:
        """Returns a Model of the same network; the argument if the optimizer is not `thor`. Raises TypeError unless it is a Model."""
        if not isinstance(model, Model):
            raise TypeError(message(f"convert_to_thor_model({short(model)})", f"a Model, got {type(model).__name__}"))
        if not isinstance(optimizer, Thor):
            return model
        return ModelThor(
            network, loss_fn, optimizer, metrics, amp_level=amp_level, loss_scale_manager=loss_scale_manager,
            keep_batchnorm_fp32=keep_batchnorm_fp32,
        )
