"""Transformer for translation: encoder and decoder of nn.Transformer's layers, shifted targets, masks, label smoothing, Noam rates (2.x)."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
VOCAB, DIM, PAD = 24, 16, 0


class PositionalEncoding(nn.Cell):
    def __init__(self, d_model, max_len=50):
        super().__init__()
        position = np.arange(max_len)[:, None]
        div = np.exp(np.arange(0, d_model, 2) * -(np.log(10000.0) / d_model))
        pe = np.zeros((max_len, d_model), np.float32)
        pe[:, 0::2], pe[:, 1::2] = np.sin(position * div), np.cos(position * div)
        self.pe = Tensor(pe)

    def construct(self, x):
        return x + self.pe[: x.shape[1]].expand_dims(0)


class Translator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.src_emb, self.tgt_emb = nn.Embedding(VOCAB, DIM), nn.Embedding(VOCAB, DIM)
        self.pos = PositionalEncoding(DIM)
        encoder_layer = nn.TransformerEncoderLayer(DIM, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, 2, nn.LayerNorm((DIM,)))
        decoder_layer = nn.TransformerDecoderLayer(DIM, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(decoder_layer, 2)
        self.projection = nn.Dense(DIM, VOCAB, has_bias=False)

    def construct(self, source, target):
        length = target.shape[1]
        future = ops.triu(ops.ones((length, length), ms.float32), 1).astype(ms.bool_)
        padded = ops.equal(source, PAD)
        memory = self.encoder(self.pos(self.src_emb(source)), src_key_padding_mask=padded)
        out = self.decoder(self.pos(self.tgt_emb(target)), memory, tgt_mask=future, memory_key_padding_mask=padded)
        return self.projection(out)


class NoamLR(nn.learning_rate_schedule.LearningRateSchedule):
    def __init__(self, d_model, warmup):
        super().__init__()
        self.d_model, self.warmup = d_model, warmup

    def construct(self, global_step):
        step = global_step.astype(ms.float32) + 1
        return self.d_model ** -0.5 * ops.minimum(step ** -0.5, step * self.warmup ** -1.5)


random = np.random.RandomState(141)
source = random.randint(3, VOCAB, (4, 7)).astype(np.int32)
source[1, 5:] = PAD
target = random.randint(3, VOCAB, (4, 6)).astype(np.int32)
target[2, 4:] = PAD
source, target = Tensor(source), Tensor(target)
net = begin(Translator(), 1, 0.5)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
optimizer = nn.Adam(net.trainable_params(), learning_rate=NoamLR(DIM, 10), beta2=0.98, eps=1e-4)


def forward_fn(src, tgt):
    logits = net(src, tgt[:, :-1])
    return loss_fn(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)


def train_step():
    loss, grads = grad_fn(source, target)
    optimizer(grads)
    return loss


net.set_train()
train(train_step, net)
net.set_train(False)
words = ops.ones((4, 1), ms.int32)
for _ in range(3):
    best = net(source, words)[:, -1].argmax(-1).astype(ms.int32)
    words = ops.cat((words, best.expand_dims(1)), 1)
report(words)
