"""AlexNet with narrow layers, trained by Model.train with a GeneratorDataset, callbacks and an accuracy at the end (1.x)."""
import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
from mindspore import Model, context
from mindspore.nn.metrics import Accuracy
from mindspore.ops import operations as P
from mindspore.train.callback import Callback

from measured import MODE, begin, finish, report

context.set_context(mode=MODE, device_target="CPU")


def conv(in_channels, out_channels, kernel_size, stride=1, padding=0, pad_mode="valid", has_bias=True):
    return nn.Conv2d(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                     has_bias=has_bias, pad_mode=pad_mode)


class AlexNet(nn.Cell):
    def __init__(self, num_classes=10, channel=3, width=8):
        super(AlexNet, self).__init__()
        self.conv1 = conv(channel, width, 7, stride=2, has_bias=True)
        self.conv2 = conv(width, 2 * width, 5, pad_mode="same")
        self.conv3 = conv(2 * width, 3 * width, 3, pad_mode="same")
        self.conv4 = conv(3 * width, 3 * width, 3, pad_mode="same")
        self.conv5 = conv(3 * width, 2 * width, 3, pad_mode="same")
        self.relu = P.ReLU()
        self.max_pool2d = P.MaxPool(kernel_size=3, strides=2, pad_mode="valid")
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(2 * width * 2 * 2, 64)
        self.fc2 = nn.Dense(64, 64)
        self.fc3 = nn.Dense(64, num_classes)
        self.dropout = nn.Dropout(p=0.0)

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.relu(self.conv3(x))
        x = self.relu(self.conv4(x))
        x = self.max_pool2d(self.relu(self.conv5(x)))
        x = self.flatten(x)
        x = self.dropout(self.relu(self.fc1(x)))
        x = self.dropout(self.relu(self.fc2(x)))
        return self.fc3(x)


def pictures():
    random = np.random.RandomState(3)
    for _ in range(48):
        yield random.uniform(-1, 1, (3, 64, 64)).astype(np.float32), np.array(random.randint(0, 10), np.int32)


class StepLosses(Callback):
    def step_end(self, run_context):
        cb_params = run_context.original_args()
        loss = cb_params.net_outputs
        report(loss)


def get_lr(current_step, lr_max, total_epochs, steps_per_epoch):
    total_steps = total_epochs * steps_per_epoch
    lr_each_step = [lr_max * (1 - 0.9 * step / total_steps) for step in range(total_steps)]
    return np.array(lr_each_step).astype(np.float32)[current_step:]


dataset = ds.GeneratorDataset(pictures, ["image", "label"], shuffle=False).batch(8, drop_remainder=True)
network = begin(AlexNet())
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
from mindspore import Tensor  # noqa: E402

opt = nn.Momentum(network.trainable_params(), Tensor(get_lr(0, 0.02, 1, 6)), 0.9, weight_decay=1e-4)
model = Model(network, loss_fn=loss, optimizer=opt, metrics={"Accuracy": Accuracy(), "loss": nn.Loss()})
model.train(1, dataset, callbacks=[StepLosses()], dataset_sink_mode=False)
result = model.eval(dataset, dataset_sink_mode=False)
finish(network)
report(result["Accuracy"], result["loss"])
