"""The loss of a network with random weights."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.probability.bnn_layers.layer_distribution import Variational


class WithBNNLossCell(Cell):
    """`dnn_factor` times the loss of the network's output, plus `bnn_factor` times the divergence of all layers' distributions.

    Raises TypeError for a value that is not a Cell or number, ValueError for a factor below 0.
    """

    def __init__(self, backbone: Cell, loss_fn: Any, dnn_factor: float = 1, bnn_factor: float = 1) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(backbone, Cell):
            raise TypeError(message(f"WithBNNLossCell({short(backbone)}, ...)", f"a Cell, got {type(backbone).__name__}"))
        if not callable(loss_fn):
            raise TypeError(message(f"WithBNNLossCell(..., {short(loss_fn)})", f"a loss, got {type(loss_fn).__name__}"))
        for name, value in (("dnn_factor", dnn_factor), ("bnn_factor", bnn_factor)):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(message(f"WithBNNLossCell({name}={short(value)})", f"a number, got {type(value).__name__}"))
            if value < 0:
                raise ValueError(message(f"WithBNNLossCell({name}={value})", "a number from 0 on"))
        self._backbone, self._loss_fn, self.dnn_factor, self.bnn_factor = backbone, loss_fn, dnn_factor, bnn_factor
        self._layers = tuple(cell for _, cell in backbone.cells_and_names() if isinstance(cell, Variational))
        self.kl_loss = [cell.compute_kl_loss for cell in self._layers]

    def construct(self, x: Any, label: Any) -> Any:
        """The loss of one batch."""
        loss = self._loss_fn(self._backbone(x), label) * self.dnn_factor
        total = None
        for layer in self._layers:
            divergence = layer.compute_kl_loss()
            total = divergence if total is None else total + divergence
        return loss if total is None else loss + self.bnn_factor * total

    @property
    def backbone_network(self) -> Cell:
        """The wrapped network."""
        return self._backbone
