"""Sparse gradients of nn.EmbeddingLookup in training steps, with the optimizers that know them, set to the target that sums equal rows.

Recorded in graph mode: 2.10's PyNative takes the rows of a sparse gradient for the whole one and refuses their shape. Momentum, SGD and
AdamWeightDecay are not recorded: 2.10 gives "the pointer is null" for them. Adam with use_nesterov is not recorded: 2.10's kernel leaves
the last step's numbers in its workspace for rows that this step does not have. Plain gradients of the same tables are there too, for
FTRL and ProximalAdagrad; not for FTRL with l1, whose kernel for whole gradients adds l1 where it should subtract it.
"""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from parity.case import case

ROWS, WIDTH = 7, 3
rng = np.random.RandomState(0)
TABLE, FACTORS = rng.randn(ROWS, WIDTH).astype(np.float32), rng.randn(WIDTH).astype(np.float32)
IDS = [np.array(ids, np.int32) for ids in ([[1, 2, 1], [4, 2, 1]], [[0, 0, 3], [3, 2, 5]], [[1, 1, 1], [6, 2, 5]])]


class Net(nn.Cell):
    def __init__(self, is_sparse):
        super().__init__()
        if is_sparse:
            self.table = nn.EmbeddingLookup(ROWS, WIDTH, param_init=Tensor(TABLE))
        else:
            self.table = nn.Embedding(ROWS, WIDTH, embedding_table=Tensor(TABLE))
        self.factors = Tensor(FACTORS)

    def construct(self, ids):
        return ((self.table(ids) * self.factors) ** 2).sum()


OPTIMIZERS = {
    "Adam": lambda p: nn.Adam(p, 0.1),
    "Adam_decay": lambda p: nn.Adam(p, 0.1, eps=0.1, weight_decay=0.1, loss_scale=2.0),
    "Adam_lazy": lambda p: nn.Adam(p, 0.1, use_lazy=True),
    "LazyAdam": lambda p: nn.LazyAdam(p, 0.1),
    "LazyAdam_nesterov": lambda p: nn.LazyAdam(p, 0.1, use_nesterov=True),
    "LazyAdam_decay": lambda p: nn.LazyAdam(p, 0.1, eps=0.1, weight_decay=0.1, loss_scale=2.0),
    "FTRL": lambda p: nn.FTRL(p, learning_rate=0.1, l1=0.01, l2=0.02),
    "FTRL_decay": lambda p: nn.FTRL(p, learning_rate=0.1, weight_decay=0.1, loss_scale=2.0),
    "FTRL_power": lambda p: nn.FTRL(p, initial_accum=0.2, learning_rate=0.1, lr_power=-0.3),
    "ProximalAdagrad": lambda p: nn.ProximalAdagrad(p, learning_rate=0.1, l1=0.01, l2=0.02),
    "ProximalAdagrad_decay": lambda p: nn.ProximalAdagrad(p, accum=0.3, learning_rate=0.1, weight_decay=0.1, loss_scale=2.0),
    "ProximalAdagrad_strong": lambda p: nn.ProximalAdagrad(p, learning_rate=0.1, l1=2.0, l2=0.5),
}


def _trained(make, is_sparse):
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = Net(is_sparse)
        optimizer = make(net.trainable_params())
        if is_sparse:
            optimizer.target = "CPU"
        step = nn.TrainOneStepCell(net, optimizer).set_train()
        losses = [float(step(Tensor(ids)).asnumpy()) for ids in IDS]
        table = net.trainable_params()[0]
        state = {p.name: p.asnumpy() for p in optimizer.get_parameters() if p is not table and p.name != "learning_rate"}
        return {"losses": np.array(losses), "table": table.asnumpy(), **state}
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@case(over=OPTIMIZERS, rtol=1e-5, atol=2e-6)
def steps(make):
    return _trained(make, True)


DENSE_OPTIMIZERS = {name: OPTIMIZERS[name] for name in ("FTRL_decay", "FTRL_power", "ProximalAdagrad", "ProximalAdagrad_strong")}


@case(over=DENSE_OPTIMIZERS, rtol=1e-5, atol=2e-6)
def whole(make):
    return _trained(make, False)


@case(rtol=1e-6)
def looked_up():
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = nn.EmbeddingLookup(ROWS, WIDTH, param_init=Tensor(TABLE))
        ids = Tensor(IDS[0])
        return {
            "rows": net(ids).asnumpy(), "beyond": net(Tensor(np.array([[6, 7], [9, 0]], np.int32))).asnumpy(),
            "names": [p.name for p in net.get_parameters()],
        }
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
