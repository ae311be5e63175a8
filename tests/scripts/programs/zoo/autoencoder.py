"""A convolutional autoencoder with a loss network of its own, WithLossCell and TrainOneStepCell."""
import sys

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore.common.initializer import XavierUniform, initializer

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Encoder(nn.Cell):
    def __init__(self, latent):
        super().__init__()
        self.convs = nn.SequentialCell([
            nn.Conv2d(1, 4, 3, stride=2, has_bias=True, bias_init="zeros"),
            nn.LeakyReLU(0.1),
            nn.Conv2d(4, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=True, bias_init="zeros"),
            nn.LeakyReLU(0.1),
        ])
        self.head = nn.Dense(8 * 4 * 4, latent, bias_init="zeros", activation="tanh")

    def construct(self, x):
        x = self.convs(x)
        return self.head(x.reshape(x.shape[0], -1))


class Decoder(nn.Cell):
    def __init__(self, latent):
        super().__init__()
        self.dense = nn.Dense(latent, 8 * 4 * 4, bias_init="zeros")
        self.up1 = nn.Conv2dTranspose(8, 4, 4, stride=2, pad_mode="pad", padding=1)
        self.up2 = nn.Conv2dTranspose(4, 1, 3, stride=2, pad_mode="same", has_bias=True, bias_init="zeros")

    def construct(self, z):
        x = ops.relu(self.dense(z)).view(-1, 8, 4, 4)
        x = ops.relu(self.up1(x))
        return ops.sigmoid(self.up2(x))


class AutoEncoder(nn.Cell):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = Encoder(latent)
        self.decoder = Decoder(latent)

    def construct(self, x):
        z = self.encoder(x)
        return self.decoder(z), z


class ReconstructionLoss(nn.LossBase):
    def __init__(self, weight=1e-3):
        super().__init__("mean")
        self.weight = weight

    def construct(self, output, target):
        picture, z = output
        difference = ops.square(picture - target)
        return self.get_loss(difference) + self.weight * ops.ReduceSum()(ops.Square()(z), ())


rng = np.random.RandomState(11)
net = AutoEncoder()
for name, param in net.parameters_and_names():
    if param.ndim > 1:
        param.set_data(ms.Tensor(rng.uniform(-0.3, 0.3, param.shape), ms.float32))
print([name for name, _ in net.parameters_and_names()])

grid = np.mgrid[0:16, 0:16].astype(np.float32)
pictures = np.stack([np.exp(-((grid[0] - a) ** 2 + (grid[1] - b) ** 2) / 12) for a, b in rng.uniform(3, 13, (64, 2))])[:, None].astype(np.float32)
loss_net = nn.WithLossCell(net, ReconstructionLoss())
train_net = nn.TrainOneStepCell(loss_net, nn.Adam(net.trainable_params(), learning_rate=nn.cosine_decay_lr(1e-4, 5e-3, 24, 8, 3)))
train_net.set_train()
for epoch in range(3):
    losses = []
    for start in range(0, 64, 8):
        batch = ms.Tensor(pictures[start:start + 8])
        losses.append(float(train_net(batch, batch).asnumpy()))
    print("epoch", epoch, "loss", "%.5f" % np.mean(losses))
net.set_train(False)
picture, z = net(ms.Tensor(pictures[:2]))
print(picture.shape, z.shape, "%.4f" % float(ops.abs(picture - ms.Tensor(pictures[:2])).mean()))
print(np.round(z.asnumpy(), 3).tolist())
print(initializer(XavierUniform(), [3, 4], ms.float32).shape)
