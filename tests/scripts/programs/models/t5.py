"""T5: RMS norm, relative position buckets, gated feed-forward, shared embedding; encoder and decoder train with Adafactor's relative (2.x)."""
import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
VOCAB, DIM, HEADS = 32, 16, 2


class T5LayerNorm(nn.Cell):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = Parameter(initializer("ones", (hidden_size,), ms.float32), "weight")
        self.variance_epsilon = eps

    def construct(self, hidden_states):
        variance = ops.square(hidden_states.astype(ms.float32)).mean(-1, keep_dims=True)
        hidden_states = hidden_states / ops.sqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states


class T5Attention(nn.Cell):
    def __init__(self, causal=False, biased=False):
        super().__init__()
        self.causal, self.biased = causal, biased
        self.q, self.k, self.v, self.o = (nn.Dense(DIM, DIM, has_bias=False) for _ in range(4))
        if biased:
            self.relative_attention_bias = nn.Embedding(8, HEADS)

    def bucket(self, relative_position, num_buckets=8, max_distance=16):
        buckets = 0
        if not self.causal:
            num_buckets //= 2
            buckets += (relative_position > 0).astype(ms.int64) * num_buckets
            relative_position = ops.abs(relative_position)
        else:
            relative_position = -ops.minimum(relative_position, ops.zeros_like(relative_position))
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        large = max_exact + (ops.log(relative_position.astype(ms.float32) / max_exact + 1e-9) / math.log(max_distance / max_exact)
                             * (num_buckets - max_exact)).astype(ms.int64)
        large = ops.minimum(large, ops.full_like(large, num_buckets - 1))
        return buckets + ops.select(is_small, relative_position, large)

    def shape(self, states):
        return states.view(states.shape[0], -1, HEADS, DIM // HEADS).swapaxes(1, 2)

    def construct(self, hidden, memory=None, bias=None):
        source = hidden if memory is None else memory
        q, k, v = self.shape(self.q(hidden)), self.shape(self.k(source)), self.shape(self.v(source))
        scores = ops.matmul(q, k.swapaxes(3, 2))
        if bias is None:
            if self.biased:
                relative = ops.arange(source.shape[1])[None, :] - ops.arange(hidden.shape[1])[:, None]
                bias = self.relative_attention_bias(self.bucket(relative)).permute(2, 0, 1).expand_dims(0)
            else:
                bias = ops.zeros((1, HEADS, hidden.shape[1], source.shape[1]), ms.float32)
            if self.causal:
                future = ops.arange(source.shape[1])[None, :] > ops.arange(hidden.shape[1])[:, None]
                bias = bias + future.astype(ms.float32) * -1e9
        weights = ops.softmax((scores + bias).astype(ms.float32), axis=-1)
        out = ops.matmul(weights, v).swapaxes(1, 2).view(hidden.shape[0], -1, DIM)
        return self.o(out), bias


class T5FeedForward(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wi_0, self.wi_1, self.wo = nn.Dense(DIM, 32, has_bias=False), nn.Dense(DIM, 32, has_bias=False), nn.Dense(32, DIM, has_bias=False)
        self.act = nn.GELU(approximate=True)

    def construct(self, x):
        return self.wo(self.act(self.wi_0(x)) * self.wi_1(x))


class T5Block(nn.Cell):
    def __init__(self, decoder=False, first=False):
        super().__init__()
        self.decoder = decoder
        self.norms = nn.CellList([T5LayerNorm(DIM) for _ in range(3 if decoder else 2)])
        self.attention = T5Attention(decoder, first)
        if decoder:
            self.cross = T5Attention()
        self.feed = T5FeedForward()

    def construct(self, x, memory=None, bias=None):
        y, bias = self.attention(self.norms[0](x), None, bias)
        x = x + y
        if self.decoder:
            x = x + self.cross(self.norms[1](x), memory)[0]
        return x + self.feed(self.norms[-1](x)), bias


class T5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(VOCAB, DIM)
        self.encoder = nn.CellList([T5Block(first=index == 0) for index in range(2)])
        self.decoder = nn.CellList([T5Block(True, index == 0) for index in range(2)])
        self.encoder_norm, self.decoder_norm = T5LayerNorm(DIM), T5LayerNorm(DIM)
        self.lm_head = nn.Dense(DIM, VOCAB, has_bias=False)

    def encode(self, input_ids):
        x, bias = self.shared(input_ids), None
        for block in self.encoder:
            x, bias = block(x, None, bias)
        return self.encoder_norm(x)

    def decode(self, ids, memory):
        x, bias = self.shared(ids), None
        for block in self.decoder:
            x, bias = block(x, memory, bias)
        return self.lm_head(self.decoder_norm(x))

    def construct(self, input_ids, labels):
        shifted = ops.cat((ops.zeros((labels.shape[0], 1), labels.dtype), labels[:, :-1]), axis=1)
        logits = self.decode(shifted, self.encode(input_ids))
        return ops.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100)


random = np.random.RandomState(171)
inputs, labels = Tensor(random.randint(1, VOCAB, (3, 9)), ms.int32), Tensor(random.randint(1, VOCAB, (3, 5)), ms.int32)
net = begin(T5(), 4, 0.5)
optimizer = nn.Adagrad(net.trainable_params(), learning_rate=0.02, accum=0.1)
grad_fn = ms.value_and_grad(net, None, optimizer.parameters)


def step():
    loss, grads = grad_fn(inputs, labels)
    optimizer(grads)
    return loss


train(step, net)
memory, words = net.encode(inputs), ops.zeros((3, 1), ms.int32)
for _ in range(3):
    words = ops.cat((words, net.decode(words, memory)[:, -1:].argmax(-1).astype(ms.int32)), axis=1)
report(words)
