"""A recurrent word model written by hand: the cell is a Cell, time is a Python loop, hidden state is kept in an attribute."""
import sys

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, ops

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
SENTENCES = ["i like cats", "we like dogs", "they hate rain", "i hate mondays", "we love rain", "they love cats"]


class GRUCellByHand(nn.Cell):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.w_ih = Parameter(Tensor(np.zeros((3 * hidden, inputs)), ms.float32), name="w_ih")
        self.w_hh = Parameter(Tensor(np.zeros((3 * hidden, hidden)), ms.float32), name="w_hh")
        self.b = Parameter(Tensor(np.zeros(3 * hidden), ms.float32), name="b")
        self.matmul = ops.MatMul(transpose_b=True)
        self.split = ops.Split(axis=1, output_num=3)

    def construct(self, x, h):
        i_r, i_z, i_n = self.split(self.matmul(x, self.w_ih) + self.b)
        h_r, h_z, h_n = self.split(self.matmul(h, self.w_hh))
        r = ops.sigmoid(i_r + h_r)
        z = ops.Sigmoid()(i_z + h_z)
        n = ops.tanh(i_n + r * h_n)
        return (1 - z) * n + z * h


class WordModel(nn.Cell):
    def __init__(self, vocab, width, hidden):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(vocab, width)
        self.cell = GRUCellByHand(width, hidden)
        self.head = nn.Dense(hidden, vocab)
        self.state = None

    def construct(self, words):
        h = ops.zeros((words.shape[0], self.hidden), ms.float32)
        outputs = []
        embedded = self.embedding(words)
        for t in range(words.shape[1]):
            h = self.cell(embedded[:, t, :], h)
            outputs.append(h)
        stacked = ops.stack(outputs, axis=1)
        return self.head(stacked), h


words = sorted({word for sentence in SENTENCES for word in sentence.split()})
table = {word: index for index, word in enumerate(words)}
data = np.array([[table[word] for word in sentence.split()] for sentence in SENTENCES], np.int32)
rng = np.random.RandomState(8)
net = WordModel(len(words), 8, 16)
for param in net.trainable_params():
    param.set_data(Tensor(rng.uniform(-0.4, 0.4, param.shape).astype(np.float32)))
print([(param.name, param.shape) for param in net.trainable_params()])

criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.03)


class LossCell(nn.Cell):
    def __init__(self, backbone, loss):
        super().__init__(auto_prefix=False)
        self.backbone = backbone
        self.loss = loss

    def construct(self, inputs, targets):
        logits, _ = self.backbone(inputs)
        return self.loss(logits.reshape((-1, logits.shape[-1])), targets.reshape((-1,)))


train = nn.TrainOneStepCell(LossCell(net, criterion), optimizer)
train.set_train()
inputs, targets = Tensor(data[:, :-1]), Tensor(data[:, 1:])
for epoch in range(20):
    loss = train(inputs, targets)
    if epoch % 5 == 4:
        print("epoch", epoch + 1, "loss", "%.4f" % loss.asnumpy())
net.set_train(False)
logits, last = net(inputs)
predicted = logits.argmax(axis=-1).asnumpy()
for row, sentence in zip(predicted[:2], SENTENCES[:2]):
    print(sentence.split()[0], "->", [words[int(index)] for index in row])
print(last.shape, "%.4f" % float(last.sum().asnumpy()))
# Other lengths work as well: each length is a graph of its own.
for length in (1, 2, 3):
    logits, _ = net(Tensor(data[:1, :length]))
    print(length, logits.shape, "%.4f" % logits[0, -1].max().asnumpy())
