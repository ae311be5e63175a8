"""Loss scaling: by hand with FP16 products and an overflow check, DynamicLossScaler of amp, FixedLossScaleManager in Model, all_finite."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Parameter, Tensor, ops
from mindspore import dataset as ds
from mindspore.amp import DynamicLossScaler, StaticLossScaler, all_finite
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.train.callback import Callback
from mindspore.train.loss_scale_manager import FixedLossScaleManager

from measured import MODE, begin, finish, report, train

ms.set_context(mode=MODE)
random = np.random.RandomState(6)
features, labels = random.randn(12, 6).astype(np.float32), random.randint(0, 3, 12).astype(np.int32)
x, y = Tensor(features[:4]), Tensor(labels[:4])


def new_net():
    return begin(nn.SequentialCell([nn.Dense(6, 8, activation="relu"), nn.Dense(8, 3)]), 1)


grad_scale = ops.MultitypeFuncGraph("grad_scale")
grad_overflow = ops.MultitypeFuncGraph("grad_overflow")


@grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale, grad):
    return F.cast(grad, ms.float32) * P.Reciprocal()(scale)


@grad_overflow.register("Tensor")
def _tensor_grad_overflow(grad):
    return F.logical_not(F.isfinite(grad).all())


class ByHand(nn.Cell):
    """Scales, looks for numbers that are not finite, and steps where all are; the scale lives in a Parameter."""

    def __init__(self, network, optimizer, scale):
        super(ByHand, self).__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.weights = optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.scale = Parameter(Tensor(scale, ms.float32), name="scale", requires_grad=False)
        self.hyper_map = ops.HyperMap()

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, P.Fill()(ms.float32, loss.shape, 1.0) * self.scale)
        grads = self.hyper_map(F.partial(grad_scale, self.scale), grads)
        bad = self.hyper_map(grad_overflow, grads)
        overflow = P.ReduceAny()(P.Stack()(bad))
        if not overflow:
            loss = F.depend(loss, self.optimizer(grads))
        self.scale = ops.select(overflow, self.scale / 2, self.scale * 1.0)
        return loss, overflow


net = new_net()
criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = ByHand(nn.WithLossCell(net, criterion), nn.Momentum(net.trainable_params(), 0.1, 0.9), 1024.0)
step.set_train()
train(lambda: step(x, y), net)
step.scale.set_data(Tensor(3e37, ms.float32))
train(lambda: step(x * 500, y) + (step.scale / 1e37,), net)

net2 = new_net()
optimizer2 = nn.Adam(net2.trainable_params(), 0.01, eps=1e-4)
for scaler in (StaticLossScaler(256), DynamicLossScaler(2 ** 8, 2, 2)):
    def forward(x, y, scaler=scaler):
        return scaler.scale(criterion(net2(x), y))

    grad_fn = ms.value_and_grad(forward, None, optimizer2.parameters)

    def scaled():
        loss, grads = grad_fn(x, y)
        finite = all_finite(grads)
        grads = scaler.unscale(grads)
        if finite:
            optimizer2(grads)
        scaler.adjust(finite)
        return scaler.unscale(loss), scaler.scale_value, finite

    train(scaled, net2)


class Losses(Callback):
    def step_end(self, run_context):
        report(run_context.original_args().net_outputs)


net3 = new_net()
manager = FixedLossScaleManager(512.0, drop_overflow_update=False)
optimizer3 = nn.Momentum(net3.trainable_params(), 0.1, 0.9, loss_scale=512.0)
dataset = ds.NumpySlicesDataset({"x": features, "y": labels}, shuffle=False).batch(4)
Model(net3, criterion, optimizer3, loss_scale_manager=manager).train(1, dataset, callbacks=Losses(), dataset_sink_mode=False)
finish(net3)
