"""CycleGAN: two generators, two discriminators, cycle and identity losses, a pool of old images in NumPy, set_grad by hand (1.x zoo)."""
import mindspore.common.dtype as mstype
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor, context
from mindspore.parallel._utils import _get_device_num, _get_parallel_mode

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")


class ConvNormReLU(nn.Cell):
    def __init__(self, in_planes, out_planes, kernel_size=4, stride=2, alpha=0.2, norm=True, transpose=False, relu=True):
        super(ConvNormReLU, self).__init__()
        layers = []
        if transpose:
            layers.append(nn.Conv2dTranspose(in_planes, out_planes, kernel_size, stride, pad_mode="same", has_bias=not norm))
        else:
            layers.append(nn.Pad(paddings=((0, 0), (0, 0), (1, 1), (1, 1)), mode="REFLECT"))
            layers.append(nn.Conv2d(in_planes, out_planes, kernel_size, stride, pad_mode="pad", has_bias=not norm))
        if norm:
            layers.append(nn.GroupNorm(out_planes, out_planes, affine=False))
        if relu:
            layers.append(nn.LeakyReLU(alpha) if alpha > 0 else nn.ReLU())
        self.features = nn.SequentialCell(layers)

    def construct(self, x):
        return self.features(x)


class ResidualBlock(nn.Cell):
    def __init__(self, dim):
        super(ResidualBlock, self).__init__()
        self.conv1 = ConvNormReLU(dim, dim, 3, 1, 0)
        self.conv2 = ConvNormReLU(dim, dim, 3, 1, relu=False)

    def construct(self, x):
        return self.conv2(self.conv1(x)) + x


class ResNetGenerator(nn.Cell):
    def __init__(self, ngf=6):
        super(ResNetGenerator, self).__init__()
        self.conv_in = ConvNormReLU(3, ngf, 3, 1, 0)
        self.down = ConvNormReLU(ngf, ngf * 2, 3, 2, 0)
        layers = [ResidualBlock(ngf * 2)] * 2
        self.residuals = nn.SequentialCell(layers)
        self.up = ConvNormReLU(ngf * 2, ngf, 3, 2, 0, transpose=True)
        self.conv_out = nn.Conv2d(ngf, 3, kernel_size=3, stride=1, pad_mode="same", has_bias=True)

    def construct(self, x):
        x = self.up(self.residuals(self.down(self.conv_in(x))))
        return ops.tanh(self.conv_out(x))


def discriminator():
    return nn.SequentialCell([ConvNormReLU(3, 6, norm=False), ConvNormReLU(6, 12), nn.Conv2d(12, 1, 3, 1, "same", has_bias=True)])


class GANLoss(nn.Cell):
    def __init__(self):
        super(GANLoss, self).__init__()
        self.loss = nn.MSELoss()
        self.ones, self.zeros = ops.OnesLike(), ops.ZerosLike()

    def construct(self, predict, target):
        return self.loss(predict, self.ones(predict) if target else self.zeros(predict))


class GeneratorLoss(nn.Cell):
    def __init__(self, G_A, G_B, D_A, D_B):
        super(GeneratorLoss, self).__init__()
        self.G_A, self.G_B, self.D_A, self.D_B = G_A, G_B, D_A, D_B
        self.dis_loss = GANLoss()
        self.l1 = ops.ReduceMean()

    def construct(self, img_A, img_B):
        fake_A, fake_B = self.G_B(img_B), self.G_A(img_A)
        rec_A, rec_B = self.G_B(fake_B), self.G_A(fake_A)
        loss_G = self.dis_loss(self.D_B(fake_B), True) + self.dis_loss(self.D_A(fake_A), True)
        loss_C = (self.l1(ops.Abs()(img_A - rec_A)) + self.l1(ops.Abs()(img_B - rec_B))) * 10.0
        loss_idt = (self.l1(ops.Abs()(self.G_B(img_A) - img_A)) + self.l1(ops.Abs()(self.G_A(img_B) - img_B))) * 5.0
        return fake_A, fake_B, loss_G + loss_C + loss_idt


class DiscriminatorLoss(nn.Cell):
    def __init__(self, D_A, D_B):
        super(DiscriminatorLoss, self).__init__()
        self.D_A, self.D_B = D_A, D_B
        self.dis_loss = GANLoss()

    def construct(self, img_A, img_B, fake_A, fake_B):
        loss_A = self.dis_loss(self.D_A(fake_A), False) + self.dis_loss(self.D_A(img_A), True)
        loss_B = self.dis_loss(self.D_B(fake_B), False) + self.dis_loss(self.D_B(img_B), True)
        return (loss_A + loss_B) * 0.5


class Last(nn.Cell):
    def __init__(self, network):
        super(Last, self).__init__(auto_prefix=False)
        self.network = network

    def construct(self, *inputs):
        return self.network(*inputs)[2]


class TrainOneStep(nn.Cell):
    """A step of whichever loss Cell it is given; `sens` fills the gradient of the loss."""

    def __init__(self, network, optimizer, sens=1.0):
        super(TrainOneStep, self).__init__(auto_prefix=False)
        self.optimizer = optimizer
        self.network = network
        self.network.add_flags(defer_inline=True)
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens
        self.weights = optimizer.parameters
        self.reducer_flag = _get_parallel_mode() != "stand_alone" and _get_device_num() > 1

    def construct(self, *inputs):
        loss = self.network(*inputs)
        sens = ops.Fill()(ops.DType()(loss), ops.Shape()(loss), self.sens)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        return ops.depend(loss, self.optimizer(grads))


class ImagePool:
    def __init__(self, size):
        self.size, self.images, self.random = size, [], np.random.RandomState(0)

    def query(self, image):
        if len(self.images) < self.size:
            self.images.append(image)
            return image
        index = self.random.randint(0, self.size)
        old, self.images[index] = self.images[index], image
        return old


random = np.random.RandomState(81)
img_A, img_B = (Tensor(random.uniform(-1, 1, (1, 3, 16, 16)), mstype.float32) for _ in range(2))
G_A, G_B, D_A, D_B = (begin(cell, seed, 0.7) for seed, cell in enumerate((ResNetGenerator(), ResNetGenerator(), discriminator(), discriminator())))
for prefix, cell in (("G_A.", G_A), ("G_B.", G_B), ("D_A.", D_A), ("D_B.", D_B)):
    cell.update_parameters_name(prefix)
loss_G, loss_D = GeneratorLoss(G_A, G_B, D_A, D_B), DiscriminatorLoss(D_A, D_B)
optimizer_G = nn.Adam(G_A.trainable_params() + G_B.trainable_params(), 2e-4, beta1=0.5, eps=1e-4)
optimizer_D = nn.Adam(D_A.trainable_params() + D_B.trainable_params(), 2e-4, beta1=0.5, eps=1e-4)
net_G, net_D = TrainOneStep(Last(loss_G), optimizer_G), TrainOneStep(loss_D, optimizer_D)
pool_A, pool_B = ImagePool(2), ImagePool(2)


def step():
    for cell in (D_A, D_B):
        cell.set_grad(False)
    fake_A, fake_B, _ = loss_G(img_A, img_B)
    generator = net_G(img_A, img_B)
    for cell in (D_A, D_B):
        cell.set_grad(True)
    return generator, net_D(img_A, img_B, pool_A.query(fake_A), pool_B.query(fake_B))


for cell in (net_G, net_D):
    cell.set_train()
train(step, G_A, G_B, D_A, D_B)
