"""`DatasetHelper` for programs with a custom `ModelThor`."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_type
from torchspore.mindspore.train import dataset_helper


class DatasetHelper(dataset_helper.DatasetHelper):
    """`mindspore.train.DatasetHelper` whose loops may have steps of two kinds.

    `iter_first_order`, the number of first-order steps after a second-order one, changes nothing: a device with a data queue sends the
    batches of both at once; here each step receives its batch. Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(
        self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1, iter_first_order: int = 1,
    ) -> None:
        check_type("DatasetHelper", "iter_first_order", iter_first_order, int, "an int")
        super().__init__(dataset, dataset_sink_mode, sink_size, epoch_num)
