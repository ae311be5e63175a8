# tolerance 1e-4: single gradients are printed, some of them a thousandth of the others.
"""Frozen layers in four ways: requires_grad, a filter of trainable parameters, stop_gradient, and groups with a rate of 0; ParameterTuple subsets."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import ParameterTuple, Tensor, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class Net(nn.Cell):
    def __init__(self, stop=False):
        super().__init__()
        self.features = nn.SequentialCell([nn.Dense(6, 5), nn.LayerNorm((5,)), nn.ReLU()])
        self.head = nn.Dense(5, 3)
        self.stop = stop

    def construct(self, x):
        x = self.features(x)
        if self.stop:
            x = ops.stop_gradient(x)
        return self.head(x)


random = np.random.RandomState(4)
x, y = Tensor(random.randn(8, 6).astype(np.float32)), Tensor(random.randint(0, 3, 8).astype(np.int32))
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def stepped(net, parameters):
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), nn.SGD(parameters, 0.2, 0.9))
    step.set_train()
    train(lambda: step(x, y), net)


net = begin(Net(), 1)
for parameter in net.features.get_parameters():
    parameter.requires_grad = False
stepped(net, net.trainable_params())
for parameter in net.features.trainable_params() + list(net.features.get_parameters()):
    parameter.requires_grad = True
stepped(net, net.trainable_params())

net = begin(Net(), 2)
stepped(net, list(filter(lambda parameter: "head" in parameter.name, net.trainable_params())))
net = begin(Net(stop=True), 3)
stepped(net, net.trainable_params())
net = begin(Net(), 4)
stepped(net, [{"params": net.features.trainable_params(), "lr": 0.0}, {"params": net.head.trainable_params(), "lr": 0.3, "weight_decay": 0.01}])


class Subset(nn.Cell):
    """Two gradients of one loss, by two subsets of the Parameters."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.first = ParameterTuple(p for p in network.trainable_params() if "features" in p.name)
        self.second = ParameterTuple([p for p in network.trainable_params() if "head" in p.name])
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.both = ops.GradOperation(get_all=True, get_by_list=True)

    def construct(self, x, y, sens):
        first = self.grad(self.network, self.first)(x, y, sens)
        second = self.grad(self.network, self.second)(x, y, sens * 2)
        inputs, weights = self.both(self.network, self.second)(x, y)
        return first, second, inputs[0], weights


net = begin(Net(), 5)
with_loss = nn.WithLossCell(net, loss_fn)
first, second, inputs, weights = Subset(with_loss)(x, y, Tensor(1.0))
report(first), report(second), report(inputs), report(weights)
net.set_grad(False)
report([parameter.requires_grad for parameter in net.get_parameters()])
