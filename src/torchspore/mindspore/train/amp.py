"""Training steps at the levels of mixed precision."""
from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.engine.core import change_counters
from torchspore.engine.core.precision import Lowered, changed, lowered_to
from torchspore.mindspore import nn, ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer import normalization
from torchspore.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from torchspore.mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from torchspore.mindspore.ops.amp_operators import automatic, by_primitives
from torchspore.mindspore.train.checks import check_bool, check_type
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
_config_level: dict[str, dict[str, Any]] = {
    level: {
        "keep_batchnorm_fp32": level == "O2", "cast_model_type": mstype.float16 if level in ("O2", "O3") else mstype.float32,
        "loss_scale_manager": DynamicLossScaleManager() if level == "O2" else None,
    } for level in LEVELS
}
"""What a level means, for packages that build training steps of their own."""


class _OutputLowered(Cell):
    """A layer that computes in one dtype, by default float32, with its output cast to another."""

    def __init__(self, backbone: Cell, dtype: Any, inner: Any = mstype.float32) -> None:
        super().__init__(auto_prefix=False)
        self._backbone, self._dtype = backbone.to_float(inner), dtype

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs).astype(self._dtype)


def get_black_list() -> list[type[Cell]]:
    """The classes of Cells that stay in float32 at O2, in a list of the caller's own."""
    return list(AMP_BLACK_LIST)


def get_white_list() -> list[type]:
    """The classes of Cells and primitives that compute in the lower dtype at O1, in a list of the caller's own."""
    return list(AMP_WHITE_LIST)


class _LossIn32(WithLossCell):
    """The loss of the network's output as float32."""

    def construct(self, data: Any, label: Any) -> Any:
        output = self._backbone(data)
        outputs = output.astype(mstype.float32) if hasattr(output, "astype") else tuple(one.astype(mstype.float32) for one in output)
        return self._loss_fn(outputs, label)


def check_level(call: str, level: Any) -> str:
    """The level. Raises ValueError for one that is none."""
    if level not in LEVELS:
        raise ValueError(message(f"{call}(amp_level={short(level)})", list_choices(LEVELS)))
    return level  # type: ignore[no-any-return]


def lower_precision(
    network: Cell, level: str, keep_batchnorm_fp32: bool | None = None, dtype: Any = mstype.float16,
    kept: tuple[type, ...] = _FLOAT32_CELLS, whole: bool | None = None,
) -> Cell:
    """The network computing in `dtype` at O2 and O3; at O2, or with `keep_batchnorm_fp32`, layers of the classes `kept` stay in float32.

    At O1 only the classes of `AMP_WHITE_LIST` compute in `dtype`, at auto each operator as its numbers need it. `whole` says, whatever the
    level, whether the whole network computes in `dtype`.
    """
    if not (whole if whole is not None else level in ("O2", "O3")):
        if level == "O1":
            return lower_listed(network, AMP_WHITE_LIST, dtype)
        return choose_by_operator(network, dtype) if level == "auto" else network  # type: ignore[no-any-return]
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


def _auto_black_list(network: Cell, black_list: Any, dtype: Any = mstype.float16) -> Cell:
    """The network computing in `dtype`, but for layers of the classes `black_list`; gives it back."""
    kept = tuple(kind for kind in black_list if isinstance(kind, type) and issubclass(kind, Cell))
    return network if isinstance(network, kept) else lower_precision(network, "O2", True, dtype, kept)


def _auto_mixed_precision_rewrite(network: Cell, dtype: Any, *, white_list: Any = None, black_list: Any = None) -> Cell:
    """The network with its layers and primitives of the classes `white_list`, or with all but those of `black_list`, computing in `dtype`.

    Raises ValueError for both lists, or none.
    """
    if (white_list is None) == (black_list is None):
        raise ValueError(message("_auto_mixed_precision_rewrite(white_list=..., black_list=...)", "one of the two"))
    return _auto_black_list(network, black_list, dtype) if white_list is None else lower_listed(network, white_list, dtype)


def lower_listed(network: Cell, classes: Iterable[type], dtype: Any) -> Cell:
    """The network with the Cells in it and the primitives that it calls of just these classes computing in `dtype` and giving float32.

    Containers are gone into, and so is the network itself. What has a dtype of its own by `to_float` keeps it.
    """
    wanted = tuple(classes)
    cells = {kind for kind in wanted if issubclass(kind, Cell) and not issubclass(kind, (nn.SequentialCell, nn.CellList, nn.CellDict))}
    _compute(network, by_primitives([kind for kind in wanted if not issubclass(kind, Cell)], dtype))
    left = list(network.cells())
    while left:
        cell = left.pop()
        if type(cell) in cells:
            _compute(cell, lowered_to(dtype, mstype.float32))
        else:
            left += cell.cells()
    return network


