"""GRU seq2seq with attention: an encoder, a decoder that is called once a word, teacher forcing from a NumPy seed, greedy decoding (1.x)."""
import mindspore.nn as nn
import mindspore.ops.functional as F
import mindspore.ops.operations as P
import numpy as np
from mindspore import Tensor, context
from mindspore import dtype as mstype

from measured import MODE, begin, report, train

context.set_context(mode=MODE, device_target="CPU")
VOCAB, HIDDEN, LENGTH = 20, 16, 5


class GRU(nn.Cell):
    """A gated recurrent unit whose gates are written out."""

    def __init__(self, input_size, hidden_size):
        super(GRU, self).__init__()
        self.i2h = nn.Dense(input_size, 3 * hidden_size)
        self.h2h = nn.Dense(hidden_size, 3 * hidden_size)
        self.split = P.Split(axis=1, output_num=3)
        self.sigmoid, self.tanh = P.Sigmoid(), P.Tanh()

    def construct(self, x, h):
        i_r, i_z, i_n = self.split(self.i2h(x))
        h_r, h_z, h_n = self.split(self.h2h(h))
        reset, update = self.sigmoid(i_r + h_r), self.sigmoid(i_z + h_z)
        new = self.tanh(i_n + reset * h_n)
        return (1 - update) * new + update * h


class Encoder(nn.Cell):
    def __init__(self):
        super(Encoder, self).__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.gru = GRU(HIDDEN, HIDDEN)
        self.transpose = P.Transpose()
        self.pack = P.Stack(axis=1)

    def construct(self, encoder_input):
        embeddings = self.transpose(self.embedding(encoder_input), (1, 0, 2))
        hidden = P.Zeros()((encoder_input.shape[0], HIDDEN), mstype.float32)
        outputs = ()
        for i in range(LENGTH):
            hidden = self.gru(embeddings[i], hidden)
            outputs += (hidden,)
        return self.pack(outputs), hidden


class AttnDecoder(nn.Cell):
    def __init__(self):
        super(AttnDecoder, self).__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.gru = GRU(2 * HIDDEN, HIDDEN)
        self.attn = nn.Dense(2 * HIDDEN, HIDDEN)
        self.score = nn.Dense(HIDDEN, 1, has_bias=False)
        self.out = nn.Dense(HIDDEN, VOCAB)
        self.concat = P.Concat(axis=2)
        self.concat1 = P.Concat(axis=1)
        self.softmax = P.Softmax(axis=1)
        self.bmm = P.BatchMatMul()
        self.log_softmax = P.LogSoftmax(axis=1)
        self.squeeze = P.Squeeze(1)

    def construct(self, word, hidden, encoder_output):
        embedded = self.embedding(word)
        queries = P.Tile()(P.ExpandDims()(hidden, 1), (1, LENGTH, 1))
        energy = F.tanh(self.attn(self.concat((queries, encoder_output))))
        attention = self.softmax(self.score(energy))
        context_ = self.squeeze(self.bmm(P.Transpose()(attention, (0, 2, 1)), encoder_output))
        hidden = self.gru(self.concat1((embedded, context_)), hidden)
        return self.log_softmax(self.out(hidden)), hidden


class Seq2Seq(nn.Cell):
    def __init__(self):
        super(Seq2Seq, self).__init__()
        self.encoder = Encoder()
        self.decoder = AttnDecoder()
        self.argmax = P.Argmax(axis=1)
        self.select = P.Select()

    def construct(self, source, target, forced):
        encoder_output, hidden = self.encoder(source)
        word = P.ZerosLike()(target[:, 0]) + 1
        outputs = ()
        for i in range(LENGTH):
            scores, hidden = self.decoder(word, hidden, encoder_output)
            outputs += (scores,)
            guess = P.Cast()(self.argmax(scores), mstype.int32)
            word = self.select(forced[:, i], target[:, i], guess)
        return outputs


class WithLoss(nn.Cell):
    def __init__(self, backbone):
        super(WithLoss, self).__init__()
        self.backbone = backbone
        self.nll = P.NLLLoss(reduction="mean")
        self.weight = Tensor(np.array([0] + [1] * (VOCAB - 1)), mstype.float32)

    def construct(self, source, target, forced):
        loss = 0
        outputs = self.backbone(source, target, forced)
        for i in range(LENGTH):
            loss += self.nll(outputs[i], target[:, i], self.weight)[0]
        return loss / LENGTH


random = np.random.RandomState(121)
source, target = (Tensor(random.randint(1, VOCAB, (4, LENGTH)), mstype.int32) for _ in range(2))
forced = Tensor(random.rand(4, LENGTH) < 0.5)
net = begin(Seq2Seq(), 5, 0.6)
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.005, eps=1e-5)
step = nn.TrainOneStepCell(WithLoss(net), optimizer, sens=1.0)
step.set_train()
train(lambda: step(source, target, forced), net)
greedy = net(source, target, Tensor(np.zeros((4, LENGTH), np.bool_)))
report(np.stack([scores.asnumpy().argmax(1) for scores in greedy], 1))
