"""`MapParameter`: rows of values under integer keys."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.experimental import MapParameter
from mindspore.ops.operations import _map_tensor_ops as primitives


def keys(*values: int) -> Tensor:
    return Tensor(np.array(values, np.int32))


def rows(*values: Any) -> Tensor:
    return Tensor(np.array(values, np.float32))


def refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_rows_come_go_and_change() -> None:
    table = MapParameter(key_dtype=ms.int32, value_dtype=ms.float32, value_shape=2, default_value="zeros", name="table")
    assert table.get(keys(1, 2, 3)).asnumpy().tolist() == [[0, 0]] * 3
    table.put(keys(1, 2), rows([1, 1], [2, 2]))
    assert table[keys(3, 2, 1)].asnumpy().tolist() == [[0, 0], [2, 2], [1, 1]]
    table[keys(5, 5)] = rows([1, 2], [3, 4])
    table.erase(keys(2, 3, 99))
    result, values = table.get_data()
    assert (result.asnumpy().tolist(), values.asnumpy().tolist()) == ([1, 5], [[1, 1], [3, 4]])
    assert table.get(keys(8), False).asnumpy().tolist() == [[0, 0]] and table.get_keys().shape == (2,)
    assert table.get(Tensor(np.array([[1], [5]], np.int32))).shape == (2, 1, 2) and "value_shape=[2], default_value=zeros" in str(table)


def test_what_it_begins_with() -> None:
    table = MapParameter(key_tensor=keys(5, 6), value_tensor=rows([1, 2], [3, 4]), default_value=0.5, name="table")
    assert table.get(keys(6, 7)).asnumpy().tolist() == [[3, 4], [0.5, 0.5]]
    assert (table.key_dtype, table.value_dtype, table.value_shape) == (ms.int32, ms.float32, (2,))
    other = table.clone("ones")
    assert other.get(keys(5)).asnumpy().tolist() == [[1, 1]] and other.name == "table"


def test_what_goes_out_comes_in() -> None:
    table = MapParameter(key_tensor=keys(5, 6), value_tensor=rows([1, 2], [3, 4]), name="table")
    assert [part.tolist() for part in table.export_data()] == [[5, 6], [[1, 2], [3, 4]], [0, 0]]
    table.put(keys(7), rows([5, 6]))
    table.erase(keys(5))
    changes = table.export_data(incremental=True)
    assert [part.tolist() for part in changes] == [[7, 5], [[5, 6]], [1, 2]]
    assert [part.size for part in table.export_data(incremental=True)] == [0, 0, 0]
    other = MapParameter(key_tensor=keys(5, 6), value_tensor=rows([1, 2], [3, 4]), name="other")
    other.import_data(changes)
    assert other.get_keys().asnumpy().tolist() == [6, 7]
    assert other.export_bytes()[0] == np.array([6, 7], np.int32).tobytes() and other.export_slice_data()[-1] is True


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_rows_are_trained(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.table = MapParameter(key_dtype=ms.int32, value_shape=(2,), default_value="ones", name="table")

        def construct(self, ids: Tensor) -> Tensor:
            return (self.table.get(ids) * 2).sum()

    ms.set_context(mode=mode)
    net = Net()
    assert float(net(keys(4, 9, 4))) == 12
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    step = ms.value_and_grad(net, None, optimizer.parameters)
    for _ in range(2):
        _, gradients = step(keys(4, 9, 4))
        optimizer(gradients)
    np.testing.assert_allclose(net.table.get_values().asnumpy(), [[0.2, 0.2], [0.6, 0.6]], rtol=1e-5)
    refused(lambda: step(keys(77)), RuntimeError, (
        "MapParameter 'table': the keys [77] are first requested while a gradient is computed, when the rows cannot grow."
        "\n\nhint: write table.get(keys) before."
    ))


def test_a_key_may_have_to_be_asked_for_several_times() -> None:
    table = MapParameter(key_dtype=ms.int32, value_shape=2, default_value=1.0, permit_filter_value=2)
    assert [(table.get(keys(3)).asnumpy().tolist(), table.get_keys().shape) for _ in range(2)] == [([[1, 1]], (0,)), ([[1, 1]], (1,))]


def test_its_primitives() -> None:
    table = MapParameter(key_dtype=ms.int32, value_shape=1, default_value="zeros")
    primitives.MapTensorPut()(table, keys(1, 2), rows([1], [2]))
    primitives.MapTensorErase()(table, keys(1))
    assert primitives.MapTensorGet(True)(table, keys(2)).asnumpy().tolist() == [[2]]
    assert primitives.MapTensorGetKeys()(table).asnumpy().tolist() == [2]
    assert primitives.MapTensorGetValues()(table).asnumpy().tolist() == [[2]] and len(primitives.MapTensorGetData()(table)) == 2


def test_what_it_refuses(tmp_path: Path) -> None:
    table = MapParameter(key_dtype=ms.int32, value_shape=2, name="table")
    refused(lambda: table.get(Tensor([1.0])), TypeError, "MapParameter: expected keys in a Tensor of Int32, got Float32.")
    refused(lambda: table.put(keys(1), rows([1])), ValueError, "MapParameter.put: expected values of shape (1, 2), got (1, 1).")
    refused(lambda: MapParameter(key_dtype=ms.int64, key_tensor=keys(1)), ValueError,
            "MapParameter(key_dtype=Int64): expected Int32, as the Tensor has it.")
    refused(lambda: MapParameter(key_tensor=keys(1), value_tensor=rows([1], [2])), ValueError,
            "MapParameter: expected a value for each of the 1 keys, got values of shape (2, 1).")
    refused(lambda: primitives.MapTensorGetKeys()("table"), TypeError, "expected a MapParameter, got str.")
    refused(lambda: MapParameter(key_dtype=ms.float32), TypeError, "MapParameter(key_dtype=Float32): expected a signed integer dtype.")
    refused(lambda: MapParameter(evict_filter_value=3), ValueError,
            "MapParameter(evict_filter_value=3): expected 9223372036854775807: no key is evicted here.")
    refused(lambda: ms.save_checkpoint({"table": table}, str(tmp_path / "net.ckpt")), TypeError, (
        "save_checkpoint of the MapParameter 'table': expected Tensors: a checkpoint cannot store its keys."
        "\n\nhint: write choice_func=... to leave it out, and save table.export_data() separately."
    ))
