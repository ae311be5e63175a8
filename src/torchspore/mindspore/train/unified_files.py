"""Full Parameters of a training on several processes in a folder of safetensors files, with a map from Parameters to files."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base import json_text
from torchspore.base.arguments import is_int
from torchspore.base.checkpoint_file import Entry
from torchspore.base.files import write_atomically
from torchspore.base.text import message, short
from torchspore.distributed.shard import strategy_file
from torchspore.errors import FileFormatError
from torchspore.mindspore.train.resharding import Resharding, read_entries, write_all
from torchspore.mindspore.train.slices import shardings_of

NAMES = "param_name_map.json"
_LARGEST = 4 * 2**30
"""Maximum bytes of one file; further Parameters start another."""


def unified_safetensors(
    src_dir: str, src_strategy_file: str, dst_dir: str, merge_with_redundancy: bool = True, file_suffix: str | None = None,
    max_process_num: int = 64, choice_func: Callable[[str], bool | str] | None = None, split_dst_file: tuple[int, int] | tuple[()] = (),
) -> None:
    """Writes the full Parameters of the .safetensors files in `src_dir`/rank_N as part0.safetensors, ... and param_name_map.json.

    `src_strategy_file` has the shardings. `file_suffix` is the end of the files' names, before their suffix. `choice_func(name)` returns
    whether a Parameter is included, or its new name. `split_dst_file=(k, n)` writes the k-th (from 1) of n shares of the files. Files
    without redundant Parameters (`merge_with_redundancy=False`) are merged like others. One process does all the work, for any
    `max_process_num`. Raises TypeError and ValueError for invalid arguments and if a part is missing.
    """
    from torchspore.mindspore.train.transform import files_of_ranks

    call = "unified_safetensors"
    if not isinstance(src_dir, str) or not Path(src_dir).is_dir():
        raise ValueError(message(f"{call}({short(src_dir)})", "an existing folder"))
    if not isinstance(src_strategy_file, str) or not Path(src_strategy_file).is_file():
        raise ValueError(message(f"{call}(src_strategy_file={short(src_strategy_file)})", "an existing strategy file"))
    if not isinstance(merge_with_redundancy, bool):
        raise TypeError(message(f"{call}(merge_with_redundancy={short(merge_with_redundancy)})", "a bool"))
    if not is_int(max_process_num) or max_process_num < 1:
        raise ValueError(message(f"{call}(max_process_num={short(max_process_num)})", "an int from 1 on"))
    share, shares = _share(call, split_dst_file)
    paths = files_of_ranks(call, Path(src_dir), ("safetensors",), file_suffix or "")
    files = {rank: read_entries(path) for rank, path in paths.items()}
    resharding = Resharding(shardings_of(strategy_file.read(Path(src_strategy_file))), None)
    renamed = [_chosen(call, entry, choice_func) for entry in resharding.entries(0, files)]
    chosen = [entry for entry in renamed if entry is not None]
    parts = list(_parts(chosen))
    folder = Path(dst_dir)
    names = {entry.name: f"part{number}.safetensors" for number, part in enumerate(parts) for entry in part}
    parts_of_share = {folder / f"part{number}.safetensors": part for number, part in enumerate(parts) if number % shares == share}
    folder.mkdir(parents=True, exist_ok=True)
    if parts_of_share:
        write_all({path: (lambda part=part: part) for path, part in parts_of_share.items()})
    size = sum(_bytes(entry) for entry in chosen)
    write_atomically(folder / NAMES, json.dumps({"metadata": {"total_size": size}, "weight_map": names}, indent=4))


def _share(call: str, share: Any) -> tuple[int, int]:
    """Return the index of the share, from 0, and the number of shares."""
    if share == ():
        return 0, 1
    is_pair = isinstance(share, tuple) and len(share) == 2 and all(is_int(part) for part in share)
    if not is_pair or not 1 <= share[0] <= share[1]:
        raise ValueError(message(f"{call}(split_dst_file={short(share)})", "() or (k, n) with k from 1 to n"))
    return share[0] - 1, share[1]


def _chosen(call: str, entry: Entry, choose: Callable[[str], bool | str] | None) -> Entry | None:
    answer = True if choose is None else choose(entry.name)
    if not isinstance(answer, (bool, str)):
        raise ValueError(message(f"{call}(choice_func=...) gave {short(answer)} for {entry.name!r}", "a bool or a new name"))
    if answer is False:
        return None
    return entry if answer is True else Entry(answer, entry.type_name, entry.shape, entry.values)


def _bytes(entry: Entry) -> int:
    return int(np.asarray(entry.values).nbytes)


def _parts(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    part: list[Entry] = []
    size = 0
    for entry in entries:
        if part and size + _bytes(entry) > _LARGEST:
            yield part
            part, size = [], 0
        part.append(entry)
        size += _bytes(entry)
    if part:
        yield part


def entries(call: str, folder: Any, selected: list[str] | None, renamed: dict[str, str] | None) -> Iterator[tuple[str, Entry]]:
    """Return the Parameters in such a folder by name, optionally only the names `selected`. Raises ValueError for another folder."""
    if not isinstance(folder, str) or not (Path(folder) / NAMES).is_file():
        raise ValueError(message(f"{call}(unified_safetensors_dir={short(folder)})", f"a folder of unified_safetensors, with {NAMES}"))
    listed = Path(folder) / NAMES
    try:
        names = dict(json_text.parse(listed.read_text(encoding="utf-8"))["weight_map"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileFormatError(message(str(listed), "what unified_safetensors writes")) from None
    files: dict[str, dict[str, Entry]] = {}
    for name, file in names.items():
        called = (renamed or {}).get(name, name)
        if selected is not None and called not in selected:
            continue
        if not isinstance(file, str) or Path(file).name != file or not (Path(folder) / file).is_file():
            raise FileFormatError(message(f"{listed}: {name!r} in {short(file)}", "a file of that folder"))
        if file not in files:
            files[file] = read_entries(Path(folder) / file)
        if name not in files[file]:
            raise FileFormatError(message(f"{Path(folder) / file}", f"the Parameter {name!r} in it, as {NAMES} says"))
        entry = files[file][name]
        yield called, Entry(called, entry.type_name, entry.shape, entry.values)
