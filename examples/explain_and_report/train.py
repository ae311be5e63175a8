"""Classifies sentences with a TextCNN, written as the programs of MindSpore's model zoo are: for MindSpore 1.x, with a config and options.

torchspore run --device CPU train.py                     # the program requests Ascend
torchspore explain --device CPU train.py                 # also prints what each option did
torchspore run --device CPU --report out train.py        # also writes out/report.html: losses, time, memory, options
"""
import argparse

import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor, context
from mindspore.common import dtype as mstype
from mindspore.common import set_seed
from mindspore.nn.metrics import Accuracy
from mindspore.ops import operations as P
from mindspore.train.callback import LossMonitor

CONFIG = {"vocabulary": 200, "length": 24, "width": 32, "channels": 16, "classes": 3, "batch": 32, "rate": 0.002, "epochs": 3}


class TextCNN(nn.Cell):
    """Embeds words (N, length), convolves windows of 3, 4 and 5 words, and gives scores (N, classes)."""

    def __init__(self, vocabulary, length, width, channels, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        sizes = (3, 4, 5)
        self.convolutions = nn.CellList([nn.Conv2d(1, channels, (size, width), pad_mode="valid", has_bias=True) for size in sizes])
        self.pools = nn.CellList([nn.MaxPool2d((length - size + 1, 1)) for size in sizes])
        self.relu = nn.ReLU()
        self.expand = P.ExpandDims()
        self.concat = P.Concat(1)
        self.reshape = P.Reshape()
        self.drop = nn.Dropout(keep_prob=0.9)
        self.head = nn.Dense(len(sizes) * channels, classes)

    def construct(self, words):
        x = self.expand(self.embedding(words), 1)
        parts = ()
        for convolution, pool in zip(self.convolutions, self.pools):
            parts += (pool(self.relu(convolution(x))),)
        x = self.concat(parts)
        return self.head(self.drop(self.reshape(x, (x.shape[0], -1))))


class Sentences:
    """Sentences of random words, in which some words belong to one class more than to others."""

    def __init__(self, count, seed, vocabulary, length, classes):
        generator = np.random.default_rng(seed)
        self.labels = generator.integers(0, classes, count).astype(np.int32)
        self.words = generator.integers(0, vocabulary, (count, length)).astype(np.int32)
        marked = generator.random((count, length)) < 0.2
        self.words[marked] -= (self.words[marked] - np.repeat(self.labels[:, None], length, 1)[marked]) % classes
        np.clip(self.words, 0, vocabulary - 1, out=self.words)

    def __getitem__(self, index):
        return self.words[index], self.labels[index]

    def __len__(self):
        return len(self.labels)


def create_dataset(count, seed, config, shuffle):
    source = Sentences(count, seed, config["vocabulary"], config["length"], config["classes"])
    data = ds.GeneratorDataset(source, ["words", "label"], shuffle=shuffle)
    return data.batch(config["batch"], drop_remainder=True)


def main():
    parser = argparse.ArgumentParser(description="TextCNN")
    parser.add_argument("--device_target", default="Ascend", choices=["Ascend", "GPU", "CPU"])
    parser.add_argument("--device_id", type=int, default=0)
    args = parser.parse_args()

    set_seed(1)
    context.set_context(mode=context.GRAPH_MODE, device_target=args.device_target, device_id=args.device_id)
    context.set_context(enable_graph_kernel=False, max_call_depth=2000, enable_sparse=False)
    context.set_context(variable_memory_max_size="5GB")

    train_data, test_data = create_dataset(1600, 1, CONFIG, True), create_dataset(320, 2, CONFIG, False)
    net = TextCNN(CONFIG["vocabulary"], CONFIG["length"], CONFIG["width"], CONFIG["channels"], CONFIG["classes"])
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    rate = Tensor(CONFIG["rate"], mstype.float32)
    optimizer = nn.Adam(filter(lambda parameter: parameter.requires_grad, net.get_parameters()), learning_rate=rate)
    model = Model(net, loss_fn=loss, optimizer=optimizer, metrics={"acc": Accuracy()})
    steps = train_data.get_dataset_size()
    model.train(CONFIG["epochs"], train_data, callbacks=[LossMonitor(steps)], dataset_sink_mode=False)
    print("accuracy: {:.3f}".format(model.eval(test_data, dataset_sink_mode=False)["acc"]))


if __name__ == "__main__":
    main()
