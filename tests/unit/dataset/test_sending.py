"""`device_que` and `ops.GetNext`: a network that takes its rows out of a queue."""
from __future__ import annotations

import threading
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, ops


def rows(count: int = 6) -> Any:
    """Batches of two: numbers and their labels."""
    numbers = np.arange(count, dtype=np.float32)
    return ds.NumpySlicesDataset((numbers, numbers.astype(np.int32) * 10), ["x", "y"], shuffle=False).batch(2)


class Net(nn.Cell):
    """A step that is given nothing."""

    def __init__(self, queue: str) -> None:
        super().__init__()
        self.get_next = ops.GetNext([ms.float32, ms.int32], [[2], [-1]], 2, queue)
        self.weight = ms.Parameter(Tensor(1.0), name="weight")

    def construct(self) -> Any:
        x, y = self.get_next()
        return x * self.weight, y + 1


def test_a_network_takes_rows(mode: int) -> None:
    queue = rows().device_que(queue_name="rows of a test")
    assert isinstance(queue, ds.TransferDataset)
    queue.send(2)
    net = Net(queue.queue_name)
    taken = [net() for _ in range(6)]
    assert [tensor.asnumpy().tolist() for tensor, _ in taken] == [[0, 1], [2, 3], [4, 5]] * 2
    assert [tensor.asnumpy().tolist() for _, tensor in taken] == [[1, 11], [21, 31], [41, 51]] * 2
    with pytest.raises(RuntimeError, match="after its last"):
        net()
    queue.release()
    with pytest.raises(ValueError, match="data queue 'rows of a test'"):
        net()


def test_stopping_and_going_on() -> None:
    queue = rows().device_que(create_data_info_queue=True)
    get_next = ops.GetNext((ms.float32, ms.int32), ((2,), (2,)), 2, queue.queue_name)
    with pytest.raises(RuntimeError, match=r"send\(\)"):
        get_next()
    queue.send()
    assert queue.get_data_info() == ([ms.float32, ms.int32], [[2], [2]])
    assert get_next()[0].asnumpy().tolist() == [0, 1]
    queue.stop_send()
    with pytest.raises(RuntimeError, match=r"continue_send\(\)"):
        get_next()
    queue.continue_send()
    assert get_next()[0].asnumpy().tolist() == [2, 3]
    for value in ([4, 5], [0, 1]):
        assert get_next()[0].asnumpy().tolist() == value, "epochs follow each other without end"
    with pytest.raises(RuntimeError, match="TransferDataset"):
        next(iter(queue))
    queue.release()


def test_the_queue_of_a_helper() -> None:
    helper = ms.DatasetHelper(rows(), dataset_sink_mode=True, epoch_num=2)
    types, shapes = helper.types_shapes()
    data = nn.GetNextSingleOp(types, shapes, helper.iter.dataset.__transfer_dataset__.queue_name)
    assert helper.get_data_info() == (types, [[2], [2]])
    assert [data()[1].asnumpy().tolist() for _ in range(4)] == [[0, 10], [20, 30], [40, 50], [0, 10]]
    helper.release()
    with pytest.raises(ValueError, match="data queue"):
        data()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("torchspore-dataset")] == [], "its reader goes with it"
    assert not hasattr(ms.DatasetHelper(rows(), dataset_sink_mode=False).iter.dataset, "__transfer_dataset__")


@pytest.mark.parametrize("arguments, error, text", [
    (("x", [[2]], 1, "q"), TypeError, "types"), (([ms.float32], 2, 1, "q"), TypeError, "shapes"),
    (([ms.float32], [[2]], 2, "q"), ValueError, "as many of each"), (([ms.float32], [[2]], 1, 5), TypeError, "shared_name"),
    (([ms.float32], [[2.5]], 1, "q"), TypeError, "lists of ints"), (([ms.float32], [2], 1, "q"), TypeError, "lists of ints"),
])
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ops.GetNext(*arguments)


def test_a_row_of_another_kind() -> None:
    queue = rows().device_que()
    queue.send()
    for types, shapes in (([ms.float32, ms.float32], [[2], [2]]), ([ms.float32, ms.int32], [[2], [3]]), ([ms.float32], [[2]])):
        with pytest.raises(ValueError, match="a row of Float32"):
            ops.GetNext(types, shapes, len(types), queue.queue_name)()
    queue.release()
    with pytest.raises(ValueError, match="num_epochs"):
        rows().device_que().send(0)
