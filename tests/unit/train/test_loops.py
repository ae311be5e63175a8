"""Loops of one's own, loss scales, mixed precision, an interrupted training."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn, train

X = np.random.RandomState(0).randn(8, 2).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0]], np.float32)).astype(np.float32)


def batches() -> ds.Dataset:
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(4)


def parts() -> tuple[nn.Cell, nn.Cell]:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    return net, nn.WithLossCell(net, nn.MSELoss())


def test_a_loop_over_a_dataset_helper(mode: int) -> None:
    net, with_loss = parts()
    step = nn.TrainOneStepCell(with_loss, nn.SGD(net.trainable_params(), 0.1))
    helper = train.DatasetHelper(batches(), dataset_sink_mode=False, epoch_num=3)
    connected = train.connect_network_with_dataset(step, helper)
    losses = [float(connected(*batch).asnumpy()) for _ in range(3) for batch in helper]
    assert len(losses) == 6 and losses[-1] < losses[0] / 2
    assert helper.sink_size() == 2 and helper.types_shapes()[1] == [[4, 2], [4, 1]]


def test_data_sink_goes_round() -> None:
    seen: list[float] = []
    run = train.data_sink(lambda x, y: seen.append(float(x.sum().asnumpy())) or len(seen), batches(), sink_size=3)
    assert [run(), run()] == [3, 6] and seen[0] == seen[2] == seen[4]


def test_gradients_are_returned(mode: int) -> None:
    net, with_loss = parts()
    step = nn.TrainOneStepCell(with_loss, nn.SGD(net.trainable_params(), 0.0), return_grad=True)
    loss, grads = step(ms.Tensor(X), ms.Tensor(Y))
    assert sorted(grads) == ["bias", "weight"]
    expected = 2 * ((X.sum(1, keepdims=True) - Y) * X).mean(0)
    assert np.allclose(grads["weight"].asnumpy()[0], expected, rtol=1e-5)
    value, forward = nn.ForwardValueAndGrad(with_loss, net.trainable_params(), get_by_list=True)(ms.Tensor(X), ms.Tensor(Y))
    assert np.allclose(value.asnumpy(), loss.asnumpy()) and np.allclose(forward[0].asnumpy(), grads["weight"].asnumpy())


def test_a_step_that_overflows_changes_nothing(mode: int) -> None:
    net, with_loss = parts()
    manager = nn.DynamicLossScaleUpdateCell(8.0, 2, 2)
    step = nn.TrainOneStepWithLossScaleCell(with_loss, nn.SGD(net.trainable_params(), 0.1), manager)
    bad = X.copy()
    bad[0, 0] = np.inf
    before = net.weight.asnumpy().copy()
    _, overflow, scale = step(ms.Tensor(bad), ms.Tensor(Y))
    assert bool(overflow.asnumpy()) and float(scale.asnumpy()) == 4.0 and np.array_equal(net.weight.asnumpy(), before)
    scales = []
    for _ in range(4):
        _, overflow, scale = step(ms.Tensor(X), ms.Tensor(Y))
        scales.append(float(scale.asnumpy()))
        assert not bool(overflow.asnumpy())
    assert scales == [4.0, 8.0, 8.0, 16.0] and not np.array_equal(net.weight.asnumpy(), before)


def test_a_fixed_scale_changes_no_number(mode: int) -> None:
    results = []
    for scale in (None, 64.0):
        net, with_loss = parts()
        optimizer = nn.SGD(net.trainable_params(), 0.1, loss_scale=scale or 1.0)
        step = nn.TrainOneStepCell(with_loss, optimizer, sens=scale)
        results.append([float(step(ms.Tensor(X), ms.Tensor(Y)).asnumpy()) for _ in range(3)])
    assert np.allclose(results[0], results[1], rtol=1e-5)
    cell = nn.FixedLossScaleUpdateCell(4.0)
    assert cell.get_loss_scale() == 4.0
    assert isinstance(train.DynamicLossScaleManager(), train.LossScaleManager) and isinstance(
        train.FixedLossScaleManager(), train.LossScaleManager
    )


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_mixed_precision_trains(level: str) -> None:
    net = nn.SequentialCell(nn.Dense(2, 4), nn.BatchNorm1d(4), nn.Dense(4, 1))
    step = train.build_train_network(net, nn.SGD(net.trainable_params(), 0.05), nn.MSELoss(), level, loss_scale_manager=None)
    losses = [float(step(ms.Tensor(X), ms.Tensor(Y)).asnumpy()) for _ in range(12)]
    assert losses[-1] < losses[0] and net[0].weight.dtype == ms.float32
    assert net(ms.Tensor(X)).dtype == ms.float16


def test_build_captures_the_first_step(mode: int) -> None:
    net, _ = parts()
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"mae", "mse"})
    before = net.weight.asnumpy().copy()
    model.build(batches(), batches())
    assert np.array_equal(net.weight.asnumpy(), before)
    model.train(1, batches())
    assert set(model.eval(batches())) == {"mae", "mse"}
    assert set(train.metrics.get_metrics({"mae": train.MAE()})) == {"mae"}


def test_parameter_update() -> None:
    weight = ms.Parameter(ms.Tensor([1.0]), name="w")
    nn.ParameterUpdate(weight)(ms.Tensor([3.0]))
    assert weight.asnumpy().tolist() == [3.0]


def test_saving_by_time_and_functions(tmp_path: Path) -> None:
    net, _ = parts()
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    config = train.CheckpointConfig(0, 3600, 0, 5, saved_network=net)
    saver = train.ModelCheckpoint(lambda state: f"run{state.batch_num}", lambda state: str(tmp_path / "made"), config)
    model.train(2, batches(), [saver])
    assert os.listdir(tmp_path / "made") == ["run2-2_2.ckpt"]
    assert set(ms.load_checkpoint(saver.latest_ckpt_file_name)) == {"weight", "bias"}


def test_a_broken_training_is_saved_on_request(tmp_path: Path) -> None:
    class Break(train.Callback):
        def on_train_step_end(self, run_context: train.RunContext) -> None:
            if run_context.original_args().cur_step_num == 3:
                raise KeyboardInterrupt

    net, _ = parts()
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    saver = train.ModelCheckpoint("net", str(tmp_path), train.CheckpointConfig(100, exception_save=True))
    with pytest.raises(KeyboardInterrupt):
        model.train(2, batches(), [saver, Break()])
    assert os.listdir(tmp_path) == ["net_breakpoint-2_1.ckpt"]


PROGRAM = """
import time
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.train import Callback, CheckpointConfig, Model, ModelCheckpoint

