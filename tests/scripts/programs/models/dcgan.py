"""DCGAN with two optimizers and a training Cell that returns both losses (1.x): generator and discriminator as WithLossCells."""
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import ParameterTuple, Tensor, context
from mindspore import dtype as mstype
from mindspore.common.initializer import Normal

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")
nz, ngf, ndf, nc = 16, 6, 6, 3


def conv_t(in_channels, out_channels, kernel_size, stride=1, padding=0, pad_mode="pad"):
    weight_init = Normal(mean=0, sigma=0.02)
    return nn.Conv2dTranspose(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                              weight_init=weight_init, has_bias=False, pad_mode=pad_mode)


def conv(in_channels, out_channels, kernel_size, stride=1, padding=0, pad_mode="pad"):
    weight_init = Normal(mean=0, sigma=0.02)
    return nn.Conv2d(in_channels, out_channels, kernel_size=kernel_size, stride=stride, padding=padding,
                     weight_init=weight_init, has_bias=False, pad_mode=pad_mode)


def bn(num_features):
    gamma_init = Normal(mean=1, sigma=0.02)
    return nn.BatchNorm2d(num_features=num_features, gamma_init=gamma_init)


class Generator(nn.Cell):
    def __init__(self):
        super(Generator, self).__init__()
        self.generator = nn.SequentialCell()
        self.generator.append(conv_t(nz, ngf * 4, 4, 1, 0))
        self.generator.append(bn(ngf * 4))
        self.generator.append(nn.ReLU())
        self.generator.append(conv_t(ngf * 4, ngf * 2, 4, 2, 1))
        self.generator.append(bn(ngf * 2))
        self.generator.append(nn.ReLU())
        self.generator.append(conv_t(ngf * 2, nc, 4, 2, 1))
        self.generator.append(nn.Tanh())

    def construct(self, x):
        return self.generator(x)


class Discriminator(nn.Cell):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.discriminator = nn.SequentialCell([
            conv(nc, ndf, 4, 2, 1), nn.LeakyReLU(0.2), conv(ndf, ndf * 2, 4, 2, 1), bn(ndf * 2), nn.LeakyReLU(0.2),
            conv(ndf * 2, 1, 4), nn.Sigmoid()])

    def construct(self, x):
        return self.discriminator(x).reshape(-1)


class WithLossCellD(nn.Cell):
    def __init__(self, netD, netG, loss_fn):
        super(WithLossCellD, self).__init__(auto_prefix=True)
        self.netD = netD
        self.netG = netG
        self.loss_fn = loss_fn

    def construct(self, real_data, latent_code):
        ones, zeros = ops.OnesLike(), ops.ZerosLike()
        out_real = self.netD(real_data)
        loss_real = self.loss_fn(out_real, ones(out_real))
        fake_data = self.netG(latent_code)
        fake_data = ops.stop_gradient(fake_data)
        out_fake = self.netD(fake_data)
        loss_fake = self.loss_fn(out_fake, zeros(out_fake))
        return loss_real + loss_fake


class WithLossCellG(nn.Cell):
    def __init__(self, netD, netG, loss_fn):
        super(WithLossCellG, self).__init__(auto_prefix=True)
        self.netD = netD
        self.netG = netG
        self.loss_fn = loss_fn

    def construct(self, latent_code):
        out = self.netD(self.netG(latent_code))
        return self.loss_fn(out, ops.OnesLike()(out))


class DCGAN(nn.Cell):
    def __init__(self, myTrainOneStepCellForD, myTrainOneStepCellForG):
        super(DCGAN, self).__init__(auto_prefix=True)
        self.myTrainOneStepCellForD = myTrainOneStepCellForD
        self.myTrainOneStepCellForG = myTrainOneStepCellForG

    def construct(self, real_data, latent_code):
        output_D = self.myTrainOneStepCellForD(real_data, latent_code).view(-1)
        netD_loss = output_D.mean()
        output_G = self.myTrainOneStepCellForG(latent_code).view(-1)
        netG_loss = output_G.mean()
        return netD_loss, netG_loss


random = np.random.RandomState(71)
real = Tensor(random.uniform(-1, 1, (8, nc, 16, 16)), mstype.float32)
latent = Tensor(random.randn(8, nz, 1, 1), mstype.float32)
netG, netD = begin(Generator(), 1, 0.5), begin(Discriminator(), 2, 0.5)
loss = nn.BCELoss(reduction="mean")
optimizerD = nn.Adam(netD.trainable_params(), learning_rate=0.0002, beta1=0.5, eps=1e-5)
optimizerG = nn.Adam(netG.trainable_params(), learning_rate=0.0002, beta1=0.5, eps=1e-5)
step = DCGAN(nn.TrainOneStepCell(WithLossCellD(netD, netG, loss), optimizerD), nn.TrainOneStepCell(WithLossCellG(netD, netG, loss), optimizerG))
step.set_train()
train(lambda: step(real, latent), netG, netD)
