"""Sentiment with a bidirectional LSTM of two layers over word vectors, Model.train with own metrics, padding and lengths (2.x tutorial)."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
TEXTS = [("a fine and moving film", 1), ("dull plot and dull people", 0), ("what a moving story", 1), ("people left the dull film", 0)]
WORDS = sorted({word for text, _ in TEXTS for word in text.split()})
VOCAB = {word: index for index, word in enumerate(["<unk>", "<pad>", *WORDS])}


class RNN(nn.Cell):
    def __init__(self, embeddings, hidden_dim, output_dim, n_layers, bidirectional, pad_idx):
        super().__init__()
        vocab_size, embedding_dim = embeddings.shape
        self.embedding = nn.Embedding(vocab_size, embedding_dim, embedding_table=ms.Tensor(embeddings), padding_idx=pad_idx)
        self.rnn = nn.LSTM(embedding_dim, hidden_dim, num_layers=n_layers, bidirectional=bidirectional, batch_first=True)
        self.fc = nn.Dense(hidden_dim * 2, output_dim, weight_init=ms.common.initializer.HeUniform(5 ** 0.5))

    def construct(self, inputs, lengths):
        embedded = self.embedding(inputs)
        _, (hidden, _) = self.rnn(embedded, seq_length=lengths)
        hidden = ops.concat((hidden[-2, :, :], hidden[-1, :, :]), axis=1)
        return self.fc(hidden)


def tokens(text, length=6):
    ids = [VOCAB.get(word, 0) for word in text.split()]
    return ids[:length] + [VOCAB["<pad>"]] * (length - len(ids))


inputs = ms.Tensor([tokens(text) for text, _ in TEXTS], ms.int32)
lengths = ms.Tensor([len(text.split()) for text, _ in TEXTS], ms.int32)
labels = ms.Tensor([[label] for _, label in TEXTS], ms.float32)
table = np.random.RandomState(111).normal(0, 0.5, (len(VOCAB), 12)).astype(np.float32)
net = begin(RNN(table, 10, 1, 2, True, VOCAB["<pad>"]), 4, 0.5)
loss_fn = nn.BCEWithLogitsLoss(reduction="mean")
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01, eps=1e-5)


def forward_fn(data, sizes, label):
    return loss_fn(net(data, sizes), label)


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)


def train_step():
    loss, grads = grad_fn(inputs, lengths, labels)
    optimizer(grads)
    return loss


net.set_train()
train(train_step, net)


def predict_sentiment(sentence):
    net.set_train(False)
    logits = net(ms.Tensor([tokens(sentence)], ms.int32), ms.Tensor([len(sentence.split())], ms.int32))
    return ops.sigmoid(logits)


report(predict_sentiment("a dull story"), predict_sentiment("fine people"))
