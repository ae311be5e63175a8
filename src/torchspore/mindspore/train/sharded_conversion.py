"""Conversion of sharded checkpoints (`format='dcp'`) from and to MindSpore's files: one file, or a file of each process with a strategy."""
from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from torchspore.base import checkpoint_file
from torchspore.base.checkpoint_file import Entry
from torchspore.base.text import message
from torchspore.distributed.checkpoints import saving
from torchspore.distributed.shard import strategy_file
from torchspore.mindspore.train import sharded_files
from torchspore.mindspore.train.resharding import Resharding, part_of, read_entries, write_all
from torchspore.mindspore.train.serialization import to_value, write_file
from torchspore.mindspore.train.slices import ParameterSharding, processes, shardings_of
from torchspore.mindspore.train.transform import FORMATS, files_of_ranks

_SUFFIXES = (".dcp", *(f".{format}" for format in FORMATS))
PREFIX = "checkpoint"
"""The beginning of the names of files that are written for each process."""


def convert(source: str, output: str, source_strategy: str | None = None, strategy: str | None = None) -> list[Path]:
    """Write the values of `source` to `output`; return the files or the folder that were written.

    A name that ends with .dcp is a sharded checkpoint, one with .ckpt or .safetensors a file with full values. Any other name is a folder
    with rank_0, rank_1, ...: a source then needs `source_strategy`, an output `strategy`. Raises ValueError for other names and for missing
    parts, FileFormatError for damaged files.
    """
    for what, name, file in (("SOURCE", source, source_strategy), ("OUTPUT", output, strategy)):
        option = "--source-strategy" if what == "SOURCE" else "--strategy"
        if (Path(name).suffix not in _SUFFIXES) != (file is not None):
            expected = f"a name that ends with {', '.join(_SUFFIXES)}, or a folder of rank_0, rank_1, ... with {option} FILE"
            raise ValueError(message(f"{what} {name}" + (f" with {option}" if file is not None else ""), expected))
        if file is not None and not Path(file).is_file():
            raise ValueError(message(f"{option} {file}", "an existing file"))
    target = Path(output).expanduser().absolute()
    if not target.parent.is_dir():
        raise ValueError(message(output, f"a folder that exists: {target.parent}"))
    converted = _entries(Path(source).expanduser().absolute(), source_strategy)
    if strategy is not None:
        return _write_ranks(target, converted, shardings_of(strategy_file.read(Path(strategy))))
    if target.suffix == ".dcp":
        write_folder(target, converted)
    elif target.suffix == ".ckpt":
        checkpoint_file.write(target, iter(converted))
    else:
        write_file(target, list(converted), target.suffix[1:])
    return [target]


def _entries(source: Path, strategy: str | None) -> Iterable[Entry]:
    """Return the full values of a source, in order."""
    is_folder = strategy is not None or source.suffix == ".dcp"
    if not (source.is_dir() if is_folder else source.is_file()):
        raise ValueError(message(str(source), f"a {'folder' if is_folder else 'file'} that exists"))
    if strategy is not None:
        files = {rank: read_entries(file) for rank, file in files_of_ranks("convert", source).items()}
        return Resharding(shardings_of(strategy_file.read(Path(strategy))), None).entries(0, files)
    return sharded_files.entries(source) if source.suffix == ".dcp" else read_entries(source).values()


def _write_ranks(folder: Path, converted: Iterable[Entry], shardings: dict[str, ParameterSharding]) -> list[Path]:
    """Write rank_N/checkpointN.ckpt for each process of a strategy, all or none."""
    entries = list(converted)

    def entries_of(rank: int) -> list[Entry]:
        return [
            part_of(entry, shardings.get(entry.name), rank)
            for entry in entries if entry.name not in shardings or shardings[entry.name].holds(rank)
        ]

    paths = [folder / f"rank_{rank}" / f"{PREFIX}{rank}.ckpt" for rank in range(processes(shardings))]
    write_all({path: functools.partial(entries_of, rank) for rank, path in enumerate(paths)})
    return paths


def write_folder(path: Path, converted: Iterable[Entry]) -> None:
    """Write full values as a sharded checkpoint of one file. Raises TypeError for types that safetensors does not have, and OSError."""
    saving.save(saving.contents(path, {entry.name: to_value(entry) for entry in converted}), None)
