"""Recurrent layers on sequences of several lengths: LSTM and GRU with seq_length, bidirectional and stacked, own cells in loops, the last valid output."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor

from measured import MODE, begin, train

ms.set_context(mode=MODE)


class Tagger(nn.Cell):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(20, 6, padding_idx=0)
        layer = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind]
        self.rnn = layer(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.pick = nn.Dense(10, 4)

    def construct(self, ids, lengths):
        h = self.embedding(ids)
        out, _ = self.rnn(h, None, lengths)
        at = ops.stack((ops.arange(ids.shape[0]).astype(ms.int32), lengths - 1), -1)
        last = ops.gather_nd(out, at)
        mask = (ops.arange(ids.shape[1]).astype(ms.int32).expand_dims(0) < lengths.expand_dims(1)).astype(ms.float32)
        mean = (out * mask.expand_dims(2)).sum(1) / lengths.expand_dims(1).astype(ms.float32)
        return self.pick(last + mean)


class Steps(nn.Cell):
    """A cell of each kind, step by step; the state is kept where a sequence has ended."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(3, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4, nonlinearity="relu")
        self.out = nn.Dense(4, 4)

    def construct(self, x, lengths):
        h = c = ops.zeros((x.shape[0], 4), ms.float32)
        g = r = h
        for t in range(x.shape[1]):
            valid = (lengths > t).expand_dims(1)
            h_new, c_new = self.lstm(x[:, t], (h, c))
            h, c = ops.select(valid.broadcast_to(h.shape), h_new, h), ops.where(valid, c_new, c)
            g = ops.where(valid, self.gru(h, g), g)
            r = ops.where(valid, self.rnn(g, r), r)
        return self.out(r)


random = np.random.RandomState(7)
ids = random.randint(1, 20, (4, 7))
lengths = np.array([7, 3, 5, 1])
ids = ids * (np.arange(7) < lengths[:, None])
labels = Tensor(random.randint(0, 4, 4), ms.int32)
for kind in ("lstm", "gru", "rnn"):
    net = begin(Tagger(kind), 3, 0.7)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.RMSProp(net.trainable_params(), 0.01)

    def forward(ids, lengths, labels):
        return loss_fn(net(ids, lengths), labels)

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def step():
        loss, grads = grad_fn(Tensor(ids, ms.int32), Tensor(lengths, ms.int32), labels)
        optimizer(ops.clip_by_value(grads, Tensor(-0.05, ms.float32), Tensor(0.05, ms.float32)))
        return loss

    train(step, net)
net = begin(Steps(), 4)
optimizer = nn.SGD(net.trainable_params(), 0.2)
x = Tensor(random.randn(4, 7, 3), ms.float32)


class WithLoss(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net
        self.loss = nn.MultiMarginLoss()

    def construct(self, x, lengths, labels):
        return self.loss(self.net(x, lengths), labels.astype(ms.int64))


cell = nn.TrainOneStepCell(WithLoss(), optimizer)
train(lambda: cell(x, Tensor(lengths, ms.int32), labels), net)
