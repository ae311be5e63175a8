"""`device_num` in a program that runs as one process: the process stands for all devices."""
from __future__ import annotations

import weakref
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Parameter, Tensor, nn, ops
from mindspore.nn.wrap.cell_wrapper import _VirtualDatasetCell

from torchspore.distributed.shard import execution, simulation
from torchspore.errors import StrategyRefused

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
    ms.set_auto_parallel_context(**{"parallel_mode": "semi_auto_parallel", "device_num": 8, **options})


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


@pytest.mark.parametrize("is_simulated", [False, True])
def test_a_call_that_needs_more_memory_than_the_machine_has_is_refused(is_simulated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_simulated:
        monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    monkeypatch.setattr(execution, "total_memory", lambda: 1000)
    _set(dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match=r"8 devices in one process, which needs about 0\.0 GB: expected at most the 0\.0 GB"):
        _Net()(Tensor(X))


def test_values_without_later_readers_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    _set(dataset_strategy="full_batch", device_num=2)
    alive: list[weakref.ref[torch.Tensor]] = []
    most = [0]
    original = simulation._everywhere

    def run_and_count(*arguments: Any) -> list[Any]:
        results = original(*arguments)
        alive.extend(weakref.ref(result) for result in results if isinstance(result, torch.Tensor))
        most[0] = max(most[0], sum(ref() is not None for ref in alive))
        return results

    monkeypatch.setattr(simulation, "_everywhere", run_and_count)
    net = nn.SequentialCell([nn.ReLU() if number % 2 else nn.Sigmoid() for number in range(20)])
    net(Tensor(X))
    assert len(alive) == 40 and most[0] <= 4


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
