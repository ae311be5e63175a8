"""A GPT on characters of a real text, then generation with a key-value cache that Parameters hold, beside generation without (2.x)."""
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
TEXT = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the epoch of
belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness, it was the spring of hope,"""
CHARACTERS = sorted(set(TEXT))
NUMBER = {character: index for index, character in enumerate(CHARACTERS)}
BLOCK, DIM, HEADS = 16, 32, 4


class CausalSelfAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Dense(DIM, 3 * DIM)
        self.c_proj = nn.Dense(DIM, DIM)
        self.bias = Tensor(np.tril(np.ones((1, 1, BLOCK, BLOCK))), ms.bool_)
        self.k_cache = Parameter(ops.zeros((1, HEADS, BLOCK, DIM // HEADS), ms.float32), name="k_cache", requires_grad=False)
        self.v_cache = Parameter(ops.zeros((1, HEADS, BLOCK, DIM // HEADS), ms.float32), name="v_cache", requires_grad=False)

    def heads(self, x):
        b, t, _ = x.shape
        return x.reshape(b, t, HEADS, DIM // HEADS).swapaxes(1, 2)

    def construct(self, x, position=None):
        b, t, c = x.shape
        q, k, v = ops.split(self.c_attn(x), DIM, axis=2)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        if position is None:
            mask = self.bias[:, :, :t, :t]
        else:
            here = (ops.arange(BLOCK) == position).reshape(1, 1, BLOCK, 1)
            self.k_cache = ops.where(here, k, self.k_cache)
            self.v_cache = ops.where(here, v, self.v_cache)
            k, v = self.k_cache, self.v_cache
            mask = (ops.arange(BLOCK) <= position).reshape(1, 1, 1, BLOCK)
        att = ops.matmul(q, k.swapaxes(-2, -1)) * (1.0 / np.sqrt(DIM // HEADS))
        att = ops.masked_fill(att, ops.logical_not(mask), -1e9)
        y = ops.matmul(ops.softmax(att, axis=-1), v)
        return self.c_proj(y.swapaxes(1, 2).reshape(b, t, c))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm([DIM], epsilon=1e-5), nn.LayerNorm([DIM], epsilon=1e-5)
        self.attn = CausalSelfAttention()
        self.mlp = nn.SequentialCell(nn.Dense(DIM, 4 * DIM), nn.GELU(), nn.Dense(4 * DIM, DIM))

    def construct(self, x, position=None):
        x = x + self.attn(self.ln_1(x), position)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Cell):
    def __init__(self, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, DIM), nn.Embedding(BLOCK, DIM)
        self.blocks = nn.CellList([Block() for _ in range(2)])
        self.ln_f = nn.LayerNorm([DIM], epsilon=1e-5)

    def construct(self, idx, position=None):
        pos = ops.arange(idx.shape[1]) if position is None else position.reshape(1)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = block(x, position)
        return ops.matmul(self.ln_f(x), self.wte.embedding_table.T)


ids = np.array([NUMBER[character] for character in TEXT], np.int32)
starts = np.random.RandomState(161).randint(0, len(ids) - BLOCK - 1, 4)
x = Tensor(np.stack([ids[s: s + BLOCK] for s in starts]))
y = Tensor(np.stack([ids[s + 1: s + BLOCK + 1] for s in starts]))
model = begin(GPT(len(CHARACTERS)), 2, 0.5)
for parameter in model.get_parameters():
    if "cache" in parameter.name:
        parameter.set_data(ops.zeros_like(parameter))
optimizer = nn.AdamWeightDecay(model.trainable_params(), 3e-3, beta2=0.95, eps=1e-4, weight_decay=0.1)


def loss_of(x, y):
    logits = model(x)
    return ops.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))


grad_fn = ms.value_and_grad(loss_of, None, optimizer.parameters)


def train_step():
    loss, grads = grad_fn(x, y)
    optimizer(ops.clip_by_global_norm(grads, 1.0))
    return loss


model.set_train()
train(train_step, model)
model.set_train(False)
prompt = [NUMBER[character] for character in "it was"]
cached, last = list(prompt), None
for position in range(BLOCK - 1):
    last = model(Tensor([[cached[position]]], ms.int32), Tensor(position, ms.int32))
    if position + 1 >= len(cached):
        cached.append(int(last[0, -1].argmax().asnumpy()))
plain = list(prompt)
while len(plain) < len(cached):
    plain.append(int(model(Tensor([plain], ms.int32))[0, -1].argmax().asnumpy()))
print("same" if plain == cached else "different")
report(cached, last.max())
