"""Switches of `parallel_speed_up_json_path`: exchanges that begin early, in equal numbers; sums that are made in parts."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import init
from mindspore.ops import operations as P
from support.patches import replace

SWITCHES = {
    "enable_opt_shard_comm_opt": True, "matmul_grad_comm_overlap": "AllGather,ReduceScatter", "enable_grad_comm_opt": True,
    "enable_allreduce_slice_to_reducescatter": True, "interleaved_matmul_comm": True, "recompute_comm_overlap": True,
}


class Net(nn.Cell):
    """Three products, whose weights the optimizer cuts: each is gathered before it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.products = [P.MatMul().shard(((2, 1), (1, 1))) for _ in range(3)]
        random = np.random.RandomState(1)
        self.weights = ms.ParameterTuple([
            Parameter(Tensor(random.rand(8, 8).astype(np.float32) * 0.1), f"w{at}") for at in range(3)
        ])

    def construct(self, x: Any) -> Any:
        for product, weight in zip(self.products, self.weights):
            x = ops.tanh(product(x, weight))
        return x.sum()


def _trained(folder: str, switched: bool) -> Any:
    from torchspore.context import effects
    from torchspore.context.options import OPTIONS
    from torchspore.graph.passes import communication

    path = Path(folder) / f"{switched}.json"
    path.write_text(json.dumps(SWITCHES if switched else {}))
    init()
    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"parallel_speed_up_json_path": str(path)})
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", enable_parallel_optimizer=True,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0, "optimizer_level": "level3"},
    )
    orders: list[list[str]] = []
    before = communication.overlap_exchanges

    def seen(module: Any) -> Any:
        result = before(module)
        orders.append([node.target._opname for node in result.graph.nodes if getattr(node.target, "_opname", "") in (
            "mm", "all_gather_into_tensor", "wait_tensor", "reduce_scatter_tensor", "tanh")])
        return result

    from torchspore.graph import pipeline

    replace(pipeline, overlap_exchanges=seen)
    net = Net()
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    x = Tensor(np.random.RandomState(2).rand(4, 8).astype(np.float32))
    losses = [float(step(x)) for _ in range(3)]
    outcomes = {name: str(effects.outcome_of(OPTIONS[name], ms.get_context(name))) for name in SWITCHES}
    return losses, orders[0], outcomes


def test_exchanges_begin_early(workers: Any, tmp_path: Path) -> None:
    plain, early = (workers(2, _trained, str(tmp_path), switched)[0] for switched in (False, True))
    assert plain[0] == early[0]
    gather, wait = "all_gather_into_tensor", "wait_tensor"
    assert plain[1][:6] == [gather, wait, gather, "mm", "tanh", wait], plain[1]      # one product ahead, without a switch
    assert early[1][:6] == [gather, gather, gather, wait, "mm", "tanh"], early[1]
    scatter = "reduce_scatter_tensor"
    assert plain[1][-5:] == ["mm", "mm", wait, scatter, wait] and early[1][-4:] == [scatter, wait, wait, wait], (plain[1], early[1])
    assert early[2]["enable_opt_shard_comm_opt"] == "applied: 3 exchanges of the forward pass begin early"
    assert early[2]["matmul_grad_comm_overlap"] == "applied: 5 exchanges of the backward pass begin early"
    assert early[2]["recompute_comm_overlap"] == "no effect here: the last graph has no exchange in the forward pass that is computed again"
    assert early[2]["interleaved_matmul_comm"].startswith("no effect here: no operator is cut in two")
    assert early[2]["enable_allreduce_slice_to_reducescatter"].startswith("no effect here: no sum of the last graph is sliced at once")
