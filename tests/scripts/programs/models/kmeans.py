"""k-means: distances by broadcasting, assignment by argmin, centres by one-hot matmul and by unsorted_segment_sum, in a loop (2.x)."""
import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from measured import MODE, report, train

ms.set_context(mode=MODE)


class KMeans(nn.Cell):
    def __init__(self, centres):
        super().__init__()
        self.k = centres.shape[0]
        self.centres = Parameter(Tensor(centres), name="centres", requires_grad=False)
        self.one_hot = nn.OneHot(depth=self.k)

    def assign(self, x):
        distance = ops.square(ops.expand_dims(x, 1) - ops.expand_dims(self.centres, 0)).sum(-1)
        return ops.argmin(distance, axis=1), distance.min(axis=1)

    def construct(self, x):
        nearest, distance = self.assign(x)
        chosen = self.one_hot(nearest)
        count = ops.maximum(chosen.sum(0), Tensor(1.0)).expand_dims(1)
        self.centres = ops.matmul(chosen.T, x) / count
        return distance.mean()


def by_segments(x, centres):
    nearest = mnp.argmin(((x[:, None] - centres[None]) ** 2).sum(-1), axis=1).astype(ms.int32)
    total = ops.unsorted_segment_sum(x, nearest, 3)
    count = ops.unsorted_segment_sum(mnp.ones(x.shape[0]), nearest, 3)
    return total / mnp.maximum(count, 1)[:, None]


random = np.random.RandomState(311)
points = np.concatenate([random.normal(centre, 0.5, (15, 2)) for centre in ((0, 0), (3, 1), (-2, 2))]).astype(np.float32)
x = Tensor(points)
model = KMeans(points[[0, 1, 20]])
train(lambda: model(x), model)
report(model.centres, model.assign(x)[0])
centres = Tensor(points[[0, 1, 20]])
for _ in range(3):
    centres = by_segments(x, centres)
report(centres)
