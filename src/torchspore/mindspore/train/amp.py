"""Training steps at the levels of mixed precision."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, one_of, short
from torchspore.context import effects
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer import normalization
from torchspore.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from torchspore.mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from torchspore.mindspore.train.checks import check_bool, check_type
from torchspore.mindspore.train.loss_scale_manager import DynamicLossScaleManager, LossScaleManager

LEVELS = ("O0", "O1", "O2", "O3", "auto")
_FLOAT32_CELLS = tuple(
    getattr(normalization, name) for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm") if hasattr(normalization, name)
)


class _OutputLowered(Cell):
    """A layer that computes in float32, with its output cast to a lower precision."""

    def __init__(self, backbone: Cell, dtype: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone, self._dtype = backbone.to_float(mstype.float32), dtype

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs).astype(self._dtype)


def get_black_list() -> list[type[Cell]]:
    """The classes of Cells that stay in float32 at O2."""
    return list(_FLOAT32_CELLS)


class _LossIn32(WithLossCell):
    """The loss of the network's output as float32."""

    def construct(self, data: Any, label: Any) -> Any:
        output = self._backbone(data)
        outputs = output.astype(mstype.float32) if hasattr(output, "astype") else tuple(one.astype(mstype.float32) for one in output)
        return self._loss_fn(outputs, label)


def check_level(call: str, level: Any) -> str:
    """The level; 'auto' is O3 here as on no accelerator of MindSpore's. Raises ValueError for one that is not offered."""
    if level not in LEVELS:
        raise ValueError(message(f"{call}(amp_level={short(level)})", one_of(LEVELS)))
    if level in ("O1", "auto"):
        raise ValueError(message(f"{call}(amp_level={level!r})", "'O0', 'O2' or 'O3': this level is not in torchspore yet"))
    return level


def lower_precision(
    network: Cell, level: str, keep_batchnorm_fp32: bool | None = None, dtype: Any = mstype.float16,
    kept: tuple[type, ...] = _FLOAT32_CELLS,
) -> Cell:
    """The network computing in `dtype` at O2 and O3; at O2, or with `keep_batchnorm_fp32`, layers of the classes `kept` stay in float32."""
    if level == "O0":
        return network
    network.to_float(dtype)
    if keep_batchnorm_fp32 if keep_batchnorm_fp32 is not None else level == "O2":
        _keep_in_float32(network, dtype, kept)
    return network


def _keep_in_float32(cell: Cell, dtype: Any, kept: tuple[type, ...]) -> None:
    for name, child in list(cell.name_cells().items()):
        if isinstance(child, kept):
            wrapped = _OutputLowered(child, dtype)
            cell._cells[name] = wrapped
            if hasattr(cell, "cell_list"):
                cell.cell_list = list(cell.cells())
        elif not isinstance(child, _OutputLowered):
            _keep_in_float32(child, dtype, kept)


def check_boost(call: str, boost_level: Any) -> None:
    """Checks a level of boosting, and says in `explain` that its shortcuts are not taken. Raises ValueError for what is none."""
    if boost_level not in ("O0", "O1", "O2"):
        raise ValueError(message(f"{call}(boost_level={short(boost_level)})", one_of(("O0", "O1", "O2"))))
    if boost_level != "O0":
        effects.note("training", f"{call}(boost_level={boost_level!r}): trains as at 'O0': no batch norm is left out, no weight frozen")


def build_train_network(
    network: Cell, optimizer: Any, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0", **kwargs: Any
) -> Cell:
    """The Cell of one training step: network, loss, gradient, optimizer, at a level of mixed precision.

    `level` is 'O0' (float32), 'O2' (float16 but for normalization layers; the loss is scaled) or 'O3' (float16). Further arguments:
    `loss_scale_manager`, `keep_batchnorm_fp32`, `cast_model_type`. Raises ValueError and TypeError for arguments that do not fit.
    """
    check_type("build_train_network", "network", network, Cell, "a Cell")
    check_level("build_train_network", level)
    check_boost("build_train_network", boost_level)
    for name in kwargs:
        if name not in ("loss_scale_manager", "keep_batchnorm_fp32", "cast_model_type"):
            raise ValueError(message(f"build_train_network({name}=...)", "loss_scale_manager, keep_batchnorm_fp32 or cast_model_type"))
    keep = kwargs.get("keep_batchnorm_fp32")
    if keep is not None:
        check_bool("build_train_network", "keep_batchnorm_fp32", keep)
    lower_precision(network, level, keep)
    if loss_fn is not None:
        network = (_LossIn32 if level in ("O2", "O3") else WithLossCell)(network, loss_fn)
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    if manager is None:
        return TrainOneStepCell(network, optimizer).set_train()
    check_type("build_train_network", "loss_scale_manager", manager, LossScaleManager, "a loss-scale manager")
    update = manager.get_update_cell()
    if update is not None:
        return TrainOneStepWithLossScaleCell(network, optimizer, scale_sense=update).set_train()
    return TrainOneStepCell(network, optimizer, manager.get_loss_scale()).set_train()
