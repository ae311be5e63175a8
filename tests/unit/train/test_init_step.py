"""`set_init_step`: training goes on in the middle of the data, with the rows that would have come."""
from __future__ import annotations

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn
from mindspore.train import Callback, Model, _utils


class Rows(Callback):
    def __init__(self):
        self.rows = []

    def on_train_step_end(self, run_context):
        state = run_context.original_args()
        self.rows.append((state.cur_epoch_num, int(state.net_outputs.asnumpy())))


class Identity(nn.Cell):
    def construct(self, x):
        return x * 1


def data(init_step: int = 0, **kwargs):
    dataset = ds.NumpySlicesDataset(np.arange(6).astype(np.int32), shuffle=kwargs.pop("shuffle", True))
    dataset.set_init_step(init_step)
    return dataset


@pytest.fixture(autouse=True)
def seed():
    before = ds.config.get_seed()
    ds.config.set_seed(0)
    yield
    ds.config.set_seed(before)


@pytest.mark.parametrize("skipped", [0, 6, 8])
@pytest.mark.parametrize("sink", [False, True])
def test_training_goes_on_with_the_rows_that_would_have_come(skipped: int, sink: bool) -> None:
    all_rows, rest = Rows(), Rows()
    Model(Identity()).train(3, data(), callbacks=all_rows, dataset_sink_mode=sink)
    Model(Identity()).train(3, data(skipped), callbacks=rest, dataset_sink_mode=sink, initial_epoch=skipped // 6)
    assert rest.rows == all_rows.rows[skipped:]


def test_an_iterator_counts_the_epochs_that_were_skipped() -> None:
    rows = data(8, shuffle=False).create_tuple_iterator(num_epochs=3, output_numpy=True)
    assert [[int(row[0]) for row in rows] for _ in range(2)] == [[2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    with pytest.raises(RuntimeError, match="stop"):
        next(rows)


def test_what_is_no_count_is_refused() -> None:
    with pytest.raises(TypeError, match=r"set_init_step\(init_step=1.5\)"):
        data(1.5)
    with pytest.raises(ValueError, match="an int from 0"):
        data(-1)


def test_fit_prints_its_metrics_after_the_losses(capsys) -> None:
    from mindspore.train import LossMonitor

    rows = ds.NumpySlicesDataset((np.zeros((4, 1), np.float32), np.full((4, 1), 3.0, np.float32)), shuffle=False).batch(2)
    net = nn.Dense(1, 1, has_bias=False)
    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"mse", "mae"})
    model.fit(1, rows, rows, callbacks=[LossMonitor(2)])
    first, last = capsys.readouterr().out.splitlines()
    assert first == "epoch: 1 step: 2, loss is 9.0" and last.startswith("Eval result: epoch 1, metrics: ")


def test_the_helpers_of_training() -> None:
    tensors = _utils._construct_tensor_list((ms.float32, ms.int32), ((2, 3), (4,)), 2)
    assert [(t.shape, t.dtype) for t in tensors] == [((4, 3), ms.float32), ((8,), ms.int32)]
    with pytest.raises(ValueError, match="as many shapes as dtypes"):
        _utils._construct_tensor_list((ms.float32,), ())
    assert [len(part) for part in _utils._construct_input_tensors((ms.float32,), ((2,),), 3)] == [1, 1]
    rows = ds.NumpySlicesDataset((np.ones((8, 2), np.float32), np.ones(8, np.int32))).batch(4)
    assert _utils._get_types_and_shapes(rows) == ([ms.float32, ms.int32], [[4, 2], [4]])
    array, sens = _utils._to_tensor([np.ones(2, np.float32)], 2.0)
    assert array.shape == (2,) and float(sens) == 2.0
    with pytest.raises(TypeError, match="int or float, got str"):
        _utils.check_value_type("rate", "a", [int, float])


def test_a_folder_is_created(tmp_path) -> None:
    path = _utils._make_directory(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir() and path.endswith("b")
    with pytest.raises(TypeError, match="the path of a folder"):
        _utils._make_directory(3)
