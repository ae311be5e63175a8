"""Sharpness-aware minimization, lookahead and stochastic weight averaging: an ascent step before the descent, weights that follow slowly."""
import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

from measured import MODE, begin, finish, train

ms.set_context(mode=MODE)


class SAM(nn.Cell):
    def __init__(self, network, optimizer, rho=0.05, adaptive=False):
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.weights = optimizer.parameters
        self.kept = self.weights.clone("kept", init="same")
        self.grad = ops.GradOperation(get_by_list=True)
        self.rho, self.adaptive = rho, adaptive
        self.map_ = ops.Map()

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)
        squares = ()
        for weight, grad in zip(self.weights, grads):
            g = grad * ops.abs(weight) if self.adaptive else grad
            squares += (ops.square(g).sum(),)
        scale = self.rho / (ops.sqrt(ops.AddN()(squares)) + 1e-12)
        for saved_weight, weight, grad in zip(self.kept, self.weights, grads):
            ops.assign(saved_weight, weight)
            factor = ops.square(weight) if self.adaptive else ops.ones_like(weight)
            ops.assign_add(weight, grad * factor * scale)
        second = self.grad(self.network, self.weights)(x, y)
        for saved_weight, weight in zip(self.kept, self.weights):
            ops.assign(weight, saved_weight)
        return ops.depend(loss, self.optimizer(second)), scale


class Lookahead(nn.Optimizer):
    """Every third step the slow weights go half the way to the fast ones."""

    def __init__(self, inner, pace=3, alpha=0.5):
        super().__init__(inner.learning_rate, inner.parameters)
        self.inner, self.alpha, self.pace = inner, alpha, pace
        self.slow = self.parameters.clone("slow", init="same")
        self.count = Parameter(Tensor(0, ms.int32), name="count")

    def construct(self, grads):
        self.inner(grads)
        self.count += 1
        if self.count % self.pace == 0:
            for slow, fast in zip(self.slow, self.parameters):
                ops.assign(slow, slow + self.alpha * (fast - slow))
                ops.assign(fast, slow)
        return self.count


random = np.random.RandomState(1)
x, y = Tensor(random.randn(8, 6), ms.float32), Tensor(random.randint(0, 4, 8), ms.int32)


def fresh(seed):
    net = begin(nn.SequentialCell([nn.Dense(6, 10), nn.LeakyReLU(0.1), nn.LayerNorm([10]), nn.Dense(10, 4)]), seed)
    return net, nn.WithLossCell(net, nn.CrossEntropyLoss(label_smoothing=0.1))


for adaptive in (False, True):
    net, loss = fresh(3)
    step = SAM(loss, nn.SGD(net.trainable_params(), 0.1, momentum=0.9, nesterov=True), 0.1, adaptive)
    step.set_train()
    train(lambda: step(x, y), net)
net, loss = fresh(4)
ahead = Lookahead(nn.Adagrad(net.trainable_params(), learning_rate=0.05))
step = nn.TrainOneStepCell(loss, ahead)
train(lambda: step(x, y), net)
averages = ParameterTuple(net.get_parameters()).clone("swa", init="zeros")
for turn in range(3):
    step(x, y)
    for average, weight in zip(averages, net.get_parameters()):
        average.set_data(average + (weight - average) / (turn + 1))
finish(averages)
