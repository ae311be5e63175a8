"""Files of parallel strategies (protobuf `ParallelStrategyMap` and `ParallelGroupMap`): how Parameters were cut among processes."""
from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torchspore.base.messages import messages
from torchspore.base.text import message
from torchspore.errors import FileFormatError

_LISTS = ("dev_matrix", "tensor_map", "param_split_shape", "indices_offset")
_NUMBERS = ("field", "opt_weight_shard_step", "opt_weight_shard_size")
_TABLE = {
    "Dims": "1 dim int64*",
    "Layout": ", ".join(
        [f"{at} {name} Dims*" for at, name in enumerate(_LISTS, 1)] + [f"{at} {name} int64" for at, name in enumerate(_NUMBERS, 5)]
    ),
    "Item": "1 name string, 2 layout Layout",
    "Layouts": "1 current_stage int64, 2 strategies bytes*, 3 items Item*",
    "Groups": "1 groups bytes*, 2 restored Dims",
}


@functools.cache
def _messages() -> dict[str, Any]:
    return messages("strategies", _TABLE)


def layouts(path: Path) -> dict[str, SimpleNamespace]:
    """The layout of each Parameter by name. Raises FileFormatError, a ValueError, for another file."""
    return {item.name: _layout(item.layout) for item in _read(path, "Layouts", "a strategy file of MindSpore").items}


def same_ranks(path: Path) -> list[int]:
    """The list `ckpt_restore_rank_list`. Raises FileFormatError, a ValueError, for another file."""
    return list(_read(path, "Groups", "a file of groups of MindSpore").restored.dim)


def _read(path: Path, title: str, wanted: str) -> Any:
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    read = _messages()[title]()
    try:
        read.ParseFromString(path.read_bytes())
        is_other = len(UnknownFieldSet(read)) > 0
    except DecodeError:
        is_other = True
    if is_other:
        raise FileFormatError(message(str(path), wanted)) from None
    return read


def _layout(read: Any) -> SimpleNamespace:
    lists = {name: [SimpleNamespace(dim=list(one.dim)) for one in getattr(read, name)] for name in _LISTS}
    return SimpleNamespace(**lists, **{name: getattr(read, name) for name in _NUMBERS})
