"""Lengths of gradients of each device, before they are summed: on the screen, in files, and added up."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops import operations as P
from mindspore.parallel import AutoParallel

X = np.arange(8, dtype=np.float32).reshape(4, 2)


class Net(nn.Cell):
    """A product whose batch is cut in two: each device has half of the rows, and all of the weight."""

    def __init__(self) -> None:
        super().__init__()
        self.product = P.MatMul().shard(((2, 1), (1, 1)))
        self.w = Parameter(Tensor(np.ones((2, 3), np.float32)), "w")

    def construct(self, x: Any) -> Any:
        return ops.reduce_sum(self.product(x, self.w))


def gradient_norm(rank: int) -> float:
    """The length of the gradient of one device's rows."""
    rows = X[2 * rank:2 * rank + 2]
    return float(np.sqrt(((rows.T @ np.ones((2, 3))) ** 2).sum()))


def trained(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Net:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", **options)
    net = Net()
    nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(Tensor(X))
    return net


@pytest.mark.parametrize("mean", [False, True])
def test_on_the_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mean: bool) -> None:
    net = trained(monkeypatch, dump_local_norm=True, gradients_mean=mean)
    result = re.findall(r"dump local norm \(rank (\d)\): \nw\n([\d.]+)\n", capsys.readouterr().out)
    assert [int(rank) for rank, _ in result] == [0, 1]
    assert [float(length) for _, length in result] == pytest.approx([gradient_norm(0), gradient_norm(1)], rel=1e-6)
    step = X.sum(0)[:, None] * 0.1 / (2 if mean else 1)
    np.testing.assert_allclose(net.w.asnumpy(), 1 - np.repeat(step, 3, 1), rtol=1e-6)


def test_in_files(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trained(monkeypatch, dump_local_norm=True, dump_local_norm_path=str(tmp_path))
    assert "norm" not in capsys.readouterr().out
    for rank in range(2):
        (path,) = (tmp_path / f"rank_{rank}").glob("local_norm__w_float32_*.npy")
        assert np.load(path) == pytest.approx(gradient_norm(rank), rel=1e-6)


def test_of_the_device_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore.ops._grad_experimental.grad_comm_ops import get_squared_device_local_norm_param

    with pytest.raises(ValueError, match=re.escape("expected set_auto_parallel_context(dump_device_local_norm=True) before it.")):
        get_squared_device_local_norm_param()
    ms.set_auto_parallel_context(dump_device_local_norm=True)
    total = get_squared_device_local_norm_param()
    ops.assign(total, Tensor(0.0))
    trained(monkeypatch, dump_device_local_norm=True)
    assert float(total) == pytest.approx(gradient_norm(0) ** 2, rel=1e-6) and total is get_squared_device_local_norm_param()


def test_autoparallel_asks_for_them(tmp_path: Path) -> None:
    net = AutoParallel(Net())
    net.dump_local_norm(str(tmp_path))
    net.enable_device_local_norm()
    assert net._context() == {
        "parallel_mode": "semi_auto_parallel", "dump_local_norm": True, "dump_local_norm_path": str(tmp_path),
        "dump_device_local_norm": True,
    }


def test_a_changed_context_makes_a_new_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Net()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 1.0))
    step(Tensor(X))
    before = net.w.asnumpy().copy()
    ms.set_auto_parallel_context(gradients_mean=True)
    step(Tensor(X))
    np.testing.assert_allclose(before - net.w.asnumpy(), np.repeat(X.sum(0)[:, None] / 2, 3, 1), rtol=1e-6)
