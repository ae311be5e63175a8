"""A SimSiam-like pair with stop_gradient, and a momentum teacher kept by ParameterTuple.clone, HyperMap and ops.assign."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
ema_update = ops.MultitypeFuncGraph("ema_update")


@ema_update.register("Tensor", "Tensor", "Tensor")
def _ema_update(factor, ema_weight, weight):
    return ops.assign(ema_weight, ema_weight * factor + weight * (1 - factor))


class EMA(nn.Cell):
    def __init__(self, network, decay=0.9):
        super().__init__()
        self.net_weights = ParameterTuple(network.trainable_params())
        self.ema_weights = self.net_weights.clone(prefix="ema", init="same")
        self.swap_weights = ParameterTuple(network.trainable_params()).clone("swap", "zeros")
        self.decay = Tensor(decay, ms.float32)
        self.updates = Parameter(Tensor(0, ms.int32), name="updates", requires_grad=False)
        self.hyper_map = ops.HyperMap()
        self.assign = ops.Assign()

    def construct(self):
        self.updates += 1
        factor = self.decay * (1 - ops.exp(-self.updates.astype(ms.float32) / 5))
        return self.hyper_map(ops.partial(ema_update, factor), self.ema_weights, self.net_weights)

    def swap_before_eval(self):
        for swap, weight, ema in zip(self.swap_weights, self.net_weights, self.ema_weights):
            ops.assign(swap, weight)
            ops.assign(weight, ema)
        return True

    def swap_after_eval(self):
        self.hyper_map(self.assign, self.net_weights, self.swap_weights)


class SimSiam(nn.Cell):
    def __init__(self, width=16):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Dense(10, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dense(width, width))
        self.predictor = nn.SequentialCell(nn.Dense(width, 8), nn.ReLU(), nn.Dense(8, width))
        self.normalize = ops.L2Normalize(axis=1)

    def similarity(self, p, z):
        z = ops.stop_gradient(z)
        return -(self.normalize(p) * self.normalize(z)).sum(axis=1).mean()

    def construct(self, x1, x2):
        z1, z2 = self.encoder(x1), self.encoder(x2)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return self.similarity(p1, z2) / 2 + self.similarity(p2, z1) / 2


rng = np.random.RandomState(6)
net = SimSiam()
for param in net.trainable_params():
    if param.ndim == 2:
        param.set_data(Tensor(rng.normal(0, 0.4, param.shape), ms.float32))
    elif param.name.endswith("bias"):
        param.set_data(Tensor(np.zeros(param.shape), ms.float32))
ema = EMA(net)
print([w.name for w in ema.ema_weights][:2], ema.updates.name, len(list(ema.get_parameters())))
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9, weight_decay=1e-4)
train = nn.TrainOneStepCell(net, optimizer)
train.set_train()
base = rng.normal(0, 1, (32, 10))
for step in range(8):
    x1 = Tensor(base + rng.normal(0, 0.1, base.shape), ms.float32)
    x2 = Tensor(base + rng.normal(0, 0.1, base.shape), ms.float32)
    loss = train(x1, x2)
    ema()
    if step % 2:
        print("step", step, "%.4f" % float(loss.asnumpy()), int(ema.updates.asnumpy()), "%.4f" % float(ema.ema_weights[0].abs().sum().asnumpy()))
net.set_train(False)
plain = net(x1, x2)
ema.swap_before_eval()
averaged = net(x1, x2)
ema.swap_after_eval()
second_loss = net(x1, x2)
print("%.4f %.4f %.4f" % (float(plain.asnumpy()), float(averaged.asnumpy()), float(second_loss.asnumpy())))
grads = ops.grad(lambda a, b: ops.stop_gradient(a * b) * a, (0, 1))(Tensor([2.0]), Tensor([3.0]))
print([g.asnumpy().tolist() for g in grads])
