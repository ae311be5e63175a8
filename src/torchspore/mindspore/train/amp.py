"""Training steps at the levels of mixed precision."""
from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from torchspore.base.arguments import check_bool, check_type
from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.engine.execution.precision import Lowered, changed, lowered_to
from torchspore.engine.tensors import change_counters
from torchspore.mindspore import nn, ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer import normalization
from torchspore.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from torchspore.mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from torchspore.mindspore.ops.precision.amp_operators import automatic, by_primitives
from torchspore.mindspore.train.loss_scale_manager import DynamicLossScaleManager, LossScaleManager

LEVELS = ("O0", "O1", "O2", "O3", "auto")
_FLOAT32_CELLS = tuple(
    getattr(normalization, name) for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm") if hasattr(normalization, name)
)


AMP_BLACK_LIST: list[Any] = list(_FLOAT32_CELLS)
AMP_WHITE_LIST: list[Any] = [
    *(getattr(nn, name) for name in (
        "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "Dense", "LSTMCell", "RNNCell", "GRUCell",
    )),
    *(getattr(ops, name) for name in (
        "Conv2D", "Conv3D", "Conv2DTranspose", "Conv3DTranspose", "Conv2DBackpropInput", "MatMul", "BatchMatMul", "PReLU", "ReLU", "Ger",
    )),
]
_INNER_AMP_BLACK_LIST: list[Any] = []
"""Classes that keep their dtype at O1, whatever `AMP_WHITE_LIST` has: packages add theirs."""
_config_level: dict[str, dict[str, Any]] = {
    level: {
        "keep_batchnorm_fp32": level == "O2", "cast_model_type": mstype.float16 if level in ("O2", "O3") else mstype.float32,
        "loss_scale_manager": DynamicLossScaleManager() if level == "O2" else None,
    } for level in LEVELS
}
"""The settings of each level, for packages that build custom training steps."""


class _OutputLowered(Cell):
    """A layer that computes in one dtype, by default float32, with its output cast to another."""

    def __init__(self, backbone: Cell, dtype: Any, inner: Any = mstype.float32) -> None:
        super().__init__(auto_prefix=False)
        self._backbone, self._dtype = backbone.to_float(inner), dtype

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs).astype(self._dtype)


def get_black_list() -> list[type[Cell]]:
    """Returns a copy of the list of Cell classes that stay in float32 at O2."""
    return list(AMP_BLACK_LIST)


def get_white_list() -> list[type]:
    """Returns a copy of the list of Cell and primitive classes that compute in the lower dtype at O1."""
    return list(AMP_WHITE_LIST)


class _LossIn32(WithLossCell):
    """Computes the loss of the network's output as float32."""

    def construct(self, data: Any, label: Any) -> Any:
        output = self._backbone(data)
        outputs = output.astype(mstype.float32) if hasattr(output, "astype") else tuple(item.astype(mstype.float32) for item in output)
        return self._loss_fn(outputs, label)


def check_level(call: str, level: Any) -> str:
    """Return the level. Raises ValueError for an unknown one."""
    if level not in LEVELS:
        raise ValueError(message(f"{call}(amp_level={short(level)})", list_choices(LEVELS)))
    return level  # type: ignore[no-any-return]


def lower_precision(
    network: Cell, level: str, keep_batchnorm_fp32: bool | None = None, dtype: Any = mstype.float16,
    float32_classes: tuple[type, ...] = _FLOAT32_CELLS, is_full: bool | None = None,
) -> Cell:
    """Make the network compute in `dtype` at O2 and O3. Layers of `float32_classes` stay in float32 at O2, or with `keep_batchnorm_fp32`.

    At O1 only the classes of `AMP_WHITE_LIST` compute in `dtype`, at auto each operator in the precision that it needs. `is_full` sets,
    at any level, whether the full network computes in `dtype`.
    """
    if not (is_full if is_full is not None else level in ("O2", "O3")):
        if level == "O1":
            return lower_listed(network, AMP_WHITE_LIST, dtype)
        return choose_by_operator(network, dtype) if level == "auto" else network  # type: ignore[no-any-return]
    network.to_float(dtype)
    if keep_batchnorm_fp32 if keep_batchnorm_fp32 is not None else level == "O2":
        _keep_in_float32(network, dtype, float32_classes)
    return network


