"""`dump_local_norm`, `dump_local_norm_path`, `dump_device_local_norm`: the norms of a device's gradients before they are summed.

An operator in the graph of each device reports them. Like a print, it is never removed or reordered.
"""
from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchspore.base.files import atomic_file
from torchspore.base.text import message
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE
from torchspore.distributed import device_count
from torchspore.engine.execution import printing
from torchspore.engine.torch_internals.custom_operators import define

_OPTION = "auto_parallel.dump_local_norm"
_PATH = "auto_parallel.dump_local_norm_path"
_DEVICE = "auto_parallel.dump_device_local_norm"
_files = itertools.count()


class _Last:
    """The squared local norm of the last step."""

    def __init__(self) -> None:
        self.squared: torch.Tensor | None = None


_LAST = _Last()


def is_requested() -> bool:
    """Return whether the context requests gradient norms."""
    return bool(STORE.get(_OPTION) or STORE.get(_DEVICE))


def squared() -> torch.Tensor:
    """Return the sum of the squares of all gradients of this device since the last reset. Raises ValueError if the option is off."""
    if not STORE.get(_DEVICE):
        wrote, expected = "get_squared_device_local_norm_param()", "set_auto_parallel_context(dump_device_local_norm=True) before it"
        raise ValueError(message(wrote, expected))
    return _sum()


def _sum() -> torch.Tensor:
    if _LAST.squared is None:
        _LAST.squared = torch.zeros(())
    return _LAST.squared


def _report_norm(x: torch.Tensor, name: str, rank: int) -> None:
    """Report the norm of the gradient `x` of the Parameter `name` on one device, whose index in the grid is `rank`."""
    if device_count.devices()[1] == device_count.RANKS:
        rank = device_count.rank()                             # the grid may be that of one stage of a pipeline
    with torch.no_grad():
        square = x.detach().float().square().sum()
        path = str(STORE.get(_PATH))
        if STORE.get(_OPTION) and path:
            _write(Path(path) / f"rank_{rank}", name, float(square.sqrt()))
        elif STORE.get(_OPTION):
            whose = f" (rank {rank})" if device_count.simulated() else ""
            printing.say(f"dump local norm{whose}: \n{name}\n{float(square.sqrt()):.8g}\n")
        if STORE.get(_DEVICE) and rank == device_count.rank():
            _sum().add_(square.to("cpu"))


def _write(folder: Path, name: str, length: float) -> None:
    """Write one norm to a separate file, numbered as TensorDump numbers its files."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / f"local_norm__{name}_float32_{next(_files)}.npy", mode=0o400) as out:
        np.save(out, np.float32(length))


local_norm: Any = define("local_norm(Tensor x, str name, int rank) -> ()", _report_norm, lambda x, name, rank: None)
"""Tells the length of a gradient; gives nothing."""
printing.OPERATORS.add(local_norm)


def report(count: int) -> None:
    """Report the outcomes of the options in a graph that is split over several devices: `count` gradients are reported."""
    path = str(STORE.get(_PATH))
    where = f"in files under {path}, a folder for each rank" if path else "on the screen"
    if STORE.get(_OPTION):
        _report(_OPTION, Outcome.applied(f"the lengths of {count} gradients of each device go {where}"))
        _report(_PATH, Outcome.applied(where))
    else:
        _report(_PATH, Outcome.no_effect("dump_local_norm is off"))
    if STORE.get(_DEVICE):
        _report(_DEVICE, Outcome.applied("get_squared_device_local_norm_param() has the sum of the squares of this device's gradients"))


def _report(name: str, outcome: Outcome) -> None:
    if STORE.source(name)[0] != DEFAULT:
        effects.report(name, outcome)
