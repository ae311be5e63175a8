"""`device_num` in a program that runs as one process: the process stands for all devices."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.nn.wrap.cell_wrapper import _VirtualDatasetCell

X = np.random.default_rng(1).random((4, 8)).astype(np.float32)
W = np.random.default_rng(2).random((8, 8)).astype(np.float32)


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(W), name="weight")
        self.product = ops.MatMul().shard(((2, 1), (1, 4)))

    def construct(self, x: Tensor) -> Tensor:
        return self.product(x, self.weight)


def _set(**options: object) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, **options)


@pytest.mark.filterwarnings("ignore:device_num=")
def test_a_full_batch_gives_the_result_of_one_device() -> None:
    _set(dataset_strategy="full_batch")
    assert np.allclose(_Net()(Tensor(X)).asnumpy(), X @ W, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:device_num=")
def test_each_device_has_the_batch_that_is_given() -> None:
    _set()
    result = _Net()(Tensor(X))
    assert result.shape == (32, 8)
    assert np.allclose(result.asnumpy(), np.tile(X @ W, (8, 1)), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:device_num=")
def test_a_dataset_strategy_says_how_many_parts_there_are() -> None:
    _set(dataset_strategy=((2, 1),))
    assert _Net()(Tensor(X)).shape == (8, 8)


@pytest.mark.filterwarnings("ignore:device_num=")
def test_a_training_step_gives_the_weights_of_one_device() -> None:
    def trained() -> np.ndarray:
        net = _Net()
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
        step(Tensor(X), Tensor(np.zeros((4, 8), np.float32)))
        return net.weight.asnumpy()

    alone = trained()
    _set(gradients_mean=False)
    assert np.allclose(trained(), alone, rtol=1e-5)


def test_it_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.distributed.shard import execution

    monkeypatch.setattr(execution, "_WARNED", set())
    _set(dataset_strategy="full_batch")
    net = _Net()
    with pytest.warns(UserWarning) as warned:
        net(Tensor(X))
        net(Tensor(X))
    assert [str(w.message) for w in warned if "device_num" in str(w.message)] == [
        "device_num=8 in one process: this process computes for all 8 devices, one after the other.\n\nhint: torchspore workers -n 8 SCRIPT"
    ]


def test_a_simulation_level_still_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.errors import StrategyRefused

    monkeypatch.setenv("MS_SIMULATION_LEVEL", "0")
    monkeypatch.setenv("RANK_SIZE", "8")
    _set(dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match="a call for 8 devices in one process: expected 8 processes, or one that simulates them"):
        _Net()(Tensor(X))


@pytest.mark.filterwarnings("ignore:device_num=")
def test_the_virtual_dataset_is_a_primitive() -> None:
    _set(dataset_strategy="full_batch")
    net = _VirtualDatasetCell(_Net())
    net._virtual_dataset.add_prim_attr("repeat_dim_direct", "right")
    assert np.allclose(net(Tensor(X)).asnumpy(), X @ W, rtol=1e-5)
