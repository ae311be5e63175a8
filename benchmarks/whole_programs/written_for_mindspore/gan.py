"""A GAN on 3,200 images of 28 x 28: two networks, two Adams, functional steps."""
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from execution import EPOCHS, IS_GRAPH
from mindspore import nn, ops

LATENT = 64


class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Dense(LATENT, 128), nn.LeakyReLU(0.2), nn.Dense(128, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2),
            nn.Dense(256, 512), nn.BatchNorm1d(512), nn.LeakyReLU(0.2), nn.Dense(512, 784), nn.Tanh())

    def construct(self, noise):
        return self.layers(noise)


class Discriminator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Dense(784, 512), nn.LeakyReLU(0.2), nn.Dense(512, 256), nn.LeakyReLU(0.2), nn.Dense(256, 1), nn.Sigmoid())

    def construct(self, image):
        return self.layers(image)


rows = np.random.default_rng(0)
images = np.tanh(rows.standard_normal((3200, 784))).astype(np.float32)

ms.set_seed(1)
dataset = ds.NumpySlicesDataset(images, ["image"], shuffle=True).batch(32, drop_remainder=True)
generator, discriminator = Generator(), Discriminator()
loss_function = nn.BCELoss(reduction="mean")
optimizer_g = nn.Adam(generator.trainable_params(), 2e-4, beta1=0.5)
optimizer_d = nn.Adam(discriminator.trainable_params(), 2e-4, beta1=0.5)


def generator_loss(noise, real):
    fake = generator(noise)
    return loss_function(discriminator(fake), real), fake


def discriminator_loss(image, fake, real, wrong):
    return (loss_function(discriminator(image), real) + loss_function(discriminator(ops.stop_gradient(fake)), wrong)) / 2


generator_gradient = ms.value_and_grad(generator_loss, None, optimizer_g.parameters, has_aux=True)
discriminator_gradient = ms.value_and_grad(discriminator_loss, None, optimizer_d.parameters)


def train_step(image, noise, real, wrong):
    (loss_g, fake), gradients = generator_gradient(noise, real)
    optimizer_g(gradients)
    loss_d, gradients = discriminator_gradient(image, fake, real, wrong)
    optimizer_d(gradients)
    return loss_g, loss_d


if IS_GRAPH:
    train_step = ms.jit(train_step)
generator.set_train()
discriminator.set_train()
real, wrong = ops.ones((32, 1), ms.float32), ops.zeros((32, 1), ms.float32)
for _ in range(EPOCHS):
    for (image,) in dataset.create_tuple_iterator():
        noise = ms.Tensor(rows.standard_normal((32, LATENT)).astype(np.float32))
        loss_g, loss_d = train_step(image, noise, real, wrong)
    print("losses", float(loss_g.asnumpy()), float(loss_d.asnumpy()))
