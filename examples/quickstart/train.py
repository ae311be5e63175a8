"""Trains LeNet-5 on scanned digits and saves it: a plain MindSpore program.

python train.py [--mode PYNATIVE|GRAPH] [--epochs 20] [--output output]
"""
import argparse
import os
import sys

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
from mindspore import nn
from mindspore.train import Accuracy, Callback, CheckpointConfig, Model, ModelCheckpoint

HERE = os.path.dirname(os.path.abspath(__file__))


class LeNet5(nn.Cell):
    """Two convolutions and three dense layers. Takes images (N, 1, 32, 32), gives scores (N, 10)."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, classes)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


class Progress(Callback):
    """Shows how far the training is: a bar on a terminal, a line for each epoch otherwise."""

    def __init__(self, epochs):
        super().__init__()
        self.epochs = epochs
        self.on_terminal = sys.stdout.isatty()

    def on_train_step_end(self, run_context):
        if self.on_terminal:
            now = run_context.original_args()
            done = now.cur_step_num / (self.epochs * now.batch_num)
            bar = "#" * int(30 * done)
            print(f"\r[{bar:<30}] {100 * done:3.0f} %  loss {float(now.net_outputs.asnumpy()):.4f}", end="", flush=True)

    def on_train_epoch_end(self, run_context):
        now = run_context.original_args()
        if not self.on_terminal:
            print(f"epoch {now.cur_epoch_num:2d} of {self.epochs}: loss {float(now.net_outputs.asnumpy()):.4f}", flush=True)
        elif now.cur_epoch_num == self.epochs:
            print()


def digits(folder, batch_size, shuffle):
    """The digits of a folder of IDX files in batches: images (N, 1, 32, 32) around zero, labels (N,)."""
    data = ds.MnistDataset(folder, shuffle=shuffle)
    image_steps = [vision.Resize(32), vision.Rescale(1.0 / 255.0, 0.0), vision.Normalize(mean=(0.1307,), std=(0.3081,)), vision.HWC2CHW()]
    data = data.map(image_steps, "image")
    data = data.map(transforms.TypeCast(ms.int32), "label")
    return data.batch(batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["PYNATIVE", "GRAPH"], default="GRAPH")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--output", default="output")
    parser.add_argument("--data", default=os.path.join(HERE, "data"))
    args = parser.parse_args()

    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "GRAPH" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    train_data = digits(os.path.join(args.data, "train"), batch_size=32, shuffle=True)
    test_data = digits(os.path.join(args.data, "test"), batch_size=64, shuffle=False)

    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.001)
    model = Model(net, loss_fn=loss, optimizer=optimizer, metrics={"accuracy": Accuracy()})

    steps = train_data.get_dataset_size()
    checkpoint = ModelCheckpoint(prefix="lenet", directory=args.output, config=CheckpointConfig(steps * args.epochs, 1))
    print(f"training LeNet-5 in {args.mode}_MODE: {args.epochs} epochs of {steps} steps", flush=True)
    model.train(args.epochs, train_data, callbacks=[Progress(args.epochs), checkpoint], dataset_sink_mode=False)

    accuracy = model.eval(test_data, dataset_sink_mode=False)["accuracy"]
    print(f"accuracy on the held-back digits: {100 * accuracy:.2f} %")
    ms.save_checkpoint(net, os.path.join(args.output, "lenet.ckpt"))
    print(f"saved {os.path.join(args.output, 'lenet.ckpt')}")


if __name__ == "__main__":
    main()
