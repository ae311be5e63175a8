"""Siamese network with triplet loss, a cosine-distance, hard negative mining by TopK and gather, functional 2.x, nn.Adagrad & clip_by_global_norm, cosine decay."""
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor
from measured import MODE, begin, train

ms.set_context(mode=MODE)


class Embedder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv1d(4, 8, 5, pad_mode="pad", padding=2, has_bias=True), nn.LayerNorm((8, 20), begin_norm_axis=1, begin_params_axis=1), nn.GELU(approximate=False), nn.AvgPool1d(2, 2),
            nn.Conv1d(8, 16, 3, stride=2, pad_mode="same"), nn.PReLU(16), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Dense(16, 8))

    def construct(self, x):
        return ops.L2Normalize(axis=-1)(self.layers(x))


class HardTriplet(nn.LossBase):
    def __init__(self, margin=0.3):
        super().__init__(reduction="mean")
        self.margin = margin

    def construct(self, embedded, labels):
        distance = 1 - ops.matmul(embedded, embedded.T)
        is_same_class = ops.equal(labels.expand_dims(0), labels.expand_dims(1)).astype(ms.float32)
        hardest_positive = (distance * is_same_class).max(axis=1)
        far = distance + is_same_class * 1e3
        hardest_negative = -ops.topk(-far, 1, sorted=True)[0].squeeze(-1)
        loss = ops.relu(hardest_positive - hardest_negative + self.margin)
        weights = ops.where(loss > 0, ops.ones_like(loss), ops.full_like(loss, 0.5))
        return self.get_loss(loss, weights)


net = begin(Embedder())
loss_fn = HardTriplet()
schedule = nn.CosineDecayLR(1e-4, 0.05, 10)
optimizer = nn.Adagrad(net.trainable_params(), accum=0.1, learning_rate=schedule, update_slots=True, weight_decay=1e-3)


def forward(x, y):
    z = net(x)
    return loss_fn(z, y), z


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)


def step(x, y):
    (loss, _), grads = grad_fn(x, y)
    grads = ops.clip_by_global_norm(grads, 0.5)
    loss = ops.depend(loss, optimizer(grads))
    return loss


if MODE == ms.GRAPH_MODE:
    step = ms.jit(step)
rng = np.random.RandomState(3)
x, y = Tensor(rng.randn(12, 4, 20).astype(np.float32)), Tensor(rng.randint(0, 3, 12), ms.int32)
train(lambda: step(x, y), net)
