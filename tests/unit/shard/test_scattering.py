"""`enable_allreduce_slice_to_reducescatter`: a sum that is cut at once is made in parts."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Parameter, Tensor, nn, ops
from mindspore.ops import operations as P

from torchspore.context import effects
from torchspore.context.options import OPTIONS

NAME = "enable_allreduce_slice_to_reducescatter"


class Net(nn.Cell):
    """A product in terms, which is asked for whole, and then by rows."""

    def __init__(self) -> None:
        super().__init__()
        self.product, self.bent = P.MatMul().shard(((1, 2), (2, 1))), P.ReLU().shard(((2, 1),))
        self.w = Parameter(Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)), "w")

    def construct(self, x: Any) -> Any:
        return self.bent(ops.reshard(self.product(x, self.w), Layout((2,), ("a",))("None", "None")))


@pytest.mark.parametrize("is_requested", [False, True])
def test_a_sum_that_is_cut_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_requested: bool) -> None:
    from torchspore.distributed.shard import collective_nodes
    from torchspore.graph import dispatch

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    (tmp_path / "speed.json").write_text(json.dumps({NAME: is_requested}))
    before = ms.get_context("ascend_config")
    ms.set_context(ascend_config={"parallel_speed_up_json_path": str(tmp_path / "speed.json")})
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net, x = Net(), np.arange(16, dtype=np.float32).reshape(4, 4) - 5
    array = net(Tensor(x)).asnumpy()
    np.testing.assert_array_equal(array, np.maximum(x @ np.arange(12, dtype=np.float32).reshape(4, 3), 0))
    sent = [node.target for node in dispatch.graphs(net)[0].split.local.module.graph.nodes if node.target in collective_nodes.SENDING]
    assert sent[0] is (collective_nodes.reduce_scatter if is_requested else collective_nodes.all_reduce)
    if is_requested:
        assert str(effects.outcome_of(OPTIONS[NAME], True)) == "applied: 1 sums are made in parts"
    ms.set_context(ascend_config={**before, "parallel_speed_up_json_path": ""})
    ms.set_context(**{NAME: False})
