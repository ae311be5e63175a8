"""Parameters in groups: a rate of their own that follows a list or a schedule, weight decay by name, an order."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class Net(nn.Cell):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = nn.Conv2d(2, 4, 3, pad_mode="pad", padding=1, weight_init="normal")
        self.bn = nn.BatchNorm2d(4, momentum=0.8)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(4 * 16, 3)

    def construct(self, x):
        x = self.bn(self.conv(x)).clip(0, 6)
        return self.fc(self.flatten(x))


def grouped(net):
    decayed = list(filter(lambda p: "bn" not in p.name and "bias" not in p.name, net.trainable_params()))
    other = [p for p in net.trainable_params() if "bn" in p.name or "bias" in p.name]
    rates = nn.warmup_lr(0.1, 12, 2, 2)
    return [
        {"params": decayed, "weight_decay": 0.01, "lr": Tensor(rates, ms.float32)},
        {"params": other, "lr": nn.CosineDecayLR(0.01, 0.2, 5)},
        {"order_params": net.trainable_params()},
    ]


random = np.random.RandomState(5)
x, y = Tensor(random.randn(6, 2, 4, 4).astype(np.float32)), Tensor(random.randint(0, 3, 6).astype(np.int32))
for make in (
    lambda params: nn.Momentum(params, 0.05, 0.9, weight_decay=1e-3),
    lambda params: nn.AdamWeightDecay(params, 0.05, weight_decay=0.02),
    lambda params: nn.RMSProp(params, 0.05, momentum=0.5, centered=True),
    lambda params: nn.Adam(params, 0.05, use_nesterov=True, weight_decay=1e-3),
):
    net = begin(Net(), 3)
    optimizer = make(grouped(net))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean")), optimizer)
    step.set_train()
    train(lambda: step(x, y), net)
    report(optimizer.global_step, *optimizer.get_lr())
