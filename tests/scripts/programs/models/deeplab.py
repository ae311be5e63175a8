"""FCN and DeepLab heads over one backbone: dilated convolutions, ASPP with global pooling, bilinear resizing, an ignored label (1.x)."""
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor, context
from mindspore import dtype as mstype
from mindspore.ops import operations as P
from mindspore.train.callback import Callback

from measured import MODE, begin, finish, report

context.set_context(mode=MODE, device_target="CPU")


class ASPP(nn.Cell):
    def __init__(self, in_channels, out_channels, rates):
        super(ASPP, self).__init__()
        self.branches = nn.CellList([
            nn.SequentialCell([nn.Conv2d(in_channels, out_channels, 1 if rate == 1 else 3, pad_mode="pad", padding=0 if rate == 1 else rate,
                                         dilation=rate), nn.BatchNorm2d(out_channels), nn.ReLU()])
            for rate in rates])
        self.pool_conv = nn.SequentialCell([nn.Conv2d(in_channels, out_channels, 1), nn.ReLU()])
        self.mean = P.ReduceMean(keep_dims=True)
        self.concat = P.Concat(axis=1)
        self.project = nn.Conv2d(out_channels * (len(rates) + 1), out_channels, 1, weight_init="xavier_uniform")
        self.drop = nn.Dropout(p=0.0)

    def construct(self, x):
        size = P.Shape()(x)
        pooled = self.pool_conv(self.mean(x, (2, 3)))
        out = (P.ResizeNearestNeighbor((size[2], size[3]), True)(pooled),)
        for branch in self.branches:
            out += (branch(x),)
        return self.drop(self.project(self.concat(out)))


class Segmenter(nn.Cell):
    def __init__(self, num_classes=5):
        super(Segmenter, self).__init__()
        self.low = nn.SequentialCell([nn.Conv2d(3, 8, 3, stride=2, weight_init="xavier_uniform"), nn.BatchNorm2d(8), nn.ReLU()])
        self.high = nn.SequentialCell([nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
                                       nn.Conv2d(16, 16, 3, dilation=2), nn.BatchNorm2d(16), nn.ReLU()])
        self.aspp = ASPP(16, 12, [1, 2, 3])
        self.score = nn.Conv2d(12, num_classes, 1, has_bias=True)
        self.fcn = nn.SequentialCell([nn.Conv2d(8, num_classes, 1, has_bias=True)])
        self.upscore = nn.Conv2dTranspose(num_classes, num_classes, kernel_size=4, stride=2, has_bias=False, weight_init="xavier_uniform")
        self.add = P.Add()

    def construct(self, x):
        size = x.shape[2:]
        low = self.low(x)
        fused = self.add(self.upscore(self.score(self.aspp(self.high(low)))), self.fcn(low))
        return P.ResizeBilinearV2(align_corners=True)(fused, size)


class SoftmaxCrossEntropyLoss(nn.Cell):
    def __init__(self, num_cls=5, ignore_label=255):
        super(SoftmaxCrossEntropyLoss, self).__init__()
        self.one_hot = P.OneHot(axis=-1)
        self.on_value = Tensor(1.0, mstype.float32)
        self.off_value = Tensor(0.0, mstype.float32)
        self.cast = P.Cast()
        self.ce = nn.SoftmaxCrossEntropyWithLogits()
        self.not_equal = P.NotEqual()
        self.num_cls = num_cls
        self.ignore_label = ignore_label
        self.mul = P.Mul()
        self.sum = P.ReduceSum(False)
        self.div = P.RealDiv()
        self.transpose = P.Transpose()
        self.reshape = P.Reshape()

    def construct(self, logits, labels):
        labels_int = self.cast(labels, mstype.int32)
        labels_int = self.reshape(labels_int, (-1,))
        logits_ = self.transpose(logits, (0, 2, 3, 1))
        logits_ = self.reshape(logits_, (-1, self.num_cls))
        weights = self.not_equal(labels_int, self.ignore_label)
        weights = self.cast(weights, mstype.float32)
        one_hot_labels = self.one_hot(labels_int, self.num_cls, self.on_value, self.off_value)
        loss = self.ce(logits_, one_hot_labels)
        loss = self.mul(weights, loss)
        return self.div(self.sum(loss), self.sum(weights))


class Batches:
    def __init__(self):
        random = np.random.RandomState(61)
        self.images = random.uniform(-1, 1, (6, 3, 24, 24)).astype(np.float32)
        self.labels = random.randint(0, 5, (6, 24, 24)).astype(np.int32)
        self.labels[random.rand(6, 24, 24) > 0.9] = 255

    def __getitem__(self, index):
        return self.images[index], self.labels[index]

    def __len__(self):
        return 6


class Losses(Callback):
    def step_end(self, run_context):
        report(run_context.original_args().net_outputs)


import mindspore.dataset as ds  # noqa: E402

dataset = ds.GeneratorDataset(Batches(), ["data", "label"], shuffle=False).batch(2)
net = begin(Segmenter(), 3)
loss = SoftmaxCrossEntropyLoss()
loss.add_flags_recursive(fp32=True)
opt = nn.Momentum(net.trainable_params(), nn.polynomial_decay_lr(0.02, 0.0001, 6, 3, 2, 0.9), momentum=0.9, weight_decay=1e-4)
model = Model(net, loss, opt)
model.train(2, dataset, callbacks=[Losses()], dataset_sink_mode=False)
finish(net)
