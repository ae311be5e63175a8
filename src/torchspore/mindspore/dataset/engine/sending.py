"""`device_que`: rows that a network takes out of a queue, by `ops.GetNext`, instead of being given them.

No device of torch's has a queue of its own: here it is the pipeline's reader, which reads ahead of the step that takes a row.
"""
from __future__ import annotations

import uuid
from typing import Any, NoReturn

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type
from torchspore.mindspore.dataset.engine.dataset import Dataset

_queues: dict[str, TransferDataset] = {}
"""By name, until they are released."""


class TransferDataset(Dataset):
    """A pipeline whose rows go to the queue `queue_name` (one of its own where that is empty) once `send` is called.

    `send_epoch_end` changes nothing: an epoch's end needs no word to a device. Raises TypeError for arguments that do not fit.
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
        self._tells_of_data = create_data_info_queue
        self._rows: Any = None
        self._epochs_left = 0
        self._next: Any = None
        self._is_stopped = False
        _queues[self.queue_name] = self

    def send(self, num_epochs: int = -1) -> None:
        """Begins to read: `num_epochs` epochs, or without end for -1. Raises TypeError and ValueError for another number."""
        check_type("send", "num_epochs", num_epochs, int, "an int")
        if num_epochs != -1:
            check_int("send", "num_epochs", num_epochs, 1)
        self.release()
        _queues[self.queue_name] = self
        self._rows, self._epochs_left = self.children[0].create_tuple_iterator(num_epochs=num_epochs), num_epochs
        self._is_stopped = False

    def stop_send(self) -> None:
        """Lets nothing out of the queue until `continue_send`."""
        self._is_stopped = True

    def continue_send(self) -> None:
        """Goes on where `stop_send` stopped."""
        self._is_stopped = False

    def release(self) -> None:
        """Ends the reader and its threads; nothing reads this queue any more."""
        if self._rows is not None:
            self._rows.stop()
        self._rows = self._next = None
        if _queues.get(self.queue_name) is self:
            del _queues[self.queue_name]

    def get_data_info(self) -> tuple[list[Any], list[list[int]]]:
        """The dtypes and shapes of the next row. Raises RuntimeError where `create_data_info_queue` is False."""
        if not self._tells_of_data:
            hint = "device_que(create_data_info_queue=True)"
            raise RuntimeError(message("get_data_info()", "a queue that was made to tell of its data", hint=hint))
        self._next = self.take()
        return [value.dtype for value in self._next], [list(value.shape) for value in self._next]

    def take(self) -> list[Any]:
        """The next row, a list of Tensors. Raises RuntimeError before `send`, after `stop_send` and after the last epoch."""
        if self._rows is None or self._is_stopped:
            what = "continue_send()" if self._is_stopped else "send()"
            raise RuntimeError(message(f"the next row of the data queue {self.queue_name!r}", f"{what} before it: nothing is sent now"))
        if self._next is not None:
            row, self._next = self._next, None
            return row  # type: ignore[no-any-return]
        for _ in range(2):                                       # an epoch may end here; the next one has a row, or there is none at all
            for row in self._rows if self._epochs_left else ():
                return row  # type: ignore[no-any-return]
            self._epochs_left -= self._epochs_left > 0
        given = f"a row of the data queue {self.queue_name!r} after its last"
        raise RuntimeError(message(given, "rows of data", hint="send(num_epochs=-1) begins again after each epoch"))

    def create_dict_iterator(self, *_given: Any, **_named: Any) -> NoReturn:
        """Raises RuntimeError: the rows go to the queue."""
        raise RuntimeError(message("an iterator over a TransferDataset", "the pipeline before device_que: this one's rows go to a queue"))

    create_tuple_iterator = create_dict_iterator


def take(queue_name: str) -> list[Any]:
    """The next row of a queue. Raises ValueError for a name that no queue has, RuntimeError where no row is left or none is sent."""
    if queue_name not in _queues:
        expected = list_choices(sorted(_queues)) if _queues else "the queue_name of a dataset's device_que(), after its send()"
        raise ValueError(message(f"the data queue {short(queue_name)}", expected))
    return _queues[queue_name].take()
