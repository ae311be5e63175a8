"""LeNet-5 as the 1.x model zoo trained it: Model.train, LossMonitor, ModelCheckpoint, eval with Accuracy."""
import argparse
import os

import mindspore.dataset as ds
import mindspore.dataset.transforms.c_transforms as C
import mindspore.dataset.vision.c_transforms as CV
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore import dtype as mstype
from mindspore.common.initializer import Normal, TruncatedNormal
from mindspore.dataset.vision import Inter
from mindspore.nn.metrics import Accuracy
from mindspore.train import Model
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint, TimeMonitor
from mindspore.train.serialization import load_checkpoint, load_param_into_net


class LeNet5(nn.Cell):
    """Lenet network structure."""

    def __init__(self, num_class=10, num_channel=1):
        super(LeNet5, self).__init__()
        self.conv1 = nn.Conv2d(num_channel, 6, 5, pad_mode="valid", weight_init=TruncatedNormal(0.02))
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init=Normal(0.02))
        self.fc2 = nn.Dense(120, 84, weight_init=Normal(0.02))
        self.fc3 = nn.Dense(84, num_class, weight_init=Normal(0.02))
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        x = self.fc3(x)
        return x


def make_digits(count, seed):
    centres = np.random.RandomState(7).randint(0, 255, (10, 28, 28, 1))
    rng = np.random.RandomState(seed)
    for _ in range(count):
        label = rng.randint(0, 10)
        image = centres[label] + rng.randint(-60, 60, (28, 28, 1))
        yield np.clip(image, 0, 255).astype(np.uint8), np.array(label, np.int32)


def create_dataset(count, seed, batch_size=32, repeat_size=1, num_parallel_workers=1):
    mnist_ds = ds.GeneratorDataset(list(make_digits(count, seed)), ["image", "label"], shuffle=False)
    resize_op = CV.Resize((32, 32), interpolation=Inter.NEAREST)
    rescale_nml_op = CV.Rescale(1 / 0.3081, -1 * 0.1307 / 0.3081)
    rescale_op = CV.Rescale(1.0 / 255.0, 0.0)
    hwc2chw_op = CV.HWC2CHW()
    type_cast_op = C.TypeCast(mstype.int32)
    mnist_ds = mnist_ds.map(operations=type_cast_op, input_columns="label", num_parallel_workers=num_parallel_workers)
    mnist_ds = mnist_ds.map(operations=[resize_op, rescale_op], input_columns="image", num_parallel_workers=num_parallel_workers)
    mnist_ds = mnist_ds.map(operations=rescale_nml_op, input_columns="image", num_parallel_workers=num_parallel_workers)
    mnist_ds = mnist_ds.map(operations=hwc2chw_op, input_columns="image", num_parallel_workers=num_parallel_workers)
    return mnist_ds.batch(batch_size, drop_remainder=True).repeat(repeat_size)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MindSpore LeNet Example")
    parser.add_argument("mode", nargs="?", default="pynative", choices=["graph", "pynative"])
    parser.add_argument("--device_target", type=str, default="CPU", choices=["Ascend", "GPU", "CPU"])
    args = parser.parse_args()
    context.set_context(mode=context.GRAPH_MODE if args.mode == "graph" else context.PYNATIVE_MODE, device_target=args.device_target)
    network = LeNet5()
    weights = np.random.RandomState(1)
    for parameter in network.trainable_params():
        shape = parameter.shape
        fan = np.prod(shape[1:]) if len(shape) > 1 else 1
        value = weights.uniform(-1, 1, shape) / np.sqrt(fan) if len(shape) > 1 else np.zeros(shape)
        parameter.set_data(Tensor(value, mstype.float32))
    net_loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    net_opt = nn.Momentum(network.trainable_params(), 0.01, 0.9)
    config_ck = CheckpointConfig(save_checkpoint_steps=5, keep_checkpoint_max=2)
    ckpoint_cb = ModelCheckpoint(prefix="checkpoint_lenet", directory="ckpt", config=config_ck)
    model = Model(network, net_loss, net_opt, metrics={"Accuracy": Accuracy(), "loss": nn.Loss()})
    model.train(2, create_dataset(320, 0), callbacks=[ckpoint_cb, LossMonitor(2)], dataset_sink_mode=False)
    print(sorted(name for name in os.listdir("ckpt") if name.endswith(".ckpt")))
    param_dict = load_checkpoint("ckpt/checkpoint_lenet-2_10.ckpt")
    print(sorted(param_dict))
    load_param_into_net(network, param_dict)
    acc = model.eval(create_dataset(64, 5), dataset_sink_mode=False)
    print("============== Accuracy:{} ==============".format({key: round(float(value), 4) for key, value in acc.items()}))
