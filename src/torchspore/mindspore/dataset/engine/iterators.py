"""The iterators of `create_dict_iterator` and `create_tuple_iterator`.

One loop over an iterator yields the rows of one epoch; the next loop over the same iterator yields those of the next epoch.
"""
from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterator as Rows
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.blackbox import marks
from torchspore.context.store import STORE
from torchspore.engine.tensors.tensor import TensorBase, wrap
from torchspore.mindspore.common.row_listener import ROW_LISTENER
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine import descriptions, watchdog
from torchspore.mindspore.dataset.engine.measurements import Reading
from torchspore.mindspore.dataset.engine.rows import Row, Run
from torchspore.mindspore.dataset.engine.workers import ReadAhead

ITERATORS_LIST: list[weakref.ref[Iterator]] = []
"""Return the live iterators."""


class _Cleanup:
    """The mark that iterators are being closed."""

    def __init__(self) -> None:
        self.is_running = False


_CLEANUP = _Cleanup()


def _cleanup() -> None:
    """End all iterators."""
    _set_iterator_cleanup()
    for reference in reversed(ITERATORS_LIST.copy()):
        iterator = reference()
        if iterator is not None:
            iterator.stop()


def _set_iterator_cleanup() -> None:
    """Record that iterators are being ended."""
    _CLEANUP.is_running = True


def _unset_iterator_cleanup() -> None:
    """Record that all have been ended."""
    _CLEANUP.is_running = False


def check_iterator_cleanup() -> bool:
    """Return whether iterators are being ended."""
    return _CLEANUP.is_running


class Iterator:
    """Iterates over the rows of `dataset`; each loop is one epoch, `num_epochs` of them (-1: no limit).

    It starts after `skipped` rows, by default those of `set_init_step`; skipped epochs count towards `num_epochs`. Raises RuntimeError if
    rows are requested after the last epoch. Threads end with the iterator, by `stop` or with the program.
    """

    def __init__(
        self, dataset: Any, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False, skipped: int | None = None,
    ) -> None:
        names: list[str] = dataset.get_col_names()
        # A source's metadata (`_meta-filename`) becomes visible when the program renames it.
        self._positions = [position for position, name in enumerate(names) if not name.startswith("_meta-")]
        self._columns = [names[position] for position in self._positions]
        self._has_all = len(self._columns) == len(names)
        self._num_epochs, self._output_numpy = num_epochs, output_numpy
        self._copies = do_copy or not dataset._rows_are_fresh()
        skipped = dataset.get_init_step() if skipped is None else skipped
        self._started = skipped // dataset.get_dataset_size() if skipped else 0
        self._in_epoch = False
        self._transfer: Any = None
        run = Run()
        epochs = _Epochs(dataset, run, skipped)
        self._source = f"the data pipeline of {type(dataset).__name__}"
        reading = Reading(dataset, run, config.get_debug_mode())
        self._waits, self._is_batched = reading.waits, dataset.get_batch_size() != 1
        self._reader: Any = _Inline(epochs) if reading.is_inline else ReadAhead(
            epochs, config.get_prefetch_size(), reading.waits, watchdog.patience, watchdog.warn
        )
        reading.watch(self._reader)
        self._finalizer = weakref.finalize(self, _close, self._reader, run, reading)
        ITERATORS_LIST.append(weakref.ref(self, ITERATORS_LIST.remove))

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if not self._in_epoch:
            if not self._finalizer.alive:
                raise RuntimeError(message("next(iterator) after stop()", "an iterator that was not stopped"))
            if 0 < self._num_epochs <= self._started:
                raise RuntimeError(
                    message(
                        f"next(iterator) after its {self._num_epochs} epochs (num_epochs={self._num_epochs})",
                        "an iterator with remaining epochs",
                        hint="create a new iterator, or set num_epochs to the number of loops",
                    )
                )
            self._started += 1
            self._in_epoch = True
            self._waits.begin_epoch()
            self._reader.start_epoch()
        try:
            row = marks.with_mark(self._reader.next, self._source, "data")() if marks.is_enabled else self._reader.next()
            if self._is_batched:
                self._waits.give(_count(row))
            else:
                self._waits.record_row()
            if ROW_LISTENER.receive is not None:
                ROW_LISTENER.receive(row, self._reader.peek)
            if not self._output_numpy and STORE.get("device_target") != "CPU":
                row = self._on_device(row)
            return self._shape(row if self._has_all else tuple(row[position] for position in self._positions))
        except StopIteration:
            self._in_epoch = False
            self._waits.end_epoch(is_complete=True)
            if 0 < self._num_epochs <= self._started:
                self._finalizer()
            raise
        except BaseException:
            self._finalizer()
            self._in_epoch = False
            raise

    def stop(self) -> None:
        """End the threads of this iterator."""
        self._finalizer()
        self._in_epoch = False

    release = stop

    def slow_step(self) -> str | None:
        """Return the step that currently makes rows; None if no step does, or if it is not observable."""
        thread = getattr(self._reader, "thread", None)
        if thread is None or not self._waits.is_working:
            return None
        step = watchdog.step_of(sys._current_frames().get(thread.ident))
        return None if step is None else descriptions.label(step)

    def _on_device(self, row: Row) -> Row:
        """Return the row with Tensors on the device in place of its arrays, and start the copy of the next row if it is in memory."""
        from torchspore.engine.devices import device, row_transfer

        if self._transfer is None or self._transfer.device != device.current():
            self._transfer = row_transfer.open_transfer()
        if self._transfer is None:
            return row
        values = self._transfer.receive(row)
        next_row = self._reader.peek()
        if next_row is not None:
            self._transfer.send(next_row)
        return tuple(value if value is original else wrap(value) for value, original in zip(values, row))

    def _shape(self, row: Row) -> Any:
        raise NotImplementedError

    def _value(self, value: Any) -> Any:
        if isinstance(value, TensorBase):
            return value
        if isinstance(value, dict):
            return self._converted_items(value)
        if self._output_numpy:
            return np.array(value) if self._copies and isinstance(value, np.ndarray) else value
        if value.dtype.kind in "SU":
            return value  # a Tensor can't contain text
        from torchspore.mindspore.common.tensor import Tensor

        return Tensor(value) if self._copies or not value.flags.writeable else Tensor.from_numpy(value)

    def _converted_items(self, value: Any) -> Any:
        """Convert the content of a dict: numbers and texts like values of columns, everything else unchanged."""
        if isinstance(value, dict):
            return {key: self._converted_items(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self._converted_items, value))
        if isinstance(value, (bool, int, float, complex, str, np.generic)) and not isinstance(value, bytes):
            value = np.array(value)
        return self._value(value) if isinstance(value, np.ndarray) and value.dtype.kind != "O" else value


