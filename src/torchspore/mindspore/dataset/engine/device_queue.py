"""`device_que`: rows that a network reads from a queue, by `ops.GetNext`, instead of receiving them as arguments.

torch has no device queues: here the queue is the pipeline's reader, which reads ahead of the step that takes a row.
"""
from __future__ import annotations

import uuid
from typing import Any, NoReturn

from torchspore.base.text import message
from torchspore.mindspore.common.data_queues import QUEUES
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type
from torchspore.mindspore.dataset.engine.dataset import Dataset

"""The queues by name, until they are released."""


class TransferDataset(Dataset):
    """A pipeline whose rows go to the queue `queue_name` (a new one if that is empty) after `send`.

    `send_epoch_end` changes nothing: no device needs the end of an epoch. Raises TypeError for invalid arguments.
    """

    def __init__(
        self, input_dataset: Dataset, send_epoch_end: bool = True, create_data_info_queue: bool = False, queue_name: str = "",
    ) -> None:
        check_type("TransferDataset", "input_dataset", input_dataset, Dataset, "a Dataset")
        check_bool("device_que", "send_epoch_end", send_epoch_end)
        check_bool("device_que", "create_data_info_queue", create_data_info_queue)
        check_type("device_que", "queue_name", queue_name, str, "a str")
        super().__init__(input_dataset)
        self.queue_name = queue_name or str(uuid.uuid4())
        self._has_data_info = create_data_info_queue
        self._rows: Any = None
        self._remaining_epochs = 0
        self._next: Any = None
        self._is_stopped = False
        QUEUES[self.queue_name] = self

    def send(self, num_epochs: int = -1) -> None:
        """Starts reading: `num_epochs` epochs, or endlessly for -1. Raises TypeError and ValueError for another number."""
        check_type("send", "num_epochs", num_epochs, int, "an int")
        if num_epochs != -1:
            check_int("send", "num_epochs", num_epochs, 1)
        self.release()
        QUEUES[self.queue_name] = self
        self._rows, self._remaining_epochs = self.children[0].create_tuple_iterator(num_epochs=num_epochs), num_epochs
        self._is_stopped = False

    def stop_send(self) -> None:
        """Blocks the queue until `continue_send`."""
        self._is_stopped = True

    def continue_send(self) -> None:
        """Continues after `stop_send`."""
        self._is_stopped = False

    def release(self) -> None:
        """Ends the reader and its threads; the queue can't be read afterwards."""
        if self._rows is not None:
            self._rows.stop()
        self._rows = self._next = None
        if QUEUES.get(self.queue_name) is self:
            del QUEUES[self.queue_name]

    def get_data_info(self) -> tuple[list[Any], list[list[int]]]:
        """Returns the dtypes and shapes of the next row. Raises RuntimeError if `create_data_info_queue` is False."""
        if not self._has_data_info:
            hint = "device_que(create_data_info_queue=True)"
            raise RuntimeError(message("get_data_info()", "a queue that was created with a report of its data", hint=hint))
        self._next = self.take()
        return [value.dtype for value in self._next], [list(value.shape) for value in self._next]

    def take(self) -> list[Any]:
        """Return the next row, a list of Tensors. Raises RuntimeError before `send`, after `stop_send` and after the last epoch."""
        if self._rows is None or self._is_stopped:
            required_call = "continue_send()" if self._is_stopped else "send()"
            expected = f"{required_call} before it: nothing is sent now"
            raise RuntimeError(message(f"the next row of the data queue {self.queue_name!r}", expected))
        if self._next is not None:
            row, self._next = self._next, None
            return row  # type: ignore[no-any-return]
        for _ in range(2):                                       # an epoch may end here; the next one has a row, unless all are empty
            for row in self._rows if self._remaining_epochs else ():
                return row  # type: ignore[no-any-return]
            self._remaining_epochs -= self._remaining_epochs > 0
        error_text = f"a row of the data queue {self.queue_name!r} after its last"
        raise RuntimeError(message(error_text, "rows of data", hint="send(num_epochs=-1) restarts after each epoch"))

    def create_dict_iterator(self, *_args: Any, **_named: Any) -> NoReturn:
        """Raises RuntimeError: the rows go to the queue."""
        raise RuntimeError(message("an iterator over a TransferDataset", "the pipeline before device_que: this one's rows go to a queue"))

    create_tuple_iterator = create_dict_iterator
