"""A program for `torchspore workers -n 1`: an all-reduce, an all-gather and a data-parallel training step on a device."""
import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init

device = sys.argv[1]
ms.set_context(device_target=device)
init({"GPU": "nccl", "Ascend": "hccl"}.get(device, "mccl"))
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
x = ms.Tensor(np.arange(4, dtype=np.float32))
assert (get_rank(), get_group_size()) == (0, 1)
assert (ops.AllReduce()(x).asnumpy() == x.asnumpy()).all()
assert (ops.AllGather()(x).asnumpy() == x.asnumpy()).all()
network = nn.Dense(4, 2)
step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), nn.SGD(network.trainable_params(), 0.1)).set_train()
losses = [float(step(ms.Tensor(np.ones((3, 4), np.float32)), ms.Tensor(np.zeros((3, 2), np.float32)))) for _ in range(3)]
assert losses[2] < losses[0], losses
print(f"{device}: collectives and a data-parallel step are right")