def choose_by_operator(network: Any, dtype: Any) -> Any:
    """The network, or a function like the one given, with each operator computing as the level auto has it."""
    if isinstance(network, Cell):
        _compute(network, automatic(dtype))
        return network
    return functools.wraps(network)(changed(network, automatic(dtype), Parameter))


def _compute(cell: Cell, how: Any) -> None:
    """Lets a Cell compute as `how` says, but where `to_float` has said it already."""
    own = cell.__dict__
    if not isinstance(own["_lower_"], Lowered):
        own["_lower_"] = how
        change_counters.calls_changed()


def _do_keep_batchnorm_fp32(network: Cell) -> None:
    """Lets normalization layers compute in float32, with float16 as what they give."""
    _keep_in_float32(network, mstype.float16, _FLOAT32_CELLS)


def _add_loss_network(network: Cell, loss_fn: Any, cast_model_type: Any) -> Cell:
    """The network with its loss, which is computed in float32 where the network is in float16."""
    return (_LossIn32 if cast_model_type == mstype.float16 else WithLossCell)(network, loss_fn)


def check_boost(call: str, boost_level: Any) -> None:
    """Checks a level of boosting. Raises ValueError for what is none."""
    if boost_level not in ("O0", "O1", "O2"):
        raise ValueError(message(f"{call}(boost_level={short(boost_level)})", list_choices(("O0", "O1", "O2"))))


def check_manager(call: str, manager: Any) -> None:
    """Raises TypeError for what is no loss-scale manager, nor `boost.GroupLossScaleManager`."""
    if not (isinstance(manager, Cell) and hasattr(manager, "set_loss_scale_status")):
        check_type(call, "loss_scale_manager", manager, LossScaleManager, "a loss-scale manager")


def boosted(
    network: Cell, optimizer: Any, eval_network: Cell | None, has_metrics: bool, level: str, config: Any,
) -> tuple[Cell, Any, Cell | None]:
    """(Network, optimizer, network to evaluate with) as `boost.AutoBoost` has them at this level.

    As in MindSpore they stay as they are where there is no optimizer, or where neither metrics nor a network to evaluate with were given.
    """
    if level == "O0":
        return network, optimizer, eval_network
    from torchspore.mindspore.boost import AutoBoost

    boost = AutoBoost(level, config)
    if optimizer is None or (eval_network is None and not has_metrics):
        effects.note("training", f"Model(boost_level={level!r}): trains as at 'O0', for want of an optimizer, or of metrics")
        return network, optimizer, eval_network
    network, optimizer = boost.network_auto_process_train(network, optimizer)
    effects.note("training", f"Model(boost_level={level!r}): {', '.join(name for name, taken in boost.boost_config.items() if taken)}")
    return network, optimizer, None if eval_network is None else boost.network_auto_process_eval(eval_network)


def build_train_network(
    network: Cell, optimizer: Any, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0", **kwargs: Any
) -> Cell:
    """The Cell of one training step: network, loss, gradient, optimizer, at a level of mixed precision.

    `level` is 'O0' (float32), 'O1' (what `AMP_WHITE_LIST` names in float16), 'O2' (float16 but for normalization layers; the loss is
    scaled), 'O3' (float16) or 'auto' (each operator as its numbers need it). Further arguments win over the level: `loss_scale_manager`,
    `keep_batchnorm_fp32`, and `cast_model_type`, float16 or float32 for the whole network. Raises ValueError and TypeError for
    arguments that do not fit.
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
        wrote = f"build_train_network(cast_model_type={short(cast_to)})"
        raise ValueError(message(wrote, list_choices(("mindspore.float16", "mindspore.float32"))))
    lower_precision(network, level, keep, whole=cast_to == mstype.float16)
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
    """The classes of training steps, without and with a loss scale that changes."""
    if boost_level == "O0":
        return TrainOneStepCell, TrainOneStepWithLossScaleCell
    from torchspore.mindspore.boost import BoostTrainOneStepCell, BoostTrainOneStepWithLossScaleCell

    return BoostTrainOneStepCell, BoostTrainOneStepWithLossScaleCell
