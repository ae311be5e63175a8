"""Mixed precision: to_float on single layers and whole nets, build_train_network at its levels, casts by hand."""
import sys

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor, amp
from mindspore.common import dtype as mstype

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, has_bias=True)
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(4 * 6 * 6, 8)
        self.norm = nn.LayerNorm((8,))
        self.out = nn.Dense(8, 3)

    def construct(self, x):
        x = self.relu(self.bn(self.conv(x)))
        x = self.norm(self.dense(self.flatten(x)))
        return self.out(x)


class Half(nn.Cell):
    """One half-precision layer in a float32 net, cast by hand on both sides."""

    def __init__(self, dtype):
        super().__init__()
        self.first = nn.Dense(6, 12).to_float(dtype)
        self.second = nn.Dense(12, 1).to_float(mstype.float32)
        self.cast = ops.Cast()

    def construct(self, x):
        y = self.first(x)
        y = self.cast(ops.tanh(y), mstype.float32)
        return self.second(y)


def fill(net, seed=0):
    rng = np.random.RandomState(seed)
    for param in net.trainable_params():
        if param.ndim > 1:
            param.set_data(Tensor(rng.normal(0, 0.2, param.shape), param.dtype))
        elif param.name.endswith("bias"):
            param.set_data(Tensor(rng.normal(0, 0.05, param.shape), param.dtype))
    return net


rng = np.random.RandomState(4)
image = Tensor(rng.normal(0, 1, (4, 2, 6, 6)).astype(np.float32))
label = Tensor(np.array([0, 1, 2, 1], np.int32))
reference = fill(Net())(image)
print("reference", reference.dtype, np.round(reference.asnumpy()[0], 2).tolist())
for level in ("O0", "O2", "O3"):
    net = fill(Net())
    network = nn.WithLossCell(net, nn.CrossEntropyLoss()) if level == "O0" else net
    step = amp.build_train_network(network, nn.Momentum(net.trainable_params(), 0.01, 0.9), None if level == "O0" else nn.CrossEntropyLoss(),
                                   level=level, loss_scale_manager=None)
    losses = [float(step(image, label).asnumpy()) for _ in range(4)]
    print(level, losses[-1] < losses[0], "%.2f" % losses[0], sorted({str(p.dtype) for p in net.get_parameters()}))

half_net = fill(Net()).to_float(mstype.float16)
print("to_float", half_net(image).dtype, half_net.dense.weight.dtype)

for dtype in (mstype.float16, mstype.float32):
    net = fill(Half(dtype), 2)
    x = Tensor(np.linspace(-1, 1, 48).reshape(8, 6).astype(np.float32))
    y = Tensor(np.linspace(0, 1, 8).reshape(8, 1).astype(np.float32))
    print(dtype, net.first(x).dtype, net(x).dtype)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    step.set_train()
    losses = [float(step(x, y).asnumpy()) for _ in range(8)]
    print("  falls", losses[-1] < losses[0], "%.2f %.2f" % (losses[0], losses[-1]), net.first.weight.dtype)

half = Tensor(np.array([1.001, 2.002, 3.003]), mstype.float16)
print(half.dtype, (half + 1).dtype, (half * Tensor([1.0, 2.0, 3.0], mstype.float32)).dtype, half.astype(mstype.bfloat16).dtype, half.sum().dtype)
