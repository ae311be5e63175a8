"""FlashAttentionScore with keys split along the sequence: results and gradients, on one device and on several."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.ops.operations.nn_ops import FlashAttentionScore

SHAPE = {"BSH": (4, 16, 16), "SBH": (16, 4, 16), "BNSD": (4, 4, 16, 4), "BSND": (4, 16, 4, 4)}
CAUSAL = np.triu(np.ones((16, 16)), 1).astype(np.uint8)


class Attention(nn.Cell):
    def __init__(self, layout: str, strategy: Any, mask: bool, settings: dict[str, Any]) -> None:
        super().__init__()
        self.attention = FlashAttentionScore(4, scale_value=0.25, input_layout=layout, **settings)
        self.mask = Tensor(CAUSAL) if mask else None
        if strategy is not None:
            self.attention.shard(strategy + (((1, 1),) if mask else ()))
            self.attention.add_prim_attr("enable_ring_attention", True)

    def construct(self, q, k, v):
        largest, total, _, out = self.attention(q, k, v, None, None, None, self.mask)
        return out, largest, total


def results(layout: str, strategy: Any, mask: bool, **settings: Any) -> list[np.ndarray]:
    """The attention, its statistics and the gradients of query, key and value; split if there is a strategy."""
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.reset_auto_parallel_context()
    if strategy is not None:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Attention(layout, strategy, mask, settings)
    inputs = [Tensor(np.random.RandomState(seed).randn(*SHAPE[layout]).astype(np.float32)) for seed in range(3)]

    def loss(q, k, v):
        out, largest, total = net(q, k, v)
        return (out**2).sum(), out, largest, total

    values, gradients = ms.value_and_grad(loss, (0, 1, 2), None, has_aux=True)(*inputs)
    return [t.asnumpy() for t in (*values, *gradients)]
