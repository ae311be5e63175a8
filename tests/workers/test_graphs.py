"""Exchanges in graphs: nodes that stay, keep their order, and give PyNative's numbers at every level."""
from __future__ import annotations

from typing import Any

import pytest


def _net() -> Any:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, communication, nn, ops

    communication.init()

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor(np.arange(12, dtype=np.float32).reshape(3, 4) / 10), name="weight")
            self.total, self.every, self.share = ops.AllReduce(), ops.AllGather(), ops.ReduceScatter()
            self.swap, self.wait = ops.AlltoAll(2, 0, 1), ops.Barrier()

        def construct(self, x: Any) -> Any:
            hidden = self.total(ops.matmul(x, self.weight))
            self.every(hidden)                                    # nobody reads it; every rank calls it all the same
            self.total(hidden), self.total(hidden)
            self.wait()
            rows = self.swap(self.every(ops.relu(hidden)))
            return self.share(rows).sum()

    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) + communication.get_rank())
    return ms, Net(), x


def _numbers(level: str) -> Any:
    ms, net, x = _net()
    found = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode, jit_config={"jit_level": level})
        out = net(x)
        gradient = ms.grad(net, 0, net.trainable_params())
        found.append((float(out.asnumpy()), gradient(x)[0].asnumpy().tolist(), gradient(x)[1][0].asnumpy().tolist()))
    return found


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_both_modes_give_equal_numbers(workers: Any, level: str) -> None:
    for pynative, graph in workers(2, _numbers, level):
        assert pynative == graph


def _nodes() -> Any:
    ms, net, x = _net()
    ms.set_context(mode=ms.GRAPH_MODE)
    net(x)
    from torchspore.engine.graph import dispatch

    (graph,) = dispatch.graphs(net)
    return [str(node.target) for node in graph.module.graph.nodes if "c10d" in str(node.target) or "barrier" in str(node.target)]


def test_no_exchange_is_dropped_joined_or_moved(workers: Any) -> None:
    kinds = ["all_reduce", "all_gather_into_tensor", "all_reduce", "all_reduce", "barrier", "all_gather_into_tensor", "all_to_all_single",
             "reduce_scatter_tensor"]
    for found in workers(2, _nodes):
        assert [name.split(".")[1] for name in found if "wait_tensor" not in name] == kinds
        assert sum("wait_tensor" in name for name in found) == 7
