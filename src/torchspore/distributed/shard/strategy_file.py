"""Files of parallel strategies and groups: how operators and Parameters are split among processes, and which processes store equal parts.

A file whose name ends in .json is JSON; any other is protobuf (`ParallelStrategyMap`, `ParallelGroupMap`), as in MindSpore.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from torchspore.base import json_text
from torchspore.base.files import write_atomically
from torchspore.base.messages import SIZE_FIELD, has_unknown_fields, messages, with_size
from torchspore.base.text import message
from torchspore.errors import FileFormatError

if TYPE_CHECKING:
    from torchspore.distributed.shard.strategy_validation.layout import TensorLayout

_LISTS = ("dev_matrix", "tensor_map", "param_split_shape", "indices_offset")
_NUMBERS = ("field", "opt_weight_shard_step", "opt_weight_shard_size")
_MODE = 0o600
_TABLE = {
    "Dims": "1 dim int64*",
    "Layout": ", ".join(
        [f"{at} {name} Dims*" for at, name in enumerate(_LISTS, 1)] + [f"{at} {name} int64" for at, name in enumerate(_NUMBERS, 5)]
    ),
    "Item": "1 name string, 2 layout Layout",
    "Strategy": "1 stage int64, 2 parallel_strategy Dims*",
    "Operator": "1 name string, 2 strategys Strategy",
    "Layouts": f"1 current_stage int64, 2 strategies Operator*, 3 items Item*, {SIZE_FIELD} size int64",
    "Group": "1 name string, 2 ranks Dims",
    "Groups": f"1 groups Group*, 2 restored Dims, {SIZE_FIELD} size int64",
}
_WHAT = "a strategy file of MindSpore"


class StoredLayout(NamedTuple):
    """The split of a Parameter: the grid of devices and, for each dimension, the axes of the grid, counted from the last.

    A dimension that several axes of the grid split is written as several dimensions in `tensor_map`, and `tensor_shape` has their lengths.
    The optimizer's split along axis 0 has `opt_weight_shard_size` parts among processes `opt_weight_shard_step` apart.
    """

    dev_matrix: tuple[int, ...]
    tensor_map: tuple[int, ...]
    tensor_shape: tuple[int, ...] | None = None
    opt_weight_shard_step: int = 0
    opt_weight_shard_size: int = 0
    nested: tuple[tuple[int, ...], ...] | None = None
    """The axes of the grid by axis of the Parameter, where the file says them so."""
    rows: tuple[int, ...] = ()
    """How many rows each process has, where they have not all the same."""


def stored(layout: TensorLayout, shape: tuple[int, ...], step: int = 0, size: int = 0) -> StoredLayout:
    """Return the layout of a Parameter of this shape in the form of the files; `step` and `size` describe the optimizer's split."""
    small = layout.squeezed()
    flat: list[int] = []
    lengths: list[int] = []
    nested = tuple(entry if isinstance(entry, tuple) else () if entry == -1 else (entry,) for entry in small.tensor_map)
    for length, entries in zip(shape, nested):
        for entry in entries[:-1]:
            flat.append(entry)
            lengths.append(small.device_matrix[len(small.device_matrix) - 1 - entry])
            length //= lengths[-1]
        flat.append(entries[-1] if entries else -1)
        lengths.append(length)
    is_nested = any(len(entries) > 1 for entries in nested)
    return StoredLayout(small.device_matrix, tuple(flat), tuple(lengths), step, size, nested if is_nested else None)


@dataclass
class StrategyFile:
    """The contents of a strategy file: strategies of operators by name, with their pipeline stage, and layouts of Parameters."""

    layouts: dict[str, StoredLayout] = field(default_factory=dict)
    strategies: dict[str, tuple[int, list[list[int]]]] = field(default_factory=dict)
    current_stage: int = 1


