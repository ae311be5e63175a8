"""LeNet-5: 6,400 images of 1 x 32 x 32 from NumPy arrays, batch 32, SGD with momentum."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = 3


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index] * np.float32(0.5), self.labels[index]


rows = np.random.default_rng(0)
labels = rows.integers(0, 10, 6400)
images = (rows.standard_normal((6400, 1, 32, 32)) + labels[:, None, None, None] / 5).astype(np.float32)

torch.manual_seed(1)
loader = DataLoader(Images(images, labels), batch_size=32, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for _ in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 200 == 0:
            print("loss", loss.item())
net.eval()
with torch.no_grad():
    print("accuracy", sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(labels))
