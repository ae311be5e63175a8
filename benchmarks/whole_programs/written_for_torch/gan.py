"""A GAN on 3,200 images of 28 x 28: two networks, two Adams."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
LATENT = 64

rows = np.random.default_rng(0)
images = np.tanh(rows.standard_normal((3200, 784))).astype(np.float32)

torch.manual_seed(1)
loader = DataLoader(TensorDataset(torch.from_numpy(images)), batch_size=32, shuffle=True, drop_last=True)
generator = nn.Sequential(
    nn.Linear(LATENT, 128), nn.LeakyReLU(0.2), nn.Linear(128, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2),
    nn.Linear(256, 512), nn.BatchNorm1d(512), nn.LeakyReLU(0.2), nn.Linear(512, 784), nn.Tanh())
discriminator = nn.Sequential(
    nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1), nn.Sigmoid())
loss_function = nn.BCELoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
real, wrong = torch.ones(32, 1), torch.zeros(32, 1)
for _ in range(EPOCHS):
    for (image,) in loader:
        optimizer_g.zero_grad()
        fake = generator(torch.from_numpy(rows.standard_normal((32, LATENT)).astype(np.float32)))
        loss_g = loss_function(discriminator(fake), real)
        loss_g.backward()
        optimizer_g.step()
        optimizer_d.zero_grad()
        loss_d = (loss_function(discriminator(image), real) + loss_function(discriminator(fake.detach()), wrong)) / 2
        loss_d.backward()
        optimizer_d.step()
    print("losses", loss_g.item(), loss_d.item())
