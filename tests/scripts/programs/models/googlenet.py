"""GoogLeNet, model-zoo 1.x: Inception with P.Concat, weight_variable, Model.train with exponential lr list, group params, loss scale manager, LabelSmoothing CrossEntropy."""
import numpy as np
import mindspore.nn as nn
import mindspore.common.dtype as mstype
import mindspore.dataset as ds
from mindspore import Tensor, context
from mindspore.common.initializer import TruncatedNormal
from mindspore.nn.loss.loss import LossBase
from mindspore.nn.optim.momentum import Momentum
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.train.callback import Callback
from mindspore.train.loss_scale_manager import FixedLossScaleManager
from mindspore.train.model import Model
from measured import MODE, begin, report, finish

context.set_context(mode=MODE, device_target="CPU")


def weight_variable():
    return TruncatedNormal(0.02)


class Conv2dBlock(nn.Cell):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, pad_mode="same"):
        super(Conv2dBlock, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=padding, pad_mode=pad_mode, weight_init=weight_variable())
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)
        self.relu = nn.ReLU()

    def construct(self, x):
        x = self.conv(x)
        x = self.bn(x)
        x = self.relu(x)
        return x


class Inception(nn.Cell):
    def __init__(self, in_channels, n1x1, n3x3red, n3x3, n5x5red, n5x5, pool_planes):
        super(Inception, self).__init__()
        self.b1 = Conv2dBlock(in_channels, n1x1, kernel_size=1)
        self.b2 = nn.SequentialCell([Conv2dBlock(in_channels, n3x3red, kernel_size=1), Conv2dBlock(n3x3red, n3x3, kernel_size=3, padding=0)])
        self.b3 = nn.SequentialCell([Conv2dBlock(in_channels, n5x5red, kernel_size=1), Conv2dBlock(n5x5red, n5x5, kernel_size=3, padding=0)])
        self.maxpool = P.MaxPool(kernel_size=3, strides=1, pad_mode="same")
        self.b4 = Conv2dBlock(in_channels, pool_planes, kernel_size=1)
        self.concat = P.Concat(axis=1)

    def construct(self, x):
        branch1 = self.b1(x)
        branch2 = self.b2(x)
        branch3 = self.b3(x)
        cell = self.maxpool(x)
        branch4 = self.b4(cell)
        return self.concat((branch1, branch2, branch3, branch4))


class GoogleNet(nn.Cell):
    def __init__(self, num_classes, include_top=True):
        super(GoogleNet, self).__init__()
        self.conv1 = Conv2dBlock(3, 8, kernel_size=7, stride=2, padding=0)
        self.maxpool1 = P.MaxPool(kernel_size=3, strides=2, pad_mode="same")
        self.conv2 = Conv2dBlock(8, 8, kernel_size=1)
        self.block3a = Inception(8, 4, 4, 8, 2, 4, 4)
        self.block3b = Inception(20, 8, 4, 8, 2, 4, 4)
        self.maxpool3 = P.MaxPool(kernel_size=3, strides=2, pad_mode="same")
        self.block4a = Inception(24, 8, 4, 8, 2, 4, 4)
        self.include_top = include_top
        if self.include_top:
            self.mean = P.ReduceMean(keep_dims=True)
            self.flatten = nn.Flatten()
            self.classifier = nn.Dense(24, num_classes, weight_init=weight_variable(), bias_init=weight_variable())

    def construct(self, x):
        x = self.conv1(x)
        x = self.maxpool1(x)
        x = self.conv2(x)
        x = self.block3a(x)
        x = self.block3b(x)
        x = self.maxpool3(x)
        x = self.block4a(x)
        if not self.include_top:
            return x
        x = self.mean(x, (2, 3))
        x = self.flatten(x)
        x = self.classifier(x)
        return x


class CrossEntropySmooth(LossBase):
    def __init__(self, sparse=True, reduction="mean", smooth_factor=0., num_classes=1000):
        super(CrossEntropySmooth, self).__init__()
        self.onehot = P.OneHot()
        self.sparse = sparse
        self.on_value = Tensor(1.0 - smooth_factor, mstype.float32)
        self.off_value = Tensor(1.0 * smooth_factor / (num_classes - 1), mstype.float32)
        self.ce = nn.SoftmaxCrossEntropyWithLogits(reduction=reduction)

    def construct(self, logit, label):
        if self.sparse:
            label = self.onehot(label, F.shape(logit)[1], self.on_value, self.off_value)
        loss = self.ce(logit, label)
        return loss


def lr_steps(global_step, lr_init, lr_max, warmup, total):
    each = []
    for i in range(total):
        each.append(lr_init + (lr_max - lr_init) * (i + 1) / warmup if i < warmup else lr_max * (0.5 ** (i // 2)))
    return np.array(each).astype(np.float32)[global_step:]


def get_param_groups(network):
    decay_params, no_decay_params = [], []
    for x in network.trainable_params():
        parameter_name = x.name
        if parameter_name.endswith(".bias") or parameter_name.endswith(".gamma") or parameter_name.endswith(".beta"):
            no_decay_params.append(x)
        else:
            decay_params.append(x)
    return [{"params": no_decay_params, "weight_decay": 0.0}, {"params": decay_params}]


class Report(Callback):
    def step_end(self, run_context):
        cb_params = run_context.original_args()
        loss = cb_params.net_outputs
        report(loss)


net = begin(GoogleNet(10))
rng = np.random.RandomState(2)
images, labels = rng.rand(24, 3, 32, 32).astype(np.float32), rng.randint(0, 10, 24).astype(np.int32)
dataset = ds.NumpySlicesDataset({"image": images, "label": labels}, shuffle=False).batch(8, drop_remainder=True)
opt = Momentum(params=get_param_groups(net), learning_rate=Tensor(lr_steps(0, 0.01, 0.1, 2, 10)), momentum=0.9, weight_decay=5e-4, loss_scale=1024)
model = Model(net, loss_fn=CrossEntropySmooth(sparse=True, reduction="mean", smooth_factor=0.1, num_classes=10), optimizer=opt, metrics={"acc"},
              keep_batchnorm_fp32=False, loss_scale_manager=FixedLossScaleManager(1024, drop_overflow_update=False))
model.train(1, dataset, callbacks=[Report()], dataset_sink_mode=False)
print(model.eval(dataset, dataset_sink_mode=False)["acc"])
finish(net)
