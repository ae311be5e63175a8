"""A Vision Transformer: patches by a strided convolution, class token, position embedding, stochastic depth of 0, AdamW by amp-style groups."""
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer

from measured import MODE, begin, train

ms.set_context(mode=MODE, device_target="CPU")


class Attention(nn.Cell):
    def __init__(self, dim, num_heads=4, keep_prob=1.0):
        super().__init__()
        self.num_heads = num_heads
        head_dim = dim // num_heads
        self.scale = Tensor(head_dim ** -0.5)
        self.qkv = nn.Dense(dim, dim * 3)
        self.attn_drop = nn.Dropout(p=1.0 - keep_prob)
        self.out = nn.Dense(dim, dim)
        self.attn_matmul_v = ops.BatchMatMul()
        self.q_matmul_k = ops.BatchMatMul(transpose_b=True)
        self.softmax = nn.Softmax(axis=-1)

    def construct(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x)
        qkv = ops.reshape(qkv, (b, n, 3, self.num_heads, c // self.num_heads))
        qkv = ops.transpose(qkv, (2, 0, 3, 1, 4))
        q, k, v = ops.unstack(qkv, axis=0)
        attn = self.q_matmul_k(q, k)
        attn = ops.mul(attn, self.scale)
        attn = self.attn_drop(self.softmax(attn))
        out = self.attn_matmul_v(attn, v)
        out = ops.transpose(out, (0, 2, 1, 3))
        return self.out(ops.reshape(out, (b, n, c)))


class Residual(nn.Cell):
    def __init__(self, *cells):
        super().__init__()
        self.block = nn.SequentialCell(list(cells))

    def construct(self, x, **kwargs):
        return self.block(x, **kwargs) + x


class ViT(nn.Cell):
    def __init__(self, image_size=32, patch=8, dim=32, layers=2, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, kernel_size=patch, stride=patch, has_bias=True, pad_mode="valid")
        count = (image_size // patch) ** 2
        self.cls_token = Parameter(initializer(Normal(1.0), (1, 1, dim)), name="cls", requires_grad=True)
        self.pos = Parameter(initializer(Normal(1.0), (1, count + 1, dim)), name="pos_embedding", requires_grad=True)
        encoder = []
        for _ in range(layers):
            mlp = nn.SequentialCell([nn.Dense(dim, 2 * dim), nn.GELU(), nn.Dense(2 * dim, dim)])
            encoder.append(nn.SequentialCell([Residual(nn.LayerNorm((dim,)), Attention(dim)), Residual(nn.LayerNorm((dim,)), mlp)]))
        self.transformer = nn.SequentialCell(encoder)
        self.norm = nn.LayerNorm((dim,))
        self.head = nn.Dense(dim, classes)

    def construct(self, x):
        x = self.patch(x)
        b, c, h, w = x.shape
        x = ops.transpose(ops.reshape(x, (b, c, h * w)), (0, 2, 1))
        cls_tokens = ops.tile(self.cls_token.astype(x.dtype), (b, 1, 1))
        x = ops.concat((cls_tokens, x), axis=1)
        x += self.pos
        x = self.norm(self.transformer(x))
        return self.head(x[:, 0])


random = np.random.RandomState(12)
images = Tensor(random.normal(size=(4, 3, 32, 32)), ms.float32)
labels = Tensor(random.randint(0, 10, (4,)), ms.int32)
net = begin(ViT(), 6, 0.5)
decay = list(filter(lambda x: "norm" not in x.name and "bias" not in x.name, net.trainable_params()))
rest = list(filter(lambda x: "norm" in x.name or "bias" in x.name, net.trainable_params()))
optimizer = nn.AdamWeightDecay([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], learning_rate=1e-3, eps=1e-4)
loss_fn = nn.CrossEntropyLoss()


def forward_fn(data, label):
    return loss_fn(net(data), label)


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)


@ms.jit
def train_step(data, label):
    loss, grads = grad_fn(data, label)
    grads = ops.clip_by_global_norm(grads, clip_norm=1.0)
    loss = ops.depend(loss, optimizer(grads))
    return loss


net.set_train()
train(lambda: train_step(images, labels), net)