def stage_of(name: str) -> tuple[int | None, str]:
    """Return the stage and the name of a Parameter in a file of several stages, such as '1-weight'; None for a name without a stage."""
    stage, mark, parameter_name = name.partition("-")
    return (int(stage), parameter_name) if mark and stage.isdigit() else (None, name)


@functools.cache
def _messages() -> dict[str, Any]:
    return messages("strategies", _TABLE)


def read(path: Path) -> StrategyFile:
    """Read a strategy file, JSON by its suffix. Raises FileFormatError, a ValueError, for another file."""
    return _read_json(path) if path.suffix == ".json" else _of_message(path, _read(path, "Layouts", _WHAT))


def write(path: Path, file: StrategyFile) -> None:
    """Write a strategy file atomically; JSON by its suffix. Raises OSError."""
    contents: bytes | str = _as_json(file) if path.suffix == ".json" else with_size(_as_message(file).SerializeToString())
    write_atomically(path, contents, _MODE)


def layouts(path: Path) -> dict[str, SimpleNamespace]:
    """Read the layout of each Parameter by name, as `build_searched_strategy` returns it. Raises FileFormatError for another file."""
    if path.suffix == ".json":
        parsed = _as_message(_read_json(path))
    else:
        parsed = _read(path, "Layouts", _WHAT)
        _of_message(path, parsed)
    return {item.name: _layout(item.layout) for item in parsed.items}


def ranks_with_equal_layout(path: Path) -> list[int]:
    """Read the list `ckpt_restore_rank_list`. Raises FileFormatError, a ValueError, for another file."""
    return list(_read(path, "Groups", "a file of groups of MindSpore").restored.dim)


def groups(path: Path) -> dict[str, list[int]]:
    """Read the processes of each group by its name. Raises FileFormatError, a ValueError, for another file."""
    return {group.name: list(group.ranks.dim) for group in _read(path, "Groups", "a file of groups of MindSpore").groups}


def write_groups(path: Path, groups: Mapping[str, Iterable[int]], restored: Iterable[int]) -> None:
    """Write a file of groups; `restored` are the processes whose checkpoints contain the same parts as this one's. Raises OSError."""
    file = _messages()["Groups"]()
    for name, ranks in groups.items():
        group = file.groups.add(name=name)
        group.ranks.dim.extend(ranks)
    file.restored.dim.extend(restored)
    file.restored.SetInParent()
    write_atomically(path, with_size(file.SerializeToString()), _MODE)


def _read(path: Path, title: str, message_name: str) -> Any:
    from google.protobuf.message import DecodeError

    read, content = _messages()[title](), path.read_bytes()
    try:
        read.ParseFromString(content)
        is_other = not content or has_unknown_fields(read)
    except DecodeError:
        is_other = True
    if is_other:
        raise FileFormatError(message(str(path), message_name)) from None
    if read.HasField("size"):
        head = len(content) - read.size
        if content[:max(head, 0)] != with_size(b"\0" * read.size)[:head] or head < 1:
            text = f"{path}: {read.size} bytes are announced, {max(len(content) - 2, 0)} are there"
            raise FileFormatError(message(text, f"a complete file: {message_name}", hint="copy it again from where it came"))
    return read


def _layout(read: Any) -> SimpleNamespace:
    lists = {name: [SimpleNamespace(dim=list(dim_list.dim)) for dim_list in getattr(read, name)] for name in _LISTS}
    return SimpleNamespace(**lists, **{name: getattr(read, name) for name in _NUMBERS})


