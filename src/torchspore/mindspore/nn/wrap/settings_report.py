"""Reports the settings of a training step to the other processes: if a setting differs, the next exchange names both values."""
from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from torchspore.distributed.data_parallel import settings
from torchspore.distributed.data_parallel.gradient_reduction import is_traced, values_before
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.wrap.grad_reducer import DistributedGradReducer


def report_step(step: Any) -> None:
    """Report the settings in the first call of a training step; in a step captured inside another one, do nothing."""
    step.__dict__["_has_said_"] = True
    if settings.mode() != "data_parallel" or settings.processes() == 1 or is_traced():
        return                                            # processes of `hybrid_parallel` may train different things
    reducer = step.grad_reducer
    if not isinstance(reducer, DistributedGradReducer):   # user-defined: its exchange partners are unknown
        return
    group = reducer._plan.group                           # other groups may train other things
    from torchspore.distributed.comm import groups

    name = type(step.optimizer).__name__
    groups.report_terms(
        group, f"an update by {name}", "at every step" if step._accumulation_ == 1 else f"at one step of {step._accumulation_}"
    )
    groups.report_terms(group, f"the scale of the loss of {name}", _describe(getattr(step, "scale_sense", step.sens)))
    report_update(group, step.optimizer)


def report_update(group: Any, optimizer: Any) -> None:
    """Report the settings of an optimizer whose gradients a group sums, in a step of MindSpore's or a user-defined one."""
    if settings.mode() != "data_parallel" or settings.processes() == 1:
        return
    from torchspore.distributed.comm import groups

    name = type(optimizer).__name__
    for subject, value in (
        ("the learning rate", _stored_attribute(optimizer, "learning_rate")),
        ("the weight decay", _stored_attribute(optimizer, "_weight_decay_")),
        ("the optimizer's scale of the loss", _stored_attribute(optimizer, "loss_scale")),
    ):
        if value is not None:
            groups.report_terms(group, f"{subject} of {name}", _describe(value))


def _stored_attribute(cell: Any, name: str) -> Any:
    """Return an attribute's stored value: during a capture, an ordinary read would make it part of the graph's key."""
    state = object.__getattribute__(cell, "__dict__")
    for members in (state, state.get("_params", {}), state.get("_cells", {})):
        if name in members:
            return members[name]
    return None


def _describe(value: Any) -> str:
    """Describe a value in a few words that differ for another value."""
    if isinstance(value, Tensor):
        numbers = values_before(value)
        if numbers.size == 1:
            return f"{float(numbers.reshape(())):g}"
        ends = f"from {float(numbers.flat[0]):g} to {float(numbers.flat[-1]):g} " if numbers.size else ""
        return f"{numbers.size} values {ends}({zlib.crc32(numbers.tobytes()):08x})"
    if isinstance(value, Cell):
        # A user-defined schedule may contain values of a single process: its rank, a file, whether it prints.
        kinds = _ALL_KINDS if type(value).__module__.startswith("torchspore.") else _NUMBERS
        described = [*(_describe(parameter) for parameter in value.get_parameters()), *(
            f"{name}={_describe(item)}" for name, item in vars(value).items()
            if name not in _of_any_cell and not name.startswith("_") and isinstance(item, kinds)
        )]
        return f"{type(value).__name__}({', '.join(described)})"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(_describe, value))
        return f"[{text}]" if len(value) <= 4 else f"{len(value)} values ({zlib.crc32(text.encode()):08x})"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value is None or isinstance(value, (bool, int, str, np.generic)) else type(value).__name__


_NUMBERS = (float, Tensor)
_ALL_KINDS = (*_NUMBERS, bool, int, str, tuple, list)
_of_any_cell = frozenset(vars(Cell()))
