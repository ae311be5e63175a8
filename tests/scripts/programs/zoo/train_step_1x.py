"""The zoo's own training steps: GradOperation with sens, HyperMap with clipping, loss scaling by hand, gradient accumulation."""
import sys

import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, context
from mindspore import dtype as mstype
from mindspore.common.initializer import initializer
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

context.set_context(mode=context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE)
GRADIENT_CLIP_TYPE = 1
GRADIENT_CLIP_VALUE = 0.5
clip_grad = C.MultitypeFuncGraph("clip_grad")


@clip_grad.register("Number", "Number", "Tensor")
def _clip_grad(clip_type, clip_value, grad):
    """Clip gradients by value (0) or norm (1)."""
    if clip_type not in (0, 1):
        return grad
    dt = F.dtype(grad)
    if clip_type == 0:
        new_grad = C.clip_by_value(grad, F.cast(F.tuple_to_array((-clip_value,)), dt), F.cast(F.tuple_to_array((clip_value,)), dt))
    else:
        new_grad = nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), dt))
    return new_grad


grad_scale = C.MultitypeFuncGraph("grad_scale")
reciprocal = P.Reciprocal()


@grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale, grad):
    return grad * F.cast(reciprocal(scale), F.dtype(grad))


_sum_op = C.MultitypeFuncGraph("grad_sum_op")
_clear_op = C.MultitypeFuncGraph("clear_op")


@_sum_op.register("Tensor", "Tensor")
def _cumulative_grad(grad_sum, grad):
    """Apply grad sum to cumulative gradient."""
    add = P.AssignAdd()
    return add(grad_sum, grad)


@_clear_op.register("Tensor", "Tensor")
def _clear_grad_sum(grad_sum, zero):
    """Apply zero to clear grad_sum."""
    success = True
    success = F.depend(success, F.assign(grad_sum, zero))
    return success


class TrainOneStepWithClip(nn.TrainOneStepCell):
    """Scales the loss, unscales and clips the gradients."""

    def __init__(self, network, optimizer, sens=128.0):
        super(TrainOneStepWithClip, self).__init__(network, optimizer, sens)
        self.cast = P.Cast()
        self.hyper_map = C.HyperMap()
        self.scale_sense = Tensor(sens, mstype.float32)

    def construct(self, *inputs):
        weights = self.weights
        loss = self.network(*inputs)
        sens = P.Fill()(P.DType()(loss), P.Shape()(loss), self.sens)
        grads = self.grad(self.network, weights)(*inputs, sens)
        grads = self.hyper_map(F.partial(grad_scale, self.scale_sense), grads)
        grads = self.hyper_map(F.partial(clip_grad, GRADIENT_CLIP_TYPE, GRADIENT_CLIP_VALUE), grads)
        return F.depend(loss, self.optimizer(grads))


class AccumulatedForward(nn.Cell):
    def __init__(self, network, grad_sum):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.weights = ParameterTuple(network.trainable_params())
        self.grad_sum = grad_sum
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.hyper_map = C.HyperMap()

    def construct(self, *inputs):
        loss = self.network(*inputs)
        sens = F.ones_like(loss)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        return F.depend(loss, self.hyper_map(F.partial(_sum_op), self.grad_sum, grads))


class AccumulatedUpdate(nn.Cell):
    def __init__(self, optimizer, grad_sum, zeros):
        super().__init__(auto_prefix=False)
        self.optimizer, self.grad_sum, self.zeros = optimizer, grad_sum, zeros
        self.hyper_map = C.HyperMap()

    def construct(self):
        success = self.optimizer(self.grad_sum)
        return F.depend(success, self.hyper_map(F.partial(_clear_op), self.grad_sum, self.zeros))


def make():
    net = nn.SequentialCell([nn.Dense(5, 16), nn.ReLU(), nn.Dense(16, 3)])
    rng = np.random.RandomState(0)
    for param in net.trainable_params():
        param.set_data(Tensor(rng.normal(0, 0.5, param.shape), mstype.float32))
    return net, nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))


rng = np.random.RandomState(1)
x = rng.normal(0, 1, (4, 32, 5)).astype(np.float32)
y = (x.sum(axis=2) > 0).astype(np.int32) + (x[:, :, 0] > 1).astype(np.int32)
net, loss_net = make()
train = TrainOneStepWithClip(loss_net, nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=1e-4))
train.set_train()
for epoch in range(3):
    losses = [train(Tensor(a), Tensor(b)).asnumpy() for a, b in zip(x, y)]
    print("clipped", epoch, "%.4f" % np.mean(losses))

net, loss_net = make()
optimizer = nn.Adam(net.trainable_params(), 0.05)
grad_sum = optimizer.parameters.clone(prefix="grad_sum", init="zeros")
zeros = optimizer.parameters.clone(prefix="zeros", init="zeros")
print([p.name for p in grad_sum][:2], [p.requires_grad for p in grad_sum][:2])
forward, update = AccumulatedForward(loss_net, grad_sum), AccumulatedUpdate(optimizer, grad_sum, zeros)
forward.set_train()
for epoch in range(3):
    losses = []
    for index in range(4):
        losses.append(forward(Tensor(x[index]), Tensor(y[index])).asnumpy())
        if index % 2 == 1:
            update()
    print("accumulated", epoch, "%.4f" % np.mean(losses), "%.4f" % float(np.abs(grad_sum[0].asnumpy()).sum()))

value = Parameter(initializer("ones", [3]), name="value")
print(C.clip_by_value(Tensor([-2.0, 0.5, 3.0]), Tensor(-1.0), Tensor(1.0)).asnumpy().tolist())
print([round(float(g.asnumpy().sum()), 4) for g in C.clip_by_global_norm((Tensor([3.0, 4.0]), Tensor([[12.0]])), 6.5)])
