# tolerance 1e-4: Adam divides gradients near 0 by their own size.
"""Knowledge distillation with a temperature, focal loss, dice loss, label smoothing, hard examples: losses that programs write themselves."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, ops
from mindspore.nn.loss.loss import LossBase, _Loss
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, train

ms.set_context(mode=MODE)


class Distill(LossBase):
    def __init__(self, teacher, temperature=4.0, alpha=0.7):
        super().__init__()
        self.teacher, self.t, self.alpha = teacher, temperature, alpha
        self.kl = nn.KLDivLoss(reduction="batchmean")
        self.ce = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, logits, x, label):
        soft = ops.softmax(F.stop_gradient(self.teacher(x)) / self.t, axis=-1)
        kl = self.kl(ops.log_softmax(logits / self.t, -1), soft)
        return self.alpha * self.t ** 2 * kl + (1 - self.alpha) * self.ce(logits, label)


class Focal(_Loss):
    def __init__(self, gamma=2.0, alpha=0.25):
        super(Focal, self).__init__()
        self.gamma, self.alpha = gamma, alpha
        self.sigmoid_cross_entropy = P.SigmoidCrossEntropyWithLogits()
        self.sigmoid, self.pow, self.onehot = P.Sigmoid(), P.Pow(), P.OneHot()
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

    def construct(self, logits, label):
        label = self.onehot(label, F.shape(logits)[-1], self.on, self.off)
        entropy = self.sigmoid_cross_entropy(logits, label)
        p = self.sigmoid(logits)
        label = F.cast(label, ms.float32)
        p_t = label * p + (1 - label) * (1 - p)
        factor = self.pow(1 - p_t, self.gamma)
        alpha = label * self.alpha + (1 - label) * (1 - self.alpha)
        return self.get_loss(factor * alpha * entropy)


class Hard(nn.Cell):
    """The mean of the worst half."""

    def __init__(self):
        super().__init__()
        self.ce = nn.CrossEntropyLoss(reduction="none", weight=Tensor([1.0, 2.0, 0.5], ms.float32))

    def construct(self, logits, label):
        worst, _ = ops.topk(self.ce(logits, label), logits.shape[0] // 2)
        return worst.mean()


class Smooth(nn.Cell):
    def construct(self, logits, label):
        target = ops.one_hot(label, 3, Tensor(0.9), Tensor(0.05))
        dice = nn.DiceLoss(smooth=1e-5)(ops.softmax(logits, axis=1), target)
        return dice + 0.5 * nn.SmoothL1Loss(beta=0.5, reduction="mean")(logits, target) + ops.huber_loss(logits, target, delta=0.4)


random = np.random.RandomState(4)
x, y = Tensor(random.randn(6, 4), ms.float32), Tensor(random.randint(0, 3, 6), ms.int32)


def student():
    return begin(nn.SequentialCell(nn.Dense(4, 6, activation="elu"), nn.Dense(6, 3)), 9)


teacher = begin(nn.SequentialCell(nn.Dense(4, 16, activation="tanh"), nn.Dense(16, 3)), 10)
teacher.set_train(False)
for p in teacher.get_parameters():
    p.requires_grad = False
net, criterion = student(), Distill(teacher)
optimizer = nn.Adam(net.trainable_params(), 1e-2, eps=1e-4)


def forward(x, y):
    logits = net(x)
    return criterion(logits, x, y), logits


grad_fn = ops.value_and_grad(forward, None, optimizer.parameters, has_aux=True)


def step(x, y):
    (loss, logits), grads = grad_fn(x, y)
    optimizer(grads)
    return loss, (logits.argmax(1) == y).astype(ms.float32).mean()


step = ms.jit(step) if MODE == ms.GRAPH_MODE else step
train(lambda: step(x, y), net)
for loss in (Focal(), Hard(), Smooth(), nn.FocalLoss(gamma=1.5), nn.MultiClassDiceLoss()):
    net = student()
    if isinstance(loss, (nn.FocalLoss, nn.MultiClassDiceLoss)):
        target = Tensor(np.eye(3, dtype=np.float32)[y.asnumpy()])
        train_net = nn.WithLossCell(nn.SequentialCell(net, nn.Softmax(1)), loss)
    else:
        target, train_net = y, nn.WithLossCell(net, loss)
    optim = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    trainer = nn.TrainOneStepCell(train_net, optim, 2.0).set_train()
    train(lambda: trainer(x, target), net)
