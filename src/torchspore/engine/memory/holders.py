"""Who holds the memory: Parameters by name, optimizer state, other values by shape, dtype and operator."""
from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any

import torch

from torchspore.base.frames import near, user_line
from torchspore.engine.dtypes import FROM_TORCH
from torchspore.engine.front import FRONT
from torchspore.engine.memory import counter
from torchspore.engine.memory.counter import Block
from torchspore.engine.tensor import TensorBase

_SHOWN = 6
_DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex32,
    torch.complex64, torch.complex128, torch.bool, None, None, None, torch.bfloat16,
)
"""By c10's numbers."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """A number of bytes for people."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def born(parameter: TensorBase) -> None:
    """Tells the counter of a new Parameter, which is optimizer state where an optimizer makes it."""
    kind, frame = counter.PARAMETER, sys._getframe(1)
    while FRONT.optimizer is not None and frame.f_back is not None:
        frame = frame.f_back
        if isinstance(frame.f_locals.get("self"), FRONT.optimizer):
            kind = counter.STATE
            break
    if parameter._t.device.type == "cpu" and parameter._t.layout is torch.strided:
        counter.mark(parameter._t.untyped_storage().data_ptr(), kind)


def settle() -> dict[int, str]:
    """Tells the counter which blocks are Parameters and which are optimizer state; gives what is known of each address."""
    states: set[int] = set()
    found: list[tuple[Any, torch.Tensor]] = []
    for value in gc.get_objects():
        kind = type(value)
        if issubclass(kind, TensorBase):                    # isinstance would ask objects that answer with a warning
            t = getattr(value, "_t", None)
            if type(t) is torch.Tensor and t.layout is torch.strided and t.device.type == "cpu":
                found.append((value, t))
        elif FRONT.optimizer is not None and issubclass(kind, FRONT.optimizer):
            trained = {id(p) for p in getattr(value, "parameters", ())}
            states |= {id(p) for p in value.get_parameters() if id(p) not in trained}
    names: dict[int, str] = {}
    for value, t in found:
        address = t.untyped_storage().data_ptr()
        described = f"{FROM_TORCH.get(t.dtype, t.dtype)}{list(t.shape)}"
        if getattr(value, "__parameter__", False):
            is_state = id(value) in states
            counter.mark(address, counter.STATE if is_state else counter.PARAMETER)
            names[address] = f"{'optimizer state' if is_state else 'Parameter'} {value.name} {described}"
        else:
            names.setdefault(address, described)
    return names


def listed(blocks: Iterable[Block], names: dict[int, str]) -> list[str]:
    """The largest holders among `blocks`, a line each; values of one shape, dtype and operator stand together."""
    groups: dict[str, list[int]] = {}
    for block in blocks:
        group = groups.setdefault(_label(block, names), [0, 0])
        group[0] += block.size
        group[1] += 1
    ordered = sorted(groups.items(), key=lambda item: -item[1][0])
    shown, rest = ordered[:_SHOWN], ordered[_SHOWN:]
    if len(rest) == 1:
        shown, rest = ordered[: _SHOWN + 1], []
    lines = [(size(held), f"{count} x {label}" if count > 1 else label) for label, (held, count) in shown]
    if rest:
        lines.append((size(sum(held for _, (held, _) in rest)), f"{sum(count for _, (_, count) in rest)} smaller ones"))
    width = max((len(held) for held, _ in lines), default=0)
    return [f"  {held:>{width}}  {label}" for held, label in lines]


def _label(block: Block, names: dict[int, str]) -> str:
    known = names.get(block.address, "")
    if known.startswith(("Parameter", "optimizer state")):
        return known
    line = lines.get(block.address, ("", 0))
    operator = block.operator.removeprefix("aten::").rstrip("_")
    what = known or _described(block) or "a buffer"
    place = f" ({near(line[0])})" if line[1] == block.size else ""
    return (f"{what} of {operator}" if operator else what) + place


lines: dict[int, tuple[str, int]] = {}
"""By address of a block the user's line of the operator that gave it, and its size: the address may be another block's by now."""
_MOST_LINES = 1 << 16


def note(t: torch.Tensor) -> None:
    """Notes the user's line as that of an operator's result."""
    if type(t) is torch.Tensor and t.device.type == "cpu" and t.layout is torch.strided:
        if len(lines) > _MOST_LINES:
            lines.clear()
        storage = t.untyped_storage()
        lines[storage.data_ptr()] = (user_line() or "", storage.nbytes())


def _described(block: Block) -> str:
    dtype = _DTYPES[block.dtype] if block.dtype is not None and block.dtype < len(_DTYPES) else None
    return f"{FROM_TORCH.get(dtype, dtype)}{list(block.shape)}" if dtype is not None and block.shape is not None else ""
