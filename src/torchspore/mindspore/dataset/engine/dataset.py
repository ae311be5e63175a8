"""`Dataset`, the base of every source and of every step of a pipeline.

A pipeline is a tree of Datasets that an iterator runs; nothing is read before that. A step yields the rows of one epoch by `_epoch`
and stores longer-lived state in the Run. Several pipelines may share one Dataset.
"""
from __future__ import annotations

import builtins
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.engine.tensors import tree
from torchspore.mindspore.dataset.core.constructor_arguments import record
from torchspore.mindspore.dataset.core.validator_helpers import (
    INT32_MAX,
    check_bool,
    check_callable,
    check_int,
    check_type,
    check_workers,
    checked_columns,
)
from torchspore.mindspore.dataset.engine.batch_arrays import BatchArrays
from torchspore.mindspore.dataset.engine.rows import Row, Run


class Dataset:
    """Rows of named columns; the methods add steps and return the new pipeline, or start reading it."""

    _has_row_for_row = False
    """True for a step that makes each row of the row with the same number of the step below."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        record(cls)

    def __init__(self, children: Any = None, num_parallel_workers: int | None = None, cache: Any = None) -> None:
        check_workers(type(self).__name__, num_parallel_workers)
        if cache is not None:
            hint = "pass the DatasetCache to the source of the pipeline, or to map"
            raise ValueError(message(f"{type(self).__name__}(cache=...)", "cache=None", hint=hint))
        self.children: list[Dataset] = [] if children is None else tree.listed(children)
        for child in self.children:
            if not isinstance(child, Dataset):
                raise TypeError(message(f"{type(self).__name__}({short(child)})", f"a dataset, got {type(child).__name__}"))
        self.num_parallel_workers = num_parallel_workers
        self._init_step = 0

    # The interface of a step -----------------------------------------------------------------------------------------------------------

    def _columns(self) -> list[str]:
        return self.children[0]._columns()

    def _epoch(self, run: Run) -> Iterator[Row]:
        raise NotImplementedError

    def _epoch_onto(self, run: Run, _batch_arrays: BatchArrays, _names: set[str]) -> Iterator[Row]:
        """Like `_epoch`, for a step that batches these rows: the values of some columns may be written directly into the batch's arrays."""
        return self._epoch(run)

    def _blocks(self, _run: Run, _size: int) -> Iterator[list[Any]] | None:
        """Yield the rows of an epoch `size` at a time: for each column a new stacked array, or a list of values. See `blocks`.

        Return None if the step yields single rows; nothing has been read then.
        """
        return None

    def _size(self) -> int | None:
        """Return the number of rows of an epoch, None if only reading determines it."""
        return self.children[0]._size()

    def _rows_are_fresh(self) -> bool:
        """Return whether nothing else refers to the arrays of a row, so that a Tensor may share their memory."""
        return all(child._rows_are_fresh() for child in self.children) and bool(self.children)

    def _waits(self) -> bool:
        """Return whether an upstream step may wait for the program to process the rows that it has."""
        return any(child._waits() for child in self.children)

    # Steps -----------------------------------------------------------------------------------------------------------------------------

    def batch(self, batch_size: Any, drop_remainder: bool = False, num_parallel_workers: int | None = None, **kwargs: Any) -> Dataset:
        """Joins `batch_size` rows to one, along a new first axis; the last one may be smaller unless `drop_remainder`.

        `batch_size` may be a function of a BatchInfo. `per_batch_map(*columns, batch_info)` receives lists of arrays, one for each of
        `input_columns` (by default all), and returns a tuple of as many values as `output_columns`. Raises TypeError and ValueError for
        invalid arguments, and while reading RuntimeError if rows differ in shape or dtype.
        """
        from torchspore.mindspore.dataset.engine.batches import BatchDataset

        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, **kwargs)

    def padded_batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_workers: int | None = None, pad_info: dict[str, Any] | None = None
    ) -> Dataset:
        """Joins rows like `batch`, after padding the columns of `pad_info` to one shape.

        `pad_info` maps a column to (shape, value), to None, or a shape of None: the largest of the batch; a value of None is zero.
        """
        from torchspore.mindspore.dataset.engine.batches import PaddedBatchDataset

        return PaddedBatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self, column_names: Any, bucket_boundaries: list[int], bucket_batch_sizes: list[int],
        element_length_function: Callable[..., Any] | None = None, pad_info: dict[str, Any] | None = None,
        pad_to_bucket_boundary: bool = False, drop_remainder: bool = False,
    ) -> Dataset:
        """Joins rows of similar length: the rows between two `bucket_boundaries` (increasing, from 1) make batches of their bucket's size.
        There is one more size than boundaries.

        A row's length is `element_length_function(*column_names)`, or the first axis of the one column. Shapes are padded as in
        `padded_batch`; with `pad_to_bucket_boundary`, sizes of None become the bucket's upper boundary less 1. Without `pad_info` every
        column is padded to its longest row. Raises TypeError and ValueError for invalid arguments.
        """
        from torchspore.mindspore.dataset.engine.buckets import BucketBatchByLengthDataset

        return BucketBatchByLengthDataset(
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function, pad_info, pad_to_bucket_boundary,
            drop_remainder,
        )

    def map(
        self, operations: Any, input_columns: Any = None, output_columns: Any = None, num_parallel_workers: int | None = None, **kwargs: Any
    ) -> Dataset:
        """Applies a function or transform, or a list of them in sequence, to `input_columns` (by default the first one).

        `output_columns` names the results; if their number differs from that of the inputs, they come before the unchanged columns.
        The threads of `num_parallel_workers` share the rows and keep their order; a Python function runs in one unless more are requested.
        """
        from torchspore.mindspore.dataset.engine.map_dataset import MapDataset

        return MapDataset(self, operations, input_columns, output_columns, num_parallel_workers, **kwargs)

    def filter(self, predicate: Callable[..., Any], input_columns: Any = None, num_parallel_workers: int | None = None) -> Dataset:
        """Keeps the rows for which `predicate(*input_columns)` (by default all columns) is true."""
        from torchspore.mindspore.dataset.engine.operations import FilterDataset

        return FilterDataset(self, predicate, input_columns, num_parallel_workers)

    def shuffle(self, buffer_size: int) -> Dataset:
        """Returns rows in random order from a buffer of `buffer_size` (from 2) rows; the order changes each epoch."""
        from torchspore.mindspore.dataset.engine.operations import ShuffleDataset

        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Repeats all rows `count` times in one epoch; endlessly for -1 or None."""
        from torchspore.mindspore.dataset.engine.operations import RepeatDataset

        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """Takes the first `count` rows; all of them for -1."""
        from torchspore.mindspore.dataset.engine.operations import TakeDataset

        if count == -1 and isinstance(count, int):
            return self
        return TakeDataset(self, count)

    def skip(self, count: int) -> Dataset:
        """Skips the first `count` rows."""
        from torchspore.mindspore.dataset.engine.operations import SkipDataset

        return SkipDataset(self, count)

    def zip(self, datasets: Any) -> Dataset:
        """Combines the columns of other datasets with this one's; as long as the shortest. Raises TypeError for anything but a Dataset."""
        from torchspore.mindspore.dataset.engine.operations import ZipDataset

        if isinstance(datasets, tuple):
            return ZipDataset((self, *datasets))
        if isinstance(datasets, Dataset):
            return ZipDataset((self, datasets))
        raise TypeError(message(f"zip({short(datasets)})", f"a Dataset or a tuple of them, got {type(datasets).__name__}"))

    def concat(self, datasets: Any) -> Dataset:
        """Concatenates the rows of this dataset and of the others; also written `a + b`."""
        from torchspore.mindspore.dataset.engine.operations import ConcatDataset

        if not isinstance(datasets, (Dataset, list)):
            raise TypeError(message(f"concat({short(datasets)})", f"a Dataset or a list of them, got {type(datasets).__name__}"))
        return ConcatDataset([self, *(datasets if isinstance(datasets, list) else [datasets])])

    def __add__(self, datasets: Any) -> Dataset:
        return self.concat(datasets)

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """Renames columns."""
        from torchspore.mindspore.dataset.engine.operations import RenameDataset

        return RenameDataset(self, input_columns, output_columns)

    def project(self, columns: Any) -> Dataset:
        """Keeps only `columns`, in that order."""
        from torchspore.mindspore.dataset.engine.operations import ProjectDataset

        return ProjectDataset(self, columns)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns `apply_func(self)`. Raises TypeError if that is not a Dataset."""
        check_callable("apply", "apply_func", apply_func)
        dataset = apply_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(message("apply(apply_func)", f"a function that returns a Dataset, it returned {type(dataset).__name__}"))
        return dataset

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Makes a dataset of each row by `func(*columns)` and concatenates them. Reads this dataset immediately."""
        check_callable("flat_map", "func", func)
        datasets = []
        for row in self.create_tuple_iterator(num_epochs=1, output_numpy=True):
            datasets.append(func(*row))
            if not isinstance(datasets[-1], Dataset):
                raise TypeError(message("flat_map(func)", f"a function that returns a Dataset, it returned {type(datasets[-1]).__name__}"))
        return datasets[0] if len(datasets) == 1 else datasets[0].concat(datasets[1:])

    def split(self, sizes: list[Any], randomize: bool = True) -> tuple[Dataset, ...]:
        """Splits into parts of these numbers of rows, or shares that add up to 1; `randomize` shuffles first.

        Raises ValueError for shares that do not add up to 1, RuntimeError for numbers that do not add up to the size.
        """
        counts = self._split_counts(sizes, randomize)
        source: Dataset = self
        if randomize:
            from torchspore.mindspore.dataset.engine.operations import ShuffleDataset

            source = ShuffleDataset(self, SPLIT_BUFFER, split_seed())
        parts, start = [], 0
        for count in counts:
            parts.append((source.skip(start) if start else source).take(count))
            start += count
        return tuple(parts)

    def _split_counts(self, sizes: list[Any], randomize: bool) -> list[int]:
        """Return the number of rows of each part of a split."""
        check_type("split", "sizes", sizes, list, "a list of ints or of floats")
        check_bool("split", "randomize", randomize)
        return _split_counts(sizes, self.get_dataset_size())

    def sync_wait(self, condition_name: str, num_batch: int = 1, callback: Callable[[Any], Any] | None = None) -> Dataset:
        """Makes the pipeline wait after each `num_batch` batches until the program calls `sync_update(condition_name)`.

        `callback` receives the `data` of that call. Raises RuntimeError for a name that is in use, ValueError for a number below 1.
        """
        from torchspore.mindspore.dataset.engine.sync_wait import SyncWaitDataset

        return SyncWaitDataset(self, condition_name, num_batch, callback)

    def sync_update(self, condition_name: str, num_batch: int | None = None, data: Any = None) -> None:
        """Lets a `sync_wait` pass its number of batches, or `num_batch`. Raises RuntimeError for an unknown name."""
        from torchspore.mindspore.dataset.engine import sync_wait

        sync_wait.update(self, condition_name, num_batch, data)

    def is_sync(self) -> bool:
        """Return whether the pipeline has a `sync_wait`."""
        return any(child.is_sync() for child in self.children)

    def disable_sync(self) -> None:
        """Makes every `sync_wait` of the pipeline pass its rows without waiting."""
        from torchspore.mindspore.dataset.engine import sync_wait

        for node in sync_wait.waiting_below(self):
            node.disable()

    def device_que(self, send_epoch_end: bool = True, create_data_info_queue: bool = False, queue_name: str = "") -> Dataset:
        """Returns a TransferDataset. After its `send`, `ops.GetNext(types, shapes, output_num, queue_name)` returns the pipeline's rows."""
        from torchspore.mindspore.dataset.engine.device_queue import TransferDataset

        return TransferDataset(self, send_epoch_end, create_data_info_queue, queue_name)

    to_device = device_que

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Writes one epoch's rows alternately to `num_files` files (1 to 1000): MindRecord, or 'tfrecord' (of tf.train.Examples).

        MindRecord stores integers as int32 or int64 and float16 as float32, as MindSpore does. The files appear once all of them are
        complete. Raises TypeError and ValueError for invalid arguments, RuntimeError for columns that a file can't store and if a file
        exists already.
        """
        from torchspore.mindspore.dataset.engine import saved_files

        saved_files.save(self, file_name, num_files, file_type)

    # Reading -----------------------------------------------------------------------------------------------------------------------------

    def create_dict_iterator(self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False) -> Any:
        """Returns an iterator of dicts from column name to Tensor (or array with `output_numpy`); one loop over it is one epoch.

        `num_epochs` is the maximum number of loops, -1 for any number.
        """
        from torchspore.mindspore.dataset.engine.iterators import DictIterator

        _check_iterator("create_dict_iterator", num_epochs, output_numpy, do_copy)
        return DictIterator(self, num_epochs, output_numpy, do_copy)

    def create_tuple_iterator(self, columns: Any = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False) -> Any:
        """Returns an iterator of lists of Tensors (or arrays with `output_numpy`), one for each of `columns`; one loop is one epoch."""
        from torchspore.mindspore.dataset.engine.iterators import TupleIterator

        _check_iterator("create_tuple_iterator", num_epochs, output_numpy, do_copy)
        if columns is not None:
            columns = checked_columns("create_tuple_iterator", "columns", columns)
        return TupleIterator(self, columns, num_epochs, output_numpy, do_copy)

    def __iter__(self) -> Any:
        return self.create_tuple_iterator(num_epochs=1)

    def to_json(self, filename: str = "") -> str:
        """Returns the pipeline as JSON, and writes it to a file if one is named."""
        from torchspore.mindspore.dataset.engine.serialization import to_json

        return to_json(self, filename)

    def _repr_html_(self) -> str:
        """Returns the pipeline as a picture, which notebooks show."""
        from torchspore.mindspore.dataset.engine.picture import picture

        return picture(self)

    # Vocabularies --------------------------------------------------------------------------------------------------------------------

    def build_vocab(self, columns: Any, freq_range: Any, top_k: Any, special_tokens: Any, special_first: Any) -> Any:
        """Returns the Vocab of some columns' words; the older name of `text.Vocab.from_dataset`."""
        from torchspore.mindspore.dataset.text.vocabulary import Vocab

        return Vocab.from_dataset(self, columns, freq_range, top_k, special_tokens, special_first)

    def build_sentencepiece_vocab(self, columns: Any, vocab_size: Any, character_coverage: Any, model_type: Any, params: Any) -> Any:
        """Returns the SentencePieceVocab of some columns' text; the older name of `text.SentencePieceVocab.from_dataset`."""
        from torchspore.mindspore.dataset.text.sentence_pieces import SentencePieceVocab

        return SentencePieceVocab.from_dataset(self, columns, vocab_size, character_coverage, model_type, params)

    # Properties ----------------------------------------------------------------------------------------------------------------------

    def get_col_names(self) -> list[str]:
        """Returns the names of the columns, in order."""
        return list(self._columns())

    def get_dataset_size(self) -> int:
        """Returns the number of rows (batches after `batch`) of one epoch; reads the source once if it has no length."""
        size = self._size()
        if size is None:
            run = Run()
            try:
                size = builtins.sum(1 for _ in self._epoch(run))
            finally:
                run.close()
        return size

    def __len__(self) -> int:
        return self.get_dataset_size()

    def get_batch_size(self) -> int:
        """Returns the batch size of the last `batch`; 1 without one, -1 if it is a function."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """Returns the count of the last `repeat`; 1 without one."""
        return self.children[0].get_repeat_count() if len(self.children) == 1 else 1

    def num_classes(self) -> int | None:
        """Returns the number of classes of the labels, None if the source does not know it."""
        return self.children[0].num_classes() if self.children else None

    def get_class_indexing(self) -> dict[str, Any]:
        """Returns a dict from class name to label, if the source has one."""
        return self.children[0].get_class_indexing() if self.children else {}

    def output_shapes(self, estimate: bool = False) -> list[list[Any]]:
        """Returns the shape of each column in the first row; with `estimate`, None marks sizes that differ between rows."""
        check_bool("output_shapes", "estimate", estimate)
        rows = self._probe(None if estimate else 1)
        shapes = list(map(_shape, rows[0])) if rows else []
        for row in rows[1:]:
            shapes = [[a if a == b else None for a, b in builtins.zip(shape, _shape(value))] for shape, value in builtins.zip(shapes, row)]
        return shapes

    def output_types(self) -> list[Any]:
        """Returns the NumPy dtype of each column in the first row."""
        rows = self._probe(1)
        return [np.dtype(object) if isinstance(value, dict) else value.dtype for value in rows[0]] if rows else []

    def is_shuffled(self) -> bool:
        """Returns whether any part of the pipeline shuffles."""
        return any(child.is_shuffled() for child in self.children)

    def is_sharded(self) -> bool:
        """Returns whether the source is shared between processes."""
        return any(child.is_sharded() for child in self.children)

    def set_init_step(self, init_step: int) -> None:
        """Makes iterators, and therefore training, start after `init_step` rows (an int from 0), which may be in a later epoch."""
        check_int("set_init_step", "init_step", init_step, 0)
        self._init_step = init_step

    def get_init_step(self) -> int:
        """Returns the step of `set_init_step`, 0 by default."""
        return self._init_step

    def reset(self) -> None:
        """Does nothing: iterators start the next epoch by themselves."""

    def _probe(self, count: int | None) -> list[Row]:
        run = Run()
        rows = self._epoch(run)
        try:
            return [row for _, row in builtins.zip(range(INT32_MAX if count is None else count), rows)]
        finally:
            rows.close()  # type: ignore[attr-defined]
            run.close()


def _check_iterator(call: str, num_epochs: Any, output_numpy: Any, do_copy: Any) -> None:
    check_type(call, "num_epochs", num_epochs, int, "an int")
    if num_epochs != -1 and num_epochs < 1:
        kind = RuntimeError if num_epochs == 0 else ValueError  # as in MindSpore
        raise kind(
            message(f"{call}(num_epochs={num_epochs})", "-1 or an int from 1", hint=f"write {call}() for any number of epochs")
        )
    check_bool(call, "output_numpy", output_numpy)
    check_bool(call, "do_copy", do_copy)


SPLIT_BUFFER = 10000
"""Buffer size of a split that does not select by index, as in MindSpore."""


def split_seed() -> int:
    """The common seed of the parts of one split if the program sets no seed."""
    return random.randint(0, 2**31 - 1)


def _shape(value: Any) -> list[int]:
    """Return the shape of a column's value; [0] for a dict, as in MindSpore."""
    return [0] if isinstance(value, dict) else list(value.shape)


