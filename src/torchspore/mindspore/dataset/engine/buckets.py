"""`bucket_batch_by_length`: batches of rows of similar length, to reduce padding."""
from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type, checked_columns
from torchspore.mindspore.dataset.engine.batches import PaddedBatchDataset, padded, stack
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, guarded, name_of
from torchspore.mindspore.dataset.engine.operations import column_positions
from torchspore.mindspore.dataset.engine.rows import Row, Run, writable_copy

_CALL = "bucket_batch_by_length"


class BucketBatchByLengthDataset(UnionBaseDataset):
    """Joins rows of one bucket as soon as they fill a batch; the remaining rows come at the end, bucket by bucket."""

    def __init__(
        self, input_dataset: Dataset, column_names: Any, bucket_boundaries: list[int], bucket_batch_sizes: list[int],
        element_length_function: Callable[..., Any] | None, pad_info: dict[str, Any] | None, pad_to_bucket_boundary: bool,
        drop_remainder: bool,
    ) -> None:
        self.column_names = checked_columns(_CALL, "column_names", column_names)
        self.bucket_boundaries = _check_boundaries(bucket_boundaries)
        self.bucket_batch_sizes = _check_sizes(bucket_batch_sizes, len(self.bucket_boundaries) + 1)
        if element_length_function is None and len(self.column_names) != 1:
            hint = "pass an element_length_function of these columns"
            raise ValueError(message(f"{_CALL}(column_names={self.column_names})", "one column, whose first axis is the length", hint=hint))
        if element_length_function is not None and not callable(element_length_function):
            raise TypeError(message(f"{_CALL}(element_length_function={short(element_length_function)})", "a function that gives an int"))
        check_bool(_CALL, "pad_to_bucket_boundary", pad_to_bucket_boundary)
        self._padding = PaddedBatchDataset(input_dataset, 1, pad_info=pad_info).pad_info if pad_info is not None else None
        check_bool(_CALL, "drop_remainder", drop_remainder)
        super().__init__(input_dataset)
        self.element_length_function = element_length_function
        self.pad_to_bucket_boundary, self.drop_remainder = pad_to_bucket_boundary, drop_remainder

    def _size(self) -> int | None:
        return None                              # only the rows determine it

    def _rows_are_fresh(self) -> bool:
        return True

    def get_batch_size(self) -> int:
        return -1

    def _epoch(self, run: Run) -> Iterator[Row]:
        columns = self._columns()
        positions = column_positions(_CALL, self.column_names, columns)
        column_positions(_CALL, list(self._padding or ()), columns)
        buckets: list[list[Row]] = [[] for _ in self.bucket_batch_sizes]
        for row in self.children[0]._epoch(run):
            number = bisect.bisect_right(self.bucket_boundaries, self._length(row, positions))
            buckets[number].append(row)
            if len(buckets[number]) == self.bucket_batch_sizes[number]:
                rows, buckets[number] = buckets[number], []
                yield self._join(rows, columns, number)
        for number, rows in enumerate(buckets):
            if rows and not self.drop_remainder:
                yield self._join(rows, columns, number)

    def _length(self, row: Row, positions: list[int]) -> int:
        if self.element_length_function is None:
            value = row[positions[0]]
            if not value.ndim:
                subject = f"{_CALL}: column {self.column_names[0]!r} holds numbers"
                raise PipelineError(message(subject, "rows that have a length", hint="give an element_length_function"))
            return int(value.shape[0])
        where = f"{_CALL}(element_length_function={name_of(self.element_length_function)})"
        length = guarded(where, self.element_length_function, *[writable_copy(row[position]) for position in positions])
        array = np.asarray(length)
        if array.size != 1 or array.dtype.kind not in "iu" or int(array.reshape(())) < 0:
            raise PipelineError(message(f"{where} gave {short(length)}", "an int from 0 on"))
        return int(array.reshape(()))

    def _join(self, rows: list[Row], columns: list[str], bucket: int) -> Row:
        return tuple(stack(self._padded(values, name, bucket), name) for name, values in zip(columns, zip(*rows)))

    def _padded(self, values: Any, name: str, bucket: int) -> Any:
        if not self._padding:                    # pad every column to its longest row
            return padded(values, name, None)
        if name not in self._padding:
            return values
        pad = self._padding[name]
        if pad is not None and pad[0] is not None and self.pad_to_bucket_boundary and None in pad[0]:
            if bucket == len(self.bucket_boundaries):
                boundary = self.bucket_boundaries[-1]
                subject = f"{_CALL}(pad_to_bucket_boundary=True): a row as long as the last boundary {boundary}, or longer"
                raise PipelineError(message(subject, "shorter rows, for the last bucket has no boundary", hint="add a larger boundary"))
            pad = ([self.bucket_boundaries[bucket] - 1 if size is None else size for size in pad[0]], pad[1])
        return padded(values, name, pad)


def _check_boundaries(boundaries: Any) -> list[int]:
    check_type(_CALL, "bucket_boundaries", boundaries, list, "a list of ints")
    if not boundaries:
        raise ValueError(message(f"{_CALL}(bucket_boundaries=[])", "at least one boundary"))
    for boundary in boundaries:
        check_int(_CALL, "bucket_boundaries", boundary, 1)
    if any(boundary >= other for boundary, other in itertools.pairwise(boundaries)):
        raise ValueError(message(f"{_CALL}(bucket_boundaries={short(boundaries)})", "boundaries that grow"))
    return boundaries


def _check_sizes(sizes: Any, count: int) -> list[int]:
    check_type(_CALL, "bucket_batch_sizes", sizes, list, "a list of ints")
    if len(sizes) != count:
        raise ValueError(message(f"{_CALL}(bucket_batch_sizes={short(sizes)})", f"{count} sizes, one more than there are boundaries"))
    for size in sizes:
        check_int(_CALL, "bucket_batch_sizes", size, 1)
    return sizes
