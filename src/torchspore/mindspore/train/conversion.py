"""Checkpoints written in the other format: .ckpt as .safetensors and back."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.serialization import load_checkpoint, save_checkpoint


def ckpt_to_safetensors(
    file_path: str, save_path: str | None = None, name_map: dict[str, str] | None = None, file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Writes a .ckpt file, or those in the folders rank* of a folder, as .safetensors, beside it or into the folder `save_path`.

    `name_map` renames Parameters, `file_name_regex` chooses files, `processes_num` are written at once. Raises ValueError for a path that
    is not there.
    """
    _convert("ckpt_to_safetensors", "ckpt", "safetensors", file_path, save_path, name_map, file_name_regex, processes_num)


def safetensors_to_ckpt(
    file_path: str, save_path: str | None = None, name_map: dict[str, str] | None = None, file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Writes a .safetensors file, or those in the folders rank* of a folder, as .ckpt, beside it or into the folder `save_path`.

    `name_map` renames Parameters, `file_name_regex` chooses files, `processes_num` are written at once. Raises ValueError for a path that
    is not there.
    """
    _convert("safetensors_to_ckpt", "safetensors", "ckpt", file_path, save_path, name_map, file_name_regex, processes_num)


def _convert(call: str, old: str, new: str, given: Any, to: Any, names: Any, regex: Any, at_once: Any) -> None:
    if not isinstance(given, str) or not os.path.exists(given):
        raise ValueError(message(f"{call}({short(given)})", "a file or folder that is there"))
    for key, value, kind in (("save_path", to, str), ("name_map", names, dict), ("file_name_regex", regex, str)):
        if value is not None and not isinstance(value, kind):
            raise TypeError(message(f"{call}({key}={short(value)})", f"a {kind.__name__}, got {type(value).__name__}"))
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        raise ValueError(message(f"{call}(processes_num={short(at_once)})", "an int from 1 on"))
    if to is not None and os.path.isfile(to):
        raise ValueError(message(f"{call}(save_path={to!r})", "a folder; this is a file"))

    def write(pair: tuple[Path, Path]) -> None:
        source, target = pair
        target.parent.mkdir(parents=True, exist_ok=True)
        entries = [
            {"name": (names or {}).get(name, name), "data": value if isinstance(value, Tensor) else Tensor(value)}
            for name, value in load_checkpoint(str(source), format=old).items()
        ]
        save_checkpoint(entries, str(target), format=new)

    pairs = list(_pairs(call, Path(given), old, new, to, regex))
    with ThreadPoolExecutor(min(at_once, len(pairs))) as threads:
        list(threads.map(write, pairs))


def _pairs(call: str, given: Path, old: str, new: str, to: str | None, regex: str | None) -> Iterator[tuple[Path, Path]]:
    """Each file to read, with the one to write."""
    if given.is_file():
        if given.suffix != f".{old}":
            raise ValueError(message(f"{call}({str(given)!r})", f"a .{old} file"))
        yield given, (Path(to) if to else given.parent) / f"{given.stem}.{new}"
        return
    folders = sorted(one for one in given.iterdir() if one.is_dir() and one.name.startswith("rank"))
    if not folders:
        raise ValueError(message(f"{call}({str(given)!r})", "a folder with folders whose names begin with rank"))
    found = [file for one in folders for file in sorted(one.glob(f"*.{old}")) if regex is None or re.search(regex, file.stem)]
    if not found:
        raise ValueError(message(f"{call}({str(given)!r})", f".{old} files in its folders" + (f" that {regex!r} finds" if regex else "")))
    for file in found:
        yield file, (Path(to) / file.parent.name if to else file.parent) / f"{file.stem}.{new}"
