"""Dumps of torch's Flight Recorder, the last exchanges of each rank: pickles, read without running anything that they name."""
from __future__ import annotations

import io
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchspore.base.files import read_plain
from torchspore.base.frames import is_user_file
from torchspore.translations import translate

PREFIX = "flight_recorder_rank_"
"""The beginning of the files' names; the rank follows."""
_NAME = re.compile(r"(.*?)(\d{1,7})")
_LARGEST, _MOST_ENTRIES, _MOST_FRAMES, _LONGEST = 1 << 28, 1 << 20, 1 << 10, 4096
_FOREIGN = re.compile(
    r"/torchspore/(?!.*/site-packages/)|/(site|dist)-packages/(torch|torch_npu|torchgen)/|/lib/python3\.\d+/(?!.*-packages/)|^<frozen"
)
"""Files of torchspore, torch and Python, also those of the machine that wrote the dump."""
_COMMUNICATION_KINDS = {
    "all_reduce": "AllReduce", "allreduce_coalesced": "AllReduce", "all_gather": "AllGather", "_all_gather_base": "AllGather",
    "all_gather_single": "AllGather", "all_gather_into_tensor_coalesced": "AllGather", "reduce_scatter": "ReduceScatter",
    "_reduce_scatter_base": "ReduceScatter", "reduce_scatter_single": "ReduceScatter", "reduce_scatter_tensor_coalesced": "ReduceScatter",
    "broadcast": "Broadcast", "reduce": "Reduce", "all_to_all": "AlltoAll", "all_to_all_single": "AlltoAll", "barrier": "Barrier",
    "all_reduce_barrier": "Barrier", "gather": "CollectiveGather", "scatter": "CollectiveScatter", "send": "Send", "recv": "Receive",
}
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8",
    "Byte": "uint8", "Bool": "bool", "BFloat16": "bfloat16", "ComplexFloat": "complex64",
}


def dtype_name(name: str) -> str:
    """Return the program's name of a dtype that torch calls `name`, such as Float."""
    return _DTYPES.get(name, name)


class DumpDamaged(ValueError):
    """A file is not a dump; the text names it."""


@dataclass(frozen=True)
class Exchange:
    """An exchange that a rank has begun, as its dump describes it."""

    group: str
    number: int
    """The number among the exchanges of the group in this rank; messages between two ranks have numbers of their own."""
    kind: str
    sizes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    line: str
    """FILE:LINE of the user's program; '' if none of its lines is in the stack."""
    state: str
    """'scheduled', 'started' or 'completed'."""
    is_between_two: bool = False

    @property
    def what(self) -> str:
        """The kind with what it sends."""
        dtypes = (*self.dtypes, *["?"] * len(self.sizes))
        sent = ", ".join(f"{dtype}[{', '.join(map(str, size))}]" for dtype, size in zip(dtypes, self.sizes))
        return translate("{kind} of {sent}").format(kind=self.kind, sent=sent) if sent else self.kind


@dataclass(frozen=True)
class Dump:
    """The exchanges of one rank, oldest first, and the ranks of each group."""

    rank: int
    exchanges: tuple[Exchange, ...]
    groups: dict[str, tuple[int, ...]]


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, lists and dicts; torch's dumps have nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"it asks for {pid!r:.40}")


def files(folder: Path) -> dict[int, Path]:
    """Return the dumps of a folder by rank: flight_recorder_rank_N, or all names that end with a number after one common beginning."""
    named: dict[str, dict[int, Path]] = {}
    for child in folder.iterdir():
        match = _NAME.fullmatch(child.name)
        if match is not None and child.is_file():
            named.setdefault(match.group(1), {})[int(match.group(2))] = child
    if PREFIX in named:
        return dict(sorted(named[PREFIX].items()))
    return dict(sorted(next(iter(named.values())).items())) if len(named) == 1 else {}


def read(path: Path, rank: int) -> Dump:
    """Return the dump in a file. Raises DumpDamaged for any other file, OSError if it can't be read."""
    if path.stat().st_size > _LARGEST:
        text = translate("{path}: {size} bytes; a dump of the Flight Recorder is smaller")
        raise DumpDamaged(text.format(path=path, size=path.stat().st_size))
    try:
        content = _Plain(io.BytesIO(read_plain(path))).load()
        entries = content["entries"]
        if not isinstance(entries, list) or len(entries) > _MOST_ENTRIES:
            raise ValueError("no list of exchanges")
        return Dump(rank, tuple(map(_exchange, entries)), _groups(content.get("pg_config", {})))
    except (MemoryError, OSError):
        raise
    except Exception as error:                   # a damaged pickle raises any error
        text = translate("{path}: no dump of torch's Flight Recorder ({kind}: {error!s:.100})")
        raise DumpDamaged(text.format(path=path, kind=type(error).__name__, error=error)) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return "".join(character if character.isprintable() else "?" for character in value[:_LONGEST])


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise TypeError(f"{value!r:.40} instead of a number")
    return value


def _exchange(entry: dict[str, Any]) -> Exchange:
    name, description = map(_text, entry["process_group"])
    kind = _text(entry["profiling_name"]).partition(":")[2].partition(" ")[0] or _text(entry["profiling_name"])
    is_between_two = bool(entry.get("is_p2p", False))
    return Exchange(
        group_name(name, description), _number(entry["p2p_seq_id" if is_between_two else "collective_seq_id"]),
        _COMMUNICATION_KINDS.get(kind, kind), tuple(tuple(map(_number, size)) for size in entry["input_sizes"][:100]),
        tuple(dtype_name(_text(dtype)) for dtype in entry["input_dtypes"][:100]), _line(entry.get("frames", [])),
        _text(entry["state"]), is_between_two,
    )


def group_name(name: str, description: str) -> str:
    """Return the program's name of a group: torch's group of all processes, or the first part of torchspore's key."""
    if description in ("default_pg", "undefined") or not name:
        return "world" if description == "default_pg" or not name else name
    return name.partition(":")[0]


def _line(frames: Any) -> str:
    for frame in list(frames)[:_MOST_FRAMES]:
        file = _text(frame["filename"])
        if not _FOREIGN.search(file) and is_user_file(file):
            return f"{file}:{_number(frame['line'])}"
    return ""


def _groups(configured: Any) -> dict[str, tuple[int, ...]]:
    """Return the ranks of the groups that the dump describes."""
    ranks = {}
    for group in configured.values():
        members = tuple(int(rank) for rank in re.findall(r"\d{1,7}", _text(group["ranks"])))
        if members:
            ranks[group_name(_text(group["name"]), _text(group["desc"]))] = members
    return ranks
