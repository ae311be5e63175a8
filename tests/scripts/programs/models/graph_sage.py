"""GraphSAGE + link prediction, course-like: unsorted_segment_*, negative sampling from numpy, nn.Embedding, Parameter requires_grad False, own metric, ftrl sparse, P.SparseApply style (nn.LazyAdam)."""
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor, Parameter, ParameterTuple
from measured import MODE, begin, train

ms.set_context(mode=MODE)
N, E = 12, 40


class SAGE(nn.Cell):
    def __init__(self, size_in, size_out, aggregator="mean"):
        super().__init__()
        self.aggregator = aggregator
        self.own = nn.Dense(size_in, size_out, has_bias=False)
        self.neighbours = nn.Dense(size_in, size_out)

    def construct(self, h, source, target):
        messages = ops.gather(h, source, 0)
        if self.aggregator == "mean":
            total = ops.unsorted_segment_sum(messages, target, N)
            degree = ops.unsorted_segment_sum(ops.ones_like(target).astype(ms.float32), target, N)
            result = ops.DivNoNan()(total, degree.expand_dims(1))
        else:
            result = ops.unsorted_segment_max(messages, target, N)
            result = ops.masked_fill(result, result < -1e30, 0.0)
        return ops.elu(self.own(h) + self.neighbours(result))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(N, 6, padding_idx=0)
        self.first, self.second = SAGE(6, 8), SAGE(8, 4, "max")
        self.scale = Parameter(Tensor(1.0, ms.float32), name="scale", requires_grad=False)

    def construct(self, source, target):
        h = self.embedding(ops.arange(N))
        return self.second(self.first(h, source, target), source, target) * self.scale


class Link(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net = net
        self.loss = nn.BCEWithLogitsLoss(reduction="none", pos_weight=Tensor([2.0], ms.float32))

    def construct(self, source, target, negative):
        h = self.net(source, target)
        positive = (h[source] * h[target]).sum(-1)
        wrong = ops.bmm(h[negative], h[source].expand_dims(2)).squeeze(2)
        logits = ops.cat((positive.expand_dims(1), wrong), 1)
        labels = ops.cat((ops.ones_like(positive).expand_dims(1), ops.zeros_like(wrong)), 1)
        return self.loss(logits, labels).mean() + 1e-3 * ops.square(self.net.embedding.embedding_table).sum()


net = begin(Net())
link = Link(net)
optimizer = nn.LazyAdam(net.trainable_params(), learning_rate=0.05, use_nesterov=True)
optimizer.target = "CPU"
trainer = nn.TrainOneStepCell(link, optimizer, sens=4.0)
trainer.set_train()
rng = np.random.RandomState(8)
source, target = Tensor(rng.randint(0, N, E), ms.int32), Tensor(rng.randint(0, N, E), ms.int32)
negative = Tensor(rng.randint(0, N, (E, 3)), ms.int32)
train(lambda: trainer(source, target, negative), net)
