"""The owners of memory: Parameters by name, optimizer state, other values by shape, dtype and operator."""
from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any

import torch

from torchspore.base.frames import relative_line, user_frame
from torchspore.base.text import format_bytes
from torchspore.engine.front_end import FRONT
from torchspore.engine.native import allocator
from torchspore.engine.native.allocator import Block
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.engine.torch_internals import torch_private

notes_lines = False
"""True if each operator's result is noted with the user's line."""
_SHOWN = 6
_DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex32,
    torch.complex64, torch.complex128, torch.bool, None, None, None, torch.bfloat16,
)
"""By c10's numbers."""


def born(parameter: TensorBase) -> None:
    """Report a new Parameter to the counter; a Parameter that an optimizer creates is optimizer state."""
    kind, frame = allocator.PARAMETER, sys._getframe(1)
    while FRONT.optimizer is not None and frame.f_back is not None:
        frame = frame.f_back
        if isinstance(frame.f_locals.get("self"), FRONT.optimizer):
            kind = allocator.STATE
            break
    t = getattr(parameter._t, "part", parameter._t)
    if isinstance(t, torch.Tensor) and t.device.type == "cpu" and t.layout is torch.strided:
        allocator.mark(t.untyped_storage().data_ptr(), kind)


def settle() -> dict[int, str]:
    """Report to the counter which blocks are Parameters and which are optimizer state; return a description of each address."""
    names: dict[int, str] = {}
    for value, t, is_state in _living("cpu"):
        address = t.untyped_storage().data_ptr()
        if getattr(value, "__parameter__", False):
            allocator.mark(address, allocator.STATE if is_state else allocator.PARAMETER)
            names[address] = _named(value, t, is_state)
        else:
            names.setdefault(address, _shown(t))
    return names


def living(kind: str) -> tuple[list[Block], dict[int, str]]:
    """Return the memory of the program's Tensors on a kind of accelerator, and a description of each address."""
    names: dict[int, str] = {}
    blocks: dict[int, Block] = {}
    for value, t, is_state in _living(kind):
        storage = t.untyped_storage()
        address = storage.data_ptr()
        is_parameter = getattr(value, "__parameter__", False)
        blocks[address] = Block(address, storage.nbytes(), 0, allocator.PARAMETER if is_parameter else allocator.ACTIVATION, "", None, None)
        if is_parameter:
            names[address] = _named(value, t, is_state)
        else:
            names.setdefault(address, _shown(t))
    return list(blocks.values()), names


def uncounted() -> int:
    """Return the bytes of Tensors that were created before the counter."""
    known_addresses = {block.address for block in allocator.blocks()}
    addresses: dict[int, int] = {}
    for _, t, _ in _living("cpu"):
        storage = t.untyped_storage()
        if storage.data_ptr() not in known_addresses:
            addresses[storage.data_ptr()] = storage.nbytes()
    return sum(addresses.values())


def _living(kind: str) -> list[tuple[Any, torch.Tensor, bool]]:
    """The Tensors of the program on a kind of device, with their memory, and whether an optimizer keeps them."""
    states: set[int] = set()
    owners: list[tuple[Any, torch.Tensor]] = []
    for value in gc.get_objects():
        cls = type(value)
        if issubclass(cls, TensorBase):                     # isinstance would call objects that respond with a warning
            t = getattr(value, "_t", None)
            t = getattr(t, "part", t)                        # of a value that processes hold parts of
            if type(t) is torch.Tensor and t.layout is torch.strided and t.device.type == kind:
                owners.append((value, t))
        elif FRONT.optimizer is not None and issubclass(cls, FRONT.optimizer):
            states |= _state_of(value)
    return [(value, t, id(value) in states) for value, t in owners]


def _state_of(optimizer: Any) -> set[int]:
    """Return the ids of the Parameters that an optimizer stores in addition to those that it trains."""
    try:
        return {id(p) for p in optimizer.get_parameters()} - {id(p) for p in optimizer.parameters}
    except (AttributeError, KeyError):          # it is being made, and memory ran out
        return set()


def _named(value: Any, t: torch.Tensor, is_state: bool) -> str:
    return f"{'optimizer state' if is_state else 'Parameter'} {getattr(value, 'name', '')} {_shown(t)}"


def _shown(t: torch.Tensor) -> str:
    return f"{FROM_TORCH.get(t.dtype, t.dtype)}{list(t.shape)}"


def listed(blocks: Iterable[Block], names: dict[int, str]) -> list[str]:
    """Return the largest holders among `blocks`, one line each; values of one shape, dtype and operator share a line."""
    groups: dict[str, list[int]] = {}
    for block in blocks:
        group = groups.setdefault(_label(block, names), [0, 0])
        group[0] += block.size
        group[1] += 1
    ordered = sorted(groups.items(), key=lambda item: -item[1][0])
    shown, rest = ordered[:_SHOWN], ordered[_SHOWN:]
    if len(rest) == 1:
        shown, rest = ordered[: _SHOWN + 1], []
    lines = [(format_bytes(size), f"{count} x {label}" if count > 1 else label) for label, (size, count) in shown]
    if rest:
        lines.append((format_bytes(sum(size for _, (size, _) in rest)), f"{sum(count for _, (_, count) in rest)} smaller ones"))
    width = max((len(size) for size, _ in lines), default=0)
    return [f"  {size:>{width}}  {label}" for size, label in lines]


def _label(block: Block, names: dict[int, str]) -> str:
    name = names.get(block.address, "")
    if name.startswith(("Parameter", "optimizer state")):
        return name
    frame, size_then = lines.get(block.address, (None, 0))
    operator = called(block.operator)
    what = name or _described(block) or "a buffer"
    location = f" ({relative_line(f'{frame[0]}:{frame[1]}')})" if frame is not None and size_then == block.size else ""
    return (f"{what} of {operator}" if operator else what) + location


_NO_WORK = {"to", "_to_copy", "empty", "empty_strided", "empty_like", "clone", "copy", "contiguous", "lift_fresh", "detach"}
"""Operators that give memory and compute nothing: their names say nothing of a value."""


def called(operator: str) -> str:
    """Return the name of a torch operator for the user; empty for operators that compute nothing."""
    name = operator.removeprefix("aten::").rstrip("_")
    return "" if name in _NO_WORK else name


lines: dict[int, tuple[tuple[str, int, str] | None, int]] = {}
"""By address of a block the user's frame of the operator that gave it, and its size: the address may be another block's by now."""
_MOST_LINES, _WORTH = 1 << 16, 1 << 14


def note_lines(is_on: bool) -> None:
    """Make each operator's result known by the user's line, for errors that name who holds memory; or stop."""
    global notes_lines
    if is_on != notes_lines:
        notes_lines = is_on
        engine.follow_operators(is_on)


def note(t: object) -> None:
    """Note the user's line as that of an operator's result. Results that are not Tensors (`ops.dtype`), and small ones, are skipped."""
    if type(t) is not torch.Tensor or t.nbytes < _WORTH:
        return
    size = t.nbytes
    if t.device.type == "cpu" and t.layout is torch.strided and not torch_private.is_wrapped(t):
        if len(lines) > _MOST_LINES:
            lines.clear()
        lines[t.data_ptr()] = (user_frame(), size)


def _described(block: Block) -> str:
    dtype = _DTYPES[block.dtype] if block.dtype is not None and block.dtype < len(_DTYPES) else None
    return f"{FROM_TORCH.get(dtype, dtype)}{list(block.shape)}" if dtype is not None and block.shape is not None else ""
