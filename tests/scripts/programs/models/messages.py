"""Messages between nodes of graphs by sparse operators: CSR and COO products, segment sums, edges with gates, pooling per graph, top-k nodes."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import COOTensor, CSRTensor, Parameter, Tensor, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
N, E, G = 10, 24, 3
random = np.random.RandomState(30)
edges = np.unique(random.randint(0, N, (E, 2)), axis=0)
source, target = edges[:, 0].astype(np.int32), edges[:, 1].astype(np.int32)
batch = np.sort(random.randint(0, G, N)).astype(np.int32)
batch[:G] = np.arange(G)
batch = np.sort(batch)
features = Tensor(random.randn(N, 4), ms.float32)
y = Tensor(random.randn(G, 2), ms.float32)
order = np.lexsort((source, target))
indptr = Tensor(np.searchsorted(target[order], np.arange(N + 1)), ms.int32)
columns = Tensor(source[order], ms.int32)
weights = Tensor(random.rand(len(edges)) + 0.1, ms.float32)


class Gated(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.a, self.b, self.gate = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(2 * width, 1)
        self.norm = nn.BatchNorm1d(width)

    def construct(self, h, source, target):
        h_source, h_target = ops.gather(h, source, 0), ops.gather(h, target, 0)
        gate = ops.sigmoid(self.gate(ops.concat((h_source, h_target), 1)))
        total = ops.unsorted_segment_sum(gate * self.a(h_source), target, N)
        weight = ops.unsorted_segment_sum(gate, target, N)
        largest = ops.unsorted_segment_max(h_source, target, N)
        largest = ops.select(ops.isfinite(largest) & (largest > -1e30), largest, ops.zeros_like(largest))
        return h + ops.relu(self.norm(self.b(h) + total / (weight + 1e-6) + largest))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inside = nn.Dense(4, 6)
        self.layers = nn.CellList([Gated(6), Gated(6)])
        self.score = Parameter(Tensor(np.zeros((6, 1)), ms.float32), name="score")
        self.out = nn.SequentialCell(nn.Dense(12, 6), nn.HSwish(), nn.Dense(6, 2))

    def construct(self, x, source, target, batch):
        h = self.inside(x)
        for layer in self.layers:
            h = layer(h, source, target)
        score = ops.matmul(h, self.score).squeeze(1)
        top = ops.unsorted_segment_max(score, batch, G)
        exponent = ops.exp(score - ops.gather(top, batch, 0))
        attention = exponent / ops.gather(ops.unsorted_segment_sum(exponent, batch, G), batch, 0)
        pooled = ops.unsorted_segment_sum(h * attention.expand_dims(1), batch, G)
        count = ops.tensor_scatter_elements(ops.zeros(G, ms.float32), batch, ops.ones(N, ms.float32), 0, "add")
        mean = ops.unsorted_segment_sum(h, batch, G) / count.expand_dims(1)
        return self.out(ops.cat((pooled, mean), 1))


net = begin(Net(), 8, 0.7)
optimizer = nn.Adam(net.trainable_params(), 0.01, eps=1e-4, weight_decay=1e-4)


class Loss(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x, source, target, batch, y):
        return ops.l1_loss(self.net(x, source, target, batch), y) + ops.mse_loss(self.net.score, ops.ones_like(self.net.score))


step = nn.TrainOneStepCell(Loss(), optimizer)
step.set_train()
graph = (Tensor(source), Tensor(target), Tensor(batch))
train(lambda: step(features, *graph, y), net)


coo = COOTensor(Tensor(np.stack([target, source], 1), ms.int32), weights, (N, N))
csr = CSRTensor(indptr, columns, weights, (N, N))
report(coo.to_dense().sum(1), csr.to_dense().sum(0), csr.values.sum())       # products with a CSRTensor do not run on MindSpore's CPU
dense = ops.SparseTensorDenseMatmul()(coo.indices, coo.values, coo.shape, features)
report(dense.sum(0))
