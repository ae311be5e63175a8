"""Sounds by spectrograms: framing by strides, a Fourier transform in the net, mel filters, normalized bands, 1-d convolutions, specaugment masks."""
import mindspore as ms
import mindspore.dataset.audio as audio
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
random = np.random.RandomState(17)
wave = np.stack([np.sin(np.arange(512) * f) + 0.1 * random.randn(512) for f in (0.1, 0.3, 0.7, 1.1)]).astype(np.float32)
labels = Tensor([0, 1, 2, 3], ms.int32)
mel = np.abs(random.randn(33, 9)).astype(np.float32)


class Spectrum(nn.Cell):
    def __init__(self, size=64, hop=32):
        super().__init__()
        self.size, self.hop = size, hop
        n = np.arange(size)
        angle = 2 * np.pi * np.outer(n, np.arange(size // 2 + 1)) / size
        self.cos, self.sin = Tensor(np.cos(angle), ms.float32), Tensor(np.sin(angle), ms.float32)
        self.window = Tensor(np.hanning(size), ms.float32)
        self.mel = Tensor(mel)

    def construct(self, x):
        count = (x.shape[1] - self.size) // self.hop + 1
        frames = ops.stack([x[:, i * self.hop: i * self.hop + self.size] for i in range(count)], axis=1) * self.window
        power = ops.square(ops.matmul(frames, self.cos)) + ops.square(ops.matmul(frames, self.sin))
        bands = ops.log(ops.matmul(power, self.mel) + 1e-5)
        return (bands - bands.mean(axis=(1, 2), keep_dims=True)) / (bands.std(axis=(1, 2), keepdims=True) + 1e-5)


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.spectrum = Spectrum()
        self.conv = nn.SequentialCell(
            nn.Conv1d(9, 12, 3, pad_mode="same", has_bias=True), nn.LayerNorm((12, 15), 1, 1), nn.Mish(),
            nn.MaxPool1d(2, 2), nn.Conv1d(12, 8, 3, pad_mode="pad", padding=1, dilation=1, group=4), nn.CELU(0.5))
        self.head = nn.Dense(16, 4)

    def construct(self, x, mask):
        bands = self.spectrum(x).transpose(0, 2, 1) * mask
        h = self.conv(bands)
        return self.head(ops.concat((h.mean(-1), h.max(axis=-1)), 1))


net = begin(Classifier(), 2)
mask = np.ones((4, 9, 15), np.float32)
mask[:, 2:4] = 0
mask[:, :, 5:7] = 0
optimizer = nn.AdaMax(net.trainable_params(), learning_rate=nn.natural_exp_decay_lr(0.02, 0.5, 12, 3, 1))
loss_fn = nn.NLLLoss()


def forward(x, mask, labels):
    return loss_fn(ops.log_softmax(net(x, mask), -1), labels)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


def step():
    loss, grads = grad_fn(Tensor(wave), Tensor(mask), labels)
    optimizer(grads)
    return loss


train(step, net)
report(audio.Spectrogram(n_fft=64)(wave[0])[:3, 2], audio.MelScale(n_mels=4, sample_rate=1000, n_stft=33)(audio.Spectrogram(n_fft=64)(wave[1]))[:, 1], audio.AmplitudeToDB()(wave[2][:6].reshape(2, 3) ** 2))
