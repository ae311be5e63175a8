"""Files of parallel strategies (protobuf `ParallelStrategyMap` and `ParallelGroupMap`): how Parameters were cut among processes."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torchspore.base.text import message
from torchspore.errors import FileFormatError

_PARTS = {1: "dev_matrix", 2: "tensor_map", 3: "param_split_shape", 4: "indices_offset"}
_NUMBERS = {5: "field", 6: "opt_weight_shard_step", 7: "opt_weight_shard_size"}


def layouts(path: Path) -> dict[str, SimpleNamespace]:
    """The layout of each Parameter by name. Raises FileFormatError, a ValueError, for another file."""
    try:
        found = {}
        for number, item in _fields(path.read_bytes()):
            if number == 3:
                parts = dict(_fields(item))
                found[parts[1].decode()] = _layout(parts[2])
        return found
    except (IndexError, KeyError, ValueError, AttributeError, TypeError) as error:
        raise FileFormatError(message(f"{path}: {error}", "a strategy file of MindSpore")) from None


def same_ranks(path: Path) -> list[int]:
    """The list `ckpt_restore_rank_list`. Raises FileFormatError, a ValueError, for another file."""
    try:
        return [rank for number, item in _fields(path.read_bytes()) if number == 2 for rank in _dims(item)]
    except (IndexError, ValueError, TypeError) as error:
        raise FileFormatError(message(f"{path}: {error}", "a file of groups of MindSpore")) from None


def _layout(content: bytes) -> SimpleNamespace:
    made = SimpleNamespace(**{name: [] for name in _PARTS.values()}, **dict.fromkeys(_NUMBERS.values(), 0))
    for number, value in _fields(content):
        if number in _PARTS:
            getattr(made, _PARTS[number]).append(SimpleNamespace(dim=_dims(value)))
        elif number in _NUMBERS:
            setattr(made, _NUMBERS[number], _signed(value))
    return made


def _dims(content: bytes) -> list[int]:
    """Numbers of field 1, one by one or packed."""
    found: list[int] = []
    for number, value in _fields(content):
        if number != 1:
            continue
        if isinstance(value, int):
            found.append(_signed(value))
            continue
        place = 0
        while place < len(value):
            one, place = _number(value, place)
            found.append(_signed(one))
    return found


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _number(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("a number without end")


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers, or the bytes of what has a length."""
    place = 0
    while place < len(content):
        key, place = _number(content, place)
        if key & 7 == 0:
            value, place = _number(content, place)
            yield key >> 3, value
        elif key & 7 == 2:
            size, place = _number(content, place)
            if place + size > len(content):
                raise ValueError("it is cut short")
            yield key >> 3, content[place : place + size]
            place += size
        else:
            raise ValueError(f"a field of kind {key & 7}")