def _keep_in_float32(cell: Cell, dtype: Any, float32_classes: tuple[type, ...]) -> None:
    for name, child in list(cell.name_cells().items()):
        if isinstance(child, float32_classes):
            wrapped = _OutputLowered(child, dtype)
            cell._cells[name] = wrapped
            if hasattr(cell, "cell_list"):
                cell.cell_list = list(cell.cells())
        elif not isinstance(child, _OutputLowered):
            _keep_in_float32(child, dtype, float32_classes)


def _auto_black_list(network: Cell, black_list: Any, dtype: Any = mstype.float16) -> Cell:
    """Make the network compute in `dtype`, except layers of the classes `black_list`, and return it."""
    cell_classes = tuple(kind for kind in black_list if isinstance(kind, type) and issubclass(kind, Cell))
    return network if isinstance(network, cell_classes) else lower_precision(network, "O2", True, dtype, cell_classes)


def _auto_mixed_precision_rewrite(network: Cell, dtype: Any, *, white_list: Any = None, black_list: Any = None) -> Cell:
    """Make the layers and primitives of the classes `white_list`, or all except those of `black_list`, compute in `dtype`.

    Raises ValueError for both lists, or neither.
    """
    if (white_list is None) == (black_list is None):
        raise ValueError(message("_auto_mixed_precision_rewrite(white_list=..., black_list=...)", "one of the two"))
    return _auto_black_list(network, black_list, dtype) if white_list is None else lower_listed(network, white_list, dtype)


def lower_listed(network: Cell, classes: Iterable[type], dtype: Any) -> Cell:
    """Make the network's Cells and primitives of exactly these classes compute in `dtype` and return float32.

    This includes the network itself and the content of containers. A Cell with a dtype of `to_float` keeps it.
    """
    selected = tuple(kind for kind in classes if kind not in _INNER_AMP_BLACK_LIST)
    cells = {kind for kind in selected if issubclass(kind, Cell) and not issubclass(kind, (nn.SequentialCell, nn.CellList, nn.CellDict))}
    _compute(network, by_primitives([kind for kind in selected if not issubclass(kind, Cell)], dtype))
    pending = list(network.cells())
    while pending:
        cell = pending.pop()
        if type(cell) in cells:
            _compute(cell, lowered_to(dtype, mstype.float32))
        else:
            pending += cell.cells()
    return network


def choose_by_operator(network: Any, dtype: Any) -> Any:
    """Return the network, or a wrapped function, in which each operator computes in the precision of the level auto."""
    if isinstance(network, Cell):
        _compute(network, automatic(dtype))
        return network
    return functools.wraps(network)(changed(network, automatic(dtype), Parameter))


def _compute(cell: Cell, how: Any) -> None:
    """Set the precision `how` of a Cell, unless `to_float` has set one."""
    attributes = cell.__dict__
    if not isinstance(attributes["_lower_"], Lowered):
        attributes["_lower_"] = how
        change_counters.calls_changed()


def _config_amp(*, enable_rewrite: bool | None = None, cast_op: Any = None) -> None:
    """Set how MindSpore's O1 inserts casts. It has no effect: here the layers and operators themselves compute in the dtype.

    Raises TypeError for an `enable_rewrite` that is not a bool, and NotImplementedError for another function that casts.
    """
    if enable_rewrite is not None:
        check_bool("_config_amp", "enable_rewrite", enable_rewrite)
    if cast_op is not None:
        raise NotImplementedError(f"_config_amp(cast_op={short(cast_op)}): expected None, because O1 calls no function that casts.")


def _do_keep_batchnorm_fp32(network: Cell) -> None:
    """Make normalization layers compute in float32 and return float16."""
    _keep_in_float32(network, mstype.float16, _FLOAT32_CELLS)


