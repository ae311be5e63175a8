"""ResNet-18: 128 images of 3 x 32 x 32 with augmentation, batch 32, SGD with a cosine schedule."""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

EPOCHS = 3
MEAN, STD = np.float32([0.49, 0.48, 0.45]), np.float32([0.25, 0.24, 0.26])


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels, self.rows = images, labels, np.random.default_rng(2)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        top, side = self.rows.integers(0, 9, 2)
        image = np.pad(self.images[index], ((4, 4), (4, 4), (0, 0)))[top:top + 32, side:side + 32]
        if self.rows.random() < 0.5:
            image = image[:, ::-1]
        image = (image.astype(np.float32) / 255 - MEAN) / STD
        return np.ascontiguousarray(image.transpose(2, 0, 1)), self.labels[index]


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.shortcut = None
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        blocks, channels = [], 64
        for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
            blocks.append(Block(channels, out, stride))
            channels = out
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


rows = np.random.default_rng(0)
labels = rows.integers(0, 10, 128)
images = rows.integers(0, 256, (128, 32, 32, 3)).astype(np.uint8)

torch.manual_seed(1)
loader = DataLoader(Images(images, labels), batch_size=32, shuffle=True, drop_last=True)
net = ResNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 * (1 + math.cos(math.pi * epoch / EPOCHS)))
for _ in range(EPOCHS):
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    print("loss", loss.item())
