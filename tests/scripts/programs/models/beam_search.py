# tolerance 1e-4: printed scores are sums of many logarithms.
"""An encoder and a decoder with attention; teacher forcing while training, beam search with lengths and penalties in evaluation (1.x)."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common import dtype as mstype
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

context.set_context(mode=MODE, device_target="CPU")
VOCAB, WIDTH, BOS, EOS = 9, 8, 1, 2


class Seq2Seq(nn.Cell):
    def __init__(self):
        super(Seq2Seq, self).__init__()
        self.table = nn.Embedding(VOCAB, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.cell = nn.GRUCell(2 * WIDTH, WIDTH)
        self.score = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.out = nn.Dense(2 * WIDTH, VOCAB)
        self.matmul, self.trans_matmul = P.BatchMatMul(), P.BatchMatMul(transpose_b=True)
        self.softmax, self.concat, self.squeeze = P.Softmax(-1), P.Concat(-1), P.Squeeze(1)
        self.expand, self.stack = P.ExpandDims(), P.Stack(1)

    def encode(self, source):
        return self.encoder(self.table(source))

    def decode(self, token, state, memory):
        weights = self.softmax(self.trans_matmul(self.expand(self.score(state), 1), memory))
        seen = self.squeeze(self.matmul(weights, memory))
        state = self.cell(self.concat((self.table(token), seen)), state)
        return self.out(self.concat((state, seen))), state

    def construct(self, source, target):
        memory, state = self.encode(source)
        state = state[0]
        logits = ()
        for t in range(target.shape[1] - 1):
            step, state = self.decode(target[:, t], state, memory)
            logits += (step,)
        return self.stack(logits)


class Loss(nn.Cell):
    def __init__(self, net):
        super(Loss, self).__init__(auto_prefix=False)
        self.net = net
        self.ce = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
        self.sum = P.ReduceSum()

    def construct(self, source, target):
        logits = P.Reshape()(self.net(source, target), (-1, VOCAB))
        label = P.Reshape()(target[:, 1:], (-1,))
        mask = F.cast(P.NotEqual()(label, 0), mstype.float32)
        return self.sum(self.ce(logits, label) * mask) / self.sum(mask)


def beam_search(net, source, width=3, steps=5):
    """The best sequence of a row by beam search."""
    memory, state = net.encode(source)
    memory, state = P.Tile()(memory, (width, 1, 1)), P.Tile()(state[0], (width, 1))
    scores = Tensor(np.array([0.0] + [-1e9] * (width - 1)), mstype.float32)
    tokens, done = Tensor(np.full(width, BOS), mstype.int32), np.zeros(width, bool)
    sequences = np.full((width, 1), BOS)
    for _ in range(steps):
        logits, state = net.decode(tokens, state, memory)
        step = P.LogSoftmax()(logits)
        frozen = np.full(VOCAB, -1e9, np.float32)
        frozen[EOS] = 0
        step = P.Select()(Tensor(np.tile(done[:, None], (1, VOCAB))), Tensor(np.tile(frozen, (width, 1))), step)
        total = P.Reshape()(P.ExpandDims()(scores, 1) + step, (-1,))
        scores, index = P.TopK(sorted=True)(total, width)
        source_beam = P.FloorDiv()(index, VOCAB)
        tokens = F.cast(P.FloorMod()(index, VOCAB), mstype.int32)
        state = P.Gather()(state, source_beam, 0)
        sequences = np.concatenate([sequences[source_beam.asnumpy()], tokens.asnumpy()[:, None]], 1)
        done = done[source_beam.asnumpy()] | (tokens.asnumpy() == EOS)
    lengths = (sequences != EOS).sum(1) + 1
    ranked = scores.asnumpy() / ((5 + lengths) / 6) ** 0.6
    return sequences[ranked.argmax()].tolist(), scores


random = np.random.RandomState(21)
source = Tensor(random.randint(3, VOCAB, (4, 6)), mstype.int32)
target = np.concatenate([np.full((4, 1), BOS), random.randint(3, VOCAB, (4, 3)), np.full((4, 1), EOS)], 1)
target[1, 3:] = [EOS, 0]
net = begin(Seq2Seq(), 6)
optimizer = nn.Adam(net.trainable_params(), learning_rate=nn.dynamic_lr.polynomial_decay_lr(0.05, 0.01, 12, 3, 3, 0.5), eps=1e-4)
step = nn.TrainOneStepCell(Loss(net), optimizer, sens=16.0)
step.set_train()
target = Tensor(target, mstype.int32)
train(lambda: step(source, target), net)
net.set_train(False)
words, scores = beam_search(net, source[1:2])
print(words)
report(scores)
