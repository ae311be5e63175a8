"""A GPT of two layers: causal mask, tied head, AdamWeightDecay with groups, global-norm clipping, greedy generation."""
import math
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class CausalSelfAttention(nn.Cell):
    def __init__(self, width, heads, block_size, drop):
        super().__init__()
        self.c_attn = nn.Dense(width, 3 * width)
        self.c_proj = nn.Dense(width, width)
        self.attn_drop = nn.Dropout(p=drop)
        self.heads, self.width = heads, width
        self.mask = Tensor(np.tril(np.ones((1, 1, block_size, block_size), np.float32)) == 0)

    def construct(self, x):
        b, t, c = x.shape
        q, k, v = ops.split(self.c_attn(x), self.width, axis=2)
        q = q.view(b, t, self.heads, c // self.heads).swapaxes(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).swapaxes(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(0, 2, 1, 3)
        score = ops.matmul(q, k.swapaxes(-2, -1)) * (1.0 / math.sqrt(k.shape[-1]))
        score = score.masked_fill(self.mask[:, :, :t, :t], -1e9)
        weight = self.attn_drop(ops.softmax(score, axis=-1))
        y = ops.matmul(weight, v).swapaxes(1, 2).reshape(b, t, c)
        return self.c_proj(y)


class Block(nn.Cell):
    def __init__(self, width, heads, block_size, drop=0.0):
        super().__init__()
        self.ln_1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.attn = CausalSelfAttention(width, heads, block_size, drop)
        self.ln_2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.mlp = nn.SequentialCell(nn.Dense(width, 4 * width), nn.GELU(), nn.Dense(4 * width, width), nn.Dropout(p=drop))

    def construct(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Cell):
    def __init__(self, vocab, block_size, layers, heads, width):
        super().__init__()
        self.block_size = block_size
        self.wte = nn.Embedding(vocab, width)
        self.wpe = Parameter(initializer(Normal(0.02), (block_size, width), ms.float32), name="wpe")
        self.h = nn.CellList([Block(width, heads, block_size) for _ in range(layers)])
        self.ln_f = nn.LayerNorm((width,), epsilon=1e-5)

    def construct(self, idx, targets=None):
        b, t = idx.shape
        x = self.wte(idx) + self.wpe[:t]
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        logits = ops.matmul(x, self.wte.embedding_table.T)
        if targets is None:
            return logits
        loss = ops.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-1)
        return logits, loss

    def generate(self, idx, count):
        for _ in range(count):
            window = idx if idx.shape[1] <= self.block_size else idx[:, -self.block_size:]
            logits = self(window)[:, -1, :]
            following = ops.argmax(logits, dim=-1, keepdim=True).astype(idx.dtype)
            idx = ops.cat((idx, following), axis=1)
        return idx


text = "the quick brown fox jumps over the lazy dog. " * 12
letters = sorted(set(text))
codes = {letter: index for index, letter in enumerate(letters)}
data = np.array([codes[letter] for letter in text], np.int32)
rng = np.random.RandomState(2)
net = GPT(len(letters), 24, 2, 4, 32)
for param in net.trainable_params():
    if param.ndim > 1:
        param.set_data(Tensor(rng.normal(0, 0.05, param.shape), ms.float32))
    elif "bias" in param.name:
        param.set_data(ops.zeros_like(param))
print(len(net.trainable_params()), net.trainable_params()[0].name, net.trainable_params()[-1].name)

decay = list(filter(lambda p: p.ndim > 1 and "wpe" not in p.name, net.trainable_params()))
rest = list(filter(lambda p: p.ndim <= 1 or "wpe" in p.name, net.trainable_params()))
optimizer = nn.AdamWeightDecay([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], learning_rate=6e-3, beta2=0.95)


def forward(x, y):
    _, loss = net(x, y)
    return loss


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


def train_step(x, y):
    loss, grads = grad_fn(x, y)
    grads = ops.clip_by_global_norm(grads, 1.0)
    loss = ops.depend(loss, optimizer(grads))
    return loss


net.set_train()
for step in range(24):
    starts = rng.randint(0, len(data) - 25, 8)
    x = Tensor(np.stack([data[s:s + 24] for s in starts]))
    y = Tensor(np.stack([data[s + 1:s + 25] for s in starts]))
    loss = train_step(x, y)
    if step % 4 == 3:
        print(f"step {step + 1}: loss {loss.asnumpy().item():.4f}")
net.set_train(False)
out = net.generate(Tensor(data[None, :8]), 12)
print(out.shape, str(out.dtype))
logits = net(Tensor(data[None, :24]))
print(np.round(logits.asnumpy()[0, -1, :6], 2).tolist())