class DictIterator(Iterator):
    """Returns each row as a dict from column name to value."""

    def _shape(self, row: Row) -> dict[str, Any]:
        return {name: self._value(value) for name, value in zip(self._columns, row)}


class TupleIterator(Iterator):
    """Returns each row as a list of its values, or of those of `columns`."""

    def __init__(self, dataset: Any, columns: Any = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False) -> None:
        skipped = dataset.get_init_step()
        super().__init__(dataset if columns is None else dataset.project(columns), num_epochs, output_numpy, do_copy, skipped)

    def _shape(self, row: Row) -> list[Any]:
        return [self._value(value) for value in row]


class _Epochs:
    """Start one epoch after another; refers to the dataset, so that the iterator itself can be collected.

    The first `skipped` rows, over any number of epochs, are made and dropped, so that random draws continue as without skipping.
    """

    def __init__(self, dataset: Any, run: Run, skipped: int) -> None:
        self.dataset, self.run, self._skipped = dataset, run, skipped

    def __call__(self) -> Rows[Row]:
        while True:
            rows = self.dataset._epoch(self.run)
            dropped = sum(1 for _ in itertools.islice(rows, self._skipped))
            self._skipped -= dropped
            empty = True
            for row in rows:
                empty = False
                yield row
            self.run.epoch += 1
            if not (dropped and empty):      # a completely skipped epoch does not count
                return


class _Inline:
    """Debug mode: rows are made in the reader's thread."""

    def __init__(self, epochs: _Epochs) -> None:
        self._epochs = epochs
        self._rows: Any = None

    def start_epoch(self) -> None:
        self._rows = self._epochs()

    def next(self) -> Row:
        return next(self._rows)

    def peek(self) -> None:
        """Return None: the next row is not in memory."""

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()


def _count(batch: Row) -> int:
    """Return the rows of a batch."""
    shape = getattr(batch[0], "shape", ()) if batch else ()
    return shape[0] if shape else 1


def _close(reader: Any, run: Run, reading: Reading) -> None:
    run.is_closing = True
    reading.close()
    reader.close()
    run.close()
