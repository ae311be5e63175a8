"""`optimizer_level` in semi_auto: how often a weight is gathered, and that a plan counts what runs."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

from torchspore.context.plan_request import Machine
from torchspore.distributed.shard import cost_estimate
from torchspore.distributed.shard.rank_binding import bound
from torchspore.graph import dispatch
from torchspore.graph.passes.regather import regather_weights

KINDS = {"all_gather": "all_gather_into_tensor", "reduce_scatter": "reduce_scatter_tensor", "all_reduce": "all_reduce"}


def stepped(level: str) -> tuple[float, Any]:
    """The loss of the second step of four Dense layers without a bias, and the split graph."""
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", gradients_mean=True, enable_parallel_optimizer=True,
        parallel_optimizer_config={"optimizer_level": level, "parallel_optimizer_threshold": 0},
    )
    ms.set_seed(1)
    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(8, 8, has_bias=False), nn.ReLU()]) for _ in range(4)])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3)).set_train()
    x = ms.Tensor(np.ones((4, 8), np.float32))
    step(x, x)
    loss = float(step(x, x))
    split = dispatch.graphs(step)[0].split
    ms.reset_auto_parallel_context()
    return loss, split


def test_level_3_gathers_weights_twice_and_a_plan_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    losses, gathers = {}, {}
    for level in ("level1", "level2", "level3"):
        losses[level], split = stepped(level)
        exchanges = [exchange for row in cost_estimate.rows(split, Machine()) for exchange in row.exchanges]
        planned = {kind: sum(exchange.kind == kind for exchange in exchanges) for kind in KINDS}
        simulated = [str(getattr(node.target, "__name__", "")) for node in split.local.module.graph.nodes]
        module = regather_weights(bound(split.local, 0))                           # what a rank of several processes runs
        run = [str(node.target) for node in module.graph.nodes]
        assert planned == {kind: simulated.count(kind) for kind in KINDS}
        assert planned == {kind: sum(name in target for target in run) for kind, name in KINDS.items()}
        gathers[level] = planned["all_gather"]
    assert gathers == {"level1": 4, "level2": 4, "level3": 7}, "the first layer has no gradient by its input: it needs its weight once"
    assert losses["level1"] == losses["level2"] == losses["level3"]
