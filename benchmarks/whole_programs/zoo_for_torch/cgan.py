"""A conditional GAN on MNIST files, as research/cv/CGAN of the model zoo: 2 epochs of 960 pictures, batch 64, two Adams."""
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS, BATCH, LATENT, WIDTH = 2, 64, 100, 64


class Digits(Dataset):
    def __init__(self, folder):
        self.images = np.fromfile(folder / "train-images-idx3-ubyte", np.uint8)[16:].reshape(-1, 28, 28)
        self.labels = np.fromfile(folder / "train-labels-idx1-ubyte", np.uint8)[8:].astype(np.int64)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index]).resize((32, 32), Image.Resampling.BILINEAR)
        return np.asarray(image, np.float32)[None] / 255, self.labels[index]


def build_layers(channels, convolution, activation):
    """Return convolutions of 4 x 4 with a norm of all channels and an activation; a tuple is inputs, outputs, stride and padding."""
    layers = []
    for inputs, outputs, stride, padding in channels:
        layers += [convolution(inputs, outputs, 4, stride, padding, bias=False), nn.GroupNorm(1, outputs), activation]
    return layers


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 100)
        channels = ((LATENT + 100, 4 * WIDTH, 1, 0), (4 * WIDTH, 2 * WIDTH, 2, 1), (2 * WIDTH, WIDTH, 2, 1))
        self.layers = nn.Sequential(
            *build_layers(channels, nn.ConvTranspose2d, nn.ReLU()), nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1, bias=False), nn.Sigmoid())

    def forward(self, noise, labels):
        return self.layers(torch.cat((noise, self.embedding(labels)), 1)[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 32 * 32)
        channels = ((2, WIDTH, 2, 1), (WIDTH, 2 * WIDTH, 2, 1), (2 * WIDTH, 4 * WIDTH, 2, 1))
        self.layers = nn.Sequential(
            *build_layers(channels, nn.Conv2d, nn.LeakyReLU(0.2)), nn.Conv2d(4 * WIDTH, 1, 4, 2, bias=False), nn.Sigmoid())

    def forward(self, images, labels):
        return self.layers(torch.cat((images, self.embedding(labels).reshape(-1, 1, 32, 32)), 1))


np.random.seed(0)
torch.manual_seed(0)
loader = DataLoader(Digits(Path(sys.argv[1])), batch_size=BATCH, shuffle=True, drop_last=True)
generator, discriminator = Generator(), Discriminator()
for net in (generator, discriminator):
    for layer in net.modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.kaiming_uniform_(layer.weight, 0.02)
        elif isinstance(layer, nn.Embedding):
            nn.init.normal_(layer.weight, std=0.01)
print("parameters", sum(parameter.numel() for net in (generator, discriminator) for parameter in net.parameters()))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss_function = nn.BCELoss()
ones, zeros = torch.ones(BATCH, 1, 1, 1), torch.zeros(BATCH, 1, 1, 1)
fixed_noise, fixed_labels = torch.from_numpy(np.random.normal(size=(BATCH, LATENT)).astype(np.float32)), torch.arange(BATCH) % 10
for _ in range(EPOCHS):
    for images, labels in loader:
        noise = torch.from_numpy(np.random.normal(size=(BATCH, LATENT)).astype(np.float32))
        with torch.no_grad():
            fake = generator(noise, labels)
        loss_d = (loss_function(discriminator(fake, labels), zeros) + loss_function(discriminator(images, labels), ones)) * 0.5
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()
        loss_g = loss_function(discriminator(generator(noise, labels), labels), ones)
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        with torch.no_grad():
            generator(fixed_noise, fixed_labels)
    print("D_loss", loss_d.item(), "G_loss", loss_g.item())
