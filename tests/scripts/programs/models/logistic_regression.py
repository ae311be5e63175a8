"""Logistic regression on two clouds: sigmoid cross-entropy in a Cell, WithGradCell and an optimizer by hand, precision and recall (1.x)."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

context.set_context(mode=MODE, device_target="CPU")


class Loss(nn.Cell):
    def __init__(self):
        super(Loss, self).__init__()
        self.sigmoid_cross_entropy_with_logits = P.SigmoidCrossEntropyWithLogits()
        self.reduce_mean = P.ReduceMean(keep_dims=False)

    def construct(self, x, y):
        return self.reduce_mean(self.sigmoid_cross_entropy_with_logits(x, y), -1)


random = np.random.RandomState(281)
x = np.concatenate([random.normal(-1, 1, (20, 4)), random.normal(1, 1, (20, 4))]).astype(np.float32)
y = np.repeat([0, 1], 20)
order = random.permutation(40)
data, label = Tensor(x[order]), Tensor(y[order][:, None].astype(np.float32))
net = begin(nn.Dense(4, 1), 3)
with_loss = nn.WithLossCell(net, Loss())
with_grad = nn.WithGradCell(net, Loss())
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.3, momentum=0.9)


def step():
    loss = with_loss(data, label)
    optimizer(with_grad(data, label))
    return loss.mean()


train(step, net)
probability = P.Sigmoid()(net(data)).asnumpy()
guess = np.concatenate([1 - probability, probability], 1)
for metric in (nn.Precision("classification"), nn.Recall("classification"), nn.F1(), nn.Accuracy("classification")):
    metric.clear()
    metric.update(Tensor(guess), Tensor(y[order].astype(np.int32)))
    report(metric.eval())
confusion = nn.ConfusionMatrix(num_classes=2, normalize="no_norm", threshold=0.5)
confusion.clear()
confusion.update(Tensor(guess.argmax(1).astype(np.int32)), Tensor(y[order].astype(np.int32)))
report(confusion.eval())
report(P.Sigmoid()(Tensor([-1.0, 0.0, 2.0], ms.float32)))
