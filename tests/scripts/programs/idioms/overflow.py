# tolerance 1e-3: float16 products.
"""Float16 with a loss scale that follows overflows: a scaler by hand with batches that overflow, and the manager of a Model by itself."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import DynamicLossScaleManager, Tensor, amp, ops

from measured import MODE, begin, finish, report

ms.set_context(mode=MODE)
random = np.random.RandomState(3)
x = [Tensor(random.randn(4, 6) * scale, ms.float32) for scale in (1, 1, 3e4, 1, 1)]
y = Tensor(random.randn(4, 2), ms.float32)


def fresh():
    return begin(nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 2)), 5)


net = fresh()
net.to_float(ms.float16)
loss_fn = nn.MSELoss().to_float(ms.float32)
optimizer = nn.SGD(net.trainable_params(), 0.05)
scaler = amp.DynamicLossScaler(2.0 ** 15, 2, 2)


def forward(x, y):
    logits = net(x)
    return scaler.scale(loss_fn(logits.astype(ms.float32), y)), logits


grad_fn = ops.value_and_grad(forward, None, net.trainable_params(), has_aux=True)
for batch in x:
    (loss, _), grads = grad_fn(batch, y)
    grads = scaler.unscale(grads)
    finite = amp.all_finite(grads)
    if finite:
        optimizer(grads)
    print(bool(finite), bool(scaler.adjust(finite)))
    report(scaler.scale_value)
finish(net)
manager = DynamicLossScaleManager(2 ** 10, 2, 3)
for overflow in (False, False, False, True, True, False, False, False):
    manager.update_loss_scale(overflow)
    report(manager.get_loss_scale())
