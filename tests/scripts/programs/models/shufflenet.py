"""ShuffleNetV2-like net (1.x): channel shuffle by P.Reshape/P.Transpose/P.Split, own TrainOneStepCell with sens and HyperMap clipping, RMSProp with lr groups, EMA by P.Assign chains."""
import numpy as np
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, Parameter, ParameterTuple, context
from mindspore.ops import composite as C, functional as F, operations as P
from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")
clip_grad = C.MultitypeFuncGraph("clip_grad")


@clip_grad.register("Number", "Number", "Tensor")
def _clip_grad(clip_type, clip_value, grad):
    if clip_type not in (0, 1):
        return grad
    dt = F.dtype(grad)
    if clip_type == 0:
        new_grad = C.clip_by_value(grad, F.cast(F.tuple_to_array((-clip_value,)), dt), F.cast(F.tuple_to_array((clip_value,)), dt))
    else:
        new_grad = nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), dt))
    return new_grad


class ShuffleBlock(nn.Cell):
    def __init__(self, channels, stride):
        super(ShuffleBlock, self).__init__()
        self.stride = stride
        half = channels // 2
        source = half if stride == 1 else channels
        self.main = nn.SequentialCell([
            nn.Conv2d(source, half, 1), nn.BatchNorm2d(half, momentum=0.9), nn.ReLU(),
            nn.Conv2d(half, half, 3, stride, pad_mode="pad", padding=1, group=half), nn.BatchNorm2d(half, momentum=0.9),
            nn.Conv2d(half, half, 1), nn.BatchNorm2d(half, momentum=0.9), nn.ReLU()])
        self.proj = nn.SequentialCell([nn.Conv2d(source, source, 3, stride, pad_mode="pad", padding=1, group=source), nn.BatchNorm2d(source),
                                       nn.Conv2d(source, half, 1), nn.BatchNorm2d(half), nn.ReLU()]) if stride == 2 else None
        self.split = P.Split(1, 2)
        self.cat = P.Concat(axis=1)
        self.shape, self.reshape, self.transpose = P.Shape(), P.Reshape(), P.Transpose()

    def channel_shuffle(self, x):
        b, c, h, w = self.shape(x)
        x = self.reshape(x, (b * c // 2, 2, h * w))
        x = self.transpose(x, (1, 0, 2))
        x = self.reshape(x, (2, -1, c // 2, h, w))
        return x[0], x[1]

    def construct(self, x):
        if self.stride == 1:
            x_proj, x = self.channel_shuffle(x)
            return self.cat((x_proj, self.main(x)))
        return self.cat((self.proj(x), self.main(x)))


class Net(nn.Cell):
    def __init__(self):
        super(Net, self).__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, pad_mode="pad", padding=1)
        self.blocks = nn.CellList([ShuffleBlock(8, 2), ShuffleBlock(8, 1), ShuffleBlock(8, 1)])
        self.pool = P.ReduceMean(keep_dims=False)
        self.drop = nn.Dropout(1.0)
        self.fc = nn.Dense(8, 5)

    def construct(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.fc(self.pool(x, (2, 3)))


class TrainOneStep(nn.Cell):
    def __init__(self, network, optimizer, sens=128.0, decay=0.9):
        super(TrainOneStep, self).__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.network.add_flags(defer_inline=True)
        self.weights = ParameterTuple(network.trainable_params())
        self.optimizer = optimizer
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens
        self.hyper_map = C.HyperMap()
        self.average = self.weights.clone(prefix="ema", init="same")
        self.assign = P.Assign()
        self.decay = Tensor(decay, ms.float32)

    def construct(self, x, label):
        weights = self.weights
        loss = self.network(x, label)
        sens = P.Fill()(P.DType()(loss), P.Shape()(loss), self.sens)
        grads = self.grad(self.network, weights)(x, label, sens)
        grads = self.hyper_map(F.partial(clip_grad, 1, 64.0), grads)
        loss = F.depend(loss, self.optimizer(grads))
        for i in range(len(weights)):
            update = self.assign(self.average[i], self.average[i] * self.decay + weights[i] * (1 - self.decay))
            loss = F.depend(loss, update)
        return loss


net = begin(Net())
conv = list(filter(lambda p: "fc" not in p.name, net.trainable_params()))
fc = list(filter(lambda p: "fc" in p.name, net.trainable_params()))
opt = nn.RMSProp([{"params": conv, "lr": 0.01, "weight_decay": 1e-3}, {"params": fc, "lr": [0.05, 0.04, 0.03, 0.02, 0.01, 0.01, 0.01, 0.01, 0.01]}, {"order_params": net.trainable_params()}],
                 learning_rate=0.02, decay=0.9, momentum=0.5, epsilon=1e-2, centered=True, loss_scale=128.0)
step = TrainOneStep(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")), opt)
step.set_train()
rng = np.random.RandomState(5)
x, y = Tensor(rng.rand(6, 3, 16, 16).astype(np.float32)), Tensor(rng.randint(0, 5, 6).astype(np.int32))
train(lambda: step(x, y), net)
