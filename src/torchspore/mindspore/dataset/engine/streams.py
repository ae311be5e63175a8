"""Sources that are read sequentially: files of lines, in MindSpore's order for a seed.

MindSpore assigns the files to its workers in turn and takes one row from each worker in turn. A process's share is a range of all rows,
extended with rows from the start to make the shares equal. A global shuffle shuffles the files and then rows in a buffer.
"""
from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.random_order import Twister32, Twister64
from torchspore.mindspore.dataset.core.validator_helpers import (
    check_num_samples,
    check_shards,
    check_workers,
    with_sentence,
)
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import SourceDataset, TextBaseDataset
from torchspore.mindspore.dataset.engine.declarations import Declared
from torchspore.mindspore.dataset.engine.files import shuffle_kind
from torchspore.mindspore.dataset.engine.rows import Row, Run
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.mindspore.dataset.engine.shuffle_buffer import through_buffer

_FILES, _ROWS = 4, 10000
"""Size of the buffer of a global shuffle: this number of files of average length, but at least this number of rows."""


class StreamedDataset(Declared, SourceDataset):
    """A source of files, each with its rows in order; subclasses define the files, and how to read one."""

    _indexable = True                            # as far as map is concerned: it may read rows before the program requests them
    columns: ClassVar[tuple[str, ...]] = ("text",)
    dataset_dir: Path
    usage: Any

    def _start(self, call: str, shared: dict[str, Any]) -> None:
        workers, shuffle, cache = shared["num_parallel_workers"], shared["shuffle"], shared["cache"]
        check_workers(call, workers)
        SourceDataset.__init__(self, None, workers)
        if shuffle is not None and not isinstance(shuffle, bool) and shuffle not in (Shuffle.GLOBAL, Shuffle.FILES):
            kind = ValueError if isinstance(shuffle, Shuffle) else TypeError
            raise kind(message(f"{call}(shuffle={short(shuffle)})", "True, False, Shuffle.GLOBAL or Shuffle.FILES"))
        check_shards(call, shared["num_shards"], shared["shard_id"])
        if shared["num_samples"] is not None:
            check_num_samples(call, shared["num_samples"])
        if cache is not None and not isinstance(cache, DatasetCache):
            raise TypeError(message(f"{call}(cache={short(cache)})", f"a DatasetCache, got {type(cache).__name__}"))
        self.num_samples, self.num_shards, self.shard_id = shared["num_samples"], shared["num_shards"], shared["shard_id"] or 0
        self.cache = cache
        self._cache_key = object()
        self._shuffle = shuffle_kind(shuffle)
        self._listed_files: list[Any] | None = None
        self._counts: dict[Any, int] = {}

    # Methods of a subclass ---------------------------------------------------------------------------------------------------------------

    def _files(self) -> Sequence[Any]:
        """Return the files, or pairs of files, in order."""
        raise NotImplementedError

    def _rows(self, file: Any) -> Iterator[Row]:
        """Yield the rows of one file."""
        raise NotImplementedError

    # Reading -----------------------------------------------------------------------------------------------------------------------------

    def _columns(self) -> list[str]:
        return list(self.columns)

    def is_shuffled(self) -> bool:
        return self._shuffle is not None

    def is_sharded(self) -> bool:
        return self.num_shards is not None

    def _all_files(self) -> list[Any]:
        if self._listed_files is None:
            self._listed_files = list(self._files())
        return self._listed_files

    def _length(self, file: Any) -> int:
        """Return the number of rows of a file; it is read once for that."""
        if file not in self._counts:
            self._counts[file] = sum(1 for _ in self._rows(file))
        return self._counts[file]

    def _share(self) -> int:
        """Return the number of rows of one process."""
        return -(-sum(map(self._length, self._all_files())) // (self.num_shards or 1))

    def _size(self) -> int | None:
        share = self._share()
        return min(share, self.num_samples) if self.num_samples else share

    def _epoch(self, run: Run) -> Iterator[Row]:
        files = self._all_files()
        state = run.keep(self, lambda: {"order": list(range(len(files))), "epoch": 0, "draw": Twister64(run.seed)})
        state["epoch"] += 1
        if self._shuffle is not None:
            # Each epoch shuffles the previous order; shares have separate seeds, so that they agree.
            Twister32(run.seed if self.num_shards is None else state["epoch"]).shuffle(state["order"])
        rows = islice(self._in_turn([files[number] for number in state["order"]]), self.num_samples or None)
        if self._shuffle is not Shuffle.GLOBAL:
            yield from rows
            return
        buffer = min(_FILES * max(self._share() // len(files), 1), _ROWS)
        yield from through_buffer(rows, buffer, state["draw"], run, self._size)

    def _in_turn(self, files: list[Any]) -> Iterator[Row]:
        """Yield a row of each worker in turn; worker i of n reads the files i, i + n, ..."""
        parts = self._parts(files)
        workers = self.num_parallel_workers or config.get_num_parallel_workers()
        readers: list[Any] = [chain.from_iterable(self._stretch(*part) for part in parts[worker::workers]) for worker in range(workers)]
        while readers:
            active = []
            for reader in readers:
                for row in islice(reader, 1):
                    active.append(reader)
                    yield row
            readers = active

    def _parts(self, files: list[Any]) -> list[tuple[Any, int, int | None]]:
        """Return (file, first row, row after the last) of this process's share."""
        if self.num_shards is None:
            return [(file, 0, None) for file in files]
        share = self._share()
        first, last = self.shard_id * share, (self.shard_id + 1) * share
        parts, start = [], 0
        while start < last:
            for file in files:
                end = start + self._length(file)
                if end > first and start < last:
                    parts.append((file, max(first - start, 0), min(last, end) - start))
                start = end
        return parts

    def _stretch(self, file: Any, start: int, stop: int | None) -> Iterator[Row]:
        if self.cache is None:
            yield from islice(self._rows(file), start, stop)
            return
        fresh: Iterator[tuple[int, Row]] = enumerate(self._rows(file))
        for number in range(start, self._length(file) if stop is None else stop):
            yield self.cache.row((self._cache_key, file, number), lambda number=number: next(row for n, row in fresh if n == number))


class TextStream(StreamedDataset, TextBaseDataset):
    """A streamed source of text."""

    def _blocks(self, run: Run, size: int) -> Iterator[list[Any]] | None:
        return self._in_blocks(run, size) if self.cache is None else None

    def _in_blocks(self, run: Run, size: int) -> Iterator[list[Any]]:
        rows = self._epoch(run)
        while part := list(islice(rows, size)):
            yield [list(column) for column in zip(*part)]


def matching(call: str, patterns_or_path: Any) -> list[Path]:
    """Return the files that paths and patterns match, sorted. Raises TypeError, and ValueError if a pattern or all match nothing."""
    patterns = [patterns_or_path] if isinstance(patterns_or_path, (str, Path)) else patterns_or_path
    if isinstance(patterns, (list, tuple)) and not patterns:
        raise ValueError(message(f"{call}([])", "at least one file"))
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(pattern, (str, Path)) for pattern in patterns):
        raise TypeError(message(f"{call}({short(patterns_or_path)})", "a path, a pattern or a list of them"))
    files: list[Path] = []
    for pattern in patterns:
        path = Path(pattern).expanduser()
        matches = [path] if path.is_file() else [Path(name) for name in glob.glob(str(path)) if Path(name).is_file()]
        if not matches:
            text = message(f"{call}: {str(pattern)!r} matches no file", "files that exist")
            raise ValueError(with_sentence(text, f"The following patterns did not match any files: ['{pattern}']"))
        files += matches
    return sorted(files)
