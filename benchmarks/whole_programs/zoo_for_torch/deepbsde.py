"""DeepBSDE for an equation in 100 dimensions, as research/hpc/deepbsde of the model zoo: 200 steps, batch 64, Adam."""
import math

import numpy as np
import torch
from torch import nn

STEPS, BATCH, VALID, DIM, INTERVALS, HIDDEN = 200, 64, 256, 100, 20, 110
DELTA = 1.0 / INTERVALS


def build_subnet():
    """Return the network of one point in time: batch norms around three linear layers."""
    layers = [nn.BatchNorm1d(DIM, eps=1e-6, momentum=0.01)]
    for inputs, outputs in ((DIM, HIDDEN), (HIDDEN, HIDDEN)):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs, eps=1e-6, momentum=0.01), nn.ReLU()]
    layers += [nn.Linear(HIDDEN, DIM), nn.BatchNorm1d(DIM, eps=1e-6, momentum=0.01)]
    for layer in layers:
        if isinstance(layer, nn.BatchNorm1d):
            nn.init.normal_(layer.bias, std=0.01)
            nn.init.uniform_(layer.weight, -0.07, 0.07)
    return nn.Sequential(*layers)


class DeepBSDE(nn.Module):
    def __init__(self):
        super().__init__()
        self.y = nn.Parameter(torch.rand(1))
        self.z = nn.Parameter(torch.rand(1, DIM) * 0.2 - 0.1)
        self.subnets = nn.ModuleList(build_subnet() for _ in range(INTERVALS - 1))

    def forward(self, dw, x):
        y, z = self.y.expand(len(dw), 1), self.z.expand(len(dw), DIM)
        for t in range(INTERVALS):
            y = y + DELTA * (z * z).sum(1, keepdim=True) + (z * dw[:, :, t]).sum(1, keepdim=True)
            if t < INTERVALS - 1:
                z = self.subnets[t](x[:, :, t + 1]) / DIM
        delta = (y - torch.log((1 + (x[:, :, -1] ** 2).sum(1, keepdim=True)) / 2)).abs()
        return torch.where(delta < 50.0, delta * delta, 100.0 * delta - 2500.0).sum()


def sample(rows):
    """Return Brownian motions and the paths of the process."""
    dw = (np.random.normal(size=(rows, DIM, INTERVALS)) * math.sqrt(DELTA)).astype(np.float32)
    x = np.concatenate((np.zeros((rows, DIM, 1), np.float32), math.sqrt(2) * dw.cumsum(2)), 2)
    return torch.from_numpy(dw), torch.from_numpy(x.astype(np.float32))


np.random.seed(1)
torch.manual_seed(1)
net = DeepBSDE()
print("parameters", sum(parameter.numel() for parameter in net.parameters()))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
valid = sample(VALID)
for _ in range(STEPS):
    loss = net(*sample(BATCH))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
net.eval()
with torch.no_grad():
    print("eval loss", net(*valid).item(), "y", net.y.item())
torch.save(net.state_dict(), "deepbsde.pt")
