"""Callbacks that keep a training's state and end it at request, and the one that counts operations."""
from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, train


class At(train.Callback):  # type: ignore[misc]
    """Calls a function after the step `step`, and counts steps."""

    def __init__(self, step: int, act: Callable[[], Any]) -> None:
        self.step, self.act, self.seen = step, act, 0

    def on_train_step_end(self, run_context: Any) -> None:
        self.seen += 1
        if self.seen == self.step:
            self.act()


def trained(epochs: int, *callbacks: Any) -> Any:
    """A Dense(3, 2) of zeros trained in epochs of four steps."""
    data = ms.dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), shuffle=False).batch(2)
    net = nn.Dense(3, 2, weight_init="zeros", bias_init="zeros")
    train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(epochs, data, callbacks=list(callbacks))
    return net


@pytest.mark.parametrize("way", ["signal", "file"])
def test_a_training_ends_on_request(mode: int, way: str, tmp_path: Path) -> None:
    stop_file, before = tmp_path / "asked.json", signal.getsignal(signal.SIGTERM)
    acts = {"signal": lambda: os.kill(os.getpid(), signal.SIGTERM), "file": lambda: stop_file.write_text(json.dumps({"GracefulExit": 1}))}
    stop_file.write_text("{")                                                       # half written
    watch = At(5, acts[way])
    net = trained(3, watch, train.OnRequestExit(file_name="Net", directory=str(tmp_path), config_file=str(stop_file)))
    assert watch.seen == 5 and signal.getsignal(signal.SIGTERM) is before
    checkpoint = ms.load_checkpoint(str(tmp_path / "rank_0" / "Net_train.ckpt"))
    np.testing.assert_array_equal(checkpoint["weight"].asnumpy(), net.weight.asnumpy())
    assert (tmp_path / "rank_0" / "Net_train.mindir").stat().st_size > 0


def test_nothing_is_saved_without_a_request(tmp_path: Path) -> None:
    trained(1, train.OnRequestExit(directory=str(tmp_path), save_mindir=False))
    assert not list(tmp_path.glob("**/*.ckpt"))


def test_a_broken_training_goes_on(tmp_path: Path) -> None:
    def fail() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        trained(3, At(6, fail), train.BackupAndRestore(str(tmp_path)))
    assert (tmp_path / "backup.ckpt").exists()
    net = trained(1, train.BackupAndRestore(str(tmp_path)))
    np.testing.assert_allclose(net.weight.asnumpy(), trained(2).weight.asnumpy(), rtol=1e-6)     # one epoch was there
    assert not (tmp_path / "backup.ckpt").exists()
    trained(3, train.BackupAndRestore(str(tmp_path), 2, delete_checkpoint=False))
    backup = ms.load_checkpoint(str(tmp_path / "backup.ckpt"))["weight"]
    np.testing.assert_allclose(backup.asnumpy(), trained(2).weight.asnumpy(), rtol=1e-6)


def test_operations_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A product of (2, 3) and (3, 2) is 24 operations; the weight's gradient is another, the input has none."""
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        trained(2, train.FlopsUtilizationCollector(4, computility=1e7))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Full model flops is 48.0, Full hardware flops is 48.0, Shard model")
    assert sum(line.startswith("Train per step time: ") for line in lines) == 2


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: train.OnRequestExit(save_ckpt=3), ValueError), (lambda: train.OnRequestExit(sig=99), ValueError),
    (lambda: train.OnRequestExit(directory=3), TypeError), (lambda: train.BackupAndRestore(3), TypeError),
    (lambda: train.BackupAndRestore("x", 0), ValueError), (lambda: train.BackupAndRestore("x", "y"), TypeError),
    (lambda: train.BackupAndRestore("x", delete_checkpoint=3), TypeError), (lambda: train.FlopsUtilizationCollector(0), ValueError),
    (lambda: train.FlopsUtilizationCollector(1.5), TypeError), (lambda: train.FlopsUtilizationCollector(1, full_flops=3), TypeError),
    (lambda: trained(1, train.FlopsUtilizationCollector(4)), ValueError),
])
def test_what_does_not_fit(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()
