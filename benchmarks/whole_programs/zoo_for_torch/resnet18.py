"""ResNet-18 on CIFAR-10 files, as official/cv/ResNet of the model zoo: 2 epochs of 500 pictures of 64 x 64, batch 32, SGD with momentum."""
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS, SIZE = 2, 64
MEAN, STD = np.float32([0.4914, 0.4822, 0.4465]), np.float32([0.2023, 0.1994, 0.2010])


class Pictures(Dataset):
    def __init__(self, folder):
        rows = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, 3073) for path in sorted(folder.glob("data_batch_*.bin"))])
        self.labels = rows[:, 0].astype(np.int64)
        self.images = np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        top, side = np.random.randint(0, 9, 2)
        image = np.pad(self.images[index], ((4, 4), (4, 4), (0, 0)))[top:top + 32, side:side + 32]
        if np.random.random() < 0.5:
            image = image[:, ::-1]
        image = np.asarray(Image.fromarray(np.ascontiguousarray(image)).resize((SIZE, SIZE), Image.Resampling.BILINEAR), np.float32)
        return np.ascontiguousarray(((image / 255 - MEAN) / STD).transpose(2, 0, 1)), self.labels[index]


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
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def build_net():
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(channels, out, stride))
        channels = out
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.xavier_uniform_(layer.weight)
        elif isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=0.01)
    return net


np.random.seed(1)
torch.manual_seed(1)
loader = DataLoader(Pictures(Path(sys.argv[1])), batch_size=32, shuffle=True, drop_last=True)
net = build_net()
print("parameters", sum(parameter.numel() for parameter in net.parameters()))
groups = [{"params": [parameter for parameter in net.parameters() if parameter.dim() > 1], "weight_decay": 1e-4},
          {"params": [parameter for parameter in net.parameters() if parameter.dim() == 1]}]
optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
warmup = 5 * len(loader)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 + 0.9 * step / warmup)
for _ in range(EPOCHS):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print("loss", loss.item())
torch.save(net.state_dict(), "resnet18.pt")
