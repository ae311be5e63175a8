"""Bi-LSTM-CRF: log-sum-exp over tags in a Python loop, Viterbi decoding in NumPy, masks from lengths (2.x tutorial)."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore.common.initializer import Uniform, initializer

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


def sequence_mask(seq_length, max_length, batch_first=False):
    range_vector = ops.arange(0, max_length, 1).astype(seq_length.dtype)
    result = range_vector < seq_length.view(seq_length.shape + (1,))
    if batch_first:
        return result.astype(ms.int64)
    return result.astype(ms.int64).swapaxes(0, 1)


def compute_score(emissions, tags, seq_ends, mask, trans, start_trans, end_trans):
    seq_length, batch_size = tags.shape
    mask = mask.astype(emissions.dtype)
    score = start_trans[tags[0]]
    score += emissions[0, ops.arange(batch_size), tags[0]]
    for i in range(1, seq_length):
        score += trans[tags[i - 1], tags[i]] * mask[i]
        score += emissions[i, ops.arange(batch_size), tags[i]] * mask[i]
    last_tags = tags[seq_ends, ops.arange(batch_size)]
    score += end_trans[last_tags]
    return score


def compute_normalizer(emissions, mask, trans, start_trans, end_trans):
    seq_length = emissions.shape[0]
    score = start_trans + emissions[0]
    for i in range(1, seq_length):
        next_score = score.expand_dims(2) + trans + emissions[i].expand_dims(1)
        next_score = ops.logsumexp(next_score, 1)
        score = ops.where(mask[i].expand_dims(1), next_score, score)
    score += end_trans
    return ops.logsumexp(score, 1)


class CRF(nn.Cell):
    def __init__(self, num_tags):
        super().__init__()
        self.start_transitions = ms.Parameter(initializer(Uniform(0.1), (num_tags,)), name="start_transitions")
        self.end_transitions = ms.Parameter(initializer(Uniform(0.1), (num_tags,)), name="end_transitions")
        self.transitions = ms.Parameter(initializer(Uniform(0.1), (num_tags, num_tags)), name="transitions")

    def construct(self, emissions, tags, seq_length):
        emissions, tags = emissions.swapaxes(0, 1), tags.swapaxes(0, 1)
        mask = sequence_mask(seq_length, emissions.shape[0]).bool()
        numerator = compute_score(emissions, tags, seq_length - 1, mask, self.transitions, self.start_transitions, self.end_transitions)
        denominator = compute_normalizer(emissions, mask, self.transitions, self.start_transitions, self.end_transitions)
        return (denominator - numerator).sum()


class BiLSTM_CRF(nn.Cell):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, num_tags, padding_idx=0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=padding_idx)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim // 2, bidirectional=True, batch_first=True)
        self.hidden2tag = nn.Dense(hidden_dim, num_tags, "he_uniform")
        self.crf = CRF(num_tags)

    def features(self, inputs, seq_length):
        outputs, _ = self.lstm(self.embedding(inputs), seq_length=seq_length)
        return self.hidden2tag(outputs)

    def construct(self, inputs, seq_length, tags):
        return self.crf(self.features(inputs, seq_length), tags, seq_length)


def viterbi(emissions, trans, start, end):
    score, history = start + emissions[0], []
    for emission in emissions[1:]:
        choices = score[:, None] + trans + emission[None]
        history.append(choices.argmax(0))
        score = choices.max(0)
    best = [int((score + end).argmax())]
    for pointers in reversed(history):
        best.append(int(pointers[best[-1]]))
    return best[::-1]


text = "tsinghua university lies in beijing the capital of china".split()
more = "shanghai is a city".split()
tags = [["B", "I", "O", "O", "B", "O", "O", "O", "B"], ["B", "O", "O", "O"]]
words = {word: index + 1 for index, word in enumerate(dict.fromkeys(text + more))}
tag_to_idx = {"B": 0, "I": 1, "O": 2}
data = ms.Tensor([[words[w] for w in line] + [0] * (9 - len(line)) for line in (text, more)], ms.int32)
label = ms.Tensor([[tag_to_idx[t] for t in line] + [0] * (9 - len(line)) for line in tags], ms.int32)
length = ms.Tensor([9, 4], ms.int32)
model = begin(BiLSTM_CRF(len(words) + 1, 8, 8, 3), 3, 0.6)
optimizer = nn.SGD(model.trainable_params(), learning_rate=0.01, weight_decay=1e-4)
grad_fn = ms.value_and_grad(model, None, optimizer.parameters)


def train_step():
    loss, grads = grad_fn(data, length, label)
    optimizer(grads)
    return loss


train(train_step, model)
emissions = model.features(data, length).asnumpy()
crf = model.crf
report(viterbi(emissions[0], crf.transitions.asnumpy(), crf.start_transitions.asnumpy(), crf.end_transitions.asnumpy()))
