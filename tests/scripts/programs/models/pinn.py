"""A PINN for Burgers' equation: first and second derivatives by nested GradOperation in a Cell, whose loss is differentiated again (1.x)."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, ops

from measured import MODE, begin, train

ms.set_context(mode=MODE)


class Net(nn.Cell):
    def __init__(self, width=12, depth=3):
        super(Net, self).__init__()
        layers = [nn.Dense(2, width, activation="tanh")]
        layers += [nn.Dense(width, width, activation="tanh") for _ in range(depth - 1)]
        self.layers = nn.SequentialCell(layers + [nn.Dense(width, 1)])

    def construct(self, xt):
        return self.layers(xt)


class Grad(nn.Cell):
    def __init__(self, net):
        super(Grad, self).__init__()
        self.net = net
        self.grad = ops.GradOperation()

    def construct(self, xt):
        return self.grad(self.net)(xt)


class First(nn.Cell):
    """The derivative by one of the coordinates."""

    def __init__(self, net, index):
        super(First, self).__init__()
        self.grad, self.index = Grad(net), index

    def construct(self, xt):
        return self.grad(xt)[:, self.index: self.index + 1]


class PINNLoss(nn.Cell):
    def __init__(self, net):
        super(PINNLoss, self).__init__()
        self.net = net
        self.jacobian = Grad(net)
        self.hessian = Grad(First(net, 0))
        self.mse = nn.MSELoss()
        self.nu = 0.01 / np.pi

    def construct(self, inside, start, initial):
        u = self.net(inside)
        first = self.jacobian(inside)
        u_x, u_t = first[:, 0:1], first[:, 1:2]
        u_xx = self.hessian(inside)[:, 0:1]
        residual = u_t + u * u_x - self.nu * u_xx
        return self.mse(residual, ops.zeros_like(residual)) + self.mse(self.net(start), initial)


random = np.random.RandomState(241)
inside = Tensor(np.stack([random.uniform(-1, 1, 32), random.uniform(0, 1, 32)], 1).astype(np.float32))
x = random.uniform(-1, 1, (16, 1)).astype(np.float32)
start, initial = Tensor(np.hstack([x, np.zeros_like(x)])), Tensor(-np.sin(np.pi * x))
net = begin(Net(), 1, 0.7)
loss_net = PINNLoss(net)
step = nn.TrainOneStepCell(loss_net, nn.Adam(net.trainable_params(), learning_rate=2e-3, eps=1e-5))
step.set_train()
train(lambda: step(inside, start, initial), net)
