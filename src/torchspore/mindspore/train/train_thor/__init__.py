"""Networks and models made ready for the optimizer `thor`."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense, Embedding
from torchspore.mindspore.nn.layer.conv import Conv2d
from torchspore.mindspore.nn.layer.embedding import EmbeddingLookup
from torchspore.mindspore.nn.layer.thor_layer import Conv2dThor, DenseThor, EmbeddingLookupThor, EmbeddingThor
from torchspore.mindspore.nn.optim.thor import Thor
from torchspore.mindspore.train.model import Model

_KINDS: dict[type, type] = {Dense: DenseThor, Conv2d: Conv2dThor, Embedding: EmbeddingThor, EmbeddingLookup: EmbeddingLookupThor}


class ConvertNetUtils:
    """Gives a network's dense, convolutional and embedding layers the matrices that `thor` needs."""

    def convert_to_thor_net(self, net: Cell) -> None:
        """Changes the layers in place; their Parameters stay. Raises TypeError for what is no Cell."""
        if not isinstance(net, Cell):
            raise TypeError(message(f"convert_to_thor_net({short(net)})", f"a Cell, got {type(net).__name__}"))
        for name, cell in list(net.cells_and_names()):
            for key, layer in list(cell.name_cells().items()):
                if type(layer) in _KINDS:
                    cell._cells[key] = _turned(layer, f"{name}.{key}" if name else key)
                    if hasattr(cell, "cell_list"):
                        cell.cell_list = list(cell.cells())
        net.update_cell_prefix()


def _turned(layer: Cell, name: str) -> Any:
    """The layer as one that keeps matrices, with the Parameters that it has."""
    kind = _KINDS[type(layer)]
    made: Any = kind.__new__(kind)
    made.__dict__.update(layer.__dict__)
    if isinstance(made, Conv2dThor):
        made._pieces = made.in_channels // made.group * made.kernel_size[0] * made.kernel_size[1]
        made._keep_([made._pieces, made._pieces], made.out_channels)
    elif isinstance(made, DenseThor):
        made._keep_([made.in_channels, made.in_channels], made.out_channels)
    else:
        made._count, size = made.embedding_table.shape
        made._keep_([made._count], size)
    for kept in (made.matrix_a, made.matrix_g):
        kept.name = f"{name}.{kept.name}"
    return made


class _EverySoOften(Cell):
    """A training step that sets the flag `thor` in every `frequency`-th call, the first one too."""

    def __init__(self, network: Cell, frequency: int) -> None:
        super().__init__(auto_prefix=False)
        self.network, self._frequency, self._calls = network, frequency, 0

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        wanted = self._calls % self._frequency == 0
        if wanted or self._calls % self._frequency == 1:
            self.network.add_flags_recursive(thor=wanted)
        self.__dict__["_calls"] += 1
        return self.network(*inputs, **named)


class ModelThor(Model):
    """A Model whose matrices are made anew every so many steps, as its optimizer says."""

    def _build_train_network(self) -> Cell:
        made = super()._build_train_network()
        return _EverySoOften(made, self._optimizer.frequency) if isinstance(self._optimizer, Thor) else made


class ConvertModelUtils:
    """Makes a Model one for `thor`."""

    @staticmethod
    def convert_to_thor_model(
        model: Model, network: Cell, loss_fn: Any = None, optimizer: Any = None, metrics: Any = None, amp_level: str = "O0",
        loss_scale_manager: Any = None, keep_batchnorm_fp32: bool = False,
    ) -> Model:
        """A Model of the same network; the one that was given where the optimizer is not `thor`. Raises TypeError for what is no Model."""
        if not isinstance(model, Model):
            raise TypeError(message(f"convert_to_thor_model({short(model)})", f"a Model, got {type(model).__name__}"))
        if not isinstance(optimizer, Thor):
            return model
        return ModelThor(
            network, loss_fn, optimizer, metrics, amp_level=amp_level, loss_scale_manager=loss_scale_manager,
            keep_batchnorm_fp32=keep_batchnorm_fp32,
        )
