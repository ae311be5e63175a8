"""k-NN on three kinds of wine-like rows: tiled differences, TopK of negative distances, votes in NumPy (1.x course)."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, context, nn
from mindspore.ops import operations as P

from measured import MODE, report

context.set_context(mode=MODE, device_target="CPU")


class KnnNet(nn.Cell):
    def __init__(self, k):
        super(KnnNet, self).__init__()
        self.tile = P.Tile()
        self.sum = P.ReduceSum()
        self.topk = P.TopK()
        self.k = k

    def construct(self, x, X_train):
        x_tile = self.tile(x, (X_train.shape[0], 1))
        square_diff = P.Square()(x_tile - X_train)
        square_dist = self.sum(square_diff, 1)
        dist = P.Sqrt()(square_dist)
        values, indices = self.topk(-dist, self.k)
        return values, indices


def knn(knn_net, x, X_train, Y_train):
    values, indices = knn_net(Tensor(x), Tensor(X_train))
    topK_cls = [0] * 3
    for idx in indices.asnumpy():
        topK_cls[Y_train[idx]] += 1
    return int(np.argmax(topK_cls)), values


random = np.random.RandomState(301)
labels = random.randint(0, 3, 60)
rows = (random.normal(0, 1, (60, 5)) + labels[:, None] * 1.5).astype(np.float32)
net, right = KnnNet(5), 0
for row, label in zip(rows[48:], labels[48:]):
    guess, values = knn(net, row, rows[:48], labels[:48])
    right += guess == label
    report(guess, values)
report(right / 12)
together = ms.ops.cdist(Tensor(rows[48:]), Tensor(rows[:48]))
report(ms.ops.topk(together, 3, largest=False)[0].sum(), together.argmin(1))
