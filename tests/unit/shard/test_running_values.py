"""Running values of a batch normalisation lie as its strategy says, and are those of one device."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

X = np.random.RandomState(3).rand(4, 8, 4, 4).astype(np.float32)


class Net(nn.Cell):
    """One normalisation; with a strategy its batch and channels are cut."""

    def __init__(self, batch: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(8)
        self.norm.bn_train.shard(((batch, channels, 1, 1), *[(channels,)] * 4))

    def construct(self, x: Any) -> Any:
        return (self.norm(x) * x).sum()


def trained(net: Net) -> dict[str, np.ndarray]:
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    for at in range(3):
        step(Tensor(X + at))
    net.layouts = step.parameter_layout_dict
    return {name: value.asnumpy() for name, value in net.parameters_dict().items()}


@pytest.mark.parametrize(("batch", "channels"), [(2, 4), (4, 2), (1, 8), (2, 2), (4, 1)])
def test_running_values_are_sharded_as_the_strategy_says(monkeypatch: pytest.MonkeyPatch, batch: int, channels: int) -> None:
    expected = trained(Net(batch, channels))
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Net(batch, channels)
    result = trained(net)
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
        assert net.layouts[name][2] == [8 // channels], (name, net.layouts[name])


def test_channels_that_are_cut_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.distributed.shard import collective_nodes
    from torchspore.graph import dispatch

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Net(2, 4).set_train()
    net(Tensor(X))
    sent = [node for node in dispatch.graphs(net)[0].split.local.module.graph.nodes if node.target in collective_nodes.SENDING]
    assert {node.target for node in sent} == {collective_nodes.all_reduce} and all(node.meta["val"].numel() <= 2 for node in sent)
