"""Two heads, several labels, weighted losses of one's own, dict batches, a manual loop with GradOperation by list and best-model saving."""
import os
import sys

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor
from mindspore.dataset import GeneratorDataset
from mindspore.train import Accuracy, MAE, Top1CategoricalAccuracy

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Focal(nn.LossBase):
    def __init__(self, gamma=2.0, reduction="mean"):
        super().__init__(reduction)
        self.gamma = gamma

    def construct(self, logits, labels):
        log_p = ops.log_softmax(logits, axis=1)
        picked = ops.gather_elements(log_p, 1, labels.expand_dims(1)).squeeze(1)
        return self.get_loss(-((1 - ops.exp(picked)) ** self.gamma) * picked)


class TwoHeads(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 6, 3, has_bias=True, bias_init="zeros")
        self.norm = nn.GroupNorm(2, 6)
        self.classify = nn.Dense(6 * 10, 3, bias_init="zeros")
        self.regress = nn.SequentialCell(nn.Dense(6 * 10, 8, bias_init="zeros"), nn.PReLU(), nn.Dense(8, 1, bias_init="zeros"))

    def construct(self, x):
        h = ops.silu(self.norm(self.conv(x).expand_dims(-1)).squeeze(-1))
        h = h.view(h.shape[0], -1)
        return {"class": self.classify(h), "value": self.regress(h)}


class MultiTask(nn.Cell):
    def __init__(self, net, weights=(1.0, 0.5)):
        super().__init__(auto_prefix=False)
        self.net, self.weights = net, weights
        self.focal, self.huber = Focal(), nn.SmoothL1Loss(beta=0.5, reduction="mean")

    def construct(self, signal, kind, value):
        out = self.net(signal)
        a, b = self.focal(out["class"], kind), self.huber(out["value"], value)
        return self.weights[0] * a + self.weights[1] * b, (a, b)


class Signals:
    def __init__(self, count, seed):
        rng = np.random.RandomState(seed)
        self.kind = rng.randint(0, 3, count).astype(np.int32)
        time = np.arange(10)
        self.phase = rng.uniform(0, 1, count)
        self.signal = np.stack([np.stack([np.sin((k + 1) * time * 0.5 + p), np.cos(time * p)]) for k, p in zip(self.kind, self.phase)])

    def __getitem__(self, i):
        i = int(i)
        return self.signal[i].astype(np.float32), self.kind[i], np.array([self.phase[i]], np.float32)

    def __len__(self):
        return len(self.kind)


train = GeneratorDataset(Signals(60, 0), ["signal", "kind", "value"], shuffle=False).batch(20)
valid = GeneratorDataset(Signals(30, 1), ["signal", "kind", "value"], shuffle=False).batch(15)
net = TwoHeads()
rng = np.random.RandomState(5)
for param in net.trainable_params():
    if param.ndim > 1:
        param.set_data(Tensor(rng.normal(0, 0.2, param.shape), ms.float32))
loss_net = MultiTask(net)
optimizer = nn.Adam(net.trainable_params(), learning_rate=nn.ExponentialDecayLR(0.01, 0.95, 3))
grad_fn = ms.value_and_grad(loss_net, None, optimizer.parameters, has_aux=True)
best, patience = float("inf"), 0
for epoch in range(5):
    loss_net.set_train()
    for data in train.create_dict_iterator(num_epochs=1):
        (loss, (a, b)), grads = grad_fn(data["signal"], data["kind"], data["value"])
        norms = [ops.norm(g) for g in grads]
        optimizer(ops.clip_by_norm(grads, 1.0) if epoch == 4 else ops.clip_by_value(grads, -0.5, 0.5))
    loss_net.set_train(False)
    accuracy, top, error, losses = Accuracy("classification"), Top1CategoricalAccuracy(), MAE(), []
    for signal, kind, value in valid.create_tuple_iterator(num_epochs=1):
        out = net(signal)
        losses.append(float(loss_net(signal, kind, value)[0].asnumpy()))
        accuracy.update(out["class"], kind)
        top.update(out["class"], kind)
        error.update(out["value"], value)
    mean = sum(losses) / len(losses)
    print(f"epoch {epoch}: train {loss.asnumpy():.4f} ({a.asnumpy():.4f}, {b.asnumpy():.4f}) valid {mean:.4f} "
          f"accuracy {accuracy.eval():.3f} top1 {top.eval():.3f} mae {error.eval():.4f} norm {float(norms[0].asnumpy()):.3f}")
    if mean < best:
        best, patience = mean, 0
        ms.save_checkpoint(net, "best.ckpt")
    else:
        patience += 1
        if patience == 2:
            break
os.chmod("best.ckpt", 0o600)
fresh = TwoHeads()
print(ms.load_param_into_net(fresh, ms.load_checkpoint("best.ckpt"), strict_load=True))
fresh.set_train(False)
sample = Tensor(Signals(2, 7).signal, ms.float32)
print({key: np.round(value.asnumpy(), 3).tolist() for key, value in fresh(sample).items()})
