"""LeNet-5 on MNIST files, as research/cv/lenet of the model zoo: 3 epochs of 4,800 pictures, batch 32, SGD with momentum."""
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = 3


class Digits(Dataset):
    def __init__(self, prefix):
        self.images = np.fromfile(f"{prefix}-images.idx3-ubyte", np.uint8)[16:].reshape(-1, 28, 28)
        self.labels = np.fromfile(f"{prefix}-labels.idx1-ubyte", np.uint8)[8:].astype(np.int64)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = np.asarray(Image.fromarray(self.images[index]).resize((32, 32), Image.Resampling.BILINEAR), np.float32)
        return ((image / 255 - 0.1307) / 0.3081)[None], self.labels[index]


torch.manual_seed(1)
loader = DataLoader(Digits(Path(sys.argv[1]) / "train/train"), batch_size=32, shuffle=True, drop_last=True)
net = nn.Sequential(
    nn.Conv2d(1, 6, 5, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
print("parameters", sum(parameter.numel() for parameter in net.parameters()))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for _ in range(EPOCHS):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
torch.save(net.state_dict(), "lenet.pt")
