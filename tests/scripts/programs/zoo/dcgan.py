"""DCGAN: two networks and two optimizers, losses written as functions, gradients of each network's own weights."""
import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
nz, ngf, ndf, nc = 10, 8, 8, 1
weight_init = Normal(mean=0, sigma=0.02)
gamma_init = Normal(mean=1, sigma=0.02)


class Generator(nn.Cell):
    def __init__(self):
        super(Generator, self).__init__()
        self.generator = nn.SequentialCell(
            nn.Conv2dTranspose(nz, ngf * 2, 4, 1, "valid", weight_init=weight_init),
            nn.BatchNorm2d(ngf * 2, gamma_init=gamma_init),
            nn.ReLU(),
            nn.Conv2dTranspose(ngf * 2, ngf, 4, 2, "pad", 1, weight_init=weight_init),
            nn.BatchNorm2d(ngf, gamma_init=gamma_init),
            nn.ReLU(),
            nn.Conv2dTranspose(ngf, nc, 4, 2, "pad", 1, weight_init=weight_init),
            nn.Tanh(),
        )

    def construct(self, x):
        return self.generator(x)


class Discriminator(nn.Cell):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.discriminator = nn.SequentialCell(
            nn.Conv2d(nc, ndf, 4, 2, "pad", 1, weight_init=weight_init),
            nn.LeakyReLU(0.2),
            nn.Conv2d(ndf, ndf * 2, 4, 2, "pad", 1, weight_init=weight_init),
            nn.BatchNorm2d(ngf * 2, gamma_init=gamma_init),
            nn.LeakyReLU(0.2),
            nn.Conv2d(ndf * 2, 1, 4, 1, "valid", weight_init=weight_init),
        )
        self.adv_layer = nn.Sigmoid()

    def construct(self, x):
        out = self.discriminator(x)
        out = out.reshape(out.shape[0], -1)
        return self.adv_layer(out)


rng = np.random.RandomState(0)
generator, discriminator = Generator(), Discriminator()
for net in (generator, discriminator):
    for layer in net.cells()[0] if isinstance(net.cells(), list) else next(iter(net.cells())):
        for param in layer.get_parameters():
            if param.name.endswith("weight"):
                param.set_data(ms.Tensor(rng.normal(0, 0.1, param.shape), ms.float32))
            elif param.name.endswith("gamma"):
                param.set_data(ms.Tensor(rng.normal(1, 0.02, param.shape), ms.float32))
adversarial_loss = nn.BCELoss(reduction="mean")
optimizer_d = nn.Adam(discriminator.trainable_params(), learning_rate=2e-3, beta1=0.5)
optimizer_g = nn.Adam(generator.trainable_params(), learning_rate=2e-3, beta1=0.5)
optimizer_g.update_parameters_name("optim_g.")
optimizer_d.update_parameters_name("optim_d.")
print(optimizer_g.parameters[0].name, [p.name for p in optimizer_d.get_parameters()][:3])


def generator_forward(real_imgs, valid, z):
    gen_imgs = generator(z)
    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    return g_loss, gen_imgs


def discriminator_forward(real_imgs, gen_imgs, valid, fake):
    real_loss = adversarial_loss(discriminator(real_imgs), valid)
    fake_loss = adversarial_loss(discriminator(gen_imgs), fake)
    return (real_loss + fake_loss) / 2


grad_generator_fn = ms.value_and_grad(generator_forward, None, optimizer_g.parameters, has_aux=True)
grad_discriminator_fn = ms.value_and_grad(discriminator_forward, None, optimizer_d.parameters)


@ms.jit
def train_step(imgs, z):
    valid = ops.ones((imgs.shape[0], 1), ms.float32)
    fake = ops.zeros((imgs.shape[0], 1), ms.float32)
    (g_loss, gen_imgs), g_grads = grad_generator_fn(imgs, valid, z)
    optimizer_g(g_grads)
    d_loss, d_grads = grad_discriminator_fn(imgs, gen_imgs, valid, fake)
    optimizer_d(d_grads)
    return g_loss, d_loss, gen_imgs


generator.set_train()
discriminator.set_train()
grid = np.mgrid[0:16, 0:16].astype(np.float32)
for step in range(6):
    imgs = np.stack([np.sin(grid[0] * a + grid[1] * b) for a, b in rng.uniform(0.2, 0.8, (8, 2))])[:, None].astype(np.float32)
    z = rng.normal(0, 1, (8, nz, 1, 1)).astype(np.float32)
    g_loss, d_loss, gen_imgs = train_step(ms.Tensor(imgs), ms.Tensor(z))
    print(f"[{step}] Loss_D: {d_loss.asnumpy():.4f} Loss_G: {g_loss.asnumpy():.4f} {gen_imgs.shape} {gen_imgs.asnumpy().std():.4f}")
generator.set_train(False)
picture = generator(ms.Tensor(rng.normal(0, 1, (1, nz, 1, 1)), ms.float32))
print("%.4f" % np.abs(picture.asnumpy()).mean())
