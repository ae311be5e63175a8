"""Conversion of checkpoints between .ckpt and .safetensors."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.serialization import load_checkpoint, save_checkpoint


def ckpt_to_safetensors(
    file_path: str, save_path: str | None = None, name_map: dict[str, str] | None = None, file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Writes a .ckpt file, or those in the folders rank* of a folder, as .safetensors, next to it or into the folder `save_path`.

    `name_map` renames Parameters, `file_name_regex` selects files, `processes_num` are written at once. Raises ValueError for a missing
    path.
    """
    _convert("ckpt_to_safetensors", "ckpt", "safetensors", file_path, save_path, name_map, file_name_regex, processes_num)


def safetensors_to_ckpt(
    file_path: str, save_path: str | None = None, name_map: dict[str, str] | None = None, file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Writes a .safetensors file, or those in the folders rank* of a folder, as .ckpt, next to it or into the folder `save_path`.

    `name_map` renames Parameters, `file_name_regex` selects files, `processes_num` are written at once. Raises ValueError for a missing
    path.
    """
    _convert("safetensors_to_ckpt", "safetensors", "ckpt", file_path, save_path, name_map, file_name_regex, processes_num)


def _convert(call: str, old: str, new: str, source: Any, to: Any, names: Any, regex: Any, at_once: Any) -> None:
    if not isinstance(source, str) or not os.path.exists(source):
        raise ValueError(message(f"{call}({short(source)})", "an existing file or folder"))
    for key, value, kind in (("save_path", to, str), ("name_map", names, dict), ("file_name_regex", regex, str)):
        if value is not None and not isinstance(value, kind):
            raise TypeError(message(f"{call}({key}={short(value)})", f"a {kind.__name__}, got {type(value).__name__}"))
    if not is_int(at_once) or at_once < 1:
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

    pairs = list(_pairs(call, Path(source), old, new, to, regex))
    with ThreadPoolExecutor(min(at_once, len(pairs))) as threads:
        list(threads.map(write, pairs))


def _pairs(call: str, source: Path, old: str, new: str, to: str | None, regex: str | None) -> Iterator[tuple[Path, Path]]:
    """Return each file to read, with the file to write."""
    if source.is_file():
        if source.suffix != f".{old}":
            raise ValueError(message(f"{call}({str(source)!r})", f"a .{old} file"))
        yield source, (Path(to) if to else source.parent) / f"{source.stem}.{new}"
        return
    folders = sorted(child for child in source.iterdir() if child.is_dir() and child.name.startswith("rank"))
    if not folders:
        raise ValueError(message(f"{call}({str(source)!r})", "a folder with folders whose names begin with rank"))
    files = [file for folder in folders for file in sorted(folder.glob(f"*.{old}")) if regex is None or re.search(regex, file.stem)]
    if not files:
        raise ValueError(message(f"{call}({str(source)!r})", f".{old} files in its folders" + (f" that {regex!r} finds" if regex else "")))
    for file in files:
        yield file, (Path(to) / file.parent.name if to else file.parent) / f"{file.stem}.{new}"