def _split_counts(sizes: list[Any], size: int) -> list[int]:
    if not sizes:
        raise ValueError(message("split([])", "at least one size"))
    if all(is_int(size_of_part) for size_of_part in sizes):
        for size_of_part in sizes:
            check_int("split", "sizes", size_of_part, 1)
        if sum(sizes) != size:
            raise RuntimeError(message(f"split({sizes})", f"sizes that add up to {size}, the rows of the dataset, not to {sum(sizes)}"))
        return list(sizes)
    if not all(isinstance(share, float) for share in sizes):
        raise ValueError(message(f"split({sizes})", "a list of ints only, or of floats only"))
    if any(not 0 < share <= 1 for share in sizes) or abs(sum(sizes) - 1) > 1e-9:
        raise ValueError(message(f"split({sizes})", "shares above 0 that add up to 1"))
    counts = [round(share * size) for share in sizes]
    if any(count == 0 for count in counts):
        raise RuntimeError(message(f"split({sizes})", f"shares that are at least one of the {size} rows"))
    remainder = size - sum(counts)                        # the first part gets a remainder; an excess comes off the first that allows it
    counts[next(index for index, count in enumerate(counts) if count + remainder > 0)] += remainder
    return counts


class VisionBaseDataset(Dataset):
    """Base of the datasets of pictures."""


class TextBaseDataset(Dataset):
    """Base of the datasets of text."""


class AudioBaseDataset(Dataset):
    """Base of the datasets of sounds."""


class UnionBaseDataset(VisionBaseDataset, TextBaseDataset, AudioBaseDataset):
    """Base of the steps, and of the sources whose rows may be anything."""


class SourceDataset(Dataset):
    """Base of the datasets that read external data."""

    def _rows_are_fresh(self) -> bool:
        return False


def zip(datasets: Iterable[Dataset]) -> Dataset:
    """Combines the columns of a tuple of datasets; as long as the shortest of them."""
    from torchspore.mindspore.dataset.engine.operations import ZipDataset

    if not isinstance(datasets, tuple):
        raise TypeError(message(f"zip({short(datasets)})", f"a tuple of Datasets, got {type(datasets).__name__}", hint="write zip((a, b))"))
    return ZipDataset(datasets)
