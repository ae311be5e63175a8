"""ResNet-18: 128 images of 3 x 32 x 32 with augmentation, batch 32, Momentum with a cosine schedule, `Model.train`."""
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from execution import EPOCHS
from mindspore import nn, ops
from mindspore.dataset import vision


class Block(nn.Cell):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, pad_mode="pad", padding=1)
        self.conv2 = nn.Conv2d(out, out, 3, 1, pad_mode="pad", padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.shortcut = None
        if stride != 1 or channels != out:
            self.shortcut = nn.SequentialCell(nn.Conv2d(channels, out, 1, stride), nn.BatchNorm2d(out))

    def construct(self, x):
        y = self.norm2(self.conv2(ops.relu(self.norm1(self.conv1(x)))))
        return ops.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(3, 64, 3, 1, pad_mode="pad", padding=1), nn.BatchNorm2d(64), nn.ReLU())
        blocks, channels = [], 64
        for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
            blocks.append(Block(channels, out, stride))
            channels = out
        self.blocks, self.head = nn.SequentialCell(blocks), nn.Dense(512, 10)

    def construct(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


rows = np.random.default_rng(0)
labels = rows.integers(0, 10, 128).astype(np.int32)
images = rows.integers(0, 256, (128, 32, 32, 3)).astype(np.uint8)

ms.set_seed(1)
dataset = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True)
dataset = dataset.map([
    vision.RandomCrop(32, padding=4), vision.RandomHorizontalFlip(), vision.Rescale(1 / 255, 0.0),
    vision.Normalize([0.49, 0.48, 0.45], [0.25, 0.24, 0.26]), vision.HWC2CHW()], "image").batch(32, drop_remainder=True)
net = ResNet()
rates = nn.cosine_decay_lr(0.0, 0.05, dataset.get_dataset_size() * EPOCHS, dataset.get_dataset_size(), EPOCHS)
optimizer = nn.Momentum(net.trainable_params(), rates, 0.9, weight_decay=5e-4)
model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(EPOCHS, dataset, callbacks=[ms.LossMonitor(8)], dataset_sink_mode=False)
