"""Transfer learning: a saved backbone is loaded, frozen and given a new head; saving and loading in the middle of training."""
import os
import sys

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, load_checkpoint, load_param_into_net, save_checkpoint
from mindspore.dataset import NumpySlicesDataset
from mindspore.train import Accuracy, Model

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Backbone(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(3, 6, 3, has_bias=True, bias_init="zeros"), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 12, 3, pad_mode="valid"), nn.ReLU(),
        )
        self.pool = nn.AdaptiveAvgPool2d((1, 1))

    def construct(self, x):
        return self.pool(self.features(x)).flatten(start_dim=1)


class Classifier(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.fc = nn.Dense(12, classes, bias_init="zeros")

    def construct(self, x):
        return self.fc(self.backbone(x))


def fill(net, seed):
    rng = np.random.RandomState(seed)
    for param in net.trainable_params():
        if param.ndim > 1:
            param.set_data(Tensor(rng.normal(0, 0.3, param.shape), ms.float32))


def data(classes, seed):
    rng = np.random.RandomState(seed)
    centres = np.random.RandomState(99).normal(0, 1, (classes, 3, 8, 8))
    labels = rng.randint(0, classes, 64).astype(np.int32)
    images = (centres[labels] + rng.normal(0, 0.3, (64, 3, 8, 8))).astype(np.float32)
    return NumpySlicesDataset({"image": images, "label": labels}, shuffle=False).batch(16)


old = Classifier(4)
fill(old, 0)
loss = nn.CrossEntropyLoss()
model = Model(old, loss, nn.Momentum(old.trainable_params(), 0.05, 0.9), metrics={"acc": Accuracy()})
model.train(3, data(4, 1), dataset_sink_mode=False)
print("old", {k: round(float(v), 4) for k, v in model.eval(data(4, 2), dataset_sink_mode=False).items()})
save_checkpoint(old, "old.ckpt", append_dict={"epoch": 3, "lr": 0.05, "name": "old", "best": True})
ckpt = load_checkpoint("old.ckpt")
print({key: value.value() if hasattr(value, "value") and value.ndim == 0 else None for key, value in ckpt.items() if "." not in key}.keys())
print(int(ckpt["epoch"].asnumpy()), round(float(ckpt["lr"].asnumpy()), 3), type(ckpt["fc.weight"]).__name__, ckpt["fc.weight"].shape)

net = Classifier(3)
fill(net, 5)
for key in list(ckpt):
    if key.startswith("fc.") or "." not in key:
        ckpt.pop(key)
not_loaded, unused = load_param_into_net(net, ckpt)
print("not loaded", not_loaded, "unused", unused)
for param in net.get_parameters():
    if not param.name.startswith("fc"):
        param.requires_grad = False
print([p.name for p in net.trainable_params()], len(net.untrainable_params()))
before = net.backbone.features[0].weight.asnumpy().copy()
statistics = net.backbone.features[1].moving_mean.asnumpy().copy()

optimizer = nn.Adam(net.trainable_params(), 0.02)
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
step.set_train()
net.backbone.set_train(False)
for epoch in range(4):
    for image, label in data(3, 3):
        value = step(image, label)
    print("head epoch", epoch, "loss", "%.4f" % float(value.asnumpy()))
    if epoch == 1:
        save_checkpoint([{"name": p.name, "data": p} for p in step.get_parameters()], "middle.ckpt")
print("backbone kept", bool((before == net.backbone.features[0].weight.asnumpy()).all()),
      bool((statistics == net.backbone.features[1].moving_mean.asnumpy()).all()))

middle = load_checkpoint("middle.ckpt")
print(sorted(middle)[:6], len(middle))
net = Classifier(3)
load_param_into_net(net, middle)
for param in net.backbone.get_parameters():
    param.requires_grad = False
optimizer = nn.Adam(net.trainable_params(), 0.02)
load_param_into_net(optimizer, middle)
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
step.set_train()
net.backbone.set_train(False)
print("global_step", int(optimizer.global_step.asnumpy()[0]))
for epoch in range(2, 4):
    for image, label in data(3, 3):
        value = step(image, label)
    print("again epoch", epoch, "loss", "%.4f" % float(value.asnumpy()))
chosen = load_checkpoint("middle.ckpt", net=None, choice_func=lambda name: name.startswith("fc"))
print(sorted(chosen), oct(os.stat("middle.ckpt").st_mode & 0o777))
for param in net.backbone.get_parameters():
    param.requires_grad = "moving" not in param.name
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.SGD(net.trainable_params(), 0.01))
step.set_train()
for image, label in data(3, 3):
    value = step(image, label)
print("fine tuning", "%.4f" % float(value.asnumpy()), bool((before == net.backbone.features[0].weight.asnumpy()).all()))
