"""`sync_wait` and `sync_update`: a pipeline that passes more rows only on the program's request."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_type, with_sentence
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import guarded, name_of
from torchspore.mindspore.dataset.engine.rows import Row, Run

_POLL_SECONDS = 0.2


class SyncWaitDataset(UnionBaseDataset):
    """Passes `num_batch` batches (rows, without a later `batch`), then the same number for each `sync_update`, which calls `callback`."""

    def __init__(self, input_dataset: Dataset, condition_name: str, num_batch: int, callback: Callable[[Any], Any] | None = None) -> None:
        check_type("sync_wait", "condition_name", condition_name, str, "a str")
        check_type("sync_wait", "num_batch", num_batch, int, "an int")
        if num_batch < 1:
            text = message(f"sync_wait(num_batch={num_batch})", "an int from 1")
            raise ValueError(with_sentence(text, "num_batch need to be greater than 0."))
        if callback is not None and not callable(callback):
            raise TypeError(message(f"sync_wait(callback={short(callback)})", f"a function, got {type(callback).__name__}"))
        super().__init__(input_dataset)
        if condition_name in {node.condition_name for node in waiting_below(input_dataset)}:
            text = message(f"sync_wait({condition_name!r})", "a name that no other sync_wait of the pipeline has")
            raise RuntimeError(with_sentence(text, "Condition name is already in use."))
        self.condition_name, self.num_batch, self.callback = condition_name, num_batch, callback
        self._rows_of_a_batch = 1
        self._changed = threading.Condition()
        self._open = num_batch
        self._is_disabled = False

    def is_sync(self) -> bool:
        return True

    def _waits(self) -> bool:
        return True

    def joined(self, rows: int) -> None:
        """Set the number of rows of a downstream batch."""
        self._open += (rows - self._rows_of_a_batch) * self.num_batch
        self._rows_of_a_batch = rows

    def update(self, num_batch: int | None, data: Any) -> None:
        """Pass more batches, after calling the callback with `data`."""
        if self.callback is not None:
            guarded(f"sync_wait({self.condition_name!r}, callback={name_of(self.callback)})", self.callback, data)
        with self._changed:
            self._open += (self.num_batch if num_batch is None else num_batch) * self._rows_of_a_batch
            self._changed.notify_all()

    def disable(self) -> None:
        """Pass everything from now on."""
        with self._changed:
            self._is_disabled = True
            self._changed.notify_all()

    def _epoch(self, run: Run) -> Iterator[Row]:
        with self._changed:                        # an epoch whose last batch was dropped leaves too few rows for the first batch
            self._open = max(self._open, self.num_batch * self._rows_of_a_batch)
        for row in self.children[0]._epoch(run):
            with self._changed:
                while self._open <= 0 and not self._is_disabled and not run.is_closing:
                    self._changed.wait(_POLL_SECONDS)
                self._open -= 1
            if run.is_closing:
                return
            yield row


def waiting_below(dataset: Dataset) -> list[SyncWaitDataset]:
    """Return the `sync_wait` steps of a pipeline."""
    below = [node for child in dataset.children for node in waiting_below(child)]
    return [dataset, *below] if isinstance(dataset, SyncWaitDataset) else below


def update(dataset: Dataset, condition_name: Any, num_batch: Any, data: Any) -> None:
    """Run `sync_update`. Raises RuntimeError if the pipeline has no `sync_wait` of that name, and for a number below 1."""
    if num_batch is not None and (not is_int(num_batch) or num_batch < 1):
        text = message(f"sync_update(num_batch={short(num_batch)})", "an int from 1")
        raise RuntimeError(with_sentence(text, f"Sync_update batch size can only be positive, got {short(num_batch)}."))
    nodes = {node.condition_name: node for node in waiting_below(dataset)}
    if condition_name not in nodes:
        expected = list_choices(list(nodes)) if nodes else "a pipeline with sync_wait(...)"
        raise RuntimeError(with_sentence(message(f"sync_update({short(condition_name)})", expected), "Condition name not found."))
    nodes[condition_name].update(num_batch, data)
