"""DenseNet: features are concatenated, average-pool transitions, AdamWeightDecay with a warm-up and polynomial schedule of one's own."""
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor, context
from mindspore.common import dtype as mstype
from mindspore.nn.learning_rate_schedule import LearningRateSchedule, PolynomialDecayLR, WarmUpLR

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")


class _DenseLayer(nn.Cell):
    def __init__(self, num_input_features, growth_rate, bn_size):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, 1, pad_mode="valid")
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, 3, pad_mode="pad", padding=1)
        self.relu = nn.ReLU()

    def construct(self, features):
        bottleneck = self.conv1(self.relu(self.norm1(features)))
        return self.conv2(self.relu(self.norm2(bottleneck)))


class _DenseBlock(nn.Cell):
    def __init__(self, num_layers, num_input_features, bn_size, growth_rate):
        super().__init__()
        self.cell_list = nn.CellList()
        for i in range(num_layers):
            self.cell_list.append(_DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size))
        self.concate = ops.Concat(axis=1)

    def construct(self, init_features):
        features = init_features
        for layer in self.cell_list:
            features = self.concate((features, layer(features)))
        return features


class DenseNet(nn.Cell):
    def __init__(self, growth_rate=6, block_config=(2, 3, 2), num_init_features=12, bn_size=2, num_classes=10):
        super().__init__()
        layers = nn.SequentialCell()
        layers.append(nn.Conv2d(3, num_init_features, 3, stride=1, padding=1, pad_mode="pad"))
        num_features = num_init_features
        for i, num_layers in enumerate(block_config):
            layers.append(_DenseBlock(num_layers, num_features, bn_size, growth_rate))
            num_features = num_features + num_layers * growth_rate
            if i != len(block_config) - 1:
                layers.append(nn.SequentialCell([nn.BatchNorm2d(num_features), nn.ReLU(), nn.Conv2d(num_features, num_features // 2, 1),
                                                 nn.AvgPool2d(kernel_size=2, stride=2)]))
                num_features = num_features // 2
        layers.append(nn.BatchNorm2d(num_features))
        self.features = layers
        self.classifier = nn.Dense(num_features, num_classes)

    def construct(self, x):
        x = ops.ReLU()(self.features(x))
        x = ops.ReduceMean()(x, (2, 3))
        return self.classifier(x)


class WarmupPolynomial(LearningRateSchedule):
    def __init__(self, learning_rate, end_learning_rate, warmup_steps, decay_steps, power):
        super().__init__()
        self.warmup_lr = WarmUpLR(learning_rate, warmup_steps)
        self.decay_lr = PolynomialDecayLR(learning_rate, end_learning_rate, decay_steps, power)
        self.warmup_steps = Tensor(np.array([warmup_steps]).astype(np.float32))
        self.greater = ops.Greater()
        self.one = Tensor(np.array([1.0]).astype(np.float32))
        self.cast = ops.Cast()

    def construct(self, global_step):
        decay_lr = self.decay_lr(global_step)
        is_warmup = self.cast(self.greater(self.warmup_steps, global_step), mstype.float32)
        warmup_lr = self.warmup_lr(global_step)
        return (self.one - is_warmup) * decay_lr + is_warmup * warmup_lr


random = np.random.RandomState(7)
images, labels = Tensor(random.rand(4, 3, 16, 16).astype(np.float32)), Tensor(random.randint(0, 10, 4).astype(np.int32))
net = begin(DenseNet(), 9)
opt = nn.AdamWeightDecay(net.trainable_params(), WarmupPolynomial(0.002, 0.0, 2, 20, 1.0), eps=1e-3, weight_decay=0.01)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")), opt).set_train()
train(lambda: step(images, labels), net)
