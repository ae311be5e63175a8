# tolerance 3e-5: the KL term is a difference of numbers a hundred times its size.
"""A variational autoencoder: noise as an input, KL term, Model-free loop with value_and_grad, then samples of the decoder (2.x)."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class VAE(nn.Cell):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Conv2d(1, 4, 3, 2, "pad", 1), nn.LeakyReLU(), nn.Conv2d(4, 8, 3, 2, "pad", 1), nn.LeakyReLU(), nn.Flatten())
        self.mu, self.log_var = nn.Dense(8 * 16, latent), nn.Dense(8 * 16, latent)
        self.project = nn.Dense(latent, 8 * 16)
        self.decoder = nn.SequentialCell(
            nn.Conv2dTranspose(8, 4, 3, 2, "same"), nn.LeakyReLU(), nn.Conv2dTranspose(4, 1, 3, 2, "same", has_bias=True), nn.Sigmoid())

    def decode(self, z):
        return self.decoder(self.project(z).view(-1, 8, 4, 4))

    def construct(self, x, noise):
        hidden = self.encoder(x)
        mu, log_var = self.mu(hidden), self.log_var(hidden)
        z = mu + ops.exp(log_var * 0.5) * noise
        return self.decode(z), mu, log_var


def loss_fn(x, noise):
    reconstructed, mu, log_var = vae(x, noise)
    likelihood = ops.binary_cross_entropy(reconstructed, x, reduction="sum") / x.shape[0]
    divergence = -0.5 * ops.sum(1 + log_var - mu.pow(2) - log_var.exp(), dim=1).mean()
    return likelihood + divergence, likelihood, divergence


random = np.random.RandomState(251)
images = Tensor(random.rand(6, 1, 16, 16) > 0.5, ms.float32)
noise = Tensor(random.randn(6, 4), ms.float32)
vae = begin(VAE(), 3, 0.7)
optimizer = nn.Adam(vae.trainable_params(), learning_rate=nn.ExponentialDecayLR(0.003, 0.9, 4), eps=1e-5, use_amsgrad=True)
grad_fn = ms.value_and_grad(loss_fn, None, optimizer.parameters, has_aux=True)


def train_step():
    (loss, likelihood, divergence), grads = grad_fn(images, noise)
    optimizer(grads)
    return loss, likelihood, divergence


vae.set_train()
train(train_step, vae)
report(vae.decode(noise[:2]).mean((1, 2, 3)))
