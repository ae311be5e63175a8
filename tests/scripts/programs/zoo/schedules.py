"""Learning rates of all kinds: dynamic lists, schedules, a schedule of one's own, groups with rates and decays of their own."""
import math
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, context, nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

context.set_context(mode=context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE)


class WarmUpCosine(LearningRateSchedule):
    def __init__(self, peak, warmup, total):
        super(WarmUpCosine, self).__init__()
        self.warmup_lr = nn.WarmUpLR(peak, warmup)
        self.cosine = nn.CosineDecayLR(0.0, peak, total - warmup)
        self.warmup = Tensor(np.array([warmup]).astype(np.float32))
        self.warmup_steps = warmup
        self.greater = ops.Greater()
        self.one = Tensor(np.array([1.0]).astype(np.float32))
        self.cast = ops.Cast()

    def construct(self, global_step):
        is_warmup = self.cast(self.greater(self.warmup, global_step), ms.float32)
        return (self.one - is_warmup) * self.cosine(global_step - self.warmup_steps) + is_warmup * self.warmup_lr(global_step)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(4, 8, weight_init=0.1, bias_init=0.01), nn.Tanh())
        self.head = nn.Dense(8, 1, weight_init=0.2, bias_init=0.0)
        self.scale = Parameter(Tensor([1.5], ms.float32), name="scale")

    def construct(self, x):
        return self.head(self.body(x)) * self.scale


rng = np.random.RandomState(1)
x = Tensor(rng.normal(0, 1, (16, 4)).astype(np.float32))
y = Tensor(rng.normal(0, 1, (16, 1)).astype(np.float32))


def rounded(values):
    return [round(float(v), 5) for v in values]


print("piecewise", rounded(nn.piecewise_constant_lr([2, 4], [0.1, 0.01])))
print("exponential", rounded(nn.exponential_decay_lr(0.1, 0.9, 6, 2, 2, True)))
print("natural", rounded(nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2)))
print("inverse", rounded(nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1)))
print("polynomial", rounded(nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5, False)))
print("warmup", rounded(nn.warmup_lr(0.1, 6, 2, 3)))
step = Tensor(3, ms.int32)
for schedule in (nn.ExponentialDecayLR(0.1, 0.9, 4, True), nn.NaturalExpDecayLR(0.1, 0.9, 4), nn.InverseDecayLR(0.1, 0.5, 4),
                 nn.CosineDecayLR(0.01, 0.1, 5), nn.PolynomialDecayLR(0.1, 0.01, 10, 0.5), nn.WarmUpLR(0.2, 10), WarmUpCosine(0.1, 5, 20)):
    print(type(schedule).__name__, "%.6f" % float(schedule(step).asnumpy().reshape(-1)[0]))


def train(make, steps=6):
    net = Net()
    optimizer = make(net)
    loss_fn = nn.MSELoss()
    grad_fn = ms.value_and_grad(lambda a, b: loss_fn(net(a), b), None, optimizer.parameters)
    losses = []
    for _ in range(steps):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        losses.append("%.5f" % float(loss.asnumpy()))
    return losses, optimizer


def groups(net):
    body = list(filter(lambda p: "body" in p.name, net.trainable_params()))
    names = [p.name for p in body]
    rest = [p for p in net.trainable_params() if p.name not in names]
    return [
        {"params": body, "lr": nn.CosineDecayLR(0.01, 0.1, 8), "weight_decay": 0.05},
        {"params": rest, "lr": [0.1, 0.09, 0.08, 0.07, 0.06, 0.05]},
        {"order_params": net.trainable_params()},
    ]


for name, make in {
    "list": lambda n: nn.SGD(n.trainable_params(), learning_rate=nn.piecewise_constant_lr([2, 6], [0.1, 0.05]), momentum=0.9, weight_decay=0.01),
    "tensor": lambda n: nn.Momentum(n.trainable_params(), Tensor(0.05), 0.8, weight_decay=1e-2, loss_scale=1.0),
    "schedule": lambda n: nn.Adam(n.trainable_params(), learning_rate=WarmUpCosine(0.1, 3, 8), weight_decay=0.01),
    "groups": lambda n: nn.Momentum(groups(n), learning_rate=0.1, momentum=0.9, weight_decay=0.0),
    "adamw": lambda n: nn.AdamWeightDecay(groups(n), learning_rate=0.01, eps=1e-6),
    "centralized": lambda n: nn.Adam([{"params": n.trainable_params(), "grad_centralization": False}], learning_rate=iter([0.1, 0.2, 0.1, 0.1, 0.1, 0.1])),
}.items():
    losses, optimizer = train(make)
    print(name, losses, int(optimizer.global_step.asnumpy()[0]), optimizer.is_group, optimizer.dynamic_lr)

net = Net()
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
loss_fn = nn.MSELoss()
grad_fn = ms.value_and_grad(lambda a, b: loss_fn(net(a), b), None, ParameterTuple(net.trainable_params()))
for epoch in range(4):
    ops.assign(optimizer.learning_rate, Tensor(0.1 * math.pow(0.5, epoch), ms.float32))
    loss, grads = grad_fn(x, y)
    optimizer(grads)
    print("halved", epoch, "%.5f" % float(optimizer.learning_rate.asnumpy()), "%.5f" % float(loss.asnumpy()))
optimizer.learning_rate.set_data(Tensor(0.5, ms.float32))
print("%.2f" % float(optimizer.get_lr().asnumpy()))
