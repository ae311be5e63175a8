"""pix2pix: a recursive U-Net generator with skip connections, PatchGAN, BCE + L1, gradients by ops.value_and_grad on two sets (2.x)."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor

from measured import MODE, begin, train

ms.set_context(mode=MODE, device_target="CPU")


class UNetSkip(nn.Cell):
    def __init__(self, outer_nc, inner_nc, in_planes=None, submodule=None, outermost=False):
        super().__init__()
        in_planes = outer_nc if in_planes is None else in_planes
        down_conv = nn.Conv2d(in_planes, inner_nc, 4, stride=2, padding=1, pad_mode="pad")
        up_in = inner_nc if submodule is None else inner_nc * 2
        up_conv = nn.Conv2dTranspose(up_in, outer_nc, 4, stride=2, padding=1, pad_mode="pad", has_bias=outermost)
        if outermost:
            down, up = [down_conv], [nn.ReLU(), up_conv, nn.Tanh()]
        elif submodule is None:
            down, up = [nn.LeakyReLU(0.2), down_conv], [nn.ReLU(), up_conv, nn.BatchNorm2d(outer_nc)]
        else:
            down, up = [nn.LeakyReLU(0.2), down_conv, nn.BatchNorm2d(inner_nc)], [nn.ReLU(), up_conv, nn.BatchNorm2d(outer_nc)]
        self.model = nn.SequentialCell(down + ([submodule] if submodule is not None else []) + up)
        self.outermost = outermost

    def construct(self, x):
        out = self.model(x)
        return out if self.outermost else ops.concat((out, x), axis=1)


class PatchDiscriminator(nn.Cell):
    def __init__(self, ndf=6):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(6, ndf, 4, 2, "pad", 1, has_bias=True), nn.LeakyReLU(0.2),
            nn.Conv2d(ndf, ndf * 2, 4, 2, "pad", 1), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2),
            nn.Conv2d(ndf * 2, 1, 4, 1, "pad", 1, has_bias=True))

    def construct(self, x, y):
        return self.features(ops.concat((x, y), axis=1))


random = np.random.RandomState(91)
source, target = (Tensor(random.uniform(-1, 1, (2, 3, 32, 32)), ms.float32) for _ in range(2))
block = UNetSkip(12, 24)
block = UNetSkip(6, 12, submodule=block)
net_generator = begin(UNetSkip(3, 6, submodule=block, outermost=True), 1, 0.5)
net_discriminator = begin(PatchDiscriminator(), 2, 0.5)
loss_f, l1_loss = nn.BCEWithLogitsLoss(), nn.L1Loss()


def forward_dis(reala, realb):
    fakeb = net_generator(reala)
    pred0 = net_discriminator(reala, ops.stop_gradient(fakeb))
    pred1 = net_discriminator(reala, realb)
    return (loss_f(pred0, ops.zeros_like(pred0)) + loss_f(pred1, ops.ones_like(pred1))) * 0.5


def forward_gan(reala, realb):
    fakeb = net_generator(reala)
    pred0 = net_discriminator(reala, fakeb)
    return loss_f(pred0, ops.ones_like(pred0)) * 0.5 + l1_loss(fakeb, realb) * 100


d_opt = nn.Adam(net_discriminator.trainable_params(), learning_rate=2e-4, beta1=0.5, beta2=0.999, loss_scale=1, eps=1e-4)
g_opt = nn.Adam(net_generator.trainable_params(), learning_rate=2e-4, beta1=0.5, beta2=0.999, loss_scale=1, eps=1e-4)
grad_d = ops.value_and_grad(forward_dis, None, net_discriminator.trainable_params())
grad_g = ops.value_and_grad(forward_gan, None, net_generator.trainable_params())


def train_step(reala, realb):
    loss_dis, d_grads = grad_d(reala, realb)
    loss_gan, g_grads = grad_g(reala, realb)
    d_opt(d_grads)
    g_opt(g_grads)
    return loss_dis, loss_gan


net_generator.set_train()
net_discriminator.set_train()
train(lambda: train_step(source, target), net_generator, net_discriminator)
