"""A dataset's batches for custom training loops."""
from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from torchspore.base.arguments import check_bool, check_int, check_type
from torchspore.base.text import message, short
from torchspore.engine.tensors import torch_interop
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train.plain_datasets import batches_of, check_dataset


class DatasetHelper:
    """Iterates over a dataset's batches, one epoch for each loop over it.

    `dataset_sink_mode` changes nothing on a device without a data queue: each step receives its batch. Raises TypeError and ValueError for
    invalid arguments.
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        dataset = torch_interop.converted_data(dataset)
        check_dataset("DatasetHelper", "dataset", dataset)
        check_bool("DatasetHelper", "dataset_sink_mode", dataset_sink_mode)
        check_type("DatasetHelper", "sink_size", sink_size, int, "an int")
        if sink_size < -1 or sink_size == 0:
            raise ValueError(message(f"DatasetHelper(sink_size={sink_size})", "-1 or an int from 1"))
        check_type("DatasetHelper", "epoch_num", epoch_num, int, "an int")
        self._dataset, self._sink_size = dataset, sink_size
        self._epochs, self._sinks = epoch_num if epoch_num > 0 else -1, dataset_sink_mode
        self._batches = batches_of(dataset, self._epochs)

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self._batches, 1):
            yield tuple(batch)
            if number == self._sink_size:
                return

    @property
    def iter(self) -> SimpleNamespace:
        """The dataset is its `dataset`; in sink mode its queue's name is that of `dataset.__transfer_dataset__`."""
        if self._sinks and not hasattr(self._dataset, "__transfer_dataset__"):
            self._dataset.__transfer_dataset__ = self._dataset.device_que(create_data_info_queue=True)
            self._dataset.__transfer_dataset__.send(self._epochs)
        return SimpleNamespace(dataset=self._dataset)

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """Returns the dtypes and shapes of a batch."""
        from torchspore.mindspore.common.tensor import Tensor

        row = next(iter(batches_of(self._dataset, 1)))
        return [value.dtype for value in row if isinstance(value, Tensor)], [list(value.shape) for value in row]

    def sink_size(self) -> int:
        """Returns the number of steps of one loop."""
        return self._sink_size if self._sink_size > 0 else self._dataset.get_dataset_size()

    def get_data_info(self) -> tuple[list[Any], list[list[int]]]:
        """Returns the dtypes and shapes of the next batch. Raises RuntimeError after the last one."""
        return self.iter.dataset.__transfer_dataset__.get_data_info() if self._sinks else self.types_shapes()

    def stop_send(self) -> None:
        """Ends the data's threads, including those of its queue."""
        self._batches.stop()
        if hasattr(self._dataset, "__transfer_dataset__"):
            self._dataset.__transfer_dataset__.release()
            del self._dataset.__transfer_dataset__

    release = stop_send

    def continue_send(self) -> None:
        """Does nothing: the next loop continues by itself."""


def connect_network_with_dataset(network: Cell, dataset_helper: DatasetHelper) -> Cell:
    """Returns the network, for `for batch in dataset_helper: network(*batch)`: the device has no data queue to connect."""
    check_type("connect_network_with_dataset", "network", network, Cell, "a Cell")
    check_type("connect_network_with_dataset", "dataset_helper", dataset_helper, DatasetHelper, "a DatasetHelper")
    return network


def data_sink(fn: Any, dataset: Any, sink_size: int = 1, jit_config: Any = None, input_signature: Any = None) -> Any:
    """Returns a function that runs `fn` on the next `sink_size` batches of `dataset`, restarting it at its end, and returns the last
    result.
    """
    if not callable(fn):
        raise TypeError(message(f"data_sink({short(fn)}, ...)", f"a function, got {type(fn).__name__}"))
    dataset = torch_interop.converted_data(dataset)
    check_dataset("data_sink", "dataset", dataset)
    check_int("data_sink", "sink_size", sink_size, 1)
    if jit_config is not None:
        from torchspore.mindspore.common.api import jit

        fn = jit(fn, jit_config=jit_config)
    batches = batches_of(dataset, -1)

    def next_batch() -> Any:
        for _ in range(2):
            for batch in batches:
                return batch
        raise ValueError(message("data_sink", "a dataset with at least one batch"))

    def run() -> Any:
        result = None
        for _ in range(sink_size):
            result = fn(*next_batch())
        return result

    return run