def _add_loss_network(network: Cell, loss_fn: Any, cast_model_type: Any) -> Cell:
    """Return the network with its loss, which is computed in float32 if the network is in float16."""
    return (_LossIn32 if cast_model_type == mstype.float16 else WithLossCell)(network, loss_fn)


def check_boost(call: str, boost_level: Any) -> None:
    """Checks a level of boosting. Raises ValueError for an unknown one."""
    if boost_level not in ("O0", "O1", "O2"):
        raise ValueError(message(f"{call}(boost_level={short(boost_level)})", list_choices(("O0", "O1", "O2"))))


def check_manager(call: str, manager: Any) -> None:
    """Raises TypeError unless the value is a loss-scale manager or a `boost.GroupLossScaleManager`."""
    if not (isinstance(manager, Cell) and hasattr(manager, "set_loss_scale_status")):
        check_type(call, "loss_scale_manager", manager, LossScaleManager, "a loss-scale manager")


def boosted(
    network: Cell, optimizer: Any, eval_network: Cell | None, has_metrics: bool, level: str, config: Any,
) -> tuple[Cell, Any, Cell | None]:
    """Return (network, optimizer, network to evaluate with) of `boost.AutoBoost` at this level.

    As in MindSpore they stay unchanged without an optimizer, and without both metrics and a network to evaluate with.
    """
    if level == "O0":
        return network, optimizer, eval_network
    from torchspore.mindspore.boost import AutoBoost

    boost = AutoBoost(level, config)
    if optimizer is None or (eval_network is None and not has_metrics):
        effects.note("training", f"Model(boost_level={level!r}): trains as at 'O0', without an optimizer or metrics")
        return network, optimizer, eval_network
    network, optimizer = boost.network_auto_process_train(network, optimizer)
    effects.note("training", f"Model(boost_level={level!r}): {', '.join(name for name, taken in boost.boost_config.items() if taken)}")
    return network, optimizer, None if eval_network is None else boost.network_auto_process_eval(eval_network)


def build_train_network(
    network: Cell, optimizer: Any, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0", **kwargs: Any
) -> Cell:
    """Builds the Cell of one training step: network, loss, gradient, optimizer, at a level of mixed precision.

    `level` is 'O0' (float32), 'O1' (the classes of `AMP_WHITE_LIST` in float16), 'O2' (float16 except normalization layers; the loss is
    scaled), 'O3' (float16) or 'auto' (each operator in the precision that it needs). Other arguments override the level:
    `loss_scale_manager`, `keep_batchnorm_fp32`, and `cast_model_type`, float16 or float32 for the full network. Raises ValueError and
    TypeError for invalid arguments.
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
    cast_to = kwargs.get("cast_model_type", _config_level[level]["cast_model_type"])
    if cast_to not in (mstype.float16, mstype.float32):
        call_text = f"build_train_network(cast_model_type={short(cast_to)})"
        raise ValueError(message(call_text, list_choices(("mindspore.float16", "mindspore.float32"))))
    lower_precision(network, level, keep, is_full=cast_to == mstype.float16)
    if loss_fn is not None:
        network = _add_loss_network(network, loss_fn, cast_to)
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    step, scaled_step = _steps(boost_level)
    if manager is None:
        return step(network, optimizer).set_train()
    check_manager("build_train_network", manager)
    update = manager.get_update_cell()
    if update is not None:
        return scaled_step(network, optimizer, scale_sense=update).set_train()
    return step(network, optimizer, manager.get_loss_scale()).set_train()


def _steps(boost_level: str) -> tuple[Any, Any]:
    """Return the classes of training steps, without and with a dynamic loss scale."""
    if boost_level == "O0":
        return TrainOneStepCell, TrainOneStepWithLossScaleCell
    from torchspore.mindspore.boost import BoostTrainOneStepCell, BoostTrainOneStepWithLossScaleCell

    return BoostTrainOneStepCell, BoostTrainOneStepWithLossScaleCell