def _of_message(path: Path, read: Any) -> StrategyFile:
    layouts = {}
    for item in read.items:
        lists = {name: [tuple(row.dim) for row in getattr(item.layout, name)] for name in _LISTS}
        entries = lists["tensor_map"]
        rows = lists["param_split_shape"][0] if lists["param_split_shape"] else ()
        devices, flat = (lists["dev_matrix"] or [()])[0], tuple(entry for part in entries for entry in part)
        nested = tuple(tuple(axis for axis in part if axis != -1) for part in entries) if len(entries) > 1 else None
        step, size = item.layout.opt_weight_shard_step, item.layout.opt_weight_shard_size
        layouts[item.name] = _checked(path, item.name, StoredLayout(devices, flat, None, step, size, nested, rows))
    operators = {
        item.name: (item.strategys.stage, [list(part.dim) for part in item.strategys.parallel_strategy]) for item in read.strategies
    }
    return StrategyFile(layouts, operators, read.current_stage)


def _as_message(file: StrategyFile) -> Any:
    message = _messages()["Layouts"](current_stage=file.current_stage)
    for name, (stage, strategy) in file.strategies.items():
        operator = message.strategies.add(name=name)
        operator.strategys.stage = stage
        for part in strategy:
            operator.strategys.parallel_strategy.add().dim.extend(part)
    for name, layout in file.layouts.items():
        item = message.items.add(name=name).layout
        item.dev_matrix.add().dim.extend(layout.dev_matrix)
        for entries in layout.nested or (layout.tensor_map,):
            item.tensor_map.add().dim.extend(entries or ((-1,) if layout.nested else ()))       # a number has no axes
        item.param_split_shape.add().dim.extend(layout.rows)
        item.indices_offset.add()
        item.field = 0
        item.opt_weight_shard_step, item.opt_weight_shard_size = layout.opt_weight_shard_step, layout.opt_weight_shard_size
    return message


def _read_json(path: Path) -> StrategyFile:
    try:
        read = json_text.parse(path.read_text(encoding="utf-8"))
        layouts = {}
        for name, item in read["parallel_layout_item"].items():
            shape = tuple(map(int, item["tensor_shape"])) if item.get("tensor_shape") else None
            step, size = (int(item.get(part, 0)) for part in _NUMBERS[1:])
            devices, tensor_map = tuple(map(int, item["dev_matrix"])), tuple(map(int, item["tensor_map"]))
            layouts[name] = _checked(path, name, StoredLayout(devices, tensor_map, shape, step, size))
        operators = {
            name: (int(item.get("stage", 0)), [list(map(int, part)) for part in item["parallel_strategy"]])
            for name, item in read.get("parallel_strategy_item", {}).items()
        }
        return StrategyFile(layouts, operators, int(read.get("current_stage", 1)))
    except FileFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileFormatError(message(str(path), _WHAT)) from None


def _as_json(file: StrategyFile) -> str:
    items = {}
    for name, layout in file.layouts.items():
        items[name] = {
            "dev_matrix": layout.dev_matrix, "field": 0, "opt_weight_shard_size": layout.opt_weight_shard_size,
            "opt_weight_shard_step": layout.opt_weight_shard_step, "tensor_map": layout.tensor_map,
            "tensor_shape": layout.tensor_shape or (),
        }
    operators = {name: {"parallel_strategy": strategy, "stage": stage} for name, (stage, strategy) in file.strategies.items()}
    document = {"current_stage": file.current_stage, "parallel_layout_item": items, "parallel_strategy_item": operators}
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _checked(path: Path, name: str, layout: StoredLayout) -> StoredLayout:
    """Return the layout if its fields are consistent. Raises FileFormatError if an entry names no axis, or an axis twice."""
    used = [entry for entry in layout.tensor_map if entry != -1]
    axes, size = len(layout.dev_matrix), layout.opt_weight_shard_size
    if (
        any(number < 1 for number in layout.dev_matrix)
        or any(not -1 <= number < axes for number in layout.tensor_map)
        or len(used) != len(set(used))
        or layout.opt_weight_shard_step < 0
        or size > max(1, prod(layout.dev_matrix))
        or prod(layout.dev_matrix) > 1 << 20
    ):
        raise FileFormatError(message(f"{path}: the layout of {name!r}, {layout.dev_matrix} with {layout.tensor_map}", _WHAT))
    return layout
