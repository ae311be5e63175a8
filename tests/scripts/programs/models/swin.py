"""Swin: windows, cyclic shifts with a mask, relative position bias, patch merging; Model-like step with a loss in its own Cell."""
import mindspore as ms
import mindspore.common.initializer as weight_init
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from measured import MODE, begin, train

ms.set_context(mode=MODE, device_target="CPU")


def window_partition(x, size):
    b, h, w, c = x.shape
    x = np.reshape(x, (b, h // size, size, w // size, size, c))
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(-1, size, size, c)


class RelativeBias(nn.Cell):
    def __init__(self, size, heads):
        super().__init__()
        coords = np.stack(np.meshgrid(np.arange(size), np.arange(size), indexing="ij")).reshape(2, -1)
        relative = (coords[:, :, None] - coords[:, None, :]).transpose(1, 2, 0) + size - 1
        self.index = Tensor((relative[..., 0] * (2 * size - 1) + relative[..., 1]).reshape(-1), ms.int32)
        self.table = Parameter(weight_init.initializer(weight_init.TruncatedNormal(sigma=0.02), ((2 * size - 1) ** 2, heads)), name="table")
        self.shape = (size * size, size * size, heads)

    def construct(self):
        out = ops.reshape(ops.gather(self.table, self.index, 0), self.shape)
        return ops.expand_dims(ops.transpose(out, (2, 0, 1)), 0)


class WindowAttention(nn.Cell):
    def __init__(self, dim, size, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.bias = RelativeBias(size, heads)
        self.q, self.k, self.v = nn.Dense(dim, dim), nn.Dense(dim, dim), nn.Dense(dim, dim)
        self.proj = nn.Dense(dim, dim)

    def construct(self, x, mask=None):
        b, n, c = x.shape
        q = self.q(x).reshape(b, n, self.heads, c // self.heads).transpose(0, 2, 1, 3) * self.scale
        k = self.k(x).reshape(b, n, self.heads, c // self.heads).transpose(0, 2, 3, 1)
        v = self.v(x).reshape(b, n, self.heads, c // self.heads).transpose(0, 2, 1, 3)
        attn = ops.matmul(q, k) + self.bias()
        if mask is not None:
            windows = mask.shape[1]
            attn = ops.reshape(attn, (b // windows, windows, self.heads, n, n)) + mask
            attn = ops.reshape(attn, (-1, self.heads, n, n))
        x = ops.matmul(ops.softmax(attn, -1), v)
        return self.proj(ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (b, n, c)))


class Block(nn.Cell):
    def __init__(self, dim, side, heads, size=4, shift=0):
        super().__init__()
        self.side, self.size, self.shift = side, size, shift
        self.norm1, self.norm2 = nn.LayerNorm((dim,), epsilon=1e-5), nn.LayerNorm((dim,), epsilon=1e-5)
        self.attn = WindowAttention(dim, size, heads)
        self.mlp = nn.SequentialCell(nn.Dense(dim, 2 * dim), nn.GELU(approximate=False), nn.Dense(2 * dim, dim))
        self.mask = None
        if shift:
            image = np.zeros((1, side, side, 1))
            cuts = (slice(0, -size), slice(-size, -shift), slice(-shift, None))
            for number, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
                image[:, rows, columns, :] = number
            windows = window_partition(image, size).reshape(-1, size * size)
            apart = windows[:, None, :] - windows[:, :, None]
            self.mask = Parameter(Tensor(np.where(apart == 0, 0.0, -100.0)[None, :, None], ms.float32), name="attn_mask", requires_grad=False)

    def construct(self, x):
        b, n, c = x.shape
        shortcut = x
        x = self.norm1(x).view(b, self.side, self.side, c)
        if self.shift:
            x = ops.cat((x[:, self.shift:], x[:, :self.shift]), 1)
            x = ops.cat((x[:, :, self.shift:], x[:, :, :self.shift]), 2)
        parts = self.side // self.size
        x = ops.transpose(ops.reshape(x, (b, parts, self.size, parts, self.size, c)), (0, 1, 3, 2, 4, 5))
        x = self.attn(ops.reshape(x, (-1, self.size * self.size, c)), self.mask)
        x = ops.transpose(ops.reshape(x, (b, parts, parts, self.size, self.size, c)), (0, 1, 3, 2, 4, 5)).reshape(b, self.side, self.side, c)
        if self.shift:
            x = ops.cat((x[:, -self.shift:], x[:, :-self.shift]), 1)
            x = ops.cat((x[:, :, -self.shift:], x[:, :, :-self.shift]), 2)
        x = shortcut + ops.reshape(x, (b, n, c))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Cell):
    def __init__(self, side, dim):
        super().__init__()
        self.side = side
        self.norm = nn.LayerNorm([dim * 4])
        self.reduction = nn.Dense(4 * dim, 2 * dim, has_bias=False)

    def construct(self, x):
        b, _, c = x.shape
        half = self.side // 2
        x = x.view(b, half, 2, half, 2, c).transpose((0, 1, 3, 4, 2, 5))
        return self.reduction(self.norm(x.view(b, -1, 4 * c)))


class Swin(nn.Cell):
    def __init__(self, classes=5):
        super().__init__()
        self.embed = nn.Conv2d(3, 12, 4, 4, has_bias=True)
        self.stages = nn.SequentialCell(Block(12, 8, 2), Block(12, 8, 2, shift=2), PatchMerging(8, 12), Block(24, 4, 4), nn.LayerNorm((24,)))
        self.head = nn.Dense(24, classes)

    def construct(self, x):
        x = self.embed(x)
        x = ops.transpose(x.reshape(x.shape[0], x.shape[1], -1), (0, 2, 1))
        return self.head(self.stages(x).mean(axis=1))


random = np.random.RandomState(21)
images, labels = Tensor(random.randn(2, 3, 32, 32), ms.float32), Tensor([3, 1], ms.int32)
net = Swin()
mask = net.stages[1].mask.asnumpy()
begin(net, 3, 0.5)
net.stages[1].mask.set_data(Tensor(mask))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 1e-3, eps=1e-4))
step.set_train()
train(lambda: step(images, labels), net)
