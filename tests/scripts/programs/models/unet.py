"""U-Net for segmentation: transposed convolutions, skip connections by crop and concat, dice and cross-entropy loss, own metric."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops.operations as P
import numpy as np
from mindspore import Tensor, context
from mindspore.nn.loss.loss import LossBase
from mindspore.ops import functional as F

from measured import MODE, begin, report, train

context.set_context(mode=MODE, device_target="CPU", save_graphs=False)


def conv_bn_relu(in_channel, out_channel, use_bn=True, kernel_size=3, stride=1, pad_mode="same", activation="relu"):
    output = [nn.Conv2d(in_channel, out_channel, kernel_size, stride, pad_mode=pad_mode)]
    if use_bn:
        output.append(nn.BatchNorm2d(out_channel))
    if activation:
        output.append(nn.get_activation(activation))
    return nn.SequentialCell(output)


class UnetConv2d(nn.Cell):
    def __init__(self, in_channel, out_channel, use_bn=True, num_layer=2):
        super(UnetConv2d, self).__init__()
        self.num_layer = num_layer
        convs = []
        for _ in range(num_layer):
            convs.append(conv_bn_relu(in_channel, out_channel, use_bn))
            in_channel = out_channel
        self.convs = nn.CellList(convs)

    def construct(self, inputs):
        x = inputs
        for conv in self.convs:
            x = conv(x)
        return x


class UnetUp(nn.Cell):
    def __init__(self, in_channel, out_channel, use_deconv=True, n_concat=2):
        super(UnetUp, self).__init__()
        self.conv = UnetConv2d(in_channel + (n_concat - 2) * out_channel, out_channel, False)
        self.concat = P.Concat(axis=1)
        self.use_deconv = use_deconv
        if use_deconv:
            self.up_conv = nn.Conv2dTranspose(in_channel, out_channel, kernel_size=2, stride=2, pad_mode="same")
        else:
            self.up_conv = nn.Conv2d(in_channel, out_channel, 1)

    def construct(self, high_feature, *low_feature):
        if self.use_deconv:
            output = self.up_conv(high_feature)
        else:
            _, _, h, w = F.shape(high_feature)
            output = P.ResizeNearestNeighbor((h * 2, w * 2))(high_feature)
            output = self.up_conv(output)
        for feature in low_feature:
            output = self.concat((output, feature))
        return self.conv(output)


class UNet(nn.Cell):
    def __init__(self, in_channel=1, n_class=2, width=4):
        super(UNet, self).__init__()
        filters = [width, width * 2, width * 4]
        self.maxpool = nn.MaxPool2d(kernel_size=2, stride=2, pad_mode="same")
        self.conv0 = UnetConv2d(in_channel, filters[0])
        self.conv1 = UnetConv2d(filters[0], filters[1])
        self.conv2 = UnetConv2d(filters[1], filters[2])
        self.up1 = UnetUp(filters[2], filters[1])
        self.up0 = UnetUp(filters[1], filters[0], use_deconv=False)
        self.final = nn.Conv2d(filters[0], n_class, 1)

    def construct(self, inputs):
        x0 = self.conv0(inputs)
        x1 = self.conv1(self.maxpool(x0))
        x2 = self.conv2(self.maxpool(x1))
        return self.final(self.up0(self.up1(x2, x1), x0))


class MultiLoss(LossBase):
    """Cross-entropy of every pixel and one minus the dice of the foreground."""

    def __init__(self, smooth=1e-5):
        super(MultiLoss, self).__init__()
        self.ce = nn.SoftmaxCrossEntropyWithLogits(sparse=False)
        self.transpose = P.Transpose()
        self.reshape = P.Reshape()
        self.softmax = nn.Softmax(axis=1)
        self.sum = P.ReduceSum()
        self.smooth = smooth

    def construct(self, predict, target):
        channels = F.shape(predict)[1]
        logits = self.reshape(self.transpose(predict, (0, 2, 3, 1)), (-1, channels))
        labels = self.reshape(self.transpose(target, (0, 2, 3, 1)), (-1, channels))
        entropy = self.ce(logits, labels)
        foreground, expected = self.softmax(predict)[:, 1:], target[:, 1:]
        dice = (2 * self.sum(foreground * expected) + self.smooth) / (self.sum(foreground) + self.sum(expected) + self.smooth)
        return self.get_loss(entropy) + 1 - dice


class DiceCoefficient(nn.Metric):
    def __init__(self):
        super(DiceCoefficient, self).__init__()
        self.clear()

    def clear(self):
        self._sum, self._count = 0, 0

    def update(self, *inputs):
        if len(inputs) != 2:
            raise ValueError("Need 2 inputs (y_pred, y), but got {}".format(len(inputs)))
        y_pred, y = self._convert_data(inputs[0]).argmax(1), self._convert_data(inputs[1]).argmax(1)
        self._sum += 2 * float((y_pred * y).sum()) / float(y_pred.sum() + y.sum() + 1e-8)
        self._count += 1

    def eval(self):
        if self._count == 0:
            raise RuntimeError("Total samples num must not be 0.")
        return self._sum / self._count


random = np.random.RandomState(31)
images = random.rand(2, 1, 32, 32).astype(np.float32)
masks = (images > 0.5).astype(np.float32)
data, target = Tensor(images), Tensor(np.concatenate([1 - masks, masks], 1))
net = begin(UNet())
opt = nn.Adam(params=net.trainable_params(), learning_rate=1e-3, weight_decay=5e-4, eps=1e-4)
train_net = nn.TrainOneStepCell(nn.WithLossCell(net, MultiLoss()), opt)
train_net.set_train()
train(lambda: train_net(data, target), net)
metric = DiceCoefficient()
metric.update(net.set_train(False)(data), target)
report(metric.eval())
