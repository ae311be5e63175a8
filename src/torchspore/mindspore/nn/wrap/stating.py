"""What a training on several processes is made with, said to the others: where one says something else, the next exchange names both."""
from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from torchspore.distributed.parallel import settings
from torchspore.distributed.parallel.gradient_reduction import is_traced, values_before
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.wrap.grad_reducer import DistributedGradReducer


def say(step: Any) -> None:
    """Says at the first call of a training step what it is made with; in a step that is captured inside of another one, nothing."""
    step.__dict__["_has_said_"] = True
    if settings.mode() != "data_parallel" or settings.processes() == 1 or is_traced():
        return                                            # processes of `hybrid_parallel` may train different things
    reducer = step.grad_reducer
    if not isinstance(reducer, DistributedGradReducer):   # one of the program's own: with whom it exchanges is not known
        return
    group = reducer._plan.group                           # other groups may train other things, and meet in the world later
    from torchspore.distributed.comm import groups

    name = type(step.optimizer).__name__
    groups.say(group, f"an update by {name}", "at every step" if step._accumulation_ == 1 else f"at one step of {step._accumulation_}")
    groups.say(group, f"the scale of the loss of {name}", _told(getattr(step, "scale_sense", step.sens)))
    say_update(group, step.optimizer)


def say_update(group: Any, optimizer: Any) -> None:
    """Says what an optimizer makes of gradients that a group sums, by a step of MindSpore's or of the program's own."""
    if settings.mode() != "data_parallel" or settings.processes() == 1:
        return
    from torchspore.distributed.comm import groups

    name = type(optimizer).__name__
    for subject, value in (
        ("the learning rate", _kept(optimizer, "learning_rate")), ("the weight decay", _kept(optimizer, "_weight_decay_")),
        ("the optimizer's scale of the loss", _kept(optimizer, "loss_scale")),
    ):
        if value is not None:
            groups.say(group, f"{subject} of {name}", _told(value))


def _kept(cell: Any, name: str) -> Any:
    """An attribute as it is kept: while a graph is captured to read it would make it part of the graph's key."""
    own = object.__getattribute__(cell, "__dict__")
    for kept in (own, own.get("_params", {}), own.get("_cells", {})):
        if name in kept:
            return kept[name]
    return None


def _told(value: Any) -> str:
    """A value in few words, which are others for another value."""
    if isinstance(value, Tensor):
        numbers = values_before(value)
        if numbers.size == 1:
            return f"{float(numbers.reshape(())):g}"
        ends = f"from {float(numbers.flat[0]):g} to {float(numbers.flat[-1]):g} " if numbers.size else ""
        return f"{numbers.size} values {ends}({zlib.crc32(numbers.tobytes()):08x})"
    if isinstance(value, Cell):
        # A schedule of the program's may hold what is its process's alone: its rank, a file, whether it prints.
        kinds = _ALL_KINDS if type(value).__module__.startswith("torchspore.") else _NUMBERS
        own = [*(_told(parameter) for parameter in value.get_parameters()), *(
            f"{name}={_told(item)}" for name, item in vars(value).items()
            if name not in _of_any_cell and not name.startswith("_") and isinstance(item, kinds)
        )]
        return f"{type(value).__name__}({', '.join(own)})"
    if isinstance(value, (list, tuple)):
        whole = ", ".join(map(_told, value))
        return f"[{whole}]" if len(value) <= 4 else f"{len(value)} values ({zlib.crc32(whole.encode()):08x})"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value is None or isinstance(value, (bool, int, str, np.generic)) else type(value).__name__


_NUMBERS = (float, Tensor)
_ALL_KINDS = (*_NUMBERS, bool, int, str, tuple, list)
_of_any_cell = frozenset(vars(Cell()))