class Slow(Callback):
    def on_train_step_end(self, run_context):
        print("step", flush=True)

def rows():
    while True:
        time.sleep(0.01)
        yield np.ones(2, np.float32), np.ones(1, np.float32)

net = nn.Dense(2, 1)
data = ds.GeneratorDataset(rows, ["x", "y"], num_samples=100000)
data.get_dataset_size = lambda: 1000
batches = data.batch(2)
batches.get_dataset_size = lambda: 1000
saver = ModelCheckpoint("net", ".", CheckpointConfig(1, keep_checkpoint_max=2))
Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(100, batches, [saver, Slow()])
"""


@pytest.mark.slow
@pytest.mark.sample
def test_interrupted_by_the_keyboard(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-m", "torchspore", "train.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(5):
        assert process.stdout.readline() == "step\n"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - start < 5
    assert process.returncode in (130, -signal.SIGINT), errors
    files = sorted(os.listdir(tmp_path))
    assert [name for name in files if name.endswith(".tmp")] == []
    names = [name for name in files if name.endswith(".ckpt")]
    assert 1 <= len(names) <= 3
    for name in names:
        assert set(ms.load_checkpoint(str(tmp_path / name))) >= {"weight", "bias"}


def test_files_go_to_the_folder_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net, _ = parts()
    train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, batches(), [train.ModelCheckpoint()])
    assert sorted(os.listdir(tmp_path)) == ["CKP-1_1.ckpt", "CKP-1_2.ckpt"]


def test_a_lambda_callback_hears_of_evaluations_in_fit() -> None:
    heard: list[str] = []
    net, _ = parts()
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"mae"})
    listener = train.LambdaCallback(
        on_eval_begin=lambda _: heard.append("begins"), on_eval_end=lambda _: heard.append("ends"),
        on_train_epoch_end=lambda _: heard.append("epoch"),
    )
    model.fit(2, batches(), batches(), callbacks=listener, dataset_sink_mode=False)
    assert heard == ["begins", "ends", "epoch"] * 2
